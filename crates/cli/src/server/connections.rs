//! The connections that are open, and which of them makes room for one more.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::tally::Tally;
use super::watch::Watch;

/// The open connections.
pub(super) struct Connections {
    open: Mutex<Open>,
    limit: usize,
    tasks: Tally,
}

/// Whether there is room for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// There is.
    Free,
    /// There is now: another was closed.
    Made,
    /// There is none: all the others are at work.
    None,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_number: HashMap<u64, (Arc<Watch>, AbortHandle)>,
}

/// Takes a connection from the list when its task ends, however it ends.
struct Listed {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.connections.open().by_number.remove(&self.number);
    }
}

impl Connections {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            open: Mutex::default(),
            limit,
            tasks: Tally::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.open().by_number.len()
    }

    /// Comes back when there are none.
    pub(super) async fn all_closed(&self) {
        self.tasks.none().await;
    }

    /// Makes room for one more, if need be by closing the one that is worth least.
    pub(super) fn make_room(&self) -> Room {
        if self.count() < self.limit {
            Room::Free
        } else if self.close_least() {
            Room::Made
        } else {
            Room::None
        }
    }

    /// Closes the connection that is worth least, if there is one that may be closed.
    pub(super) fn close_least(&self) -> bool {
        let now = Instant::now();
        let mut open = self.open();
        let least = open
            .by_number
            .iter()
            .filter_map(|(number, (watch, _))| Some((watch.worth(now)?, *number)))
            .min();
        let Some((_, number)) = least else { return false };
        if let Some((_, task)) = open.by_number.remove(&number) {
            task.abort();
        }
        true
    }

    /// Closes this connection.
    pub(super) fn close(&self, watch: &Arc<Watch>) {
        let open = self.open();
        if let Some((_, task)) = open.by_number.values().find(|(one, _)| Arc::ptr_eq(one, watch)) {
            task.abort();
        }
    }

    /// Runs a connection as a task.
    pub(super) fn spawn(
        self: &Arc<Self>,
        watch: Arc<Watch>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        // The task takes itself from the list; the lock keeps it from doing so before it stands there.
        let mut open = self.open();
        open.next += 1;
        let listed = Listed {
            connections: self.clone(),
            number: open.next,
        };
        let (number, one) = (listed.number, self.tasks.one());
        let task = tokio::spawn(async move {
            let _here = (one, listed);
            connection.await;
        });
        open.by_number.insert(number, (watch, task.abort_handle()));
    }

    /// Ends all of them at once.
    pub(super) fn abort_all(&self) {
        for (_, task) in self.open().by_number.values() {
            task.abort();
        }
    }
}
