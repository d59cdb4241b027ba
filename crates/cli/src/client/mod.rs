//! A client to try the bus with: `storybus publish` and `storybus pull`; and what every client of a bus needs.
//!
//! - `settings`: which bus, who I am. `profiles`: the same under a name.
//! - `bus`: one request, tokens, retries. `answer`: what came of it, and what may be asked again.
//! - `json`: JSON text made readable without changing what it says.

pub(crate) mod answer;
pub(crate) mod bus;
pub(crate) mod json;
pub(crate) mod profiles;
mod publish;
mod pull;
pub(crate) mod settings;

pub use publish::{PublishArgs, publish};
pub use pull::{PullArgs, pull};
