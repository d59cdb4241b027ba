//! Time and randomness, passed in. The time that leases and due dates go by is the database's own, not this.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

mod system;

pub use system::{SystemClock, SystemRandom};

/// The time of this process: for pauses, and for how long ago something was.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Time since some fixed moment. It never goes backwards, and it goes on while the process is stopped.
    fn elapsed(&self) -> Duration;

    /// The time of day, since the Unix epoch: for `timestamp`s and dates in answers.
    fn since_epoch(&self) -> Duration;

    /// Comes back when `span` has passed.
    async fn sleep(&self, span: Duration);
}

/// The machine's clock. A machine that slept, or a wall clock that was set forward, counts as time that has passed: then a relay rather
/// gives up a lease than sends what another may be sending.
#[derive(Debug)]
pub struct SystemClock(Mutex<Course>);

#[derive(Debug)]
struct Course {
    elapsed: Duration,
    steady: Instant,
    wall: SystemTime,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        Self(Mutex::new(Course {
            elapsed: Duration::ZERO,
            steady: Instant::now(),
            wall: SystemTime::now(),
        }))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn elapsed(&self) -> Duration {
        let mut course = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (steady, wall) = (Instant::now(), SystemTime::now());
        let by_steady = steady.saturating_duration_since(course.steady);
        let by_wall = wall.duration_since(course.wall).unwrap_or_default();
        course.elapsed += by_steady.max(by_wall);
        (course.steady, course.wall) = (steady, wall);
        course.elapsed
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn since_epoch(&self) -> Duration {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// Unpredictable bytes.
pub trait Random: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, clippy::expect_used, reason = "this is the randomness; a system without any is broken")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// A number of `0..=1` for the jitter of a pause.
pub fn fraction(random: &dyn Random) -> f64 {
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}
