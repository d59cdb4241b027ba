//! Dead letters in the hands of jobs: a letter's `taken_by` says whose it is, and each change of it is a condition on it. Taking one
//! is also a condition on the job, in the same transaction: a runner that was paused takes nothing once its job has gone on, or a
//! job that is over would hold the letter for ever.

use futures::stream::{StreamExt, TryStreamExt, iter};
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::ports::StoreError;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_protocol::id::JobId;

use super::{DynamoDeadLetters, item};
use crate::call::Failed;
use crate::item::{Attributes as _, Item, key, n, s};
use crate::keys;
use crate::writes::{Action, Check, Committed};

/// How many items are removed or released at a time.
const AT_ONCE: usize = 8;

/// Letters up to the limits of a call; the first always has room.
pub(super) struct Batch {
    pub(super) letters: Vec<DeadLetter>,
    limits: DeadLetterLimits,
    bytes: usize,
    full: bool,
}

impl Batch {
    pub(super) fn new(limits: DeadLetterLimits) -> Self {
        Self {
            letters: Vec::new(),
            limits,
            bytes: 0,
            full: false,
        }
    }

    /// Adds a letter if it has room; if one has none, no later one has.
    pub(super) fn add(&mut self, letter: DeadLetter) -> bool {
        let bytes = self.bytes.saturating_add(letter.body.len());
        let over = self.letters.len() >= self.limits.letters || bytes > self.limits.bytes;
        self.full |= over && !self.letters.is_empty();
        if !self.full {
            self.bytes = bytes;
            self.letters.push(letter);
        }
        !self.full
    }
}

fn wants(wanted: Wanted<'_>, letter: &DeadLetter) -> bool {
    match wanted {
        Wanted::All { until } => letter.dead_at <= until,
        Wanted::Messages(ids) => ids.contains(&letter.message_id),
        Wanted::Held => false,
    }
}

/// What became of taking one.
enum Took {
    It(Box<DeadLetter>),
    /// Another has it, or it has gone.
    Nothing,
    /// The job has gone on.
    NoTurn,
}

impl DynamoDeadLetters {
    pub(super) async fn take_for(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        let job = &turn.job;
        let mut after = after.map(|position| position.0.clone());
        let (mut held, mut free) = (Batch::new(limits), Batch::new(limits));
        loop {
            let page = self.page(&queue.consumer, after.as_deref()).await?;
            for item in &page.items {
                let letter = item::letter(item)?;
                match &letter.taken_by {
                    Some(holder) if holder == job => {
                        held.add(letter);
                    }
                    None if wants(wanted, &letter) => {
                        free.add(letter);
                    }
                    _ => {}
                }
            }
            // a job takes in order, so what it holds is not behind more than it could take
            let enough = held.full || (held.letters.is_empty() && free.full);
            match page.next {
                Some(next) if !enough => after = Some(next),
                _ => break,
            }
        }
        if !held.letters.is_empty() {
            return Ok(self.has_turn(turn).await?.then_some(held.letters));
        }
        if free.letters.is_empty() {
            return Ok(self.has_turn(turn).await?.then(Vec::new));
        }
        // One after the other: a take that ends half-way then leaves none free before one that it took, which the next would pass over.
        let mut taken = Vec::with_capacity(free.letters.len());
        for letter in free.letters {
            match self.take_one(queue, turn, letter).await? {
                Took::It(letter) => taken.push(*letter),
                Took::Nothing => {}
                Took::NoTurn => return Ok(None),
            }
        }
        Ok(Some(taken))
    }

    /// Whether the job is as it was read.
    async fn has_turn(&self, turn: &Turn) -> Result<bool, StoreError> {
        let item = self.aws.item(keys::job(turn.job.as_str())).await?;
        Ok(item.and_then(|item| item.number::<u64>("version")) == Some(turn.version))
    }

    /// Takes one, unless another job has it by now or it has gone.
    async fn take_one(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mut letter: DeadLetter,
    ) -> Result<Took, StoreError> {
        let take = Action::update(
            place(queue, &letter.position),
            "SET taken_by = :job REMOVE expires_at",
        )
        .when(
            "attribute_exists(pk) AND (taken_by = :job OR (attribute_not_exists(taken_by) AND expires_at > :now))",
        )
        .value(":job", s(turn.job.as_str()))
        .value(":now", n(self.now_seconds()));
        let in_turn = Action::check(keys::job(turn.job.as_str()))
            .when("version = :version")
            .value(":version", n(turn.version));
        // a repetition finds the letter ours, which is no obstacle
        let written = self
            .aws
            .write_together(self.table(), None, vec![take, in_turn])
            .await?;
        Ok(match written {
            Committed::Done => {
                letter.taken_by = Some(turn.job.clone());
                Took::It(Box::new(letter))
            }
            Committed::Refused { checks, .. } => match checks.get(1).and_then(Check::failed) {
                Some(_) => Took::NoTurn,
                None => Took::Nothing,
            },
        })
    }

    pub(super) async fn remove_of(
        &self,
        queue: &QueueKey,
        job: &JobId,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        let places: Vec<Item> = positions.iter().map(|position| place(queue, position)).collect();
        iter(places)
            .map(|item| self.remove_one(job, item))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn remove_one(&self, job: &JobId, item: Item) -> Result<(), StoreError> {
        self.aws
            .caller
            .write(|| async {
                let delete = self.aws.dynamodb.delete_item().table_name(self.table());
                let delete = delete
                    .set_key(Some(item.clone()))
                    .condition_expression("taken_by = :job")
                    .expression_attribute_values(":job", s(job.as_str()));
                held(delete.send().await.map_err(Failed::from)).map(|_| ())
            })
            .await
    }

    pub(super) async fn release_of(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        let mut after: Option<String> = None;
        loop {
            let page = self.page(&queue.consumer, after.as_deref()).await?;
            let mut letters = Vec::new();
            for item in &page.items {
                letters.push(item::letter(item)?);
            }
            letters.retain(|letter| letter.taken_by.as_ref() == Some(job));
            iter(letters)
                .map(|letter| self.release_one(queue, job, letter))
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Gives one back; it is as old as it is.
    async fn release_one(&self, queue: &QueueKey, job: &JobId, letter: DeadLetter) -> Result<(), StoreError> {
        let item = place(queue, &letter.position);
        self.aws
            .caller
            .write(|| async {
                let update = self.aws.dynamodb.update_item().table_name(self.table());
                let update = update
                    .set_key(Some(item.clone()))
                    .update_expression("SET expires_at = :until REMOVE taken_by")
                    .condition_expression("taken_by = :job")
                    .expression_attribute_values(":job", s(job.as_str()))
                    .expression_attribute_values(":until", n(item::kept_until(letter.dead_at)));
                held(update.send().await.map_err(Failed::from)).map(|_| ())
            })
            .await
    }
}

fn place(queue: &QueueKey, position: &Position) -> Item {
    key(keys::dead_letters(&queue.consumer), &position.0)
}

/// Whether the condition of a write held.
fn held<T>(written: Result<T, Failed>) -> Result<bool, Failed> {
    match written {
        Ok(_) => Ok(true),
        Err(failed) if failed.code.as_deref() == Some("ConditionalCheckFailedException") => Ok(false),
        Err(failed) => Err(failed),
    }
}
