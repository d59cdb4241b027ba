//! The functions of the bus on AWS as the processes that they are, in a Lambda runtime of the test's own, over an emulator of AWS.
//!
//! - [`Stack`]: an emulator with a deployment of the bus on it.
//! - [`Function`]: a process of a function; it can be invoked, killed, frozen and ended at its time limit.
//! - [`Plan`], [`Fault`]: what happens to which call of AWS that it makes.
//! - [`queue`]: what a queue holds.
//!
//! Processes, time and network are real here.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(
    clippy::disallowed_methods,
    reason = "the functions are real processes: their time is real"
)]

mod fault;
mod function;
mod proxy;
pub mod queue;
mod runtime;
mod stack;
mod tables;
mod wire;

pub use fault::{Fault, Freeze, Plan, Where};
pub use function::{Ended, Function};
pub use proxy::{Journal, Passed};
pub use stack::{Answer, Stack, now};

/// How much of a proof is run: `STORYBUS_PROOF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// A part, for every change.
    Short,
    /// `whole`: all, at times made short for the test.
    Whole,
    /// `deep`: all, at the times of a deployment.
    Deep,
}

impl Length {
    /// What this run was asked for.
    #[must_use]
    pub fn of_run() -> Self {
        match std::env::var("STORYBUS_PROOF").as_deref() {
            Ok("deep") => Self::Deep,
            Ok("whole") => Self::Whole,
            _ => Self::Short,
        }
    }
}

/// Waits.
pub async fn rest(span: std::time::Duration) {
    tokio::time::sleep(span).await;
}
