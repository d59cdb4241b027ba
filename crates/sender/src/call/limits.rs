//! How often, and how long after each other.

use std::time::Duration;

/// The bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most attempts of one call, the first included.
    pub max_attempts: u32,
    /// The ceiling of the first pause; each later one is twice the one before it.
    pub base_delay: Duration,
    /// No pause is longer, whoever asks for it.
    pub max_delay: Duration,
    /// What one attempt may take, a token included.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// The pause after the attempt of that number (the first is 1): what the partner asked for, or a doubling with jitter. `fraction`
    /// is of `0..=1`, and 1 gives the ceiling. Neither is ever longer than `max_delay`.
    #[must_use]
    pub fn delay(&self, attempt: u32, retry_after: Option<Duration>, fraction: f64) -> Duration {
        match retry_after {
            Some(asked) => asked.min(self.max_delay),
            None => self
                .ceiling(attempt)
                .mul_f64(0.5 + 0.5 * fraction.clamp(0.0, 1.0)),
        }
    }

    fn ceiling(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1);
        // Past 2^31 the cap has long been reached, or the base is zero.
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.base_delay.saturating_mul(factor).min(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pause_doubles_up_to_the_cap() {
        let limits = Limits {
            max_delay: 3_000 * MS,
            ..Limits::default()
        };
        let ceilings: Vec<_> = (1..=5).map(|attempt| limits.delay(attempt, None, 1.0)).collect();
        assert_eq!(
            ceilings,
            [500 * MS, 1_000 * MS, 2_000 * MS, 3_000 * MS, 3_000 * MS]
        );
        assert_eq!(limits.delay(u32::MAX, None, 1.0), 3_000 * MS);
        assert_eq!(
            limits.delay(0, None, 1.0),
            500 * MS,
            "there is no attempt 0; it counts as the first"
        );
    }

    #[test]
    fn jitter_takes_up_to_half() {
        let limits = Limits::default();
        assert_eq!(limits.delay(1, None, 0.0), 250 * MS);
        assert_eq!(limits.delay(1, None, 0.5), 375 * MS);
        assert_eq!(limits.delay(1, None, 7.0), 500 * MS);
    }

    #[test]
    fn the_partners_word_counts_up_to_the_cap_and_without_jitter() {
        let limits = Limits::default();
        assert_eq!(limits.delay(3, Some(2_000 * MS), 0.0), 2_000 * MS);
        assert_eq!(limits.delay(3, Some(120_000 * MS), 0.0), 30_000 * MS);
        assert_eq!(limits.delay(3, Some(Duration::ZERO), 1.0), Duration::ZERO);
    }
}
