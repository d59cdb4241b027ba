//! The binary from outside: started, used, abused, stopped and killed as its users would.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets the unexpected ends there"
)]

mod abuse;
mod bus;
mod client;
mod data;
mod disk;
#[cfg(feature = "faults")]
mod faults;
mod jobs;
mod log;
mod operator;
mod sender;
mod start;
mod stop;
mod verbs;
