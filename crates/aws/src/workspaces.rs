//! The registry of workspaces.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::connection::Workspace;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Random, StoreError, Workspaces};
use storybus_protocol::id::WorkspaceId;

use crate::item::{Attributes as _, Item, json, n};
use crate::pending::{Doing, Pending, Whose};
use crate::query::{Range, one};
use crate::registry::{MAX_WORKSPACES, Plan, Token, absent_or_changed};
use crate::writes::Action;
use crate::{Aws, audit, keys};

/// [`Workspaces`] on DynamoDB, each with its topic on SNS.
///
/// A workspace is made in three steps: a note, the topic, the registry's transaction, which takes the note away. What fails
/// between is taken back; what cannot be taken back, or whose outcome nobody knows, is the sweeper's. Deleted is what the
/// registry has deleted: a topic that cannot be removed in that call is the sweeper's, too.
#[derive(Clone)]
pub struct DynamoWorkspaces {
    aws: Aws,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Aws {
    /// The registry of workspaces.
    #[must_use]
    pub fn workspaces(&self, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> DynamoWorkspaces {
        DynamoWorkspaces {
            aws: self.clone(),
            clock,
            random,
        }
    }
}

pub(crate) fn read(item: &Item) -> Result<Workspace, StoreError> {
    item.need_json("doc")
}

impl DynamoWorkspaces {
    fn token(&self) -> Token {
        Token::new(&*self.random)
    }

    fn pending(&self, id: &WorkspaceId, doing: Doing) -> Pending {
        Pending {
            whose: Whose::Workspace(id.clone()),
            doing,
            token: self.token(),
            at: self.clock.now(),
        }
    }

    /// The note: only whoever has it may make a workspace of this id.
    async fn reserve(&self, pending: &Pending, id: &WorkspaceId) -> Result<(), RegistryError> {
        let mut plan = Plan::default();
        plan.add_or(
            Action::check(keys::workspace(id)).when("attribute_not_exists(pk)"),
            |_| RegistryError::Changed,
        );
        plan.add_or(pending.begin(), |_| RegistryError::Changed);
        plan.commit(&self.aws, &pending.token).await
    }

    async fn make(
        &self,
        pending: &Pending,
        workspace: &Workspace,
        audit: &AuditEntry,
    ) -> Result<(), RegistryError> {
        self.aws.make_topic(&workspace.id).await?;
        let mut item = keys::workspace(&workspace.id);
        item.insert("doc".to_owned(), json(workspace)?);
        item.insert("version".to_owned(), n(workspace.version));
        item.insert("connections".to_owned(), n(0));
        item.insert("consumers".to_owned(), n(0));
        let mut plan = Plan::default();
        plan.add_or(Action::put(item).when("attribute_not_exists(pk)"), |_| {
            RegistryError::Changed
        });
        plan.add_or(
            Action::update(keys::workspace_count(), "ADD #count :one")
                .when("attribute_not_exists(pk) OR #count < :most")
                .value(":one", one())
                .value(":most", n(MAX_WORKSPACES)),
            |_| RegistryError::WorkspaceLimit,
        );
        plan.add_or(pending.end(), |_| overtaken());
        plan.add(audit::write(audit)?);
        plan.commit(&self.aws, &self.token()).await
    }
}

/// Who was so slow that the sweeper took what it had begun for abandoned.
pub(crate) fn overtaken() -> RegistryError {
    RegistryError::Store(StoreError::Unavailable {
        reason: "it took so long that it was given up".to_owned(),
    })
}

/// Whether nobody knows what came of a write.
pub(crate) fn is_unknown(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Store(StoreError::Unknown { .. }))
}

#[async_trait]
impl Workspaces for DynamoWorkspaces {
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let pending = self.pending(&workspace.id, Doing::Making);
        self.reserve(&pending, &workspace.id).await?;
        let made = self.make(&pending, workspace, audit).await;
        if let Err(error) = &made
            && !is_unknown(error)
            && let Err(error) = self.aws.remove_pending(&pending).await
        {
            tracing::warn!(workspace = %workspace.id, %error, "what was made of a workspace is left to the sweeper");
        }
        made
    }

    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let item = self.aws.item(keys::workspace(id)).await?;
        item.as_ref().map(read).transpose()
    }

    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError> {
        let range = Range::of(keys::WORKSPACES)
            .after(after.map(WorkspaceId::as_str))
            .limit(limit);
        self.aws.range(range).await?.iter().map(read).collect()
    }

    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let Some(before) = workspace.version.checked_sub(1) else {
            return Err(match self.get(&workspace.id).await? {
                Some(_) => RegistryError::Changed,
                None => RegistryError::NotFound,
            });
        };
        let mut plan = Plan::default();
        plan.add_or(
            Action::update(
                keys::workspace(&workspace.id),
                "SET doc = :doc, version = :version",
            )
            .when("version = :before")
            .value(":doc", json(workspace)?)
            .value(":version", n(workspace.version))
            .value(":before", n(before)),
            absent_or_changed,
        );
        plan.add(audit::write(audit)?);
        plan.commit(&self.aws, &self.token()).await
    }

    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let pending = self.pending(id, Doing::Removing);
        let mut plan = Plan::default();
        plan.add_or(
            Action::delete(keys::workspace(id))
                .when("connections = :none")
                .value(":none", n(0)),
            |found| match found {
                None => RegistryError::NotFound,
                Some(_) => RegistryError::NotEmpty,
            },
        );
        plan.add(Action::update(keys::workspace_count(), "ADD #count :less").value(":less", n(-1)));
        plan.add(pending.insist());
        plan.add(audit::write(audit)?);
        plan.commit(&self.aws, &pending.token).await?;
        if let Err(error) = self.aws.remove_pending(&pending).await {
            tracing::warn!(workspace = %id, %error, "the topic of a workspace that is deleted is left to the sweeper");
        }
        Ok(())
    }
}
