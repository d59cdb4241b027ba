//! The emulator's time, which no test moves.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;
use storybus_testkit::FakeClock;

/// What the emulator's clock shows: it runs on this machine.
pub(crate) fn now() -> Millis {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Millis(since.as_millis().try_into().unwrap())
}

/// The test's clock, and never behind the emulator's: what reads the times that the emulator writes.
pub(crate) struct Wall(pub(crate) FakeClock);

#[async_trait]
impl Clock for Wall {
    fn now(&self) -> Millis {
        self.0.now().max(now())
    }

    async fn sleep(&self, span: Duration) {
        Clock::sleep(&self.0, span).await;
    }
}
