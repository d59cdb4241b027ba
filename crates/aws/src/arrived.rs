//! Messages as queues of the deployment hand them to functions.

use std::collections::HashMap;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use storybus_core::domain::message::Attributes;
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_json::Document;
use storybus_protocol::id::{CorrelationId, MessageId};

use crate::item::unreadable;

/// The attribute of what a job delivered: `replay:<job>` or `redrive:<job>`.
pub const REDELIVERY: &str = "redelivery";

/// A message that came out of a queue: what SQS says of it, and what the topic or a job put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// SQS's own id of it, new in every queue.
    pub sqs_message_id: String,
    /// Settles this receive.
    pub receipt_handle: Option<String>,
    /// The order group: `<workspace>.<correlation id, lower case>`.
    pub group: String,
    /// The deduplication id. A queue of dead letters has another there: the message id that SQS gave it in the queue it comes from.
    pub deduplication_id: String,
    /// SQS's order within the group: grows, in decimal digits.
    pub sequence_number: String,
    /// When it came into this queue.
    pub sent_at: Millis,
    /// When it was first received from this queue.
    pub first_received: Option<Millis>,
    /// How often it was received, this time included.
    pub receive_count: u32,
    /// The ARN of the queue from which SQS moved it here, in a queue of dead letters.
    pub source_queue: Option<String>,
    /// The producer's bytes.
    pub body: String,
    /// What travels beside them.
    pub attributes: HashMap<String, String>,
}

impl TryFrom<Message> for Arrived {
    type Error = StoreError;

    /// From a receive of ours, which asked for all attributes.
    fn try_from(message: Message) -> Result<Self, StoreError> {
        let system = message.attributes.unwrap_or_default();
        let text = |name: System| system.get(&name).cloned();
        let need = |name: System| text(name.clone()).ok_or_else(|| unreadable(name.as_str()));
        let time = |text: String| text.parse().map(Millis).map_err(unreadable);
        let attributes = message.message_attributes.unwrap_or_default();
        Ok(Self {
            sqs_message_id: message.message_id.ok_or_else(|| unreadable("MessageId"))?,
            receipt_handle: message.receipt_handle,
            group: need(System::MessageGroupId)?,
            deduplication_id: need(System::MessageDeduplicationId)?,
            sequence_number: need(System::SequenceNumber)?,
            sent_at: time(need(System::SentTimestamp)?)?,
            first_received: text(System::ApproximateFirstReceiveTimestamp)
                .map(time)
                .transpose()?,
            receive_count: need(System::ApproximateReceiveCount)?
                .parse()
                .map_err(unreadable)?,
            source_queue: text(System::DeadLetterQueueSourceArn),
            body: message.body.ok_or_else(|| unreadable("Body"))?,
            attributes: attributes
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.string_value?)))
                .collect(),
        })
    }
}

impl Arrived {
    /// What travels beside the body, as the bus publishes it.
    pub fn message_attributes(&self) -> Result<Attributes, StoreError> {
        let get = |name: &'static str| {
            let value = self.attributes.get(name).cloned();
            value.ok_or_else(|| unreadable(name))
        };
        Ok(Attributes {
            message_type: get("message_type")?,
            family: self.attributes.get("family").cloned(),
            topic: get("topic")?,
            correlation_id: get("correlation_id")?,
            producer_id: get("producer_id")?
                .parse()
                .map_err(|_| unreadable("producer_id"))?,
            system_id: get("system_id")?,
            som_version: get("som_version")?,
        })
    }

    /// `replay:<job>` or `redrive:<job>` for a message that came that way.
    #[must_use]
    pub fn redelivery(&self) -> Option<&str> {
        self.attributes.get(REDELIVERY).map(String::as_str)
    }

    /// The correlation id.
    pub fn correlation_id(&self) -> Result<CorrelationId, StoreError> {
        let id = self
            .attributes
            .get("correlation_id")
            .and_then(|id| id.parse().ok());
        id.ok_or_else(|| unreadable("correlation_id"))
    }

    /// The workspace, as the group has it.
    #[must_use]
    pub fn workspace(&self) -> &str {
        self.group.rsplit_once('.').map_or("", |(workspace, _)| workspace)
    }

    /// The message id: the end of the deduplication id of what came from the topic or from a job, else from the body.
    pub fn message_id(&self) -> Result<MessageId, StoreError> {
        let tail = self.deduplication_id.rsplit_once('.').map(|(_, id)| id);
        if let Some(id) = tail.and_then(|id| id.parse().ok()) {
            return Ok(id);
        }
        let body = Document::parse(self.body.as_bytes()).map_err(|_| unreadable("Body"))?;
        let id = body
            .root()
            .get("message_id")
            .and_then(|id| id.as_str()?.parse().ok());
        id.ok_or_else(|| unreadable("message_id"))
    }
}
