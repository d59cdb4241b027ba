//! Subscriptions: which messages of a topic come into a queue.

use std::collections::HashSet;

use aws_sdk_sns::types::Subscription;
use serde_json::{Map, Value, json};
use storybus_core::domain::filter::{Filter, TypePattern};
use storybus_core::ports::StoreError;
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use super::ResourceError;
use super::topic::gone_is_done;
use crate::Aws;
use crate::call::Failed;

/// A filter as an SNS filter policy over message attributes; `{}` takes everything.
///
/// Every key must match, an entry of a key's list suffices: as the core's [`Filter::matches`] does. A list that takes everything is
/// no condition, and not named, since a key that is named must be there.
/// <https://docs.aws.amazon.com/sns/latest/dg/sns-subscription-filter-policies.html>
fn policy_of(filter: &Filter) -> String {
    let mut policy = Map::new();
    if !filter.message_types.contains(&TypePattern::Any) {
        let types = filter.message_types.iter().map(|pattern| match pattern {
            TypePattern::Family(prefix) => json!({"prefix": prefix}),
            other => json!(other.to_string()),
        });
        put(&mut policy, "message_type", types);
    }
    if filter.topic_prefixes.iter().all(|prefix| !prefix.is_empty()) {
        let prefixes = filter
            .topic_prefixes
            .iter()
            .map(|prefix| json!({"prefix": prefix}));
        put(&mut policy, "topic", prefixes);
    }
    put(
        &mut policy,
        "system_id",
        filter.sources.iter().map(|source| json!(source)),
    );
    Value::Object(policy).to_string()
}

fn put(policy: &mut Map<String, Value>, key: &str, values: impl Iterator<Item = Value>) {
    let values: Vec<Value> = values.collect();
    if !values.is_empty() {
        policy.insert(key.to_owned(), Value::Array(values));
    }
}

/// Subscribes a consumer's queue, or gives the subscription that is there its filter.
pub(super) async fn of_consumer(
    aws: &Aws,
    workspace: &WorkspaceId,
    consumer: &ConnectionId,
    filter: &Filter,
) -> Result<(), ResourceError> {
    let config = &aws.config;
    let attributes = [
        ("RawMessageDelivery", "true".to_owned()),
        (
            "RedrivePolicy",
            redrive(&config.queue_arn(&config.undelivered_name(consumer))),
        ),
        ("FilterPolicyScope", "MessageAttributes".to_owned()),
        ("FilterPolicy", policy_of(filter)),
    ];
    let queue = config.queue_arn(&config.queue_name(consumer));
    subscribe(aws, workspace, &queue, &attributes).await
}

/// Subscribes the archive's queue to everything.
pub(super) async fn of_archive(aws: &Aws, workspace: &WorkspaceId) -> Result<(), ResourceError> {
    let config = &aws.config;
    let attributes = [
        ("RawMessageDelivery", "true".to_owned()),
        (
            "RedrivePolicy",
            redrive(&config.queue_arn(&config.archive_undelivered_name())),
        ),
    ];
    let queue = config.queue_arn(&config.archive_queue_name());
    subscribe(aws, workspace, &queue, &attributes).await
}

fn redrive(target: &str) -> String {
    json!({"deadLetterTargetArn": target}).to_string()
}

enum Made {
    Done,
    /// It is there with other attributes.
    Exists,
    TooMany,
    /// The topic is not there.
    NoTopic,
}

/// A queue has one subscription of a topic: SNS takes a second one with the same attributes for the first, and refuses one
/// with others. <https://docs.aws.amazon.com/sns/latest/api/API_Subscribe.html>
async fn subscribe(
    aws: &Aws,
    workspace: &WorkspaceId,
    queue: &str,
    attributes: &[(&str, String)],
) -> Result<(), ResourceError> {
    // some answer the second subscription with the first whatever its attributes, and leave those as they were
    if let Some(subscription) = find(aws, workspace, queue).await? {
        return set(aws, &subscription, attributes).await;
    }
    let topic = aws.config.topic_arn(workspace);
    let made = aws
        .caller
        .write(|| async {
            let mut subscribe = aws
                .sns
                .subscribe()
                .topic_arn(&topic)
                .protocol("sqs")
                .endpoint(queue);
            for (name, value) in attributes {
                subscribe = subscribe.attributes(*name, value);
            }
            match subscribe.send().await {
                Ok(_) => Ok(Made::Done),
                Err(error) => outcome(Failed::from(error)),
            }
        })
        .await?;
    match made {
        Made::Done => Ok(()),
        Made::TooMany => Err(ResourceError::TooMany),
        Made::NoTopic => Err(ResourceError::Store(StoreError::Unavailable {
            reason: format!("the topic {topic} is not there; the sweeper makes it anew"),
        })),
        Made::Exists => match find(aws, workspace, queue).await? {
            Some(subscription) => set(aws, &subscription, attributes).await,
            // the list lags behind: who asked asks again
            None => Err(ResourceError::Store(StoreError::Unavailable {
                reason: "a subscription is there and not listed yet".to_owned(),
            })),
        },
    }
}

