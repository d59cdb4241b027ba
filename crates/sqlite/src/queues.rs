//! The consumers' queues.

mod enqueue;
pub(crate) mod group;
mod handle;
pub(crate) mod purge;
mod receive;
pub(crate) mod redeliver;
mod settle;
mod signal;
pub(crate) mod trace;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Queues, StoreError};

pub(crate) use self::enqueue::{Arrival, enqueue};
pub(crate) use self::group::{drop_expired, show_due};
use self::handle::Handle;
use self::receive::Taken;
use self::settle::Settle;
use self::signal::{Attempt, Signal};
use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::Tx;

/// How many rows whose time has come one command works off, so that no command holds up the others.
const DUE_BUDGET: usize = 500;
/// The same for rows that a command removes.
const REMOVAL_BUDGET: usize = 100;

/// A live consumer's queue, as the process knows it.
pub(crate) struct Queue {
    id: i64,
    disabled: AtomicBool,
    paused: AtomicBool,
    /// No live row lies before this position: rows that are kept for their handles alone need not be looked through again.
    floor: AtomicI64,
    signal: OnceLock<Box<Signal>>,
}

impl Queue {
    pub(crate) fn new(id: i64) -> Self {
        Self {
            id,
            disabled: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            floor: AtomicI64::new(0),
            signal: OnceLock::new(),
        }
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    pub(crate) fn signal(&self) -> &Signal {
        self.signal.get_or_init(Box::default)
    }

    /// From now on receives end, or find nothing, or find what waits again.
    pub(crate) fn set(&self, disabled: bool, paused: bool) {
        let disabled_before = self.disabled.swap(disabled, Ordering::AcqRel);
        let paused_before = self.paused.swap(paused, Ordering::AcqRel);
        if (disabled_before, paused_before) != (disabled, paused) {
            self.signal().wake_all();
        }
    }

    fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Acquire)
    }

    fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }
}

/// [`Queues`] on SQLite.
#[derive(Clone)]
pub struct SqliteQueues {
    inner: Arc<Inner>,
}

impl SqliteQueues {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// One look into the queue.
    async fn take(&self, queue: &Queue, receive: &Receive) -> Result<Taken, StoreError> {
        let (id, receive) = (queue.id, receive.clone());
        // Whoever leaves before its turn passes on what it may have been woken for.
        self.inner
            .writer()
            .call_or(move |tx| receive::take(tx, id, &receive), move |tx| tx.wake(id))
            .await
    }

    async fn settle(
        &self,
        key: &QueueKey,
        handles: &[String],
        how: Settle,
    ) -> Result<Vec<Settled>, StoreError> {
        let Some(queue) = self.inner.registry().queue(key) else {
            return Ok(vec![Settled::Invalid; handles.len()]);
        };
        let handles: Vec<Option<Handle>> = handles
            .iter()
            .map(|handle| Handle::parse(handle, queue.id))
            .collect();
        if handles.iter().all(Option::is_none) {
            return Ok(vec![Settled::Invalid; handles.len()]);
        }
        self.inner
            .writer()
            .call(move |tx| {
                let settle_one = |handle: &Option<Handle>| match handle {
                    Some(handle) => settle::settle(tx, handle, &how),
                    None => Ok(Settled::Invalid),
                };
                handles.iter().map(settle_one).collect()
            })
            .await
    }
}

#[async_trait]
impl Queues for SqliteQueues {
    async fn receive(&self, key: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        let clock = self.inner.clock();
        let deadline = clock.now().plus(receive.wait);
        let Some(queue) = self.inner.registry().queue(key) else {
            return Ok(Vec::new());
        };
        let signal = queue.signal();
        let _waiting = (!receive.wait.is_zero()).then(|| signal.enter());
        let attempt = receive.attempt.as_deref().map(|name| signal.attempt(name));
        let mut lead = None;
        loop {
            let heard = signal.listen();
            if signal.is_closed() || queue.is_disabled() {
                break;
            }
            let paused = queue.is_paused();
            if !paused {
                match self.take(&queue, receive).await {
                    Ok(Taken::Nothing) => {}
                    Ok(Taken::Again) => continue,
                    Ok(Taken::Some(taken)) => {
                        let workspace = key.workspace.clone();
                        return self
                            .inner
                            .reader()
                            .call(move |view| receive::load(view, &workspace, &taken))
                            .await;
                    }
                    Err(_) if signal.is_closed() => break,
                    Err(error) => return Err(error),
                }
            }
            // A receive that was replaced has looked once all the same: a rival of the same moment, which may have taken
            // what it found just before, cannot make its answer an untrue one.
            let replaced = || attempt.as_ref().is_some_and(Attempt::is_replaced);
            if clock.now() >= deadline || replaced() {
                break;
            }
            let wait = signal.wait(heard, &mut lead, attempt.as_ref(), clock, deadline, paused);
            if !wait.await {
                break;
            }
            if replaced() {
                // it may have been woken for a message: that is another's now
                signal.wake();
                break;
            }
        }
        Ok(Vec::new())
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        self.settle(queue, handles, Settle::Acknowledge).await
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle(queue, handles, Settle::Release(delay)).await
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle(queue, handles, Settle::Reject(reason.to_owned()))
            .await
    }

    async fn counts(&self, key: &QueueKey) -> Result<QueueCounts, StoreError> {
        loop {
            let Some(queue) = self.inner.registry().queue(key) else {
                return Ok(QueueCounts::default());
            };
            if let Some(counts) = self.inner.writer().call(move |tx| count(tx, &queue)).await? {
                return Ok(counts);
            }
        }
    }
}

/// Counts, or works off some of what is overdue and says `None`.
fn count(tx: &mut Tx<'_>, queue: &Arc<Queue>) -> Result<Option<QueueCounts>, Failure> {
    let overdue = show_due(tx, queue.id, DUE_BUDGET)?
        | drop_expired(tx, queue, REMOVAL_BUDGET)?
        | crate::sweep::dead_letters(tx, REMOVAL_BUDGET)?;
    if overdue {
        return Ok(None);
    }
    let stored = tx.find(
        "SELECT visible, in_flight, dead_lettered FROM queue WHERE id = ?1",
        [queue.id],
        |row| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]),
    )?;
    let [visible, in_flight, dead_lettered] = stored.unwrap_or_default();
    let change = tx.counted(queue.id);
    // `+` keeps the partial index out: the rows are wanted in the table's order
    let oldest = tx.find(
        "SELECT position, enqueued_at FROM queue_message WHERE queue = ?1 AND position >= ?2 AND +state < 3
         ORDER BY position LIMIT 1",
        [queue.id, queue.floor.load(Ordering::Relaxed)],
        |row| Ok((row.get(0)?, rows::millis(row, 1)?)),
    )?;
    if let Some((position, _)) = oldest {
        raise_floor(tx, queue, position);
    }
    let whole = |stored: i64, change: i64| u64::try_from(stored + change).unwrap_or(0);
    Ok(Some(QueueCounts {
        visible: whole(visible, change.visible),
        in_flight: whole(in_flight, change.in_flight),
        dead_lettered: whole(dead_lettered, change.dead_lettered),
        oldest_at: oldest.map(|(_, at)| at),
    }))
}

fn raise_floor(tx: &mut Tx<'_>, queue: &Arc<Queue>, position: i64) {
    let queue = Arc::clone(queue);
    tx.after_commit(move |_| {
        queue.floor.fetch_max(position, Ordering::Relaxed);
    });
}

/// What is older than that is gone.
fn retention_cutoff(now: Millis) -> Millis {
    rows::before(now, storybus_core::ports::queues::RETENTION)
}
