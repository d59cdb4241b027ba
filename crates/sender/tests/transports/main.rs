//! The transports and the one call, against servers of the tests' own on loopback: what a bus, a gateway, a proxy or an enemy may answer.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that meets the unexpected ends there; the cases tell how many have run"
)]

mod bus;
mod cases;
mod hostile;
mod proxy;
mod rest;
mod retry_after;
mod support;
mod token;
