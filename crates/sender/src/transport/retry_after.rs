//! `Retry-After`: how long a partner asks to wait.

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// Nobody is believed for longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The wait of an answer, at most a day: whole seconds, or the time until a date. A date is counted from the answer's own `Date`
/// where it has one, so that the clocks of the two sides need not agree; else from `now`. What is neither, and a date that is past,
/// says nothing.
pub(super) fn wait(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // Only digits: what does not fit is long.
        let seconds = text.parse().map_or(LONGEST, Duration::from_secs);
        return Some(seconds.min(LONGEST));
    }
    let now = date(headers, DATE).unwrap_or(now);
    let left = date(headers, RETRY_AFTER)?.checked_sub(now)?;
    (!left.is_zero()).then(|| left.min(LONGEST))
}

fn date(headers: &HeaderMap, name: http::HeaderName) -> Option<Duration> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    httpdate::parse_http_date(text)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Wed, 09 Sep 2026 12:00:00 GMT.
    const NOW: Duration = Duration::from_secs(1_788_955_200);

    fn told(value: &[u8], date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_bytes(value).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        wait(&headers, NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_are_taken_as_they_are_up_to_a_day() {
        for (value, seconds) in [
            ("0", 0),
            ("2", 2),
            (" 17 ", 17),
            ("007", 7),
            ("86400", 86_400),
            ("86401", 86_400),
            ("99999999999999999999999999", 86_400),
        ] {
            assert_eq!(told(value.as_bytes(), None), Some(seconds), "{value}");
        }
    }

    #[test]
    fn what_is_no_wait_says_nothing() {
        for value in [
            &b""[..],
            b"-1",
            b"+1",
            b"1.5",
            b"1e3",
            b"soon",
            b"2, 3",
            b"2; x=\"y\"",
            b"\xff\xfe",
            b"Wed, 09 Sep 2026",
            b"Wed, 99 Sep 2026 12:00:00 GMT",
        ] {
            assert_eq!(told(value, None), None, "{value:?}");
        }
        assert_eq!(wait(&HeaderMap::new(), NOW), None);
    }

    #[test]
    fn a_date_counts_from_now() {
        assert_eq!(told(b"Wed, 09 Sep 2026 12:00:30 GMT", None), Some(30));
        assert_eq!(told(b"Wednesday, 09-Sep-26 12:00:30 GMT", None), Some(30));
        assert_eq!(told(b"Fri, 09 Sep 2033 12:00:30 GMT", None), Some(86_400));
    }

    #[test]
    fn a_date_that_is_past_says_nothing() {
        assert_eq!(told(b"Wed, 09 Sep 2026 12:00:00 GMT", None), None);
        assert_eq!(told(b"Thu, 01 Jan 1970 00:00:00 GMT", None), None);
    }

    #[test]
    fn the_answers_own_date_goes_before_our_clock() {
        let date = Some("Wed, 09 Sep 2026 11:00:00 GMT");
        assert_eq!(told(b"Wed, 09 Sep 2026 11:00:05 GMT", date), Some(5));
        assert_eq!(told(b"Wed, 09 Sep 2026 12:00:05 GMT", Some("never")), Some(5));
    }
}
