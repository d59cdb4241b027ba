//! Topics.

use storybus_core::ports::StoreError;
use storybus_protocol::id::WorkspaceId;

use crate::Aws;
use crate::call::Failed;

/// Makes it: a topic that is there with the same attributes is the same topic.
/// <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>
///
/// Deduplication and throughput are per message group, as in the queues: the archive's queue serves the topics of all workspaces.
pub(super) async fn make(aws: &Aws, workspace: &WorkspaceId) -> Result<(), StoreError> {
    let name = aws.config.topic_name(workspace);
    aws.caller
        .write(|| async {
            aws.sns
                .create_topic()
                .name(&name)
                .attributes("FifoTopic", "true")
                .attributes("ContentBasedDeduplication", "false")
                .attributes("FifoThroughputScope", "MessageGroup")
                .send()
                .await
                .map(|_| ())
                .map_err(Failed::from)
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
