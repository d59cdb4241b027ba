//! The consumers' dead letters.

use async_trait::async_trait;
use storybus_protocol::id::{JobId, MessageId};

use super::StoreError;
use crate::domain::archived::Position;
use crate::domain::dead_letter::DeadLetter;
use crate::domain::delivery::QueueKey;
use crate::domain::job::Turn;
use crate::domain::time::Millis;

/// Which dead letters a redrive wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// All that were dead by then, that instant included.
    All {
        /// Then.
        until: Millis,
    },
    /// Those of these messages.
    Messages(&'a [MessageId]),
    /// None that it does not hold already.
    Held,
}

/// How much one call brings: it ends with the first limit that is met, but holds at least one if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterLimits {
    /// Dead letters.
    pub letters: usize,
    /// Bytes of their bodies together.
    pub bytes: usize,
}

/// The dead letters of all consumers, kept for [`RETENTION`](super::queues::RETENTION) from their death (gone at that age), and
/// while a job holds them.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Looks at dead letters behind `after`, in the order of their positions; and whether there are more.
    async fn list(
        &self,
        queue: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError>;

    /// Takes dead letters for a job, behind `after`, in the order of their positions: no other job gets them any more. They stay
    /// dead letters, to be looked at, until they are removed.
    ///
    /// What the job holds already behind `after` it gets again, and then nothing else in the same call: so whoever goes on with a
    /// step delivers what the step before it may have delivered, and no more. Empty when there is none for it. `None` when the
    /// turn is over, by the job's version in the same transaction as each letter that is taken.
    async fn take(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError>;

    /// Removes what the job has taken and what is safe in the queue. What is not there (any more), or is not the job's, is passed
    /// over.
    async fn remove(&self, queue: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError>;

    /// Gives back everything the job has taken and not removed.
    async fn release(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError>;

    /// Whether the text is a position of this engine.
    fn is_position(&self, position: &Position) -> bool;
}
