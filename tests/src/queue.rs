//! What a queue holds, by receiving all of it.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::MessageSystemAttributeName as System;
use serde_json::{Value, json};
use storybus_aws::Arrived;

use crate::stack::Stack;

impl Stack {
    /// Takes everything that can be received from a queue, in the order in which it comes, and deletes it.
    pub async fn drain(&self, queue_name: &str) -> Vec<Arrived> {
        let (client, url) = (Client::new(&self.shared), self.aws.config().queue_url(queue_name));
        let mut all = Vec::new();
        loop {
            let batch = receive(&client, &url).await;
            if batch.is_empty() {
                return all;
            }
            for message in &batch {
                let handle = message.receipt_handle.clone().unwrap();
                let delete = client.delete_message().queue_url(&url).receipt_handle(handle);
                delete.send().await.unwrap();
            }
            all.extend(batch);
        }
    }

    /// The next message of a queue, as Lambda takes it; it stays hidden until [`done`](Self::done) or [`again`](Self::again).
    pub async fn take_one(&self, queue_name: &str) -> Option<Arrived> {
        let (client, url) = (Client::new(&self.shared), self.aws.config().queue_url(queue_name));
        let request = client.receive_message().queue_url(&url).max_number_of_messages(1);
        let request = request
            .message_system_attribute_names(System::All)
            .message_attribute_names("All")
            .visibility_timeout(600);
        let messages = request.send().await.unwrap().messages.unwrap_or_default();
        messages.into_iter().next().map(|m| Arrived::try_from(m).unwrap())
    }

    /// The function has answered: the message is deleted.
    pub async fn done(&self, queue_name: &str, message: &Arrived) {
        let (client, url) = (Client::new(&self.shared), self.aws.config().queue_url(queue_name));
        let handle = message.receipt_handle.clone().unwrap();
        let delete = client.delete_message().queue_url(url).receipt_handle(handle);
        delete.send().await.unwrap();
    }

    /// The function has failed: the message can be received again, as after its visibility.
    pub async fn again(&self, queue_name: &str, message: &Arrived) {
        let (client, url) = (Client::new(&self.shared), self.aws.config().queue_url(queue_name));
        let handle = message.receipt_handle.clone().unwrap();
        let change = client
            .change_message_visibility()
            .queue_url(url)
            .receipt_handle(handle);
        change.visibility_timeout(0).send().await.unwrap();
    }
}

async fn receive(client: &Client, url: &str) -> Vec<Arrived> {
    let request = client.receive_message().queue_url(url).max_number_of_messages(10);
    let request = request
        .message_system_attribute_names(System::All)
        .message_attribute_names("All");
    let messages = request.send().await.unwrap().messages.unwrap_or_default();
    messages
        .into_iter()
        .map(|message| Arrived::try_from(message).unwrap())
        .collect()
}

/// The event by which Lambda hands a message of a queue to a function.
#[must_use]
pub fn event(message: &Arrived) -> String {
    let attributes: serde_json::Map<String, Value> = message
        .attributes
        .iter()
        .map(|(name, value)| {
            let value = json!({ "stringValue": value, "dataType": "String", "stringListValues": [], "binaryListValues": [] });
            (name.clone(), value)
        })
        .collect();
    json!({ "Records": [{
        "messageId": message.sqs_message_id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": message.receive_count.to_string(),
            "SentTimestamp": message.sent_at.0.to_string(),
            "SequenceNumber": message.sequence_number,
            "MessageGroupId": message.group,
            "MessageDeduplicationId": message.deduplication_id,
            "SenderId": "000000000000",
            "ApproximateFirstReceiveTimestamp": message.sent_at.0.to_string(),
        },
        "messageAttributes": attributes,
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:proof.fifo",
        "awsRegion": "us-east-1",
    }] })
    .to_string()
}
