//! What a workspace and a consumer have on AWS: topics, queues, subscriptions, alarms.
//!
//! Everything here can be repeated: making what is there leaves it as it should be, removing what is not there is done. So whoever
//! was interrupted half-way calls again. Nothing here looks at the registry or writes it; who calls keeps a record of what is half
//! made.
//!
//! A workspace has one FIFO topic, to which the archive's queue is subscribed. A consumer has a FIFO queue, a FIFO queue for what
//! the topic could not deliver to it (its policy or the queue itself being gone: without one, such messages vanish,
//! <https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html>), a subscription of the one to the topic, and two alarms.

mod alarms;
mod policy;
mod queue;
mod subscription;
mod topic;

use std::collections::HashSet;

use storybus_core::domain::connection::{Connection, Consumer, Role};
use storybus_core::ports::StoreError;
use storybus_core::ports::workspaces::RegistryError;
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use crate::Aws;

/// Why something was not made or changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResourceError {
    /// The topic has as many subscriptions, or the account as many filter policies, as AWS allows. Nothing more was made for it.
    #[error("no more subscriptions are possible")]
    TooMany,
    /// AWS took the queue's policy for invalid: the reader's role does not exist.
    #[error("the reader's role does not exist")]
    NoSuchRole,
    /// The call failed. Some of it may be made.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The queues that are subscribed to a topic, by their ARNs.
pub(crate) struct Subscribed(HashSet<String>);

impl Subscribed {
    /// Whether a queue of this name is.
    pub(crate) fn has(&self, aws: &Aws, queue: &str) -> bool {
        self.0.contains(&aws.config.queue_arn(queue))
    }
}

impl From<ResourceError> for StoreError {
    fn from(error: ResourceError) -> Self {
        match error {
            ResourceError::Store(error) => error,
            other => Self::Internal {
                reason: other.to_string(),
            },
        }
    }
}

impl From<ResourceError> for RegistryError {
    fn from(error: ResourceError) -> Self {
        match error {
            ResourceError::TooMany => Self::ConsumerLimit,
            other => Self::Store(other.into()),
        }
    }
}

impl Aws {
    /// Makes a workspace's topic and lets it feed the archive.
    pub async fn make_topic(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        topic::make(self, workspace).await?;
        Ok(subscription::of_archive(self, workspace).await?)
    }

    /// Removes a workspace's topic, and with it all its subscriptions.
    pub async fn remove_topic(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        topic::remove(self, workspace).await
    }

    /// Makes a consumer's queues, its subscription and its alarms, in this order: what is subscribed can be delivered to. What
    /// is there already gets the connection's settings.
    pub async fn make_consumer(
        &self,
        workspace: &WorkspaceId,
        connection: &Connection,
    ) -> Result<(), ResourceError> {
        let consumer = consumer_of(connection)?;
        queue::make_undelivered(self, workspace, &connection.id).await?;
        queue::make(self, workspace, &connection.id, consumer).await?;
        subscription::of_consumer(self, workspace, &connection.id, &consumer.filter).await?;
        Ok(alarms::make(self, &connection.id, &connection.name).await?)
    }

    /// Gives a consumer's queue and subscription the connection's settings, and makes what of them is not there: somebody may have
    /// deleted it by hand. A queue's settings take up to 60 s to be in force, a filter up to 15 minutes.
    pub async fn change_consumer(&self, connection: &Connection) -> Result<(), ResourceError> {
        let consumer = consumer_of(connection)?;
        let workspace = workspace_of(connection)?;
        queue::make_undelivered(self, workspace, &connection.id).await?;
        queue::change(self, workspace, &connection.id, consumer).await?;
        subscription::of_consumer(self, workspace, &connection.id, &consumer.filter).await?;
        Ok(alarms::make(self, &connection.id, &connection.name).await?)
    }

    /// Subscribes a consumer's queue to its workspace's topic, by its filter.
    pub(crate) async fn subscribe_consumer(&self, connection: &Connection) -> Result<(), ResourceError> {
        let consumer = consumer_of(connection)?;
        let workspace = workspace_of(connection)?;
        subscription::of_consumer(self, workspace, &connection.id, &consumer.filter).await
    }

    /// Makes a topic that was deleted by hand anew, closed to publications until [`open_topic`](Self::open_topic), and lets it feed
    /// the archive.
    pub(crate) async fn make_topic_anew(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        topic::make_closed(self, workspace).await?;
        Ok(subscription::of_archive(self, workspace).await?)
    }

    /// Lets publications into a topic, once everybody is subscribed.
    pub(crate) async fn open_topic(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        topic::open(self, workspace).await
    }

    /// What a workspace's topic has of what it should have; `None` when there is no topic.
    pub(crate) async fn subscribed(&self, workspace: &WorkspaceId) -> Result<Option<Subscribed>, StoreError> {
        Ok(subscription::subscribed(self, workspace).await?.map(Subscribed))
    }

    /// Lets a topic feed the archive.
    pub(crate) async fn feed_archive(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        Ok(subscription::of_archive(self, workspace).await?)
    }

    /// The names of all queues of consumers that are there.
    pub(crate) async fn queues_there(&self) -> Result<HashSet<String>, StoreError> {
        queue::all(self).await
    }

    /// Removes what a consumer has, its dead letters too: the subscription first, so that nothing is delivered to what is gone.
    pub async fn remove_consumer(
        &self,
        workspace: &WorkspaceId,
        consumer: &ConnectionId,
    ) -> Result<(), StoreError> {
        subscription::remove(self, workspace, consumer).await?;
        queue::remove(self, &self.config.queue_name(consumer)).await?;
        queue::remove(self, &self.config.undelivered_name(consumer)).await?;
        alarms::remove(self, consumer).await?;
        crate::dead_letters::remove_all(self, consumer).await
    }
}

fn consumer_of(connection: &Connection) -> Result<&Consumer, StoreError> {
    match &connection.role {
        Role::Consumer(consumer) => Ok(consumer),
        Role::Producer(_) | Role::Operator => Err(internal("only consumers have queues")),
    }
}

fn workspace_of(connection: &Connection) -> Result<&WorkspaceId, StoreError> {
    connection
        .workspace
        .as_ref()
        .ok_or_else(|| internal("a consumer has a workspace"))
}

fn internal(reason: &str) -> StoreError {
    StoreError::Internal {
        reason: reason.to_owned(),
    }
}
