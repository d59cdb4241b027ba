//! The bus's time on one machine.
//!
//! The bus's time never goes back, whatever the machine's clock does, and it never stands still. It follows two sources:
//! the *wall* clock, which knows the date and may be set at any moment, and a *steady* one, which only counts, also
//! through a suspend.
//!
//! - While both agree, the bus's time is the wall clock's.
//! - The wall clock is *behind* (it was set back, or the bus has seen a later time before a restart): the bus's time
//!   goes on at nine tenths of its pace until the wall clock has caught up. It neither freezes, which would keep every
//!   claim and every hidden message as it is, nor stays ahead for ever.
//! - The wall clock is *ahead* by at most [`STEP`]: it is followed at once. By more: only when it stays there for
//!   [`SETTLE`]. A clock that jumps to another year and back does not make the bus forget what it had to remember.
//!
//! At the start the wall clock is taken as it is, unless the store has seen a later time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;

/// The largest step ahead that is followed at once.
const STEP: i128 = 60 * SECOND;
/// How long a larger step must last before it is followed.
const SETTLE: i128 = 600 * SECOND;
/// Nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// The machine's clock, made steady.
#[derive(Debug)]
pub struct SystemClock(Mutex<Course>);

impl SystemClock {
    /// A clock that starts from the wall clock.
    #[must_use]
    pub fn new() -> Self {
        Self(Mutex::new(Course {
            bus: wall(),
            steady: steady(),
            ahead_since: None,
        }))
    }

    /// From now on never earlier than `last`, the latest time that the store has seen.
    pub fn not_before(&self, last: Millis) {
        let mut course = self.course();
        course.advance(wall(), steady());
        course.bus = course.bus.max(i128::from(last.0) * 1_000_000);
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let mut course = self.course();
        // Read under the lock: two threads must not hand in their readings in the wrong order.
        let nanos = course.advance(wall(), steady());
        Millis(i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// Where the bus's time stands, in nanoseconds.
#[derive(Debug)]
struct Course {
    /// The bus's time when it was read last, since 1970.
    bus: i128,
    /// The steady clock at that moment.
    steady: i128,
    /// Since when, by the steady clock, the wall clock has been ahead by more than [`STEP`].
    ahead_since: Option<i128>,
}

impl Course {
    fn advance(&mut self, wall: i128, steady: i128) -> i128 {
        let steady = steady.max(self.steady);
        let elapsed = steady - self.steady;
        let expected = self.bus + elapsed;
        let bus = if wall <= expected {
            self.ahead_since = None;
            wall.max(self.bus + elapsed * 9 / 10)
        } else if wall - expected <= STEP || steady - *self.ahead_since.get_or_insert(steady) >= SETTLE {
            self.ahead_since = None;
            wall
        } else {
            expected
        };
        self.bus = bus;
        self.steady = steady;
        bus
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn wall() -> i128 {
    let now = std::time::SystemTime::now();
    match now.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    }
}

/// Counts through a suspend, where the system has such a clock.
#[cfg(target_os = "linux")]
fn steady() -> i128 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    i128::from(t.tv_sec) * SECOND + i128::from(t.tv_nsec)
}

/// Counts; elsewhere a suspend looks like a step of the wall clock.
#[cfg(not(target_os = "linux"))]
fn steady() -> i128 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    i128::from(t.tv_sec) * SECOND + i128::from(t.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i128 = 1_800_000_000 * SECOND;

    /// The bus's time after each (steady, wall) reading, in seconds since the start.
    fn course(readings: &[(i128, i128)]) -> Vec<f64> {
        let mut course = Course {
            bus: START,
            steady: 0,
            ahead_since: None,
        };
        let mut last = START;
        readings
            .iter()
            .map(|&(steady, wall)| {
                let now = course.advance(START + wall * SECOND, steady * SECOND);
                assert!(now >= last, "time went back");
                last = now;
                (now - START) as f64 / 1e9
            })
            .collect()
    }

    #[test]
    fn follows_the_wall_clock() {
        assert_eq!(course(&[(1, 1), (5, 5), (6, 7), (7, 60)]), [1.0, 5.0, 7.0, 60.0]);
    }

    #[test]
    fn set_back_it_goes_on_slower_until_the_wall_clock_has_caught_up() {
        // At 100 s the wall clock is set back by 50 s.
        assert_eq!(
            course(&[(100, 100), (110, 60), (200, 150), (600, 550), (601, 551)]),
            [100.0, 109.0, 190.0, 550.0, 551.0]
        );
    }

    #[test]
    fn a_jump_to_another_year_and_back_changes_nothing() {
        let year = 365 * 86_400;
        assert_eq!(
            course(&[
                (10, 10),
                (11, 11 + year),
                (300, 300 + year),
                (301, 301),
                (302, 302)
            ]),
            [10.0, 11.0, 300.0, 301.0, 302.0]
        );
        // Again and again: each jump has to last by itself.
        assert_eq!(
            course(&[
                (10, year),
                (590, 590 + year),
                (595, 595),
                (599, year),
                (620, year),
                (621, 621)
            ]),
            [10.0, 590.0, 595.0, 599.0, 620.0, 621.0]
        );
    }

    #[test]
    fn a_jump_that_lasts_is_followed() {
        let year = 365 * 86_400;
        let got = course(&[
            (10, 10 + year),
            (609, 609 + year),
            (610, 610 + year),
            (611, 611 + year),
        ]);
        assert_eq!(got, [10.0, 609.0, (610 + year) as f64, (611 + year) as f64]);
    }

    #[test]
    fn a_steady_clock_that_goes_back_does_no_harm() {
        assert_eq!(course(&[(10, 10), (5, 11), (6, 9)]), [10.0, 11.0, 11.0]);
    }

    #[test]
    fn starts_from_what_the_store_knows() {
        let later = Millis(4_102_444_800_000);
        let clock = SystemClock::new();
        assert!(clock.now() < later && clock.now() >= Millis(1_600_000_000_000));
        clock.not_before(Millis(0));
        assert!(clock.now() < later);
        clock.not_before(later);
        assert!(clock.now() >= later);
    }
}
