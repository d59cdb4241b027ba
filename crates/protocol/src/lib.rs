//! What a client shares with the bus: ids, rule ids, answers. Knows serde and nothing else.
//!
//! Names, statuses and rule ids are fixed: clients branch on them. Only the `message` texts of violations are free.

pub mod answer;
pub mod id;
pub mod rule;
mod violation;

pub use violation::{Source, Violation};
