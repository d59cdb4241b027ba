//! Topics.

use serde_json::{Value, json};
use storybus_core::ports::StoreError;
use storybus_protocol::id::WorkspaceId;

use crate::Aws;
use crate::call::Failed;

/// The attribute of a topic's policy.
const POLICY: &str = "Policy";

/// Makes it: a topic that is there with the same attributes is the same topic.
/// <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>
///
/// Deduplication and throughput are per message group, as in the queues: the archive's queue serves the topics of all workspaces.
pub(super) async fn make(aws: &Aws, workspace: &WorkspaceId) -> Result<(), StoreError> {
    make_with(aws, workspace, None).await
}

/// Makes it so that nothing can be published to it until it is [open](open): whoever makes a topic anew has first to subscribe
/// everybody, and what were published before that would reach nobody.
pub(super) async fn make_closed(aws: &Aws, workspace: &WorkspaceId) -> Result<(), StoreError> {
    let closed = closed(&aws.config.topic_arn(workspace)).to_string();
    make_with(aws, workspace, Some(&closed)).await?;
    // one that was there has the policy that it had
    set_policy(aws, workspace, &closed).await
}

/// Lets publications in.
pub(super) async fn open(aws: &Aws, workspace: &WorkspaceId) -> Result<(), StoreError> {
    let config = &aws.config;
    let of_account = json!({
        "Sid": "Account",
        "Effect": "Allow",
        "Principal": {"AWS": format!("arn:{}:iam::{}:root", config.partition, config.account)},
        "Action": "sns:Publish",
        "Resource": config.topic_arn(workspace),
    });
    let open = json!({"Version": "2012-10-17", "Statement": [of_account]});
    set_policy(aws, workspace, &open.to_string()).await
}

fn closed(arn: &str) -> Value {
    let nobody = json!({
        "Sid": "Closed",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sns:Publish",
        "Resource": arn,
    });
    json!({"Version": "2012-10-17", "Statement": [nobody]})
}

async fn make_with(aws: &Aws, workspace: &WorkspaceId, policy: Option<&str>) -> Result<(), StoreError> {
    let name = aws.config.topic_name(workspace);
    aws.caller
        .write(|| async {
            let mut create = aws
                .sns
                .create_topic()
                .name(&name)
                .attributes("FifoTopic", "true")
                .attributes("ContentBasedDeduplication", "false")
                .attributes("FifoThroughputScope", "MessageGroup");
            if let Some(policy) = policy {
                create = create.attributes(POLICY, policy);
            }
            match create.send().await.map_err(Failed::from) {
                Err(failed) if policy.is_some() && failed.says_it_exists() => Ok(()),
                made => made.map(|_| ()),
            }
        })
        .await
}

async fn set_policy(aws: &Aws, workspace: &WorkspaceId, policy: &str) -> Result<(), StoreError> {
    let arn = aws.config.topic_arn(workspace);
    aws.caller
        .write(|| async {
            let set = aws.sns.set_topic_attributes().topic_arn(&arn);
            let set = set.attribute_name(POLICY).attribute_value(policy);
            set.send().await.map(|_| ()).map_err(Failed::from)
        })
        .await
}

/// Removes it. One that is not there is no error.
pub(super) async fn remove(aws: &Aws, workspace: &WorkspaceId) -> Result<(), StoreError> {
    let arn = aws.config.topic_arn(workspace);
    aws.caller
        .write(|| async {
            match aws.sns.delete_topic().topic_arn(&arn).send().await {
                Ok(_) => Ok(()),
                Err(error) => gone_is_done(Failed::from(error)),
            }
        })
        .await
}

/// What is not there is removed.
pub(super) fn gone_is_done(failed: Failed) -> Result<(), Failed> {
    if failed.is_absent() { Ok(()) } else { Err(failed) }
}
