//! Points in time as the bus stores and compares them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z, by the bus's own clock. Producers' timestamps play no part in any decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This long after; saturates.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This long before; saturates.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long until `later`; zero when it has passed.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// Whole seconds until `later`, rounded up, at least 1: the value of a `Retry-After`.
    #[must_use]
    pub fn retry_after(self, later: Self) -> u64 {
        let ms = u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0);
        ms.div_ceil(1000).max(1)
    }

    /// RFC 3339 in UTC with milliseconds, such as `2026-09-11T16:41:00.000Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil_from_days(days);
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        format!(
            "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z",
            ms % 1000
        )
    }
}

/// The proleptic Gregorian date of a day count since 1970-01-01 (era arithmetic: 400 years are 146,097 days).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_gregorian() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_789_144_860_000, "2026-09-11T16:41:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Millis(ms).to_rfc3339(), text);
        }
    }

    #[test]
    fn retry_after_rounds_up_and_is_at_least_one() {
        assert_eq!(Millis(0).retry_after(Millis(29_001)), 30);
        assert_eq!(Millis(0).retry_after(Millis(1000)), 1);
        assert_eq!(Millis(5000).retry_after(Millis(1000)), 1);
    }
}
