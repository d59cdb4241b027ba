//! The binary `storybus`: the bus in one process, and a client's first verbs.

pub mod metrics;
pub mod ports;
pub mod private_file;
pub mod process;
pub mod server;
