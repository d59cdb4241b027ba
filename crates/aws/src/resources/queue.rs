//! A consumer's queues.

use std::collections::{HashMap, HashSet};

use aws_sdk_sqs::types::QueueAttributeName as Name;
use serde_json::json;
use storybus_core::domain::connection::Consumer;
use storybus_core::ports::StoreError;
use storybus_core::ports::queues::RETENTION;
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use super::topic::gone_is_done;
use super::{ResourceError, policy};
use crate::Aws;
use crate::call::Failed;

/// What the ids of consumers begin with.
const CONSUMER: &str = "c";
/// The most names of one list.
const MOST_LISTED: i32 = 1_000;

/// What is set on a queue when it is made, and stays.
fn fixed() -> HashMap<Name, String> {
    HashMap::from([
        (Name::FifoQueue, "true".to_owned()),
        (Name::ContentBasedDeduplication, "false".to_owned()),
        // high throughput: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/enable-high-throughput-fifo.html>
        (Name::DeduplicationScope, "messageGroup".to_owned()),
        (Name::FifoThroughputLimit, "perMessageGroupId".to_owned()),
        (Name::MessageRetentionPeriod, RETENTION.as_secs().to_string()),
        (Name::SqsManagedSseEnabled, "true".to_owned()),
    ])
}

/// What follows from a consumer's settings.
fn variable(
    aws: &Aws,
    workspace: &WorkspaceId,
    id: &ConnectionId,
    consumer: &Consumer,
) -> HashMap<Name, String> {
    let config = &aws.config;
    let arn = config.queue_arn(&config.queue_name(id));
    let reader = consumer.reader_role_arn.as_deref();
    let redrive = json!({
        "deadLetterTargetArn": config.queue_arn(&config.dead_letters_name()),
        "maxReceiveCount": consumer.max_receives,
    });
    HashMap::from([
        (Name::VisibilityTimeout, consumer.visibility_seconds.to_string()),
        (Name::RedrivePolicy, redrive.to_string()),
        (
            Name::Policy,
            policy::of_queue(config, &arn, &config.topic_arn(workspace), reader),
        ),
    ])
}

/// Makes a consumer's queue, or gives the one that is there its settings.
pub(super) async fn make(
    aws: &Aws,
    workspace: &WorkspaceId,
    id: &ConnectionId,
    consumer: &Consumer,
) -> Result<(), ResourceError> {
    let name = aws.config.queue_name(id);
    make_with(aws, &name, variable(aws, workspace, id, consumer)).await
}

/// Makes the queue for what the topic cannot deliver.
pub(super) async fn make_undelivered(
    aws: &Aws,
    workspace: &WorkspaceId,
    id: &ConnectionId,
) -> Result<(), ResourceError> {
    let config = &aws.config;
    let name = config.undelivered_name(id);
    let policy = policy::of_queue(
        config,
        &config.queue_arn(&name),
        &config.topic_arn(workspace),
        None,
    );
    make_with(aws, &name, HashMap::from([(Name::Policy, policy)])).await
}

/// Gives a consumer's queue its settings; one that is not there is made.
pub(super) async fn change(
    aws: &Aws,
    workspace: &WorkspaceId,
    id: &ConnectionId,
    consumer: &Consumer,
) -> Result<(), ResourceError> {
    let name = aws.config.queue_name(id);
    match set(aws, &name, variable(aws, workspace, id, consumer)).await? {
        Changed::Done => Ok(()),
        Changed::NoQueue => make(aws, workspace, id, consumer).await,
    }
}

/// What a call that brings a policy came to.
enum Made {
    Done,
    /// It is there with other attributes.
    Exists,
    /// The policy was refused.
    NoSuchRole,
    /// There is none.
    NoQueue,
}

enum Changed {
    Done,
    NoQueue,
}

