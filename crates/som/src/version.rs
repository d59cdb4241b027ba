//! The version of SOM that a message claims.

/// What a `som_version` means to a bus that knows SOM 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Below 1.0.0.
    BeforeOne,
    /// 1.0.x
    OneZero,
    /// 1.y with y above 0: may carry what 1.0 does not know.
    LaterMinor,
    /// 2 or above.
    LaterMajor,
}

impl Version {
    /// Reads a version of three numbers of any length; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(Part::parse);
        let (major, minor) = (parts.next()??, parts.next()??);
        let _patch = parts.next()??;
        if parts.next().is_some() {
            return None;
        }
        Some(match (major, minor) {
            (Part::Zero, _) => Self::BeforeOne,
            (Part::One, Part::Zero) => Self::OneZero,
            (Part::One, _) => Self::LaterMinor,
            (Part::More, _) => Self::LaterMajor,
        })
    }
}

/// As much of a number as the decision needs, so that no number is too large.
#[derive(Clone, Copy)]
enum Part {
    Zero,
    One,
    More,
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(match text.trim_start_matches('0') {
            "" => Self::Zero,
            "1" => Self::One,
            _ => Self::More,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Version::{self, *};

    #[test]
    fn versions() {
        let huge = format!("1.0.{}", "9".repeat(10_000));
        for (text, want) in [
            ("1.0.0", Some(OneZero)),
            ("1.0.7", Some(OneZero)),
            ("01.00.000", Some(OneZero)),
            (huge.as_str(), Some(OneZero)),
            ("1.1.0", Some(LaterMinor)),
            ("1.18446744073709551616.0", Some(LaterMinor)),
            ("0.9.9", Some(BeforeOne)),
            ("0.18446744073709551616.0", Some(BeforeOne)),
            ("2.0.0", Some(LaterMajor)),
            ("10.0.0", Some(LaterMajor)),
            ("18446744073709551617.0.0", Some(LaterMajor)),
            ("", None),
            ("1.0", None),
            ("1.0.0.0", None),
            ("1.0.0-rc1", None),
            ("1..0", None),
            ("1.0.", None),
            ("+1.0.0", None),
            (" 1.0.0", None),
            ("1.0.0\n", None),
            ("\u{661}.0.0", None),
        ] {
            assert_eq!(Version::parse(text), want, "{text:.40}");
        }
    }
}
