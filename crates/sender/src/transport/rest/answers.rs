//! What a status means.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::RestConfigError;

/// A status, or all of a hundred: `409`, `"5xx"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// This one: 200 to 599.
    One(u16),
    /// All of a hundred, by its digit: 2 to 5.
    Class(u16),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(digit) => write!(f, "{digit}xx"),
        }
    }
}

impl Status {
    fn one(status: u64) -> Option<Self> {
        let status = u16::try_from(status).ok()?;
        (200..=599).contains(&status).then_some(Self::One(status))
    }

    fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [digit @ b'2'..=b'5', b'x' | b'X', b'x' | b'X'] => Some(Self::Class(u16::from(digit - b'0'))),
            _ => Self::one(text.parse().ok()?),
        }
    }
}

impl Serialize for Status {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(status) => serializer.serialize_u16(*status),
            Self::Class(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Status;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status of 200 to 599, or a class of them such as \"5xx\"")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Status, E> {
                Status::one(number).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Status, E> {
                let status = u64::try_from(number).ok().and_then(Status::one);
                status.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Status, E> {
                Status::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Which statuses mean something else than by default. One status goes before a class, and both before the defaults:
///
/// | status | means |
/// |---|---|
/// | `2xx` | accepted |
/// | `408`, `409`, `425`, `429`, `5xx` | again: the draft of `Idempotency-Key` answers 409 while the first request with the key is still at work |
/// | `401`, `403`, `404`, `405`, `407`, `410`, `3xx` | sender: something of ours has to be mended first |
/// | other `4xx` | refused: 400, and 422 for a key that was used with another body |
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestAnswers {
    /// The partner has the message now.
    pub accepted: Vec<Status>,
    /// The partner had it already. None by default: with this header a partner repeats its first answer.
    pub duplicate: Vec<Status>,
    /// No, for this message and for good.
    pub refused: Vec<Status>,
    /// No, for every message until somebody has mended the credentials or the URL: nothing is refused for it.
    pub sender: Vec<Status>,
    /// Not now: again later.
    pub again: Vec<Status>,
}

/// What a status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Accepted,
    Duplicate,
    Refused,
    Sender,
    Again,
}

/// The meaning of each status.
#[derive(Debug)]
pub(super) struct Table(Vec<Meaning>);

impl Table {
    pub(super) fn new(answers: &RestAnswers) -> Result<Self, RestConfigError> {
        let lists = [
            (Meaning::Accepted, "accepted", &answers.accepted),
            (Meaning::Duplicate, "duplicate", &answers.duplicate),
            (Meaning::Refused, "refused", &answers.refused),
            (Meaning::Sender, "sender", &answers.sender),
            (Meaning::Again, "again", &answers.again),
        ];
        let mut given: Vec<(Status, Meaning, &'static str)> = Vec::new();
        for (meaning, name, list) in lists {
            for status in list {
                if let Some((_, _, other)) = given.iter().find(|(s, m, _)| s == status && *m != meaning) {
                    return Err(RestConfigError::Ambiguous {
                        status: *status,
                        lists: [other, name],
                    });
                }
                given.push((*status, meaning, name));
            }
        }
        let mut table: Vec<Meaning> = (0..600).map(usual).collect();
        given.sort_by_key(|(status, _, _)| matches!(status, Status::One(_)));
        for (status, meaning, _) in given {
            let range = match status {
                Status::One(status) => usize::from(status)..usize::from(status) + 1,
                Status::Class(digit) => usize::from(digit) * 100..usize::from(digit) * 100 + 100,
            };
            // A status of one's own making in code, not in a file, may lie anywhere.
            if let Some(part) = table.get_mut(range) {
                part.fill(meaning);
            }
        }
        Ok(Self(table))
    }

    /// What no table knows is no word about the message.
    pub(super) fn meaning(&self, status: u16) -> Meaning {
        self.0
            .get(usize::from(status))
            .copied()
            .unwrap_or(Meaning::Sender)
    }
}

fn usual(status: u16) -> Meaning {
    match status {
        200..=299 => Meaning::Accepted,
        408 | 409 | 425 | 429 | 500..=599 => Meaning::Again,
        401 | 403 | 404 | 405 | 407 | 410 => Meaning::Sender,
        400..=499 => Meaning::Refused,
        _ => Meaning::Sender,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(json: &str) -> Result<RestAnswers, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_draft() {
        let table = Table::new(&RestAnswers::default()).unwrap();
        for (meaning, statuses) in [
            (Meaning::Accepted, &[200, 201, 202, 204][..]),
            (Meaning::Refused, &[400, 402, 413, 415, 422, 451]),
            (
                Meaning::Sender,
                &[300, 302, 308, 401, 403, 404, 405, 407, 410, 600, 999],
            ),
            (Meaning::Again, &[408, 409, 425, 429, 500, 502, 503, 504, 599]),
        ] {
            for status in statuses {
                assert_eq!(table.meaning(*status), meaning, "{status}");
            }
        }
    }

    #[test]
    fn one_status_goes_before_a_class_and_both_before_the_defaults() {
        let given = r#"{"again": ["4xx"], "refused": [404, "409"], "duplicate": [208], "accepted": ["3XX"]}"#;
        let table = Table::new(&answers(given).unwrap()).unwrap();
        for (status, meaning) in [
            (400, Meaning::Again),
            (404, Meaning::Refused),
            (409, Meaning::Refused),
            (208, Meaning::Duplicate),
            (200, Meaning::Accepted),
            (302, Meaning::Accepted),
            (503, Meaning::Again),
        ] {
            assert_eq!(table.meaning(status), meaning, "{status}");
        }
    }

    #[test]
    fn what_is_no_status_is_told() {
        for bad in [
            "[600]",
            "[100]",
            "[-1]",
            "[\"6xx\"]",
            "[\"1xx\"]",
            "[\"5x\"]",
            "[true]",
            "[4.5]",
        ] {
            let error = answers(&format!(r#"{{"again": {bad}}}"#)).unwrap_err();
            assert!(error.contains("200 to 599"), "{bad}: {error}");
        }
        let error = answers(r#"{"retry": []}"#).unwrap_err();
        assert!(error.contains("unknown field `retry`"), "{error}");
    }

    #[test]
    fn a_status_has_one_meaning() {
        let twice = Table::new(&answers(r#"{"again": [409], "refused": [409]}"#).unwrap());
        assert_eq!(
            twice.unwrap_err().to_string(),
            "the status 409 is both in answers.refused and in answers.again; it can mean one thing only"
        );
        assert!(Table::new(&answers(r#"{"again": [409, 409]}"#).unwrap()).is_ok());
    }
}
