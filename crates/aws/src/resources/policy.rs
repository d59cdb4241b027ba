//! Who may do what with a queue.

use serde_json::{Value, json};

use crate::Config;

/// A topic may send, nobody else.
/// <https://docs.aws.amazon.com/sns/latest/dg/subscribe-sqs-queue-to-sns-topic.html>
fn from_topic(config: &Config, queue_arn: &str, topic_arn: &str) -> Value {
    json!({
        "Sid": "Topic",
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {
            "ArnEquals": {"aws:SourceArn": topic_arn},
            "StringEquals": {"aws:SourceAccount": config.account},
        },
    })
}

/// The policy of a consumer's queue: its topic sends; its reader's role, if it has one, receives, settles and looks, and cannot
/// send, purge or change anything.
pub(super) fn of_queue(config: &Config, queue_arn: &str, topic_arn: &str, reader: Option<&str>) -> String {
    let mut statements = vec![from_topic(config, queue_arn, topic_arn)];
    statements.extend(reader.map(|role| {
        json!({
            "Sid": "Reader",
            "Effect": "Allow",
            "Principal": {"AWS": role},
            "Action": [
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:GetQueueAttributes",
                "sqs:GetQueueUrl",
            ],
            "Resource": queue_arn,
        })
    }));
    json!({"Version": "2012-10-17", "Statement": statements}).to_string()
}
