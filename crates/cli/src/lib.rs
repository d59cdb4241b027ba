//! The binary `storybus`: the bus in one process, and a client's first verbs.
//!
//! - [`serve`]: the bus: the ports of the process ([`ports`]) and of the store behind the routes of `/v1`, behind the
//!   [`server`].
//! - [`client`]: `publish` and `pull`.
//! - [`args`], [`exit`], [`logging`]: what a command line tool needs.

pub mod args;
pub mod client;
pub mod exit;
pub mod logging;
pub mod metrics;
pub mod ports;
pub mod private_file;
pub mod process;
pub mod serve;
pub mod server;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::exit::Failure;

/// Runs the command line; the code that the process ends with.
pub fn run() -> Result<u8, Failure> {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Publish(args) => client::publish(&args),
        Command::Pull(args) => client::pull(args),
    }
}
