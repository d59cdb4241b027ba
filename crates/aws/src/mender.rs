//! What somebody has deleted by hand is made anew: topics, queues, subscriptions.
//!
//! A look asks for three things: who is registered, which queues there are, and for each workspace who is subscribed to its topic. What is
//! registered and not there was deleted by hand, or is just being made or removed; so whoever makes something anew first takes
//! the note that all others take ([`pending`](crate::pending)), and then looks again.
//!
//! - *A queue or a subscription* is made anew with the consumer's settings. What was published meanwhile is in the consumer's queue of
//!   undelivered messages or in nobody's, and can be replayed.
//! - *A topic* loses its subscriptions with itself, and who publishes to a new one before everybody is subscribed publishes to nobody. So it
//!   is made closed: SNS refuses every publication, and the bus answers 503 as it did without a topic, until all are subscribed. The note stays
//!   until then, so a sweeper that dies half-way is followed by one that goes on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use storybus_core::domain::time::Millis;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Connections as _, StoreError, Workspaces as _};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::item::Attributes as _;
use crate::pending::{Pending, Whose};
use crate::query::Range;
use crate::workspaces::DynamoWorkspaces;
use crate::{Aws, DynamoConnections, keys, workspaces};

/// How many are looked at, or made anew, at once.
const AT_ONCE: usize = 8;
/// What is younger may not be listed by SQS or SNS yet.
const LISTED_AFTER: Duration = Duration::from_secs(5 * 60);

/// Looks for what was deleted by hand.
#[derive(Clone)]
pub(crate) struct Mender {
    pub(crate) aws: Aws,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) workspaces: DynamoWorkspaces,
    pub(crate) connections: DynamoConnections,
}

/// What a look came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mended {
    /// Workspaces whose topic, or whose archive's subscription, was made anew.
    pub(crate) topics: Vec<WorkspaceId>,
    /// Consumers whose queues or subscription were made anew.
    pub(crate) consumers: Vec<ConnectionId>,
    /// How many things could not be made anew, and are tried again.
    pub(crate) failed: usize,
}

impl Mended {
    fn and(mut self, other: Self) -> Self {
        self.topics.extend(other.topics);
        self.consumers.extend(other.consumers);
        self.failed += other.failed;
        self
    }
}

impl Mender {
    /// Looks at all workspaces and consumers. One that fails does not keep the others.
    pub(crate) async fn look(&self) -> Result<Mended, StoreError> {
        // the registry first: what it has by now, AWS has too
        let mut registered = Vec::new();
        for item in self.aws.range(Range::of(keys::WORKSPACES)).await? {
            let workspace = workspaces::read(&item)?;
            if self.is_listed(workspace.created_at) {
                let consumers = self.consumers_of(&workspace.id).await?;
                registered.push((workspace.id, consumers));
            }
        }
        let queues = self.aws.queues_there().await?;
        let looked = futures::stream::iter(registered)
            .map(|(workspace, consumers)| self.look_at(workspace, consumers, &queues))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        Ok(looked.await.into_iter().fold(Mended::default(), Mended::and))
    }

    /// Whether what was made then is surely listed by now.
    fn is_listed(&self, made_at: Millis) -> bool {
        made_at.until(self.clock.now()) >= LISTED_AFTER
    }

    async fn consumers_of(&self, workspace: &WorkspaceId) -> Result<Vec<ConnectionId>, StoreError> {
        let members = Range::of(keys::connections_of(Some(workspace), ConnectionKind::Consumer));
        let items = self.aws.range(members).await?;
        items.iter().map(|item| item.need_parsed("sk")).collect()
    }

