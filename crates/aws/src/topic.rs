//! Publication to every consumer of a workspace: one SNS FIFO topic a workspace.
//!
//! A call is one try of the SDK, never repeated here: the caller repeats, and must know what each try came to. Order group and
//! deduplication id begin with the workspace, because the archive's queue serves all topics. Both SNS and SQS deduplicate per message
//! group for 5 minutes (<https://docs.aws.amazon.com/sns/latest/dg/fifo-message-dedup.html>).

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sns::types::MessageAttributeValue;
use storybus_core::domain::message::{MAX_WITH_ATTRIBUTES, Publication};
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;

use crate::Aws;
use crate::call::{Failed, Outcome, within};

/// [`Topic`] on SNS.
#[derive(Clone)]
pub struct SnsTopic {
    aws: Aws,
}

impl Aws {
    /// The topics.
    #[must_use]
    pub fn topic(&self) -> SnsTopic {
        SnsTopic { aws: self.clone() }
    }
}

#[async_trait]
impl Topic for SnsTopic {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        let Publication {
            workspace,
            message_id,
            correlation_id,
            body,
            attributes,
            ..
        } = publication;
        // What SNS would take and SQS then refuse, or what SNS refuses, was refused by the checks before: this is the last look.
        let body = std::str::from_utf8(body).map_err(|_| refused("the body is not UTF-8"))?;
        let mut size = body.len();
        let mut request = self
            .aws
            .sns
            .publish()
            .topic_arn(self.aws.config.topic_arn(workspace))
            .message_group_id(format!("{workspace}.{correlation_id}"))
            .message_deduplication_id(format!("{workspace}.{message_id}"));
        for (name, value) in attributes.pairs() {
            size += name.len() + "String".len() + value.len();
            let value = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(value)
                .build()
                .map_err(|error| refused(&error.to_string()))?;
            request = request.message_attributes(name, value);
        }
        if size > MAX_WITH_ATTRIBUTES {
            return Err(refused(
                "body and attributes are larger than what a topic carries",
            ));
        }
        let limits = aws_sdk_sns::config::Builder::new().timeout_config(within(timeout));
        let sent = request
            .message(body)
            .customize()
            .config_override(limits)
            .send()
            .await;
        match sent.map_err(Failed::from) {
            Ok(_) => Ok(()),
            Err(failed) if failed.is_absent() => Err(PublishError::Refused {
                reason: format!(
                    "the topic {} is not there; the sweeper makes it anew: {failed}",
                    self.aws.config.topic_name(workspace)
                ),
                retryable: false,
            }),
            Err(failed) => Err(told(&failed)),
        }
    }
}

fn refused(reason: &str) -> PublishError {
    PublishError::Refused {
        reason: reason.to_owned(),
        retryable: false,
    }
}

/// What is sure after one try.
fn told(failed: &Failed) -> PublishError {
    let reason = failed.to_string();
    match failed.outcome {
        Outcome::NotSent | Outcome::Throttled | Outcome::Conflict => PublishError::Refused {
            reason,
            retryable: true,
        },
        Outcome::Refused => PublishError::Refused {
            reason,
            retryable: false,
        },
        Outcome::Unknown => PublishError::Unknown { reason },
    }
}
