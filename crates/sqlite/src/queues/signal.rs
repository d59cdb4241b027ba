//! How those who wait at a queue learn that there is something.
//!
//! Of many who wait, one is woken at a time; when it leaves something behind it wakes the next. And one of them, the
//! lead, minds the time at which something hidden comes back: the others do not count the hours.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

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
}

impl Default for Signal {
    fn default() -> Self {
        Self {
            ready: Notify::new(),
            due: watch::Sender::new(None),
            lead: Mutex::new(()),
            closed: watch::Sender::new(false),
            waiting: AtomicUsize::new(0),
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

impl Signal {
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
                () = &mut heard => return true,
                place = self.lead.lock(), if lead.is_none() && !paused => *lead = Some(place),
                _ = changes.changed(), if lead.is_some() => {}
                () = clock.sleep_until(due.unwrap_or(deadline)) => return due.is_some(),
            }
        }
    }
}
