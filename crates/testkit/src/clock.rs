//! A clock that stands still until it is told to go on.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;

/// Where a fake clock starts unless it is told otherwise: 2026-09-11T16:41:00Z.
pub const START: Millis = Millis(1_789_144_860_000);

/// A clock of which the test is the master. Clones show the same time.
///
/// It never moves by itself, but for [`FakeClock::automatic`]: there, a sleep that finds nothing else to do moves the
/// clock to its own end.
#[derive(Clone, Default)]
pub struct FakeClock {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    now: Millis,
    automatic: bool,
    next_id: u64,
    /// By the time they wait for, then by the order in which they came: so that waking is deterministic.
    sleepers: BTreeMap<(Millis, u64), Waker>,
    /// Who waits for a sleeper to come.
    watchers: Vec<Waker>,
}

impl Inner {
    /// Moves the time, never back, and hands out who is due, in order.
    fn move_to(&mut self, now: Millis) -> Vec<Waker> {
        self.now = self.now.max(now);
        let later = self
            .sleepers
            .split_off(&(Millis(self.now.0.saturating_add(1)), 0));
        std::mem::replace(&mut self.sleepers, later)
            .into_values()
            .collect()
    }
}

impl FakeClock {
    /// A clock that shows this time and stands.
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                now,
                ..Inner::default()
            })),
        }
    }

    /// A clock that shows [`START`] and stands.
    #[must_use]
    pub fn new() -> Self {
        Self::at(START)
    }

    /// A clock that moves itself: a sleep first lets everything else run once, and then jumps to its end (the earliest
    /// of several sleeps first). For executors with one thread, where "everything else" is what else is ready.
    #[must_use]
    pub fn automatic() -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                now: START,
                automatic: true,
                ..Inner::default()
            })),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.lock().now
    }

    /// Lets time pass. Whoever sleeps no longer than that wakes, in the order of their ends, and sees the new time.
    pub fn advance(&self, span: Duration) {
        let target = self.lock().now.plus(span);
        self.set(target);
    }

    /// Sets the time, unless it is past already: a clock never goes back.
    pub fn set(&self, now: Millis) {
        let due = self.lock().move_to(now);
        due.into_iter().for_each(Waker::wake);
    }

    /// Moves to the end of the earliest sleep; `false` when nobody sleeps.
    pub fn advance_to_next(&self) -> bool {
        let Some(next) = self.next_wake() else {
            return false;
        };
        self.set(next);
        true
    }

    /// When the earliest sleep ends.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        self.lock().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// How many sleep.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// Comes back once at least `count` sleep: then whoever was started has reached its wait.
    pub async fn until_asleep(&self, count: usize) {
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.sleepers.len() >= count {
                return Poll::Ready(());
            }
            inner.watchers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FakeClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeClock")
            .field("now", &self.lock().now)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Clock for FakeClock {
    fn now(&self) -> Millis {
        self.lock().now
    }

    async fn sleep(&self, span: Duration) {
        if span.is_zero() {
            return;
        }
        let until = self.lock().now.plus(span);
        Sleep {
            clock: self.clone(),
            until,
            id: None,
            yielded: false,
        }
        .await;
    }
}

/// One sleep. Dropped, it leaves nothing behind.
struct Sleep {
    clock: FakeClock,
    until: Millis,
    id: Option<u64>,
    yielded: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut inner = clock.lock();
        if inner.now >= self.until {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            inner.next_id += 1;
            inner.next_id
        });
        inner.sleepers.insert((self.until, id), cx.waker().clone());
        let mut wake = std::mem::take(&mut inner.watchers);
        if inner.automatic {
            let first = inner.sleepers.keys().next() == Some(&(self.until, id));
            if self.yielded && first {
                let until = self.until;
                wake.extend(inner.move_to(until));
                drop(inner);
                wake.into_iter().for_each(Waker::wake);
                return Poll::Ready(());
            }
            self.yielded = true;
            wake.push(cx.waker().clone());
        }
        drop(inner);
        wake.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.lock().sleepers.remove(&(self.until, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::{run, yield_now};

    #[test]
    fn sleepers_wake_in_the_order_of_their_ends() {
        let clock = FakeClock::new();
        let order = Mutex::new(Vec::new());
        run(async {
            let nap = |seconds: u64| {
                let (clock, order) = (clock.clone(), &order);
                async move {
                    clock.sleep(Duration::from_secs(seconds)).await;
                    order.lock().unwrap().push(seconds);
                }
            };
            let master = async {
                clock.until_asleep(3).await;
                assert_eq!(clock.next_wake(), Some(START.plus(Duration::from_secs(1))));
                clock.advance(Duration::from_millis(999));
                assert_eq!(clock.sleepers(), 3);
                clock.advance(Duration::from_millis(1));
                assert_eq!(clock.sleepers(), 2);
                yield_now().await;
                assert!(clock.advance_to_next());
                yield_now().await;
                assert!(clock.advance_to_next() && !clock.advance_to_next());
            };
            futures::join!(nap(3), nap(1), nap(2), master);
        });
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert_eq!(clock.now(), START.plus(Duration::from_secs(3)));
    }

    #[test]
    fn an_automatic_clock_jumps_to_the_earliest_sleep_first() {
        let clock = FakeClock::automatic();
        let order = Mutex::new(Vec::new());
        run(async {
            let nap = |seconds: u64| {
                let (clock, order) = (clock.clone(), &order);
                async move {
                    clock.sleep(Duration::from_secs(seconds)).await;
                    order.lock().unwrap().push((seconds, clock.now()));
                }
            };
            futures::join!(nap(20), nap(1), nap(5));
        });
        let at = |s| (s, START.plus(Duration::from_secs(s)));
        assert_eq!(*order.lock().unwrap(), [at(1), at(5), at(20)]);
    }

    #[test]
    fn a_dropped_sleep_is_forgotten_and_time_never_goes_back() {
        let clock = FakeClock::new();
        let mut sleep = Box::pin(clock.sleep(Duration::from_secs(1)));
        assert!(crate::executor::poll_once(sleep.as_mut()).is_pending());
        assert_eq!(clock.sleepers(), 1);
        drop(sleep);
        assert_eq!(clock.sleepers(), 0);
        clock.set(Millis(0));
        assert_eq!(clock.now(), START);
    }
}