async fn make_with(aws: &Aws, name: &str, variable: HashMap<Name, String>) -> Result<(), ResourceError> {
    let mut attributes = fixed();
    attributes.extend(variable.clone());
    let made = aws
        .caller
        .write(|| async {
            let create = aws.sqs.create_queue().queue_name(name);
            match create.set_attributes(Some(attributes.clone())).send().await {
                Ok(_) => Ok(Made::Done),
                Err(error) => exists(Failed::from(error)),
            }
        })
        .await?;
    match made {
        Made::Done => Ok(()),
        Made::Exists => match set(aws, name, variable).await? {
            Changed::Done => Ok(()),
            Changed::NoQueue => Err(gone_again(name)),
        },
        Made::NoSuchRole => Err(ResourceError::NoSuchRole),
        Made::NoQueue => Err(gone_again(name)),
    }
}

/// A queue that goes while it is made, or went within the last minute.
fn gone_again(name: &str) -> ResourceError {
    ResourceError::Store(StoreError::QueueGone {
        queue: name.to_owned(),
    })
}

async fn set(aws: &Aws, name: &str, attributes: HashMap<Name, String>) -> Result<Changed, ResourceError> {
    let url = aws.config.queue_url(name);
    let made = aws
        .caller
        .write(|| async {
            let set = aws.sqs.set_queue_attributes().queue_url(&url);
            match set.set_attributes(Some(attributes.clone())).send().await {
                Ok(_) => Ok(Made::Done),
                Err(error) => exists(Failed::from(error)),
            }
        })
        .await?;
    match made {
        Made::Done | Made::Exists => Ok(Changed::Done),
        Made::NoQueue => Ok(Changed::NoQueue),
        Made::NoSuchRole => Err(ResourceError::NoSuchRole),
    }
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html>
fn exists(failed: Failed) -> Result<Made, Failed> {
    match failed.code.as_deref() {
        Some("QueueAlreadyExists" | "QueueNameExists") => Ok(Made::Exists),
        // a principal that does not exist makes a policy invalid; everything else in it is ours
        Some("InvalidAttributeValue" | "InvalidParameterValue") if failed.to_string().contains("Policy") => {
            Ok(Made::NoSuchRole)
        }
        // a name is free 60 s after its queue was deleted, which is too long to wait for here
        Some("QueueDeletedRecently" | "AWS.SimpleQueueService.QueueDeletedRecently") => Ok(Made::NoQueue),
        _ if failed.is_absent() => Ok(Made::NoQueue),
        _ => Err(failed),
    }
}

/// The names of all queues of consumers, as SQS lists them: one that was made or deleted within the last minute may be missing, or
/// there still. <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListQueues.html>
pub(super) async fn all(aws: &Aws) -> Result<HashSet<String>, StoreError> {
    let prefix = format!("{}-{CONSUMER}", aws.config.prefix);
    let (mut names, mut next) = (HashSet::new(), None::<String>);
    loop {
        let page = aws
            .caller
            .read(|| async {
                let list = aws.sqs.list_queues().queue_name_prefix(&prefix);
                let list = list.max_results(MOST_LISTED).set_next_token(next.clone());
                list.send().await.map_err(Failed::from)
            })
            .await?;
        let urls = page.queue_urls.unwrap_or_default();
        let of_page = urls.iter().filter_map(|url| url.rsplit('/').next());
        names.extend(of_page.map(str::to_owned));
        match page.next_token.filter(|token| !token.is_empty()) {
            Some(token) => next = Some(token),
            None => return Ok(names),
        }
    }
}

/// Removes a queue. One that is not there is no error.
pub(super) async fn remove(aws: &Aws, name: &str) -> Result<(), StoreError> {
    let url = aws.config.queue_url(name);
    aws.caller
        .write(|| async {
            match aws.sqs.delete_queue().queue_url(&url).send().await {
                Ok(_) => Ok(()),
                Err(error) => gone_is_done(Failed::from(error)),
            }
        })
        .await
}
