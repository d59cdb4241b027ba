//! The engine's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;

/// The clock it was given, held at the latest time ever seen: not even a restart goes back.
pub(crate) struct EngineClock {
    clock: Arc<dyn Clock>,
    latest: AtomicI64,
}

impl EngineClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, latest: Millis) -> Self {
        Self {
            clock,
            latest: AtomicI64::new(latest.0),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        let now = self.clock.now().0;
        Millis(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }

    pub(crate) fn latest(&self) -> Millis {
        Millis(self.latest.load(Ordering::Relaxed))
    }

    pub(crate) async fn sleep_until(&self, time: Millis) {
        self.sleep(self.now().until(time)).await;
    }

    pub(crate) async fn sleep(&self, span: Duration) {
        self.clock.sleep(span).await;
    }
}
