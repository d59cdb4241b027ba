//! Acknowledging and giving back, by batches of which each entry has its own answer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry as Change,
    DeleteMessageBatchRequestEntry as Delete,
};
use storybus_core::domain::delivery::{QueueKey, Settled};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;

use super::{Handle, Seal, SqsQueues, cut};
use crate::call::{Failed, Outcome};

/// The most entries of a batch.
const BATCH: usize = 10;

/// Handles of one call: each once, those that are none left out.
pub(super) struct Asked {
    /// Each once.
    pub(super) handles: Vec<Handle>,
    /// Where each handle of the call is among them.
    places: Vec<Option<usize>>,
}

impl Asked {
    pub(super) fn of(texts: &[String], queue: &QueueKey, seal: Option<&Seal>) -> Self {
        let (mut handles, mut places): (Vec<Handle>, _) = (Vec::new(), Vec::new());
        for text in texts {
            places.push(Handle::decode(text, queue, seal).map(|handle| {
                let known = handles
                    .iter()
                    .position(|other| other.sqs_handle == handle.sqs_handle);
                known.unwrap_or_else(|| {
                    handles.push(handle);
                    handles.len() - 1
                })
            }));
        }
        Self { handles, places }
    }

    /// Answers in the order of the call.
    pub(super) fn answers(&self, settled: &[Settled]) -> Vec<Settled> {
        let answer = |place: &Option<usize>| place.and_then(|n| settled.get(n).copied());
        let answers = self.places.iter().map(answer);
        answers.map(|answer| answer.unwrap_or(Settled::Invalid)).collect()
    }
}

/// What is asked of a batch.
#[derive(Clone, Copy)]
enum Ask {
    Delete,
    /// From this time on, for so long.
    Hide(Millis, Duration),
}

impl SqsQueues {
    /// Deletes. What is deleted already is done, as long as the handle lasts.
    pub(super) async fn delete(
        &self,
        queue: &QueueKey,
        handles: &[Handle],
    ) -> Result<Vec<Settled>, StoreError> {
        self.by_batches(queue, handles, Ask::Delete).await
    }

    /// Hides for so long from now, or makes visible.
    pub(super) async fn hide(
        &self,
        queue: &QueueKey,
        handles: &[Handle],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.by_batches(queue, handles, Ask::Hide(self.clock.now(), delay))
            .await
    }

    async fn by_batches(
        &self,
        queue: &QueueKey,
        handles: &[Handle],
        ask: Ask,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut answers = Vec::with_capacity(handles.len());
        for batch in handles.chunks(BATCH) {
            answers.extend(self.batch(queue, batch, ask).await?);
        }
        Ok(answers)
    }

    /// Asks for at most ten, then again for those that failed without a fault of theirs.
    async fn batch(
        &self,
        queue: &QueueKey,
        handles: &[Handle],
        ask: Ask,
    ) -> Result<Vec<Settled>, StoreError> {
        let url = self.url(queue);
        let progress = Mutex::new(Progress {
            pending: (0..handles.len()).collect(),
            answers: vec![Settled::Done; handles.len()],
        });
        self.aws
            .caller
            .write(|| async {
                let pending = lock(&progress).pending.clone();
                if pending.is_empty() {
                    return Ok(());
                }
                match self.send(&url, handles, &pending, ask).await {
                    Ok(failed) => lock(&progress).note(failed),
                    // the queue has gone, and its messages with it
                    Err(failed) if failed.is_absent() => {
                        lock(&progress).answers.fill(Settled::Invalid);
                        Ok(())
                    }
                    Err(failed) => Err(failed),
                }
            })
            .await?;
        Ok(progress
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .answers)
    }

    async fn send(
        &self,
        url: &str,
        handles: &[Handle],
        pending: &[usize],
        ask: Ask,
    ) -> Result<Vec<BatchResultErrorEntry>, Failed> {
        let chosen = pending
            .iter()
            .filter_map(|n| Some((n.to_string(), handles.get(*n)?)));
        match ask {
            Ask::Delete => {
                let entry = |(id, handle): (String, &Handle)| {
                    Delete::builder()
                        .id(id)
                        .receipt_handle(&handle.sqs_handle)
                        .build()
                        .ok()
                };
                let delete = self.aws.sqs.delete_message_batch().queue_url(url);
                let entries = chosen.filter_map(entry).collect();
                Ok(delete.set_entries(Some(entries)).send().await?.failed)
            }
            Ask::Hide(now, delay) => {
                let entry = |(id, handle): (String, &Handle)| {
                    let seconds = cut(delay, handle.hidden_since, now).as_secs();
                    let change = Change::builder().id(id).receipt_handle(&handle.sqs_handle);
                    let change = change.visibility_timeout(i32::try_from(seconds).unwrap_or(i32::MAX));
                    change.build().ok()
                };
                let change = self.aws.sqs.change_message_visibility_batch().queue_url(url);
                let entries = chosen.filter_map(entry).collect();
                Ok(change.set_entries(Some(entries)).send().await?.failed)
            }
        }
    }
}

/// What is known of a batch.
struct Progress {
    pending: Vec<usize>,
    answers: Vec<Settled>,
}

impl Progress {
    /// What failed: by its handle, or to be asked for again.
    fn note(&mut self, failed: Vec<BatchResultErrorEntry>) -> Result<(), Failed> {
        self.pending.clear();
        let mut worst = Ok(());
        for entry in failed {
            let place = entry.id().parse::<usize>().ok();
            let Some((n, answer)) = place.and_then(|n| Some((n, self.answers.get_mut(n)?))) else {
                continue;
            };
            if is_invalid(entry.code()) {
                *answer = Settled::Invalid;
            } else {
                self.pending.push(n);
                worst = Err(of_entry(&entry));
            }
        }
        worst
    }
}

/// Nobody panics while holding it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that is none, has expired, or whose message is not hidden (any more).
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
fn is_invalid(code: &str) -> bool {
    let code = code.rsplit(['.', '#']).next().unwrap_or(code);
    matches!(
        code,
        "ReceiptHandleIsInvalid" | "InvalidParameterValue" | "InvalidIdFormat" | "MessageNotInflight"
    )
}

/// What an entry's failure means: SQS says whose fault it was.
pub(crate) fn of_entry(entry: &BatchResultErrorEntry) -> Failed {
    let reason = format!("{}: {}", entry.code(), entry.message().unwrap_or_default());
    let throttled = entry.code().contains("Thrott") || entry.code().contains("OverLimit");
    let outcome = match entry.sender_fault() {
        _ if throttled => Outcome::Throttled,
        true => Outcome::Refused,
        false => Outcome::Unknown,
    };
    Failed::new(outcome, reason)
}
