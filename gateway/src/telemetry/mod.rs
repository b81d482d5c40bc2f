//! What the process tells about itself: counters for Prometheus and lines for people. Nothing here decides anything.

pub mod log;
pub mod metrics;
