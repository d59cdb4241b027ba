//! Spans of time as people write them into files.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected};

/// A span: a whole number and a unit, such as `"500ms"`, `"30s"`, `"15m"`, `"24h"` or `"7d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
        let span = match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => seconds(1),
            "m" => seconds(60),
            "h" => seconds(3_600),
            "d" => seconds(86_400),
            _ => None,
        };
        span.map(Self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::invalid_value(
                Unexpected::Str(&text),
                &"a whole number and one of ms, s, m, h, d, such as \"24h\"",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("0s", 0),
            ("15m", 900_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(
                Span::parse(text),
                Some(Span(Duration::from_millis(millis))),
                "{text}"
            );
        }
        for bad in [
            "",
            "5",
            "s",
            "-1s",
            "1.5h",
            "1 h",
            "1w",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(Span::parse(bad), None, "{bad}");
        }
    }
}
