//! Receiving.

use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use aws_smithy_types::timeout::TimeoutConfig;
use bytes::Bytes;
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_core::ports::queues::{RECEIVE_ATTEMPT_LIFETIME, Receive};

use super::{Handle, Seal, SqsQueues};
use crate::arrived::Arrived;
use crate::call::Failed;
use crate::keys::hex;

/// How often a receive that waits at a paused consumer looks whether it still is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// What a receive may take beyond its wait.
const BEYOND_WAIT: Duration = Duration::from_secs(2);

/// What the registry says of a receive.
enum Gate {
    Open,
    /// Wait, and hand out nothing.
    Paused,
    /// There is no such queue, or its consumer is shut out.
    Closed,
}

impl SqsQueues {
    async fn gate(&self, queue: &QueueKey) -> Result<Gate, StoreError> {
        Ok(match self.consumer(queue).await? {
            Some((connection, _)) if connection.disabled => Gate::Closed,
            Some((_, consumer)) if consumer.paused => Gate::Paused,
            Some(_) => Gate::Open,
            None => Gate::Closed,
        })
    }

    pub(super) async fn receive_by(
        &self,
        queue: &QueueKey,
        receive: &Receive,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut left = receive.wait;
        loop {
            match self.gate(queue).await? {
                Gate::Closed => return Ok(Vec::new()),
                Gate::Open => break,
                Gate::Paused if left.is_zero() => return Ok(Vec::new()),
                Gate::Paused => {
                    let span = left.min(LOOK_AGAIN);
                    crate::pace::rest(span).await;
                    left -= span;
                }
            }
        }
        // SQS takes a receive whose attempt is named for the one before as long as it can be repeated: the visibility may have
        // begun so much earlier than this call
        let mut hidden_since = self.clock.now();
        if receive.attempt.is_some() {
            hidden_since = hidden_since.minus(RECEIVE_ATTEMPT_LIFETIME);
        }
        let seal = self.seal().await?;
        let messages = self.receive_message(queue, receive, left).await?;
        let deliveries: Vec<Delivery> = messages
            .into_iter()
            .filter_map(|message| ours(queue, message, hidden_since, seal))
            .collect();
        if left.is_zero() || deliveries.is_empty() || matches!(self.gate(queue).await?, Gate::Open) {
            return Ok(deliveries);
        }
        // it was paused or disabled while this waited: what came goes back at once
        let handles: Vec<_> = deliveries
            .iter()
            .filter_map(|delivery| Handle::decode(&delivery.receipt_handle, queue, seal))
            .collect();
        self.hide(queue, &handles, Duration::ZERO).await?;
        Ok(Vec::new())
    }

    async fn receive_message(
        &self,
        queue: &QueueKey,
        receive: &Receive,
        wait: Duration,
    ) -> Result<Vec<Message>, StoreError> {
        // with a name of its own, our own repetition of a receive is the same receive too
        let attempt = receive.attempt.clone().unwrap_or_else(|| {
            let mut bytes = [0; 16];
            self.random.fill(&mut bytes);
            format!("own.{}", hex(&bytes))
        });
        let seconds = |span: Duration| i32::try_from(span.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
        let limit = wait + BEYOND_WAIT;
        let limits = TimeoutConfig::builder()
            .operation_timeout(limit)
            .operation_attempt_timeout(limit)
            .build();
        let url = self.url(queue);
        let asked = self.aws.caller.read(|| async {
            let receive = self
                .aws
                .sqs
                .receive_message()
                .queue_url(&url)
                .max_number_of_messages(i32::try_from(receive.max.clamp(1, 10)).unwrap_or(10))
                .wait_time_seconds(seconds(wait).min(20))
                .visibility_timeout(seconds(receive.visibility))
                .receive_request_attempt_id(&attempt)
                .message_system_attribute_names(System::All)
                .message_attribute_names("All")
                .customize()
                .config_override(aws_sdk_sqs::config::Config::builder().timeout_config(limits.clone()));
            match receive.send().await {
                Ok(answer) => Ok(Some(answer.messages.unwrap_or_default())),
                Err(error) => {
                    let failed = Failed::from(error);
                    if failed.is_absent() { Ok(None) } else { Err(failed) }
                }
            }
        });
        let (received, took) = crate::pace::timed(asked).await;
        if let Some(messages) = received? {
            return Ok(messages);
        }
        // the queue has gone, by hand or with a consumer that a cache still knows: as an empty one it has nothing, after the wait
        tracing::warn!(consumer = %queue.consumer, "the queue of a consumer is not there; if the consumer is, the sweeper makes it anew");
        crate::pace::rest(wait.saturating_sub(took)).await;
        Ok(Vec::new())
    }
}

/// The delivery of a message of the bus. Whoever may send to the queue can put in what is none: it is left out, so that it does not keep
/// the others from the consumer, and goes the way of what is never acknowledged.
fn ours(queue: &QueueKey, message: Message, hidden_since: Millis, seal: Option<&Seal>) -> Option<Delivery> {
    let sqs_message_id = message.message_id.clone().unwrap_or_default();
    let read = Arrived::try_from(message).and_then(|arrived| delivery(queue, arrived, hidden_since, seal));
    match read {
        Ok(delivery) => Some(delivery),
        Err(error) => {
            tracing::warn!(consumer = %queue.consumer, sqs_message_id, %error, "a message in the queue is none of the bus: it is not handed out");
            None
        }
    }
}

fn delivery(
    queue: &QueueKey,
    arrived: Arrived,
    hidden_since: Millis,
    seal: Option<&Seal>,
) -> Result<Delivery, StoreError> {
    let message_id = arrived.message_id()?;
    let attributes = arrived.message_attributes()?;
    let redelivery = arrived.redelivery().map(str::to_owned);
    let handle = Handle {
        sqs_handle: arrived.receipt_handle.unwrap_or_default(),
        sqs_message_id: arrived.sqs_message_id,
        sequence_number: arrived.sequence_number,
        message_id,
        hidden_since,
        enqueued_at: arrived.sent_at,
        receive_count: arrived.receive_count,
        redelivery: redelivery.clone(),
        sealed: seal.is_some(),
    };
    Ok(Delivery {
        receipt_handle: handle.encode(queue, seal),
        message_id,
        body: Bytes::from(arrived.body),
        attributes,
        receive_count: arrived.receive_count,
        enqueued_at: arrived.sent_at,
        redelivery,
    })
}
