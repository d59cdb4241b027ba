//! Dead letters, to be looked at and redriven.

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::{DeadLetters, StoreError};
use storybus_protocol::id::JobId;

use super::{Memory, State, number};

impl State {
    /// Whether the job is (still) the one read.
    pub(super) fn has_turn(&self, turn: &Turn) -> bool {
        self.jobs
            .get(&turn.job)
            .is_some_and(|job| job.version == turn.version)
    }
}

/// The first of these, up to the limits.
fn within<'a>(
    letters: impl Iterator<Item = (u64, &'a DeadLetter)>,
    limits: DeadLetterLimits,
) -> (Vec<u64>, bool) {
    let mut numbers = Vec::new();
    let mut bytes = 0;
    for (number, letter) in letters {
        bytes += letter.body.len();
        if numbers.len() >= limits.letters || (bytes > limits.bytes && !numbers.is_empty()) {
            return (numbers, true);
        }
        numbers.push(number);
    }
    (numbers, false)
}

fn is_wanted(letter: &DeadLetter, wanted: Wanted<'_>) -> bool {
    match wanted {
        Wanted::All { until } => letter.dead_at <= until,
        Wanted::Messages(ids) => ids.contains(&letter.message_id),
        Wanted::Held => false,
    }
}

#[async_trait]
impl DeadLetters for Memory {
    async fn list(
        &self,
        queue: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        let now = self.clock.now();
        let mut state = self.lock();
        let Some(queue) = state.queues.get_mut(queue) else {
            return Ok((Vec::new(), false));
        };
        let dead = queue.dead_letters(now);
        let (numbers, more) = within(
            dead.iter()
                .filter(|(n, _)| after.is_none_or(|after| number(after) < Some(**n)))
                .map(|(n, letter)| (*n, letter)),
            limits,
        );
        let letters = numbers.iter().filter_map(|n| dead.get(n)).cloned().collect();
        Ok((letters, more))
    }

    async fn take(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        let now = self.clock.now();
        let mut state = self.lock();
        if !state.has_turn(turn) {
            return Ok(None);
        }
        let Some(queue) = state.queues.get_mut(queue) else {
            return Ok(Some(Vec::new()));
        };
        let dead = queue.dead_letters(now);
        let behind = || {
            dead.iter()
                .filter(|(n, _)| after.is_none_or(|after| number(after) < Some(**n)))
                .map(|(n, letter)| (*n, letter))
        };
        let held = || behind().filter(|(_, letter)| letter.taken_by.as_ref() == Some(&turn.job));
        let (numbers, _) = if held().next().is_some() {
            within(held(), limits)
        } else {
            within(
                behind().filter(|(_, letter)| letter.taken_by.is_none() && is_wanted(letter, wanted)),
                limits,
            )
        };
        let mut taken = Vec::new();
        for number in numbers {
            if let Some(letter) = dead.get_mut(&number) {
                letter.taken_by = Some(turn.job.clone());
                taken.push(letter.clone());
            }
        }
        Ok(Some(taken))
    }

    async fn remove(&self, queue: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut state = self.lock();
        if let Some(queue) = state.queues.get_mut(queue) {
            queue.dead_letters(now).retain(|_, letter| {
                letter.taken_by.as_ref() != Some(job) || !positions.contains(&letter.position)
            });
        }
        Ok(())
    }

    async fn release(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut state = self.lock();
        if let Some(queue) = state.queues.get_mut(queue) {
            for letter in queue.dead_letters(now).values_mut() {
                letter.taken_by.take_if(|holder| holder == job);
            }
        }
        Ok(())
    }

    fn is_position(&self, position: &Position) -> bool {
        number(position).is_some()
    }
}
