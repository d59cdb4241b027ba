//! The machine's own clock and randomness.

use std::time::Duration;

use async_trait::async_trait;

use super::{Clock, Random};

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    /// Time since the machine started. On Linux it also counts while the machine is suspended; elsewhere a suspend is not seen.
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn since_epoch(&self) -> Duration {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    /// Ends the process when the operating system gives no randomness, which does not happen on a system that runs: two
    /// messages with one id would be worse, since the second would never be delivered.
    #[expect(clippy::disallowed_methods, reason = "this is the randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "the operating system gives no randomness");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::fraction;

    #[tokio::test]
    async fn the_clock_goes_on() {
        let clock = SystemClock;
        let before = clock.elapsed();
        clock.sleep(Duration::from_millis(5)).await;
        assert!(clock.elapsed() >= before + Duration::from_millis(4));
        assert!(clock.since_epoch() > Duration::from_secs(1_600_000_000));
    }

    #[test]
    fn randomness_fills_the_whole_buffer() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        SystemRandom.fill(&mut one);
        SystemRandom.fill(&mut two);
        assert!(one != two && one[16..] != [0; 16]);
        assert!((0.0..=1.0).contains(&fraction(&SystemRandom)));
    }
}
