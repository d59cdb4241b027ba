//! Several attempts after each other: when again, and when not. One call of a client.
//!
//! [`send`] is a client without an outbox: it is right for what may be lost when the process ends, and it leaves the decision
//! about a [`commit.contention`](storybus_protocol::rule::COMMIT_CONTENTION) to its caller. The rule that it follows is
//! [`Round`]; a relay's [policy](crate::relay) begins with the same and goes beyond it.

mod limits;
mod round;

use std::time::Duration;

use crate::answer::{Answer, Outcome};
use crate::ports::{Clock, Random, fraction};
use crate::transport::{Outgoing, Transport};

pub use limits::Limits;
pub use round::{Round, Step};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The partner has the message now.
    Accepted,
    /// The partner had it already.
    Duplicate,
    /// A final no. Where the last answer is about the sender or the moment, the same bytes may go through another time.
    Refused,
    /// No final answer: the attempts are used up. Nobody knows whether the partner has the message; the same bytes may be sent again.
    Unavailable,
}

impl Ending {
    /// A word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub ending: Ending,
    /// How many attempts were made.
    pub attempts: u32,
    /// The last answer.
    pub answer: Answer,
}

/// An attempt that has been made: for logs, events and progress.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// Its number; the first is 1.
    pub attempt: u32,
    /// What came of it.
    pub answer: &'a Answer,
    /// How long the call pauses now; `None` when this was its last attempt.
    pub pause: Option<Duration>,
}

/// Sends a message: the same bytes at every attempt, until the answer is final or the attempts are used up. `observer` hears of
/// each attempt before the pause after it.
pub async fn send(
    transport: &dyn Transport,
    message: Outgoing<'_>,
    limits: Limits,
    clock: &dyn Clock,
    random: &dyn Random,
    observer: &mut (dyn FnMut(Made<'_>) + Send),
) -> Ended {
    let mut round = Round::new(limits);
    loop {
        let answer = transport.attempt(message, round.attempt()).await;
        let step = round.next(&answer, fraction(random));
        let pause = match step {
            Step::Again(pause) => Some(pause),
            Step::Done | Step::Exhausted => None,
        };
        observer(Made {
            attempt: round.made(),
            answer: &answer,
            pause,
        });
        let Some(pause) = pause else {
            return Ended {
                ending: ending(step, answer.outcome),
                attempts: round.made(),
                answer,
            };
        };
        if !pause.is_zero() {
            clock.sleep(pause).await;
        }
    }
}

fn ending(step: Step, outcome: Outcome) -> Ending {
    match (step, outcome) {
        (Step::Exhausted, _) => Ending::Unavailable,
        (_, Outcome::Accepted) => Ending::Accepted,
        (_, Outcome::Duplicate) => Ending::Duplicate,
        (_, Outcome::Refused | Outcome::TokenError | Outcome::NetworkError) => Ending::Refused,
    }
}
