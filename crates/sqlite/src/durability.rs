//! When a commit is on disk.
//!
//! A publish commits three times (RECORD, PUBLISH, MARK), and only its answer has to wait for the disk. So the writer
//! commits without syncing (SQLite's WAL with `synchronous=NORMAL`) and numbers its commits; threads of their own run
//! `fdatasync` over the WAL and publish the highest number that is on disk; and whoever answers a client first waits at the
//! [barrier](Durability::barrier) for everything committed so far. One sync so serves all commits of all requests that
//! came meanwhile.
//!
//! Why this is enough:
//!
//! - *The process is killed*: a commit is in the page cache before anyone hears of it, and the page cache outlives the
//!   process.
//! - *The power fails*: a WAL is read back as far as its frames are whole, by salt and running checksum. Frames lie in the
//!   order of the commits. A sync that began after commit n covers all frames up to n, so they are whole: what is lost is a
//!   suffix of commits for which no barrier had returned, and never a commit before a kept one. Since every answer
//!   waits, even one that only tells of another's commit, nobody outside has seen anything of that suffix.
//! - *A checkpoint* syncs the WAL before it copies from it (with NORMAL, SQLite's own rule), so the database never has a
//!   page of a commit that the WAL could lose. *A WAL starts over* at its first byte only when all of it is copied and the
//!   database is synced, and its new header, with new salts, is synced before its frames follow. What a sync of the old WAL
//!   had covered is then in the database; a commit to the new one needs a sync of the same file, the same inode all the time:
//!   SQLite unlinks it only when the last connection closes, and truncates it only behind what the new WAL has.
//! - *A WAL that was left behind* by a killed process may hold commits that were never synced. Opening commits too, so the
//!   first barrier syncs the file, and whatever it held.
//! - *A sync fails*: the kernel marks the pages clean and forgets them, so that a second sync would report a success that
//!   is none. The store is then [failed](Durability::fail) for good: every barrier and every call says so, nothing is
//!   answered any more, and the process should end: a start reads what the disk really has.
//!   <https://wiki.postgresql.org/wiki/Fsync_Errors>

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::fs::fdatasync;
use storybus_core::ports::StoreError;
use tokio::sync::watch;

/// Two, so that a barrier that comes while a sync runs does not wait for that one to end before its own begins.
const SYNCERS: usize = 2;

/// A point in the sequence of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Point {
    /// The number of a commit since the store was opened.
    pub commit: u64,
    /// How many bytes of the WAL hold all commits up to it.
    pub wal_bytes: u64,
}

/// What is on disk.
#[derive(Debug, Clone, Default)]
struct Progress {
    synced: Point,
    failed: Option<Arc<str>>,
}

/// What the syncers are asked to do.
#[derive(Debug, Default)]
struct Orders {
    committed: Point,
    /// The last commit somebody waits for.
    wanted: u64,
    /// The last commit for which a sync has begun.
    begun: u64,
    stop: bool,
}

/// The commits and the disk.
pub(crate) struct Durability {
    orders: Mutex<Orders>,
    changed: Condvar,
    /// As in `orders`, to be read without the lock.
    committed: AtomicU64,
    progress: watch::Sender<Progress>,
}

