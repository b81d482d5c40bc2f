//! The one door: who may call, what a run may be offered, what may leave.
//!
//! Everything here is a pure rule over the configuration in force: no socket, no clock, no `async`. [`gate`] asks the questions in their
//! order; each rule stands in a file of its own. What has passed carries a [`Cleared`], which only the gate can make.

pub mod arguments;
pub mod budget;
pub mod counters;
pub mod egress;
pub mod facts;
pub mod gate;
pub mod grant;
pub mod known;
pub mod limits;
pub mod rate;
pub mod redact;
pub mod window;
pub mod zone;

pub use gate::Cleared;
