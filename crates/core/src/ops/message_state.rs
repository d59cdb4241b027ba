//! What became of a message, for the producer that sent it.

use storybus_protocol::answer::MessageState;
use storybus_protocol::id::MessageId;
use storybus_protocol::rule;

use super::{Caller, refused_by_store};
use crate::bus::Bus;
use crate::domain::record::{RecordKey, RecordState};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;

/// A message's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageStatus {
    /// Which message.
    pub message_id: MessageId,
    /// Where it stands.
    pub state: MessageState,
    /// When it was recorded, or claimed last.
    pub recorded_at: Millis,
    /// When it was known published.
    pub published_at: Option<Millis>,
}

impl Bus {
    /// What became of a message of this producer.
    ///
    /// # Errors
    ///
    /// `404 message.not_found` when the bus does not know it (any more), or another producer sent it.
    pub async fn message_state(&self, caller: &Caller, message_id: &str) -> Result<MessageStatus, Refusal> {
        let unknown = || {
            Refusal::policy(
                RefusalKind::NotFound,
                rule::MESSAGE_NOT_FOUND,
                "this producer has no such message here, or it is older than 7 days",
            )
        };
        let message_id: MessageId = message_id.parse().map_err(|_| unknown())?;
        let key = RecordKey {
            workspace: caller.workspace.id.clone(),
            message_id,
        };
        let reading = self
            .ports
            .ledger
            .read(&key, None, self.ports.clock.now())
            .await
            .map_err(|error| refused_by_store("message_state", &error))?;
        let record = reading
            .record
            .filter(|r| r.producer == caller.connection.id)
            .ok_or_else(unknown)?;
        let state = match record.state {
            RecordState::Recorded => MessageState::InFlight,
            RecordState::Published => MessageState::Published,
            RecordState::Superseded => MessageState::Superseded,
        };
        Ok(MessageStatus {
            message_id,
            state,
            recorded_at: record.recorded_at,
            published_at: record.published_at,
        })
    }
}
