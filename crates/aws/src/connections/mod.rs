//! The registry of connections.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::connection::{AwsAccount, AwsRole, Connection, Role};
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Connections, Random, StoreError};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::item::{Attributes as _, Item};
use crate::pending::{Doing, Pending, Whose};
use crate::query::Range;
use crate::registry::{Plan, Token, internal};
use crate::resources::ResourceError;
use crate::workspaces::is_unknown;
use crate::{Aws, keys};

/// How long SNS takes to use a filter policy that is new or was changed.
/// <https://docs.aws.amazon.com/sns/latest/dg/message-filtering-apply.html>
const FILTER_SETTLES_IN: Duration = Duration::from_secs(15 * 60);
/// How often a deletion that finds the connection changed looks again.
const MOST_LOOKS: usize = 8;

/// [`Connections`] on DynamoDB, each consumer with its queues and subscription on SQS and SNS.
///
/// A consumer is made in three steps: a note, its resources, the registry's transaction, which takes the note away; so is a change
/// of what its resources follow from. What fails between is taken back (a new consumer's resources are removed, a known one's get
/// the settings that the registry has); what cannot be taken back, or whose outcome nobody knows, is the sweeper's. A deletion is
/// done when the registry has done it: what cannot be removed in that call is the sweeper's, too.
///
/// The resources of a consumer that is disabled do not know its reader's role.
#[derive(Clone)]
pub struct DynamoConnections {
    aws: Aws,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Aws {
    /// The registry of connections.
    #[must_use]
    pub fn connections(&self, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> DynamoConnections {
        DynamoConnections {
            aws: self.clone(),
            clock,
            random,
        }
    }
}

fn read(item: &Item) -> Result<Connection, StoreError> {
    item.need_json("doc")
}

/// What its resources follow from: as if it had no reader, when it is disabled.
fn in_force(connection: &Connection) -> Connection {
    let mut connection = connection.clone();
    if let Role::Consumer(consumer) = &mut connection.role
        && connection.disabled
    {
        consumer.reader_role_arn = None;
    }
    connection
}

/// Whether resources of the one would not do for the other.
fn resources_differ(one: &Connection, other: &Connection) -> bool {
    let (one, other) = (in_force(one), in_force(other));
    match (&one.role, &other.role) {
        (Role::Consumer(one), Role::Consumer(other)) => {
            (
                &one.filter,
                one.max_receives,
                one.visibility_seconds,
                &one.reader_role_arn,
            ) != (
                &other.filter,
                other.max_receives,
                other.visibility_seconds,
                &other.reader_role_arn,
            )
        }
        _ => false,
    }
}

fn refused(error: ResourceError) -> RegistryError {
    match error {
        ResourceError::NoSuchRole => RegistryError::NoSuchReader,
        other => other.into(),
    }
}

/// Whose resources these are; `None` when it has none.
fn whose(connection: &Connection) -> Option<Whose> {
    match (&connection.role, &connection.workspace) {
        (Role::Consumer(_), Some(workspace)) => {
            Some(Whose::Consumer(workspace.clone(), connection.id.clone()))
        }
        _ => None,
    }
}

impl DynamoConnections {
    fn token(&self) -> Token {
        Token::new(&*self.random)
    }

    fn pending(&self, whose: Whose, doing: Doing) -> Pending {
        Pending {
            whose,
            doing,
            token: self.token(),
            at: self.clock.now(),
        }
    }

    /// Makes the resources of a new consumer, then writes the registry.
    async fn make(
        &self,
        pending: &Pending,
        workspace: &WorkspaceId,
        connection: &Connection,
        audit: &AuditEntry,
    ) -> Result<(), RegistryError> {
        let made = self.aws.make_consumer(workspace, &in_force(connection)).await;
        made.map_err(refused)?;
        self.write(self.plan_create(connection, Some(pending), audit)?)
            .await
    }

    /// Changes the resources of a consumer, then writes the registry.
    async fn change(
        &self,
        pending: &Pending,
        before: &Connection,
        connection: &Connection,
        audit: &AuditEntry,
    ) -> Result<(), RegistryError> {
        let changed = self.aws.change_consumer(&in_force(connection)).await;
        changed.map_err(refused)?;
        let (plan, late) = self.plan_update(before, connection, Some(pending), audit)?;
        self.write(plan).await?;
        self.let_go(connection, late).await;
        Ok(())
    }

    async fn write(&self, plan: Plan) -> Result<(), RegistryError> {
        plan.commit(&self.aws, &self.token()).await
    }

    /// Takes the note that somebody works at these resources; `None` when somebody else does.
    pub(crate) async fn begin(&self, whose: Whose) -> Result<Option<Pending>, RegistryError> {
        let pending = self.pending(whose, Doing::Changing);
        let mut plan = Plan::default();
        plan.add_or(pending.begin(), |_| RegistryError::Changed);
        match plan.commit(&self.aws, &pending.token).await {
            Ok(()) => Ok(Some(pending)),
            Err(RegistryError::Changed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the resources of a consumer what the registry has, makes those that are not there, and takes the note away. One that
    /// is not in the registry any more loses what it has.
    pub(crate) async fn restore(&self, pending: &Pending) -> Result<(), RegistryError> {
        let Whose::Consumer(workspace, id) = &pending.whose else {
            return Err(internal("only consumers are changed").into());
        };
        let Some(stored) = self.get(id).await? else {
            return Ok(self.aws.remove_pending(pending).await?);
        };
        let changed = self.aws.change_consumer(&in_force(&stored)).await;
        changed.map_err(refused)?;
        if !pending.clear(&self.aws).await? && self.get(id).await?.is_none() {
            // deleted meanwhile: what was made after that is nobody's
            self.aws.remove_consumer(workspace, id).await?;
        }
        Ok(())
    }

    /// Subscribes a consumer to its workspace's topic again.
    pub(crate) async fn subscribe_again(&self, id: &ConnectionId) -> Result<(), RegistryError> {
        match self.get(id).await? {
            Some(stored) => Ok(self.aws.subscribe_consumer(&stored).await?),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Connections for DynamoConnections {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let (Some(whose), Some(workspace)) = (whose(connection), &connection.workspace) else {
            return self.write(self.plan_create(connection, None, audit)?).await;
        };
        let pending = self.pending(whose, Doing::Making);
        self.plan_reserve(&pending, workspace, connection)
            .commit(&self.aws, &pending.token)
            .await?;
        let made = self.make(&pending, workspace, connection, audit).await;
        if let Err(error) = &made
            && !is_unknown(error)
            && let Err(error) = self.aws.remove_pending(&pending).await
        {
            tracing::warn!(consumer = %connection.id, %error, "what was made of a consumer is left to the sweeper");
        }
        made
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        let item = self.aws.item(keys::connection(id.as_str())).await?;
        item.as_ref().map(read).transpose()
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        let mut all = Vec::new();
        let mut after = after.map(|id| id.as_str().to_owned());
        // what is deleted between the two reads is missing, though more may follow
        while all.len() < limit {
            let wanted = limit - all.len();
            let range = Range::of(keys::connections_of(workspace, kind)).after(after);
            let members = self.aws.range(range.limit(wanted)).await?;
            let ids = members.iter().map(|member| member.need_text("sk"));
            let ids: Vec<&str> = ids.collect::<Result<_, _>>()?;
            after = ids.last().map(|&id| id.to_owned());
            let keys = ids.into_iter().map(keys::connection).collect();
            for item in self.aws.items(keys).await? {
                all.push(read(&item)?);
            }
            if members.len() < wanted {
                break;
            }
        }
        Ok(all)
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let before = self.get(&connection.id).await?.ok_or(RegistryError::NotFound)?;
        if before.version.checked_add(1) != Some(connection.version) {
            return Err(RegistryError::Changed);
        }
        let whose = whose(connection).filter(|_| resources_differ(&before, connection));
        let Some(whose) = whose else {
            let (plan, late) = self.plan_update(&before, connection, None, audit)?;
            self.write(plan).await?;
            self.let_go(connection, late).await;
            return Ok(());
        };
        let pending = self.begin(whose).await?.ok_or(RegistryError::Changed)?;
        let changed = self.change(&pending, &before, connection, audit).await;
        if let Err(error) = &changed
            && !is_unknown(error)
            && let Err(error) = self.restore(&pending).await
        {
            tracing::warn!(consumer = %connection.id, %error, "a consumer's former settings are left to the sweeper");
        }
        changed
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        for _ in 0..MOST_LOOKS {
            let stored = self.get(id).await?.ok_or(RegistryError::NotFound)?;
            let pending = whose(&stored).map(|whose| self.pending(whose, Doing::Removing));
            match self
                .write(self.plan_delete(&stored, pending.as_ref(), audit)?)
                .await
            {
                Ok(()) => {}
                Err(RegistryError::Changed) => continue,
                Err(error) => return Err(error),
            }
            if let Some(pending) = pending
                && let Err(error) = self.aws.remove_pending(&pending).await
            {
                tracing::warn!(consumer = %id, %error, "the queues of a consumer that is deleted are left to the sweeper");
            }
            return Ok(());
        }
        Err(RegistryError::Changed)
    }

    async fn producer_of_role(
        &self,
        workspace: &WorkspaceId,
        account: &str,
        role_name: &str,
    ) -> Result<Option<Connection>, StoreError> {
        let role = AwsRole {
            account,
            name: role_name,
        };
        let Some(owned) = self.aws.item(keys::role(workspace, role)).await? else {
            return Ok(None);
        };
        let found = self.get(&owned.need_parsed("owner")?).await?;
        // it may have been changed or deleted between the two reads
        Ok(found.filter(|c| c.workspace.as_ref() == Some(workspace) && c.producer_role() == Some(role)))
    }

    fn filter_settles_in(&self) -> Duration {
        FILTER_SETTLES_IN
    }

    fn account_of_roles(&self) -> Option<AwsAccount<'_>> {
        Some(AwsAccount {
            partition: &self.aws.config.partition,
            id: &self.aws.config.account,
        })
    }
}
