//! Rejecting: a message becomes a dead letter at once.
//!
//! A FIFO queue gives away only the first of a group, and SQS moves messages to a queue of dead letters by their receives alone. So
//! the bus writes the dead letter itself, with the bytes of the archive, and deletes the message then: who dies between the two
//! leaves a message that comes again, and whose next rejection finds its dead letter.
//!
//! Which message it is, the handle says, and a consumer can write another's id into an open one. So of those only what its filter takes
//! becomes a dead letter of its: nothing that it could not have got anyway. A sealed one is as the bus made it: what was delivered
//! before the filter changed is rejected too.

use std::time::Duration;

use storybus_core::domain::archived::Archived;
use storybus_core::domain::connection::Consumer;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::{QueueKey, Settled};
use storybus_core::ports::StoreError;

use super::{Handle, SqsQueues};
use crate::dead_letters::Letter;

/// What a rejection needs of the visibility at least.
const LEAST: Duration = Duration::from_secs(60);
/// How often a message is looked for that is not archived yet, and how long is waited between: it is there in a moment.
const LOOKS: u32 = 12;
const BETWEEN: Duration = Duration::from_millis(250);

impl SqsQueues {
    /// Rejects.
    pub(super) async fn bury(
        &self,
        queue: &QueueKey,
        consumer: &Consumer,
        handles: &[Handle],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        // SQS alone knows whether a handle lasts, and it must last until the end
        let visibility = Duration::from_secs(consumer.visibility_seconds.into()).max(LEAST);
        let mut answers = self.hide(queue, handles, visibility).await?;
        let mut buried = Vec::new();
        let mut looks = LOOKS;
        for (handle, answer) in handles.iter().zip(&mut answers) {
            match answer {
                Settled::Done => match self.archived(queue, handle, &mut looks).await? {
                    Some(message) if handle.sealed || consumer.filter.matches(&message.head.attributes) => {
                        self.dead_letters
                            .put(queue, &self.letter(handle, message, reason))
                            .await?;
                        buried.push(handle.clone());
                    }
                    Some(_) | None => *answer = Settled::NotArchived,
                },
                // rejected before, and deleted since
                Settled::Invalid
                    if self
                        .dead_letters
                        .has_died(&queue.consumer, &handle.sqs_message_id)
                        .await? =>
                {
                    *answer = Settled::Done;
                }
                Settled::Invalid | Settled::NotArchived => {}
            }
        }
        if !buried.is_empty() {
            self.delete(queue, &buried).await?;
        }
        Ok(answers)
    }

    /// The message as it was published last. What was published just now is waited for, a few seconds in all.
    async fn archived(
        &self,
        queue: &QueueKey,
        handle: &Handle,
        looks: &mut u32,
    ) -> Result<Option<Archived>, StoreError> {
        loop {
            let found = self.archive.newest(&queue.workspace, handle.message_id).await?;
            if found.is_some() || *looks == 0 {
                return Ok(found);
            }
            *looks -= 1;
            crate::pace::rest(BETWEEN).await;
        }
    }

    fn letter(&self, handle: &Handle, message: Archived, reason: &str) -> Letter {
        Letter {
            sqs_message_id: handle.sqs_message_id.clone(),
            sequence_number: handle.sequence_number.clone(),
            message_id: handle.message_id,
            body: message.body,
            attributes: message.head.attributes,
            receive_count: handle.receive_count,
            enqueued_at: handle.enqueued_at,
            cause: Cause::Rejected(reason.to_owned()),
            redelivery: handle.redelivery.clone(),
        }
    }
}
