//! A clock that stands still until it is told to go on, and numbers that come again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use storybus_sender::ports::{Clock, Random};
use tokio::sync::watch;

/// A clock of which the test is the master. Clones show the same time.
#[derive(Clone)]
pub(crate) struct HandClock {
    now: Arc<watch::Sender<Duration>>,
    sleeps: Arc<watch::Sender<usize>>,
}

impl Default for HandClock {
    fn default() -> Self {
        Self {
            now: Arc::new(watch::Sender::new(Duration::from_secs(1_000))),
            sleeps: Arc::default(),
        }
    }
}

impl HandClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now += by);
    }

    /// Comes back when so many sleeps have begun.
    pub(crate) async fn has_slept(&self, count: usize) {
        let mut sleeps = self.sleeps.subscribe();
        tokio::time::timeout(super::SOON, sleeps.wait_for(|sleeps| *sleeps >= count))
            .await
            .expect("somebody sleeps")
            .expect("the clock lives");
    }
}

#[async_trait]
impl Clock for HandClock {
    fn elapsed(&self) -> Duration {
        *self.now.borrow()
    }

    fn since_epoch(&self) -> Duration {
        Duration::from_secs(1_789_144_860) + self.elapsed()
    }

    async fn sleep(&self, span: Duration) {
        let until = self.elapsed() + span;
        self.sleeps.send_modify(|sleeps| *sleeps += 1);
        // The sender lives as long as this clock does.
        let _ = self.now.subscribe().wait_for(|now| *now >= until).await;
    }
}

/// Different for each, and the same in each run of one.
pub(crate) struct Seed(Mutex<u64>);

impl Seed {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(Mutex::new(NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Random for Seed {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().expect("no test panics in here");
        for byte in bytes {
            // SplitMix64: enough to spread pauses.
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = *state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            *byte = (mixed >> 32) as u8;
        }
    }
}
