//! How many of something there are, and when there are none any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A count that can be waited for.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    number: AtomicUsize,
    none: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct One(Tally);

impl Tally {
    /// One more.
    pub(super) fn one(&self) -> One {
        self.0.number.fetch_add(1, Ordering::Relaxed);
        One(self.clone())
    }

    /// Comes back when there are none.
    pub(super) async fn none(&self) {
        loop {
            let mut told = std::pin::pin!(self.0.none.notified());
            // Listens before it looks: what happens in between is not missed.
            told.as_mut().enable();
            if self.0.number.load(Ordering::Acquire) == 0 {
                return;
            }
            told.await;
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if self.0.0.number.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.0.none.notify_waiters();
        }
    }
}
