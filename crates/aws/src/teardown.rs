//! What a deployment has made besides its stack, removed with it.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use storybus_core::ports::StoreError;
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::item::Attributes as _;
use crate::pending::Whose;
use crate::query::Range;
use crate::{Aws, keys};

/// How many are removed at once: SNS takes some 100 such calls a second of an account, each consumer needs a handful.
const AT_ONCE: usize = 8;

impl Aws {
    /// Removes the queues, subscriptions and alarms of all consumers and the topics of all workspaces, registered or half made. The
    /// table stays as it is: it goes with the stack, or is kept with it. May be called again, and goes on where it failed.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub async fn teardown(&self) -> Result<(), StoreError> {
        let mut workspaces: BTreeSet<WorkspaceId> = BTreeSet::new();
        let mut consumers: BTreeSet<(WorkspaceId, ConnectionId)> = BTreeSet::new();
        for item in self.range(Range::of(keys::WORKSPACES)).await? {
            workspaces.insert(item.need_parsed("sk")?);
        }
        for workspace in &workspaces {
            let members = Range::of(keys::connections_of(Some(workspace), ConnectionKind::Consumer));
            for item in self.range(members).await? {
                consumers.insert((workspace.clone(), item.need_parsed("sk")?));
            }
        }
        for pending in self.pending().await? {
            match pending.whose {
                Whose::Workspace(id) => drop(workspaces.insert(id)),
                Whose::Consumer(workspace, id) => drop(consumers.insert((workspace, id))),
            }
        }
        futures::stream::iter(consumers)
            .map(|(workspace, id)| async move { self.remove_consumer(&workspace, &id).await })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        futures::stream::iter(workspaces)
            .map(|id| async move { self.remove_topic(&id).await })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
    }
}
