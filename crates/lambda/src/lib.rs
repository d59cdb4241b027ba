//! What the functions on AWS share: settings, logs, metrics, events in and answers out.
//!
//! - [`settings`]: what a function is told by its environment; a variable that is missing or wrong ends it at its start.
//! - [`http`]: an event of an HTTP API to a request, the bus's answer back.
//! - [`queue`], [`jobs`]: batches of an SQS queue, and replays and redrives.
//! - [`logs`], [`metrics`]: one JSON object a line, on standard output.
//! - [`panics`]: a panic is an answer and a line, and the next request works.
//! - [`ports`]: time, randomness, hashes of secrets.
//! - [`wiring`], [`policies`]: which ports each function has, and what it may therefore do on AWS.

pub mod functions;
pub mod http;
mod invocation;
pub mod jobs;
pub mod logs;
pub mod metrics;
pub mod panics;
pub mod policies;
pub mod ports;
pub mod queue;
mod runtime;
pub mod settings;
mod setup;
pub mod wiring;

pub use functions::{QueueHandler, Worker, refusals};
pub use invocation::Invocation;
pub use runtime::{Deployment, Handler, run};
pub use settings::{Settings, SettingsError};
pub use setup::Setup;
