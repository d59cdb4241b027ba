//! The binary `storybus`: the bus in one process, a client's first verbs, and the operator's.
//!
//! - [`serve`]: the bus: the ports of the process ([`ports`]) and of the store behind the routes of `/v1`, behind the
//!   [`server`].
//! - [`client`]: `publish` and `pull`.
//! - [`sender`]: the idempotent sender: `send`, `outbox`, `relay`.
//! - [`data`]: the data directory: `backup`, `restore`, `check`.
//! - [`operator`]: the operator's verbs.
//! - [`aws`]: `deploy-check`, `rotate-signing-key`.
//! - [`args`], [`exit`], [`logging`]: what a command line tool needs.

pub mod args;
pub mod aws;
pub mod client;
pub mod data;
pub mod exit;
pub mod logging;
pub mod metrics;
pub mod operator;
pub mod ports;
pub mod private_file;
pub mod process;
pub mod sender;
pub mod serve;
pub mod server;

use crate::args::Command;
use crate::exit::Failure;

/// Runs the command line; the code that the process ends with.
pub fn run() -> Result<u8, Failure> {
    match args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Publish(args) => client::publish(&args),
        Command::Pull(args) => client::pull(args),
        Command::Send(args) => sender::send(&args),
        Command::Outbox(noun) => sender::outbox(&noun),
        Command::Relay(args) => sender::relay(&args),
        Command::Backup(args) => data::backup(&args),
        Command::Restore(args) => data::restore(&args),
        Command::Check(args) => data::check(&args),
        Command::DeployCheck(args) => aws::deploy_check(&args),
        Command::RotateSigningKey(args) => aws::rotate_signing_key(&args),
        Command::Operator(verb) => operator::run(&verb),
    }
}
