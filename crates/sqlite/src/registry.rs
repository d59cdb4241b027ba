//! The registry in memory: workspaces, connections, and which queues a publication goes to.
//!
//! The database is the authority, and the writer decides by it. This copy is changed after each commit and before its
//! answer, so whoever was answered is seen here by everyone.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rusqlite::Connection as Database;
use storybus_core::domain::connection::{Connection, Role, Workspace};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::error::Failure;
use crate::queues::Queue;

/// A consumer's place in its workspace's topic.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) queue: i64,
    pub(crate) filter: Arc<Filter>,
}

#[derive(Default)]
struct State {
    workspaces: BTreeMap<WorkspaceId, Arc<Workspace>>,
    connections: BTreeMap<ConnectionId, Arc<Connection>>,
    /// For the lists; operators are under `None`.
    members: HashMap<Option<WorkspaceId>, BTreeMap<ConnectionId, Arc<Connection>>>,
    queues: HashMap<ConnectionId, Arc<Queue>>,
    queues_by_id: BTreeMap<i64, Arc<Queue>>,
    routes: HashMap<WorkspaceId, Arc<[Route]>>,
}

/// The registry, shared by all ports.
#[derive(Default)]
pub(crate) struct Registry {
    state: RwLock<State>,
}

impl Registry {
    /// Reads all of it.
    pub(crate) fn load(database: &Database) -> Result<Self, Failure> {
        let registry = Self::default();
        let mut state = registry.write();
        let mut workspaces = database.prepare("SELECT entry FROM workspace")?;
        for entry in workspaces.query_map([], |row| row.get::<_, String>(0))? {
            let workspace: Workspace = serde_json::from_str(&entry?)?;
            state.workspaces.insert(workspace.id.clone(), Arc::new(workspace));
        }
        let sql = "SELECT entry, queue.id FROM connection LEFT JOIN queue ON consumer = connection.id AND NOT closed";
        let mut connections = database.prepare(sql)?;
        let rows = connections.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        for row in rows {
            let (entry, queue) = row?;
            state.put(serde_json::from_str(&entry)?, queue);
        }
        let workspaces: Vec<_> = state.workspaces.keys().cloned().collect();
        workspaces.iter().for_each(|workspace| state.route(workspace));
        drop((workspaces, state));
        Ok(registry)
    }

    pub(crate) fn workspace(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.read().workspaces.get(id).cloned()
    }

    pub(crate) fn workspaces(&self, after: Option<&WorkspaceId>, limit: usize) -> Vec<Workspace> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.read();
        state
            .workspaces
            .range::<WorkspaceId, _>((from, Bound::Unbounded))
            .take(limit)
            .map(|(_, w)| (**w).clone())
            .collect()
    }

    pub(crate) fn connection(&self, id: &ConnectionId) -> Option<Arc<Connection>> {
        self.read().connections.get(id).cloned()
    }

    pub(crate) fn connections(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Vec<Connection> {
        let state = self.read();
        let Some(members) = state.members.get(&workspace.cloned()) else {
            return Vec::new();
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = members.range::<ConnectionId, _>((from, Bound::Unbounded));
        all.filter(|(_, c)| c.kind() == kind)
            .take(limit)
            .map(|(_, c)| (**c).clone())
            .collect()
    }

    /// A live consumer's queue.
    pub(crate) fn queue(&self, key: &QueueKey) -> Option<Arc<Queue>> {
        let state = self.read();
        let queue = state.queues.get(&key.consumer)?;
        let connection = state.connections.get(&key.consumer)?;
        (connection.workspace.as_ref() == Some(&key.workspace)).then(|| Arc::clone(queue))
    }

    pub(crate) fn queue_of_id(&self, id: i64) -> Option<Arc<Queue>> {
        self.read().queues_by_id.get(&id).cloned()
    }

    /// The next live queue after an id.
    pub(crate) fn queue_after(&self, id: i64) -> Option<Arc<Queue>> {
        let state = self.read();
        state
            .queues_by_id
            .range((Bound::Excluded(id), Bound::Unbounded))
            .next()
            .map(|(_, queue)| Arc::clone(queue))
    }

    /// The consumers of a workspace, each with its queue.
    pub(crate) fn queues_of(&self, workspace: &WorkspaceId) -> Vec<(ConnectionId, i64)> {
        let state = self.read();
        let members = state.members.get(&Some(workspace.clone()));
        let ids = members.into_iter().flat_map(BTreeMap::keys);
        ids.filter_map(|id| Some((id.clone(), state.queues.get(id)?.id())))
            .collect()
    }

    /// The routes to the consumers of a workspace; `None` when there is no such workspace.
    pub(crate) fn routes(&self, workspace: &WorkspaceId) -> Option<Arc<[Route]>> {
        let state = self.read();
        state.workspaces.get(workspace)?;
        Some(state.routes.get(workspace).cloned().unwrap_or_default())
    }

    pub(crate) fn put_workspace(&self, workspace: Workspace) {
        self.write()
            .workspaces
            .insert(workspace.id.clone(), Arc::new(workspace));
    }

    pub(crate) fn drop_workspace(&self, id: &WorkspaceId) {
        let mut state = self.write();
        state.workspaces.remove(id);
        state.routes.remove(id);
        state.members.remove(&Some(id.clone()));
    }

    /// Adds or replaces one; a new consumer's comes with its queue.
    pub(crate) fn put_connection(&self, connection: Connection, queue: Option<i64>) {
        let mut state = self.write();
        let workspace = connection.workspace.clone();
        state.put(connection, queue);
        workspace.iter().for_each(|workspace| state.route(workspace));
    }

    /// Takes one out; those who wait at its queue come back.
    pub(crate) fn drop_connection(&self, id: &ConnectionId) {
        let mut state = self.write();
        let Some(connection) = state.connections.remove(id) else {
            return;
        };
        if let Some(members) = state.members.get_mut(&connection.workspace) {
            members.remove(id);
        }
        if let Some(queue) = state.queues.remove(id) {
            state.queues_by_id.remove(&queue.id());
            queue.signal().close();
        }
        connection
            .workspace
            .iter()
            .for_each(|workspace| state.route(workspace));
    }

    /// All who wait come back: the store closes.
    pub(crate) fn close_queues(&self) {
        self.read()
            .queues
            .values()
            .for_each(|queue| queue.signal().close());
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, connection: Connection, queue: Option<i64>) {
        let connection = Arc::new(connection);
        if let Some(queue) = queue {
            let queue = Arc::new(Queue::new(queue));
            self.queues_by_id.insert(queue.id(), Arc::clone(&queue));
            self.queues.insert(connection.id.clone(), queue);
        }
        if let (Some(queue), Role::Consumer(consumer)) = (self.queues.get(&connection.id), &connection.role) {
            queue.set(connection.disabled, consumer.paused);
        }
        self.connections
            .insert(connection.id.clone(), Arc::clone(&connection));
        self.members
            .entry(connection.workspace.clone())
            .or_default()
            .insert(connection.id.clone(), connection);
    }

    fn route(&mut self, workspace: &WorkspaceId) {
        let members = self
            .members
            .get(&Some(workspace.clone()))
            .into_iter()
            .flat_map(BTreeMap::values);
        let routes: Vec<Route> = members
            .filter_map(
                |connection| match (&connection.role, self.queues.get(&connection.id)) {
                    (Role::Consumer(consumer), Some(queue)) => Some(Route {
                        queue: queue.id(),
                        filter: Arc::new(consumer.filter.clone()),
                    }),
                    _ => None,
                },
            )
            .collect();
        self.routes.insert(workspace.clone(), routes.into());
    }
}
