//! Time and randomness, passed in. The time that leases and due dates go by is the database's own, not this.

use std::time::Duration;

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

/// Unpredictable bytes.
pub trait Random: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, bytes: &mut [u8]);
}

/// A number of `0..=1` for the jitter of a pause.
pub fn fraction(random: &dyn Random) -> f64 {
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}
