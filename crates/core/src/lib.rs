//! The bus itself.
//!
//! [`domain`] holds what the bus speaks of, [`ports`] what it needs from an engine, [`ops`] what it does: one
//! operation a verb of the contract. Nothing here knows an engine, a runtime, the environment, the clock or a source
//! of randomness: each comes in through a port, so that the same code runs on SQLite, on AWS and in a test that stops
//! it at every step.

mod bus;
pub mod domain;
pub mod ops;
pub mod ports;

pub use bus::{Bus, Ports, Settings};
