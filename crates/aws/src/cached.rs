//! The registry as the functions of publishing and pulling see it: not every request asks for it anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::connection::{AwsAccount, Connection, Workspace};
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Connections, StoreError, Workspaces};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

/// The longest that what was found is answered from memory.
pub const FRESH_FOR: Duration = Duration::from_secs(60);
/// How long nothing is answered where nothing was found: whoever was made just now need not wait long.
pub const ABSENT_FOR: Duration = Duration::from_secs(5);
/// The most entries of each kind. A connection may have some 50 kB of grants.
const MOST_ENTRIES: usize = 1_000;

/// What was found, each until its time.
struct Cache<K, V> {
    entries: Mutex<HashMap<K, (Millis, Option<V>)>>,
    fresh_for: Duration,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    fn new(fresh_for: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            fresh_for: fresh_for.min(FRESH_FOR),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<K, (Millis, Option<V>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &K, now: Millis) -> Option<Option<V>> {
        let entries = self.entries();
        let (until, value) = entries.get(key)?;
        (now < *until).then(|| value.clone())
    }

    fn put(&self, key: K, value: Option<V>, now: Millis) {
        let until = now.plus(match value {
            Some(_) => self.fresh_for,
            None => self.fresh_for.min(ABSENT_FOR),
        });
        let mut entries = self.entries();
        if entries.len() >= MOST_ENTRIES && !entries.contains_key(&key) {
            entries.retain(|_, (until, _)| now < *until);
        }
        if entries.len() >= MOST_ENTRIES && !entries.contains_key(&key) {
            let first = entries.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                entries.remove(&first);
            }
        }
        entries.insert(key, (until, value));
    }

    /// From memory, or else by asking.
    async fn or<E>(
        &self,
        key: K,
        clock: &dyn Clock,
        ask: impl Future<Output = Result<Option<V>, E>> + Send,
    ) -> Result<Option<V>, E> {
        // the time before the question: an answer may be that old
        let now = clock.now();
        if let Some(known) = self.get(&key, now) {
            return Ok(known);
        }
        let value = ask.await?;
        self.put(key, value.clone(), now);
        Ok(value)
    }
}

/// [`Workspaces`] whose `get` may answer what was so up to [`FRESH_FOR`] ago. Its own writes are seen at once.
pub struct CachedWorkspaces {
    inner: Arc<dyn Workspaces>,
    clock: Arc<dyn Clock>,
    by_id: Cache<WorkspaceId, Workspace>,
}

impl CachedWorkspaces {
    /// A wrapper that remembers for so long, at most [`FRESH_FOR`].
    #[must_use]
    pub fn new(inner: Arc<dyn Workspaces>, clock: Arc<dyn Clock>, fresh_for: Duration) -> Self {
        Self {
            inner,
            clock,
            by_id: Cache::new(fresh_for),
        }
    }
}

#[async_trait]
impl Workspaces for CachedWorkspaces {
    async fn create(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.create(workspace, audit).await;
        self.by_id.entries().remove(&workspace.id);
        done
    }

    async fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        self.by_id.or(id.clone(), &*self.clock, self.inner.get(id)).await
    }

    async fn list(&self, after: Option<&WorkspaceId>, limit: usize) -> Result<Vec<Workspace>, StoreError> {
        self.inner.list(after, limit).await
    }

    async fn update(&self, workspace: &Workspace, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.update(workspace, audit).await;
        self.by_id.entries().remove(&workspace.id);
        done
    }

    async fn delete(&self, id: &WorkspaceId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.delete(id, audit).await;
        self.by_id.entries().remove(id);
        done
    }
}

/// An AWS role of a workspace.
type RoleKey = (WorkspaceId, String, String);

/// [`Connections`] whose `get` and `producer_of_role` may answer what was so up to [`FRESH_FOR`] ago. Its own writes are seen at
/// once.
pub struct CachedConnections {
    inner: Arc<dyn Connections>,
    clock: Arc<dyn Clock>,
    by_id: Cache<ConnectionId, Connection>,
    by_role: Cache<RoleKey, Connection>,
}

