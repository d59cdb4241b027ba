//! How those who wait at a queue learn that there is something.
//!
//! Of many who wait, one is woken at a time; when it leaves something behind it wakes the next. And one of them, the
//! lead, minds the time at which something hidden comes back: the others do not count the hours.
//!
//! Receives that name an attempt also have a bell of their own: a newer one of the same name tells the older one to end, and
//! whoever takes messages under a name tells the newest of that name, which shall have them too.

use std::collections::HashMap;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError};

use storybus_core::domain::time::Millis;
use tokio::sync::futures::Notified;
use tokio::sync::{Mutex, MutexGuard, Notify, watch};

use crate::time::EngineClock;

/// The bell of one queue.
pub(crate) struct Signal {
    ready: Notify,
    /// When the first hidden message comes back: never later than that, as far as anybody knows.
    due: watch::Sender<Option<Millis>>,
    lead: Mutex<()>,
    closed: watch::Sender<bool>,
    waiting: AtomicUsize,
    /// The newest receive of each attempt that is under way.
    attempts: StdMutex<HashMap<String, Arc<Bell>>>,
}

impl Default for Signal {
    fn default() -> Self {
        Self {
            ready: Notify::new(),
            due: watch::Sender::new(None),
            lead: Mutex::new(()),
            closed: watch::Sender::new(false),
            waiting: AtomicUsize::new(0),
            attempts: StdMutex::default(),
        }
    }
}

/// Counts one who waits.
pub(crate) struct Waiting<'a>(&'a Signal);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bell of one receive.
#[derive(Default)]
struct Bell {
    replaced: AtomicBool,
    ring: Notify,
}

/// A receive that names an attempt, until it ends.
pub(crate) struct Attempt<'a> {
    signal: &'a Signal,
    name: &'a str,
    bell: Arc<Bell>,
}

impl Attempt<'_> {
    /// Whether a newer one of the same name has come.
    pub(crate) fn is_replaced(&self) -> bool {
        self.bell.replaced.load(Ordering::Acquire)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut attempts = self.signal.attempts();
        if attempts
            .get(self.name)
            .is_some_and(|bell| Arc::ptr_eq(bell, &self.bell))
        {
            attempts.remove(self.name);
        }
    }
}

impl Signal {
    /// A receive that names an attempt begins: it is the newest now, and the one before ends.
    pub(crate) fn attempt<'a>(&'a self, name: &'a str) -> Attempt<'a> {
        let bell = Arc::new(Bell::default());
        let former = self.attempts().insert(name.to_owned(), Arc::clone(&bell));
        if let Some(former) = former {
            former.replaced.store(true, Ordering::Release);
            former.ring.notify_one();
        }
        Attempt {
            signal: self,
            name,
            bell,
        }
    }

    /// Messages were taken under that name: the newest of it shall look, and finds the same.
    pub(crate) fn taken_by(&self, attempt: &str) {
        if let Some(newest) = self.attempts().get(attempt) {
            newest.ring.notify_one();
        }
    }

    fn attempts(&self) -> StdMutexGuard<'_, HashMap<String, Arc<Bell>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now until the value is dropped, somebody waits.
    pub(crate) fn enter(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// Whether anybody waits.
    pub(crate) fn awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// To be made before one looks into the queue: what becomes ready after the look is then not missed.
    pub(crate) fn listen(&self) -> Notified<'_> {
        self.ready.notified()
    }

    /// One of those who wait shall look.
    pub(crate) fn wake(&self) {
        if self.awaited() {
            self.ready.notify_one();
        }
    }

    /// All who wait shall look.
    pub(crate) fn wake_all(&self) {
        self.ready.notify_waiters();
    }

    /// Something was hidden until then.
    pub(crate) fn hidden_until(&self, time: Millis) {
        self.due.send_if_modified(|due| {
            let earlier = due.is_none_or(|due| time < due);
            if earlier {
                *due = Some(time);
            }
            earlier
        });
    }

    /// Nothing comes back before then; never, if `None`.
    pub(crate) fn due_at(&self, time: Option<Millis>) {
        self.due
            .send_if_modified(|due| std::mem::replace(due, time) != time);
    }

    /// Nobody waits here any more.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Waits until it is worth looking again (`true`), or until the deadline or the end of the queue (`false`). While the
    /// queue is paused, nothing that comes back is worth a look.
    ///
    /// Who has become the lead keeps it while it looks: the next one would see the time that has come, and look too.
    pub(crate) async fn wait<'a>(
        &'a self,
        heard: Notified<'_>,
        lead: &mut Option<MutexGuard<'a, ()>>,
        attempt: Option<&Attempt<'_>>,
        clock: &EngineClock,
        deadline: Millis,
        paused: bool,
    ) -> bool {
        let mut closed = self.closed.subscribe();
        let mut changes = self.due.subscribe();
        let mut heard = pin!(heard);
        loop {
            let due = changes
                .borrow_and_update()
                .filter(|due| lead.is_some() && !paused && *due < deadline);
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return false,
                () = rung(attempt) => return true,
                () = &mut heard => return true,
                place = self.lead.lock(), if lead.is_none() && !paused => *lead = Some(place),
                _ = changes.changed(), if lead.is_some() => {}
                () = clock.sleep_until(due.unwrap_or(deadline)) => return due.is_some(),
            }
        }
    }
}

async fn rung(attempt: Option<&Attempt<'_>>) {
    match attempt {
        Some(attempt) => attempt.bell.ring.notified().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use storybus_testkit::FakeClock;
    use storybus_testkit::executor::{poll_once, run};

    use super::*;

    #[test]
    fn the_newest_of_an_attempt_is_told() {
        let engine = EngineClock::new(Arc::new(FakeClock::new()), Millis(0));
        let deadline = engine.now().plus(std::time::Duration::from_secs(20));
        let signal = Signal::default();
        let (mut no_lead, mut lead) = (None, None);
        let older = signal.attempt("a");
        let mut waits = Box::pin(signal.wait(
            signal.listen(),
            &mut no_lead,
            Some(&older),
            &engine,
            deadline,
            false,
        ));
        assert!(poll_once(waits.as_mut()).is_pending());
        let newest = signal.attempt("a");
        assert!(run(waits) && older.is_replaced());
        let mut waits = Box::pin(signal.wait(
            signal.listen(),
            &mut lead,
            Some(&newest),
            &engine,
            deadline,
            false,
        ));
        drop(older);
        signal.taken_by("b");
        assert!(poll_once(waits.as_mut()).is_pending());
        signal.taken_by("a");
        assert!(run(waits) && !newest.is_replaced());
        drop(newest);
        assert!(signal.attempts().is_empty());
    }
}
