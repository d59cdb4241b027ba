//! RFC 3339 times: written, and told from what is none.

use std::time::Duration;

/// The time of day as `2026-09-11T16:41:00.000Z`, to the millisecond; `None` past the year 9999.
pub(super) fn written(since_epoch: Duration) -> Option<String> {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since_epoch.subsec_millis();
    (year <= 9_999)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

/// The date of a day since 1970-01-01. Years are counted from March, so that a leap day ends one, in cycles of 400 years, which
/// all have 146,097 days.
fn date(day: u64) -> (u64, u64, u64) {
    /// Days from 0000-03-01 to 1970-01-01.
    const TO_EPOCH: u64 = 719_468;
    let day = day + TO_EPOCH;
    let (cycle, of_cycle) = (day / 146_097, day % 146_097);
    // A leap year is longer by one day, but not every hundredth, and every four hundredth again.
    let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days, and so have the five after them.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    if month < 10 {
        (cycle * 400 + year, month + 3, of_month)
    } else {
        (cycle * 400 + year + 1, month - 9, of_month)
    }
}

/// Whether the text is a `date-time` as SOM asks for it: with a zone, in the calendar, and `:60` only where a leap second can be.
pub(super) fn is_valid(text: &str) -> bool {
    parts(text).is_some_and(|(day, minute_of_day, second, offset)| {
        let utc = (i64::from(minute_of_day) - offset).rem_euclid(1_440);
        day && second <= 60 && (second < 60 || utc == 1_439)
    })
}

/// Whether the day exists, the minute of the day, the second, and how many minutes local time is ahead of UTC.
fn parts(text: &str) -> Option<(bool, u32, u32, i64)> {
    let shape = text.get(..19)?.bytes().zip("dddd-dd-ddTdd:dd:dd".bytes());
    let fits = shape.into_iter().all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => byte == b'T' || byte == b't',
        other => byte == other,
    });
    if !fits {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let zone = match text.get(19..)?.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (zone.len() < fraction.len()).then_some(zone)?
        }
        None => text.get(19..)?,
    };
    let exists = (1..=12).contains(&month) && (1..=days(year, month)).contains(&day);
    (hour < 24 && minute < 60).then_some(())?;
    Some((exists, hour * 60 + minute, second, offset(zone)?))
}

fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let bytes = zone.as_bytes();
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = bytes else {
        return None;
    };
    let pair = |tens: &u8, ones: &u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let (hours, minutes) = (pair(h1, h2)?, pair(m1, m2)?);
    let offset = hours * 60 + minutes;
    (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -offset } else { offset })
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_788_955_200_007, "2026-09-09T12:00:00.007Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(written(Duration::from_millis(millis)).as_deref(), Some(text));
        }
        assert_eq!(written(Duration::from_millis(253_402_300_800_000)), None);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..160_000 {
            assert_eq!(date(number), (u64::from(year), u64::from(month), u64::from(day)));
            day += 1;
            if day > days(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn what_a_date_time_is() {
        for good in [
            "2026-09-11T16:41:00Z",
            "2026-09-11t16:41:00.123456789012z",
            "2026-09-11T18:41:00.5+02:00",
            "2026-09-11T18:41:00-00:00",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "2016-12-31T23:59:60Z",
            "2016-12-31T15:59:60-08:00",
            "2017-01-01T00:59:60.25+01:00",
        ] {
            assert!(is_valid(good), "{good}");
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
            "+026-09-11T16:41:00Z",
            "2026-00-11T16:41:00Z",
            "2026-13-11T16:41:00Z",
            "2026-09-31T16:41:00Z",
            "2026-09-00T16:41:00Z",
            "2026-02-29T16:41:00Z",
            "1900-02-29T16:41:00Z",
            "2026-09-11T24:00:00Z",
            "2026-09-11T16:60:00Z",
            "2026-09-11T16:41:61Z",
            "2026-09-11T16:41:60Z",
            "2016-12-31T23:59:60+01:00",
            "2026-09-11T16:41:00+24:00",
            "2026-09-11T16:41:00+02:60",
            "2026-09-11T16:41:00+0200",
            "2026-09-11T16:41:00+0\u{e9}:0",
            "2026-09-1\u{661}T16:41:00Z",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
