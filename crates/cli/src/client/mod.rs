//! A client to try the bus with: `storybus publish` and `storybus pull`.
//!
//! - `settings`: which bus, who I am.
//! - `bus`: one request and its answer, tokens, retries.
//! - `json`: JSON text made readable without changing what it says.

mod bus;
mod json;
mod publish;
mod pull;
mod settings;

pub use publish::{PublishArgs, publish};
pub use pull::{PullArgs, pull};
