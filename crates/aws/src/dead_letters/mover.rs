//! From the queue of dead letters into the table.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use storybus_core::domain::connection::Role;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::{Clock, Connections, StoreError};
use storybus_protocol::id::ConnectionId;

use super::{DynamoDeadLetters, Letter};
use crate::arrived::Arrived;
use crate::item::unreadable;
use crate::{Aws, Config};

/// Moves what SQS put into the queue of dead letters into the table.
#[derive(Clone)]
pub struct Mover {
    dead_letters: DynamoDeadLetters,
    connections: Arc<dyn Connections>,
}

impl Aws {
    /// What the function `dead-letters` does; `connections` tells after how many receives a consumer's messages die, and may
    /// answer from a cache.
    #[must_use]
    pub fn mover(&self, connections: Arc<dyn Connections>, clock: Arc<dyn Clock>) -> Mover {
        Mover {
            dead_letters: self.dead_letters(clock),
            connections,
        }
    }
}

impl Mover {
    /// Moves a batch, in its order, and says which messages (by SQS's ids) are to come again: of each group the first that failed
    /// and all behind it. One that comes again becomes no second dead letter, though the first was redriven since.
    pub async fn accept(&self, batch: &[Arrived]) -> Vec<String> {
        let (mut again, mut stopped) = (Vec::new(), HashSet::new());
        for message in batch {
            if !stopped.contains(&message.group) {
                match self.accept_one(message).await {
                    Ok(()) => continue,
                    Err(error) => {
                        tracing::error!(sqs_message_id = %message.sqs_message_id, %error, "a dead letter was not moved");
                        stopped.insert(message.group.clone());
                    }
                }
            }
            again.push(message.sqs_message_id.clone());
        }
        again
    }

    async fn accept_one(&self, message: &Arrived) -> Result<(), StoreError> {
        let config = self.dead_letters.aws.config();
        let consumer = consumer_of(config, message).ok_or_else(|| unreadable("DeadLetterQueueSourceArn"))?;
        let queue = QueueKey {
            workspace: message
                .workspace()
                .parse()
                .map_err(|_| unreadable("MessageGroupId"))?,
            consumer,
        };
        let letter = Letter {
            sqs_message_id: message.sqs_message_id.clone(),
            sequence_number: message.sequence_number.clone(),
            message_id: message.message_id()?,
            body: Bytes::from(message.body.clone()),
            attributes: message.message_attributes()?,
            receive_count: self
                .limit(&queue.consumer)
                .await?
                .unwrap_or(message.receive_count),
            enqueued_at: message.sent_at,
            cause: Cause::MaxReceives,
            redelivery: message.redelivery().map(str::to_owned),
        };
        self.dead_letters.put(&queue, &letter).await
    }

    /// After how many receives a message of this consumer dies: SQS's own count goes on in the queue of dead letters.
    async fn limit(&self, consumer: &ConnectionId) -> Result<Option<u32>, StoreError> {
        let connection = self.connections.get(consumer).await?;
        Ok(connection.and_then(|connection| match connection.role {
            Role::Consumer(consumer) => Some(consumer.max_receives),
            Role::Producer(_) | Role::Operator => None,
        }))
    }
}

/// Whose queue a message comes from.
fn consumer_of(config: &Config, message: &Arrived) -> Option<ConnectionId> {
    let name = message.source_queue.as_deref()?.rsplit(':').next()?;
    let id = name.strip_prefix(&config.prefix)?.strip_prefix('-')?;
    id.strip_suffix(".fifo")?.parse().ok()
}
