//! Points in time as people type them, in UTC.

use std::str::FromStr;
use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;

use crate::ports::SystemClock;

/// A point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Time {
    /// As RFC 3339 has it: for the bus to read.
    Written(String),
    /// So long after midnight, today.
    Today(Duration),
    /// So long ago.
    Ago(Span),
}

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "give a time such as 2026-09-11T10:30:00Z, 10:30 (today, UTC) or \"90m ago\"";
        let text = text.trim();
        if let Some(span) = text.strip_suffix("ago") {
            return span.trim().parse().map(Self::Ago).map_err(|_| WRONG);
        }
        if text.as_bytes().get(10).is_some_and(|b| b"Tt ".contains(b)) {
            let text = text.replacen(' ', "T", 1);
            // Times are UTC, unless an offset says something else.
            let bare = !text.bytes().skip(11).any(|b| b"Zz+-".contains(&b));
            return Ok(Self::Written(if bare { format!("{text}Z") } else { text }));
        }
        let mut parts = text.split(':');
        let mut part = |most: u64| {
            let digits = parts.next()?;
            let two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|n| two && *n < most)
        };
        let (Some(hour), Some(minute)) = (part(24), part(60)) else {
            return Err(WRONG);
        };
        let second = if text.len() > 5 { part(60).ok_or(WRONG)? } else { 0 };
        if parts.next().is_some() {
            return Err(WRONG);
        }
        Ok(Self::Today(Duration::from_secs(
            hour * 3600 + minute * 60 + second,
        )))
    }
}

impl Time {
    /// As the bus reads it.
    pub(crate) fn rfc3339(&self, now: Millis) -> String {
        match self {
            Self::Written(text) => text.clone(),
            Self::Today(since) => Millis(now.0 - now.0.rem_euclid(86_400_000))
                .plus(*since)
                .to_rfc3339(),
            Self::Ago(span) => span.before(now),
        }
    }

    /// For a time of today that is still to come: the same of yesterday.
    pub(crate) fn to_come(&self, now: Millis) -> Option<String> {
        let of_today = matches!(self, Self::Today(_)) && self.is_after(now);
        of_today.then(|| self.rfc3339(Millis(now.0 - 86_400_000)))
    }

    /// Whether it is later than now, to the second. Of a time with another offset than UTC nothing is said.
    pub(crate) fn is_after(&self, now: Millis) -> bool {
        let (time, now) = (self.rfc3339(now), now.to_rfc3339());
        time.ends_with(['Z', 'z']) && time.get(..19) > now.get(..19)
    }
}

/// A length of time: `30s`, `15m`, `2h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(u64);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "give a number and s, m, h or d, such as 90m";
        let text = text.trim();
        let unit = match text.as_bytes().last() {
            Some(b's') => 1,
            Some(b'm') => 60,
            Some(b'h') => 3600,
            Some(b'd') => 86_400,
            _ => return Err(WRONG),
        };
        let number = text.get(..text.len() - 1).unwrap_or_default().trim();
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = number.parse().map_err(|_| WRONG)?;
        // A century: far more than any archive, and far from where arithmetic ends.
        match number.checked_mul(unit) {
            Some(seconds) if digits && seconds > 0 && seconds <= 36_525 * 86_400 => Ok(Self(seconds)),
            _ => Err(WRONG),
        }
    }
}

impl Span {
    /// As a duration.
    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }

    /// That long before.
    pub(crate) fn before(self, now: Millis) -> String {
        let ms = i64::try_from(self.0.saturating_mul(1000)).unwrap_or(i64::MAX);
        Millis(now.0.saturating_sub(ms)).to_rfc3339()
    }
}

/// Now, by this machine's clock.
pub(crate) fn now() -> Millis {
    SystemClock::new().now()
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2026-09-11T16:41:00Z
    const NOW: Millis = Millis(1_789_144_860_000);

    #[test]
    fn times_as_people_type_them() {
        for (text, expected) in [
            ("2026-09-11T10:30:00Z", "2026-09-11T10:30:00Z"),
            ("2026-09-11 10:30:00+02:00", "2026-09-11T10:30:00+02:00"),
            ("2026-09-11T10:30:00", "2026-09-11T10:30:00Z"),
            ("2026-09-11 10:30:00.5-02:00", "2026-09-11T10:30:00.5-02:00"),
            ("10:30", "2026-09-11T10:30:00.000Z"),
            ("23:59:59", "2026-09-11T23:59:59.000Z"),
            ("1h ago", "2026-09-11T15:41:00.000Z"),
            ("2 d ago", "2026-09-09T16:41:00.000Z"),
        ] {
            assert_eq!(text.parse::<Time>().unwrap().rfc3339(NOW), expected, "{text}");
        }
        for bad in [
            "",
            "now",
            "10",
            "24:00",
            "10:60",
            "1:30",
            "10:30:",
            "10:30:1",
            "10:30:00:00",
            "h ago",
            "yesterday",
            "+1:30",
            "é0:30",
        ] {
            assert!(bad.parse::<Time>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_still_to_come_today_was_there_yesterday() {
        let to_come = |text: &str| text.parse::<Time>().unwrap().to_come(NOW);
        assert_eq!(to_come("16:42").as_deref(), Some("2026-09-10T16:42:00.000Z"));
        assert_eq!(to_come("16:40"), None);
        let after = |text: &str| text.parse::<Time>().unwrap().is_after(NOW);
        assert!(after("2026-09-11T16:41:01Z") && !after("2026-09-11 16:41:00") && !after("1s ago"));
        assert!(!after("2026-09-11T19:00:00+02:00"));
    }

    #[test]
    fn spans() {
        assert_eq!(
            "90m".parse::<Span>().unwrap().before(NOW),
            "2026-09-11T15:11:00.000Z"
        );
        for bad in [
            "",
            "h",
            "1",
            "-1h",
            "+1h",
            "1w",
            "0s",
            "99999999999999999999d",
            "1é",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