impl Durability {
    pub(crate) fn new() -> Self {
        Self {
            orders: Mutex::default(),
            changed: Condvar::new(),
            committed: AtomicU64::new(0),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    /// Starts the syncers, which end with [`Durability::stop`]. The WAL must exist.
    pub(crate) fn start(self: &Arc<Self>, wal: &Path) -> io::Result<Vec<JoinHandle<()>>> {
        (0..SYNCERS)
            .map(|_| {
                // a descriptor each: the kernel reports a failed write-back once to each
                let file = File::options().read(true).write(true).open(wal)?;
                let this = Arc::clone(self);
                thread::Builder::new()
                    .name("storybus-sync".to_owned())
                    .spawn(move || this.run(&file))
            })
            .collect()
    }

    /// The writer has committed once more.
    pub(crate) fn committed(&self, wal_bytes: u64) {
        let mut orders = self.orders();
        orders.committed = Point {
            commit: orders.committed.commit + 1,
            wal_bytes,
        };
        self.committed.store(orders.committed.commit, Ordering::Release);
    }

    /// The last commit.
    #[cfg(test)]
    pub(crate) fn last(&self) -> Point {
        self.orders().committed
    }

    /// Comes back when everything committed before the call is on disk.
    pub(crate) async fn barrier(&self) -> Result<Point, StoreError> {
        let commit = self.committed.load(Ordering::Acquire);
        let mut progress = self.progress.subscribe();
        {
            let now = progress.borrow_and_update();
            if now.failed.is_none() && now.synced.commit >= commit {
                return Ok(now.synced);
            }
        }
        {
            let mut orders = self.orders();
            if orders.wanted < commit {
                orders.wanted = commit;
                self.changed.notify_one();
            }
        }
        let done = progress
            .wait_for(|p| p.failed.is_some() || p.synced.commit >= commit)
            .await;
        match done {
            Ok(progress) => match &progress.failed {
                None => Ok(progress.synced),
                Some(reason) => Err(StoreError::Unknown {
                    reason: reason.to_string(),
                }),
            },
            Err(_) => Err(crate::error::closed()),
        }
    }

    /// Nothing that was not synced can be relied on any more.
    pub(crate) fn fail(&self, reason: &str) {
        tracing::error!(reason, "the store has failed; the process should end");
        self.progress.send_modify(|progress| {
            progress.failed.get_or_insert_with(|| reason.into());
        });
        self.changed.notify_all();
    }

    /// Why the store has failed, if it has.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.progress.borrow().failed.clone()
    }

    /// Comes back when the store has failed, with the reason; never otherwise.
    pub(crate) async fn failed(&self) -> Arc<str> {
        let mut progress = self.progress.subscribe();
        match progress.wait_for(|p| p.failed.is_some()).await {
            Ok(progress) => progress.failed.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Lets the syncers sync what is left and end.
    pub(crate) fn stop(&self) {
        self.orders().stop = true;
        self.changed.notify_all();
    }

    fn run(&self, wal: &File) {
        while let Some(target) = self.next() {
            match fdatasync(wal) {
                Ok(()) => {
                    self.progress.send_if_modified(|progress| {
                        let further = progress.synced < target;
                        progress.synced = progress.synced.max(target);
                        further
                    });
                }
                Err(error) => return self.fail(&format!("fdatasync of the write-ahead log: {error}")),
            }
        }
    }

    /// Waits until there is something to sync; `None` at the end.
    fn next(&self) -> Option<Point> {
        let mut orders = self.orders();
        loop {
            if self.progress.borrow().failed.is_some() {
                return None;
            }
            if orders.stop {
                orders.wanted = orders.committed.commit;
            }
            if orders.wanted > orders.begun {
                orders.begun = orders.committed.commit;
                return Some(orders.committed);
            }
            if orders.stop {
                return None;
            }
            orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use storybus_testkit::executor::{poll_once, run};

    use super::*;

    #[test]
    fn a_failed_sync_is_the_end() {
        let durability = Arc::new(Durability::new());
        // a device that cannot be synced
        let threads = durability.start(Path::new("/dev/null")).unwrap();
        assert!(run(durability.barrier()).is_ok(), "nothing is committed");
        let mut failed = Box::pin(durability.failed());
        assert!(poll_once(failed.as_mut()).is_pending());
        durability.committed(100);
        for _ in 0..2 {
            let error = run(durability.barrier());
            assert!(
                matches!(&error, Err(StoreError::Unknown { reason }) if reason.contains("fdatasync")),
                "{error:?}"
            );
        }
        assert!(run(failed).contains("fdatasync"));
        assert!(durability.failure().is_some());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn stopping_syncs_what_is_left() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let durability = Arc::new(Durability::new());
        let threads = durability.start(file.path()).unwrap();
        durability.committed(10);
        durability.committed(20);
        durability.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(
            run(durability.barrier()).unwrap(),
            Point {
                commit: 2,
                wal_bytes: 20
            }
        );
    }
}
