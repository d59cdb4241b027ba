//! Publication on SNS, and the archive in memory: until the archive is on AWS.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_aws::SnsTopic;
use storybus_core::domain::message::Publication;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;
use storybus_testkit::memory::Memory;

/// A topic that feeds the archive in memory.
pub(crate) struct Halves {
    pub(crate) topic: SnsTopic,
    pub(crate) memory: Arc<Memory>,
}

#[async_trait]
impl Topic for Halves {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        self.topic.publish(publication, timeout).await?;
        self.memory.publish(publication, timeout).await
    }
}