impl CachedConnections {
    /// A wrapper that remembers for so long, at most [`FRESH_FOR`].
    #[must_use]
    pub fn new(inner: Arc<dyn Connections>, clock: Arc<dyn Clock>, fresh_for: Duration) -> Self {
        Self {
            inner,
            clock,
            by_id: Cache::new(fresh_for),
            by_role: Cache::new(fresh_for),
        }
    }

    fn forget(&self, id: &ConnectionId) {
        self.by_id.entries().remove(id);
        self.by_role.entries().clear();
    }
}

#[async_trait]
impl Connections for CachedConnections {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.create(connection, audit).await;
        self.forget(&connection.id);
        done
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        self.by_id.or(id.clone(), &*self.clock, self.inner.get(id)).await
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        self.inner.list(workspace, kind, after, limit).await
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.update(connection, audit).await;
        self.forget(&connection.id);
        done
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        let done = self.inner.delete(id, audit).await;
        self.forget(id);
        done
    }

    async fn producer_of_role(
        &self,
        workspace: &WorkspaceId,
        account: &str,
        role_name: &str,
    ) -> Result<Option<Connection>, StoreError> {
        let key = (workspace.clone(), account.to_owned(), role_name.to_owned());
        let ask = self.inner.producer_of_role(workspace, account, role_name);
        self.by_role.or(key, &*self.clock, ask).await
    }

    fn filter_settles_in(&self) -> Duration {
        self.inner.filter_settles_in()
    }

    fn account_of_roles(&self) -> Option<AwsAccount<'_>> {
        self.inner.account_of_roles()
    }
}

#[cfg(test)]
mod tests {
    use storybus_testkit::suite::sample;
    use storybus_testkit::{FakeClock, Memory};

    use super::*;

    #[test]
    fn what_was_found_is_fresh_for_a_minute_and_what_was_not_for_five_seconds() {
        let clock = FakeClock::new();
        let memory = Arc::new(Memory::new(Arc::new(clock.clone())));
        let cached = CachedConnections::new(memory.clone(), Arc::new(clock.clone()), FRESH_FOR);
        let mut operator = sample::operator("o1", clock.now());
        let audit = sample::audit("x", &[], clock.now());
        storybus_testkit::executor::run_alone(async {
            assert_eq!(cached.get(&operator.id).await.unwrap(), None);
            Connections::create(&*memory, &operator, &audit).await.unwrap();
            clock.advance(ABSENT_FOR - Duration::from_millis(1));
            assert_eq!(cached.get(&operator.id).await.unwrap(), None);
            clock.advance(Duration::from_millis(1));
            assert_eq!(cached.get(&operator.id).await.unwrap(), Some(operator.clone()));
            let before = operator.clone();
            operator.version += 1;
            operator.disabled = true;
            operator.secrets.clear();
            let other = sample::operator("o2", clock.now());
            Connections::create(&*memory, &other, &audit).await.unwrap();
            Connections::update(&*memory, &operator, &audit).await.unwrap();
            clock.advance(FRESH_FOR - Duration::from_millis(1));
            assert_eq!(cached.get(&operator.id).await.unwrap(), Some(before));
            clock.advance(Duration::from_millis(1));
            assert_eq!(cached.get(&operator.id).await.unwrap(), Some(operator.clone()));
            // its own writes are seen at once
            operator.version += 1;
            operator.name = "Other".to_owned();
            cached.update(&operator, &audit).await.unwrap();
            assert_eq!(cached.get(&operator.id).await.unwrap(), Some(operator.clone()));
        });
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache: Cache<usize, ()> = Cache::new(FRESH_FOR);
        let now = Millis(0);
        for n in 0..MOST_ENTRIES * 3 {
            cache.put(
                n,
                Some(()),
                now.plus(Duration::from_millis(u64::try_from(n).unwrap())),
            );
        }
        assert_eq!(cache.entries().len(), MOST_ENTRIES);
        // the newest stays
        assert!(cache.get(&(MOST_ENTRIES * 3 - 1), now).is_some());
        cache.put(0, None, now.plus(FRESH_FOR * 2));
        assert_eq!(cache.entries().len(), 1);
    }
}
