//! RFC 3339 times, to the last digit.
//!
//! SOM asks more of a `date-time` than its shape: the date must be in the calendar, and `:60` stands only where a
//! leap second can, at 23:59:60 UTC. Story order compares times as instants. So the text is read once, here, into an
//! instant that keeps every digit; no clock type does (they end at nanoseconds and have no leap second).

use std::cmp::Ordering;

/// An instant as a text states it: exact, whatever its offset, its number of fraction digits, or a leap second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instant<'a> {
    /// Seconds since 1970-01-01T00:00:00Z as POSIX counts them; of the second before, for a leap second.
    seconds: i64,
    /// Whether it lies in the leap second that follows `seconds`.
    leap: bool,
    /// The fraction's digits without trailing zeros.
    fraction: &'a str,
}

impl<'a> Instant<'a> {
    /// Reads a `date-time` of RFC 3339 with `T` or `t`, `Z` or `z`; `None` when the text is not one.
    ///
    /// `-00:00` is an offset of zero; hour 24 is none; the fraction has one digit or more.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let parts = Parts::read(text)?;
        let minutes = days_since_1970(parts.year, parts.month, parts.day) * 1440 + parts.minute;
        Some(Self {
            seconds: minutes * 60 + parts.second.min(59),
            leap: parts.second == 60,
            fraction: parts.fraction.trim_end_matches('0'),
        })
    }
}

/// Whether a text is a `date-time` of RFC 3339, as [`Instant::parse`] reads it; which instant it is is not worked out.
pub(crate) fn is_date_time(text: &str) -> bool {
    Parts::read(text).is_some()
}

/// What a `date-time` consists of.
struct Parts<'a> {
    year: i64,
    month: i64,
    day: i64,
    /// Since the local day began, in UTC: below 0 or above 1439 where UTC is in another day.
    minute: i64,
    second: i64,
    fraction: &'a str,
}

impl<'a> Parts<'a> {
    #[inline]
    fn read(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (head, rest) = bytes.split_first_chunk::<{ "0000-00-00T00:00:00".len() }>()?;
        let [
            y1,
            y2,
            y3,
            y4,
            b'-',
            m1,
            m2,
            b'-',
            d1,
            d2,
            b'T' | b't',
            h1,
            h2,
            b':',
            i1,
            i2,
            b':',
            s1,
            s2,
        ] = *head
        else {
            return None;
        };
        let year = pair(y1, y2)? * 100 + pair(y3, y4)?;
        let (month, day) = (pair(m1, m2)?, pair(d1, d2)?);
        let (hour, minute, second) = (pair(h1, h2)?, pair(i1, i2)?, pair(s1, s2)?);
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (fraction, zone) = split_fraction(text.get(text.len() - rest.len()..)?)?;
        let offset = offset_minutes(zone.as_bytes())?;

        let minute = hour * 60 + minute - offset;
        if second == 60 && minute.rem_euclid(1440) != 1439 {
            return None;
        }
        Some(Self {
            year,
            month,
            day,
            minute,
            second,
            fraction,
        })
    }
}

impl Instant<'_> {
    /// Milliseconds since 1970-01-01T00:00:00Z, rounded up; a leap second is the second before.
    fn ceil_millis(self) -> i64 {
        let digit = |n: usize| self.fraction.as_bytes().get(n).map_or(0, |b| i64::from(b - b'0'));
        let millis = digit(0) * 100 + digit(1) * 10 + digit(2);
        self.seconds * 1000 + millis + i64::from(self.fraction.len() > 3)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z of an RFC 3339 time, rounded up to the next whole one; `None` when the text is
/// not such a time.
///
/// Rounded up, a bound of a half-open range of times that are whole milliseconds takes in just what the text says.
#[must_use]
pub fn ceil_millis(text: &str) -> Option<i64> {
    Instant::parse(text).map(Instant::ceil_millis)
}

impl Ord for Instant<'_> {
    /// 23:59:59.9, then 23:59:60, then 00:00:00. Fractions compare as text: both start right after the point.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.leap, self.fraction).cmp(&(other.seconds, other.leap, other.fraction))
    }
}

impl PartialOrd for Instant<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Instant<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Instant<'_> {}

/// Two decimal digits.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

/// The digits after a point, if there is one, and what follows.
fn split_fraction(text: &str) -> Option<(&str, &str)> {
    let Some(fraction) = text.strip_prefix('.') else {
        return Some(("", text));
    };
    let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 {
        None
    } else {
        Some(fraction.split_at(end))
    }
}

/// How far local time is ahead of UTC.
fn offset_minutes(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (pair(*h1, *h2)?, pair(*m1, *m2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = hours * 60 + minutes;
            Some(if *sign == b'-' { -offset } else { offset })
        }
        _ => None,
    }
}

const fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar, extended backwards to year 0.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    /// Days from 0000-01-01 to 1970-01-01.
    const EPOCH: i64 = 719_528;
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    // Leap years before this one; year 0 is one of them.
    let leap_years = if year == 0 {
        0
    } else {
        (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1
    };
    let leap_day = if month > 2 && is_leap_year(year) { 1 } else { 0 };
    year * 365 + leap_years + BEFORE_MONTH[(month - 1) as usize] + leap_day + day - 1 - EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant<'_> {
        Instant::parse(text).unwrap()
    }

    #[test]
    fn what_a_date_time_is() {
        for good in [
            "2026-09-11T16:41:00Z",
            "2026-09-11t16:41:00z",
            "2026-09-11T18:41:00.123456+02:00",
            "2026-09-11T18:41:00.1234567890123456789012345-00:00",
            "0000-01-01T00:00:00Z",
            "0000-02-29T00:00:00+23:59",
            "9999-12-31T23:59:59-23:59",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "2016-12-31T23:59:60Z",
            "2016-12-31T15:59:60.5-08:00",
            "2017-01-01T00:59:60+01:00",
            "2026-03-03T23:59:60Z",
        ] {
            assert!(Instant::parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "2026-09-11",
            "2026-09-11T16:41:00",
            "2026-09-11 16:41:00Z",
            "2026-09-11T16:41Z",
            "2026-09-11T16:41:00.Z",
            "2026-09-11T16:41:00,5Z",
            "2026-09-11T16:41:00ZZ",
            "2026-09-11T16:41:00Z\n",
            " 2026-09-11T16:41:00Z",
            "2026-9-11T16:41:00Z",
            "26-09-11T16:41:00Z",
            "+2026-09-11T16:41:00Z",
            "2026-13-11T16:41:00Z",
            "2026-00-11T16:41:00Z",
            "2026-09-00T16:41:00Z",
            "2026-09-31T16:41:00Z",
            "2026-02-29T16:41:00Z",
            "1900-02-29T16:41:00Z",
            "2026-09-11T24:00:00Z",
            "2026-09-11T16:60:00Z",
            "2026-09-11T16:41:61Z",
            "2026-09-11T16:41:60Z",
            "2016-12-31T22:59:60Z",
            "2016-12-31T23:59:60+01:00",
            "2026-09-11T16:41:00+24:00",
            "2026-09-11T16:41:00+02:60",
            "2026-09-11T16:41:00+0200",
            "2026-09-11T16:41:00+02",
            "2026-09-11T16:41:00\u{2212}02:00",
            "2026-09-1\u{661}T16:41:00Z",
            "2026-09-11T16:41:0\u{e9}Z",
        ] {
            assert!(Instant::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn milliseconds_are_rounded_up() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.1Z", 100),
            ("1970-01-01T00:00:01.0010Z", 1001),
            ("1970-01-01T00:00:01.0010001Z", 1002),
            ("1969-12-31T23:59:59.9999Z", 0),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000),
        ] {
            assert_eq!(ceil_millis(text), Some(millis), "{text}");
        }
        assert_eq!(ceil_millis("now"), None);
    }

    #[test]
    fn instants_compare_whatever_their_notation() {
        assert_eq!(at("1970-01-01T00:00:00Z").seconds, 0);
        assert_eq!(at("2001-09-09T01:46:40Z").seconds, 1_000_000_000);
        assert_eq!(at("1969-12-31T23:59:59Z").seconds, -1);
        assert_eq!(at("0000-01-01T00:00:00Z").seconds, -62_167_219_200);
        assert_eq!(at("9999-12-31T23:59:59Z").seconds, 253_402_300_799);
        assert_eq!(at("2026-09-10T23:31:40-01:00"), at("2026-09-11T00:31:40.000z"));
        assert!(at("2026-09-11T18:00:00+02:00") < at("2026-09-11T17:00:00Z"));
        assert!(at("2026-09-11T00:00:00.5Z") < at("2026-09-11T00:00:00.51Z"));
        assert!(at("2026-09-11T00:00:00.09Z") < at("2026-09-11T00:00:00.1Z"));
        assert!(at("2026-09-11T00:00:00.10000000000000000000001Z") > at("2026-09-11T00:00:00.1Z"));
        let leap = at("2016-12-31T23:59:60Z");
        assert!(at("2016-12-31T23:59:59.999Z") < leap && leap < at("2017-01-01T00:00:00Z"));
        assert_eq!(leap, at("2016-12-31T15:59:60.0-08:00"));
        assert!(leap < at("2016-12-31T23:59:60.25Z"));
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = days_since_1970(0, 1, 1);
        for year in 0..=9999 {
            for month in 1..=12 {
                assert_eq!(days_since_1970(year, month, 1), expected, "{year}-{month}");
                expected += days_in_month(year, month);
            }
        }
    }
}
