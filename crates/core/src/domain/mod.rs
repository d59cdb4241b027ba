//! What the bus speaks of: plain values, no input or output.

pub mod activity;
pub mod archived;
pub mod connection;
pub mod dead_letter;
pub mod delivery;
pub mod filter;
pub mod job;
pub mod message;
pub mod record;
pub mod refusal;
pub mod time;
pub mod trace;