fn outcome(failed: Failed) -> Result<Made, Failed> {
    match failed.code.as_deref() {
        Some("SubscriptionLimitExceeded" | "FilterPolicyLimitExceeded") => Ok(Made::TooMany),
        _ if failed.says_it_exists() => Ok(Made::Exists),
        _ if failed.is_absent() => Ok(Made::NoTopic),
        _ => Err(failed),
    }
}

async fn set(aws: &Aws, subscription: &str, attributes: &[(&str, String)]) -> Result<(), ResourceError> {
    for (name, value) in attributes {
        let made = aws
            .caller
            .write(|| async {
                let set = aws
                    .sns
                    .set_subscription_attributes()
                    .subscription_arn(subscription);
                match set.attribute_name(*name).attribute_value(value).send().await {
                    Ok(_) => Ok(Made::Done),
                    Err(error) => outcome(Failed::from(error)),
                }
            })
            .await?;
        match made {
            Made::Done | Made::Exists => {}
            Made::TooMany => return Err(ResourceError::TooMany),
            Made::NoTopic => {
                return Err(ResourceError::Store(StoreError::Unavailable {
                    reason: format!("the subscription {subscription} has just gone"),
                }));
            }
        }
    }
    Ok(())
}

/// The subscription of a queue, if the topic has one.
async fn find(aws: &Aws, workspace: &WorkspaceId, queue: &str) -> Result<Option<String>, StoreError> {
    let mut found = None;
    each(aws, workspace, |subscription| {
        if subscription.endpoint() == Some(queue) {
            let arn = subscription
                .subscription_arn()
                .filter(|arn| arn.starts_with("arn:"));
            found = arn.map(str::to_owned);
        }
        found.is_none()
    })
    .await?;
    Ok(found)
}

/// The queues that are subscribed to a topic; `None` when there is no topic.
pub(super) async fn subscribed(
    aws: &Aws,
    workspace: &WorkspaceId,
) -> Result<Option<HashSet<String>>, StoreError> {
    let mut queues = HashSet::new();
    let there = each(aws, workspace, |subscription| {
        queues.extend(subscription.endpoint().map(str::to_owned));
        true
    })
    .await?;
    Ok(there.then_some(queues))
}

/// Looks at the subscriptions of a topic for as long as is wanted; says whether the topic is there.
async fn each(
    aws: &Aws,
    workspace: &WorkspaceId,
    mut goes_on: impl FnMut(&Subscription) -> bool + Send,
) -> Result<bool, StoreError> {
    let topic = aws.config.topic_arn(workspace);
    let mut next: Option<String> = None;
    loop {
        let page = aws
            .caller
            .read(|| async {
                let list = aws.sns.list_subscriptions_by_topic().topic_arn(&topic);
                match list.set_next_token(next.clone()).send().await {
                    Ok(page) => Ok(Some(page)),
                    Err(error) => {
                        let failed = Failed::from(error);
                        gone_is_done(failed).map(|()| None)
                    }
                }
            })
            .await?;
        let Some(page) = page else {
            return Ok(false);
        };
        if !page.subscriptions().iter().all(&mut goes_on) {
            return Ok(true);
        }
        match page.next_token().filter(|token| !token.is_empty()) {
            Some(token) => next = Some(token.to_owned()),
            None => return Ok(true),
        }
    }
}

/// Ends a consumer's subscription. One that is not there is no error.
pub(super) async fn remove(
    aws: &Aws,
    workspace: &WorkspaceId,
    consumer: &ConnectionId,
) -> Result<(), StoreError> {
    let queue = aws.config.queue_arn(&aws.config.queue_name(consumer));
    let Some(subscription) = find(aws, workspace, &queue).await? else {
        return Ok(());
    };
    aws.caller
        .write(|| async {
            let unsubscribe = aws.sns.unsubscribe().subscription_arn(&subscription);
            match unsubscribe.send().await {
                Ok(_) => Ok(()),
                Err(error) => gone_is_done(Failed::from(error)),
            }
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_policies() {
        let filter = |types: &[&str], prefixes: &[&str], sources: &[&str]| Filter {
            message_types: types.iter().map(|t| t.parse().unwrap()).collect(),
            topic_prefixes: prefixes.iter().map(|&p| p.to_owned()).collect(),
            sources: sources.iter().map(|&s| s.to_owned()).collect(),
        };
        for (filter, policy) in [
            (filter(&[], &[], &[]), r#"{}"#),
            (filter(&["*"], &[], &[]), r#"{}"#),
            (filter(&["a.b", "*"], &[""], &["s"]), r#"{"system_id":["s"]}"#),
            (
                filter(&["a.b", "c.*"], &["x/"], &[]),
                r#"{"message_type":["a.b",{"prefix":"c."}],"topic":[{"prefix":"x/"}]}"#,
            ),
        ] {
            assert_eq!(policy_of(&filter), policy);
        }
    }
}
