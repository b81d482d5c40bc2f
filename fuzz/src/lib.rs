//! What is fuzzed; `targets` is read by the fuzzer and, with the kept inputs, by an ordinary test of the gateway's.
#![forbid(unsafe_code)]

pub mod targets;
