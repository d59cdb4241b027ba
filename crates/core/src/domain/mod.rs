//! What the bus speaks of: plain values, no input or output.

pub mod connection;
pub mod delivery;
pub mod filter;
pub mod message;
pub mod record;
pub mod refusal;
pub mod time;
