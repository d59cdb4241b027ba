//! Publication into the queues.

use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::connection::Role;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::{RecordKey, RecordState};
use storybus_core::domain::time::Millis;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;

use super::{Claims, Memory, State, Taken};

/// How long a published message id is dropped.
const DEDUPLICATION: Duration = Duration::from_secs(300);

impl State {
    /// Whether the attempt still holds the record, within its time.
    fn claim_stands(&self, publication: &Publication, now: Millis) -> bool {
        let key = RecordKey {
            workspace: publication.workspace.clone(),
            message_id: publication.message_id,
        };
        let held = self
            .live(&key, now)
            .is_some_and(|r| r.state == RecordState::Recorded && r.attempt == publication.claim.attempt);
        held && now < publication.claim.until
    }

    fn publish(&mut self, publication: &Publication, now: Millis) {
        let id = (publication.workspace.clone(), publication.message_id);
        if self
            .published
            .get(&id)
            .is_some_and(|at| now < at.plus(DEDUPLICATION))
        {
            return;
        }
        self.published.insert(id, now);
        self.taken.push(Taken {
            at: now,
            workspace: publication.workspace.clone(),
            message_id: publication.message_id,
            correlation_id: publication.correlation_id,
            attempt: publication.claim.attempt,
        });
        let number = self.number();
        self.archive(number, publication, now);
        let wanting: Vec<QueueKey> = self
            .connections
            .values()
            .filter(|c| c.workspace.as_ref() == Some(&publication.workspace))
            .filter(|c| matches!(&c.role, Role::Consumer(consumer) if consumer.filter.matches(&publication.attributes)))
            .map(|c| QueueKey { workspace: publication.workspace.clone(), consumer: c.id.clone() })
            .collect();
        for key in wanting {
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.push(number, publication, now);
            }
        }
    }
}

#[async_trait]
impl Topic for Memory {
    async fn publish(&self, publication: &Publication, _timeout: Duration) -> Result<(), PublishError> {
        let now = self.clock.now();
        {
            let mut state = self.lock();
            if self.claims == Claims::Checked && !state.claim_stands(publication, now) {
                let reason = "the claim is lost or over".to_owned();
                return Err(PublishError::Refused {
                    reason,
                    retryable: false,
                });
            }
            state.publish(publication, now);
        }
        self.changed();
        Ok(())
    }
}
