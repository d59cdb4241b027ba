//! From the queue of dead letters into the table.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use storybus_core::domain::connection::Role;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::message::MAX_WITH_ATTRIBUTES;
use storybus_core::ports::{Clock, Connections, StoreError};
use storybus_protocol::id::ConnectionId;

use super::{DynamoDeadLetters, Letter};
use crate::arrived::Arrived;
use crate::item::unreadable;
use crate::{Aws, Config};

/// What a job's mark weighs at most, beside what a message may weigh.
const MARK: usize = 256;

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

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// Which messages (by SQS's ids) are to come again.
    pub again: Vec<String>,
    /// How many were none of the bus: they are dropped.
    pub foreign: usize,
}

impl Mover {
    /// Moves a batch, in its order. Of each group the first that failed and all behind it are to come again. One that comes again
    /// becomes no second dead letter, though the first was redriven since.
    ///
    /// What is no message of the bus, since somebody else has sent it to a queue, is dropped with a line in the log: it would come
    /// again for as long as the queue keeps it, and hold up its group. What the bus itself has delivered is in the archive besides.
    pub async fn accept(&self, batch: &[Arrived]) -> Moved {
        let (mut moved, mut stopped) = (Moved::default(), HashSet::new());
        for message in batch {
            if stopped.contains(&message.group) {
                moved.again.push(message.sqs_message_id.clone());
                continue;
            }
            let (queue, letter) = match self.read(message) {
                Ok(read) => read,
                Err(error) => {
                    let (sqs_message_id, source) = (&message.sqs_message_id, &message.source_queue);
                    tracing::error!(sqs_message_id, source, %error, "what came to the dead letters is no message of the bus, and is dropped");
                    moved.foreign += 1;
                    continue;
                }
            };
            if let Err(error) = self.accept_one(&queue, letter).await {
                tracing::error!(sqs_message_id = %message.sqs_message_id, %error, "a dead letter was not moved");
                stopped.insert(message.group.clone());
                moved.again.push(message.sqs_message_id.clone());
            }
        }
        moved
    }

    async fn accept_one(&self, queue: &QueueKey, mut letter: Letter) -> Result<(), StoreError> {
        if let Some(limit) = self.limit(&queue.consumer).await? {
            letter.receive_count = limit;
        }
        self.dead_letters.put(queue, &letter).await
    }

    /// The dead letter of a message, as far as it says itself; an error if none can ever be made of it.
    fn read(&self, message: &Arrived) -> Result<(QueueKey, Letter), StoreError> {
        let config = self.dead_letters.aws.config();
        let consumer = consumer_of(config, message).ok_or_else(|| unreadable("DeadLetterQueueSourceArn"))?;
        // A queue takes more than the topic does, and the table less.
        let weighs = message.attributes.values().map(String::len).sum::<usize>() + message.body.len();
        if weighs > MAX_WITH_ATTRIBUTES + MARK {
            return Err(unreadable("Body"));
        }
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
            receive_count: message.receive_count,
            enqueued_at: message.sent_at,
            cause: Cause::MaxReceives,
            redelivery: message.redelivery().map(str::to_owned),
        };
        Ok((queue, letter))
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