    async fn look_at(
        &self,
        workspace: WorkspaceId,
        consumers: Vec<ConnectionId>,
        queues: &HashSet<String>,
    ) -> Mended {
        let mut mended = Mended::default();
        let config = &self.aws.config;
        let subscribed = match self.aws.subscribed(&workspace).await {
            Ok(Some(subscribed)) => subscribed,
            Ok(None) => {
                match self.topic_anew(&workspace).await {
                    Ok(false) => {}
                    Ok(true) => mended.topics.push(workspace),
                    Err(error) => {
                        mended.failed += 1;
                        tracing::error!(%workspace, topic = config.topic_name(&workspace), %error, "a topic that is not there could not be made anew");
                    }
                }
                return mended;
            }
            Err(error) => {
                mended.failed += 1;
                tracing::warn!(%workspace, %error, "a topic could not be looked at");
                return mended;
            }
        };
        if !subscribed.has(&self.aws, &config.archive_queue_name()) {
            match self.aws.feed_archive(&workspace).await {
                Ok(()) => {
                    tracing::error!(%workspace, "the archive was not subscribed to a topic, and is again; what was published meanwhile is in no archive");
                    mended.topics.push(workspace.clone());
                }
                Err(error) => {
                    mended.failed += 1;
                    tracing::error!(%workspace, %error, "the archive is not subscribed to a topic");
                }
            }
        }
        for consumer in consumers {
            let (queue, undelivered) = (config.queue_name(&consumer), config.undelivered_name(&consumer));
            if queues.contains(&queue) && queues.contains(&undelivered) && subscribed.has(&self.aws, &queue) {
                continue;
            }
            match self.consumer_anew(&workspace, &consumer).await {
                Ok(false) => {}
                Ok(true) => {
                    tracing::error!(%workspace, %consumer, "a queue or subscription of a consumer was not there, and was made anew; replay what was published meanwhile");
                    mended.consumers.push(consumer);
                }
                Err(error) => {
                    mended.failed += 1;
                    tracing::error!(%workspace, %consumer, %error, "a queue or subscription of a consumer is not there and could not be made anew");
                }
            }
        }
        mended
    }

    /// Makes what a consumer lacks; `false` when somebody else is at it, or it has just been made or removed.
    async fn consumer_anew(
        &self,
        workspace: &WorkspaceId,
        consumer: &ConnectionId,
    ) -> Result<bool, RegistryError> {
        match self.connections.get(consumer).await? {
            Some(stored) if self.is_listed(stored.created_at) => {}
            _ => return Ok(false),
        }
        let whose = Whose::Consumer(workspace.clone(), consumer.clone());
        let Some(pending) = self.connections.begin(whose).await? else {
            return Ok(false);
        };
        self.connections.restore(&pending).await?;
        Ok(true)
    }

    /// Makes a workspace's topic; `false` when somebody else is at it.
    async fn topic_anew(&self, workspace: &WorkspaceId) -> Result<bool, RegistryError> {
        let whose = Whose::Workspace(workspace.clone());
        let Some(pending) = self.connections.begin(whose).await? else {
            return Ok(false);
        };
        self.restore_topic(&pending, workspace).await
    }

    /// Makes a topic with all its subscriptions, then lets publications in and takes the note away. `false` when the workspace has gone.
    pub(crate) async fn restore_topic(
        &self,
        pending: &Pending,
        workspace: &WorkspaceId,
    ) -> Result<bool, RegistryError> {
        if self.workspaces.get(workspace).await?.is_none() {
            self.aws.remove_pending(pending).await?;
            return Ok(false);
        }
        self.aws.make_topic_anew(workspace).await?;
        // who becomes a consumer from now on subscribes to the new topic itself
        for consumer in self.consumers_of(workspace).await? {
            self.connections.subscribe_again(&consumer).await?;
        }
        self.aws.open_topic(workspace).await?;
        tracing::error!(%workspace, topic = self.aws.config.topic_name(workspace), "a topic was not there, and was made anew with its subscriptions");
        if !pending.clear(&self.aws).await? && self.workspaces.get(workspace).await?.is_none() {
            // deleted meanwhile
            self.aws.remove_topic(workspace).await?;
            return Ok(false);
        }
        Ok(true)
    }
}

impl Mender {
    /// What is done about a note of a change that nobody is at any more.
    pub(crate) async fn restore(&self, pending: &Pending) -> Result<(), RegistryError> {
        match &pending.whose {
            Whose::Workspace(workspace) => self.restore_topic(pending, workspace).await.map(drop),
            Whose::Consumer(..) => self.connections.restore(pending).await,
        }
    }
}
