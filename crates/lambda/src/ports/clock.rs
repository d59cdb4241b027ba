//! Time in a function.
//!
//! AWS keeps the clocks of its machines right, so the wall clock is the bus's time; it never goes back within a process. A function
//! may be frozen between requests, and its machine with it, so nothing else counts the time that has passed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;

/// The wall clock, which never goes back.
#[derive(Debug, Default)]
pub struct WallClock {
    latest: AtomicI64,
}

impl WallClock {
    fn at(&self, wall: i64) -> Millis {
        Millis(self.latest.fetch_max(wall, Ordering::Relaxed).max(wall))
    }
}

#[async_trait]
impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.at(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// How long something took, for metrics.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins to count.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this measures, nothing is decided by it"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since then, to the microsecond.
    #[must_use]
    pub fn millis(&self) -> f64 {
        (self.0.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_goes_back() {
        let clock = WallClock::default();
        assert_eq!(clock.at(1_000), Millis(1_000));
        assert_eq!(clock.at(900), Millis(1_000));
        assert_eq!(clock.at(1_001), Millis(1_001));
        assert!(clock.now() > Millis(1_600_000_000_000));
    }
}
