//! What an answer of a bus says.
//!
//! Two questions decide: is this the bus's own answer, and what does it say? Between a producer and its bus stand gateways, load
//! balancers and proxies, and each answers in its own form: a page in HTML, nothing at all, a throttle's JSON. A *yes* is believed only
//! in the bus's form and about the message that was sent, since a message that is taken for delivered is never sent again. What
//! is not the bus's own has the source `transport` and the rule `http.<status>`.
//!
//! A newer bus may know sources and rules that this version does not: they are passed on as they are.

use serde::Deserialize;
use serde_json::Value;

use super::text::is_object;
use crate::answer::Retry;

/// The source of what no bus said.
pub const TRANSPORT: &str = "transport";
/// Longest source and longest rule, in characters. They go into logs and metrics.
const MAX_NAME: usize = 100;
/// The most violations that are kept of a refusal.
const MAX_KEPT: usize = 100;
/// How a refusal begins as a bus writes it: what a list that was too long to be read whole is known by.
const REFUSAL: &[u8] = br#"{"accepted":false,"violations":["#;

/// One reason, as it was told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reason {
    /// Which kind of check, or [`TRANSPORT`].
    pub source: String,
    /// The rule id.
    pub rule: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// JSON Pointer to the value at fault.
    #[serde(default)]
    pub path: Option<String>,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The bus has accepted the message now.
    Accepted {
        /// As sent.
        message_id: String,
        /// The schema that the payload was checked against.
        family: Option<String>,
        /// What it let pass.
        tolerated: Vec<Reason>,
    },
    /// The bus has published it before.
    Duplicate {
        /// As sent.
        message_id: String,
    },
    /// No.
    Refused {
        /// The first reason.
        first: Reason,
        /// The others, as far as they are kept.
        others: Vec<Reason>,
        /// Whether one call tries again.
        retry: Retry,
    },
}

/// The members of every answer of a bus. What is only for people must not turn a yes into a no, so it is read leniently.
#[derive(Deserialize)]
struct Body {
    accepted: bool,
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    family: Value,
    #[serde(default)]
    tolerated: Value,
    #[serde(default)]
    violations: Value,
}

/// Reads an answer. `sent` is the `message_id` that was sent, where it is known; `body` may be the beginning of one that was too long.
#[must_use]
pub fn read(status: u16, body: &[u8], sent: Option<&str>) -> Verdict {
    own(status, body, sent).unwrap_or_else(|| Verdict::Refused {
        first: Reason {
            source: TRANSPORT.to_owned(),
            rule: format!("http.{status}"),
            message: foreign(status, body),
            path: None,
        },
        others: Vec::new(),
        retry: retry(status),
    })
}

/// The rule of one call of a client. A yes that is no bus's own (a hotel's log-in page) is like no answer at all.
fn retry(status: u16) -> Retry {
    match status {
        401 => Retry::NewToken,
        408 | 429 | 500..=599 | 200..=299 => Retry::Backoff,
        _ => Retry::No,
    }
}

/// The bus's own answer, or `None`.
fn own(status: u16, body: &[u8], sent: Option<&str>) -> Option<Verdict> {
    if !is_object(body) {
        return None;
    }
    let Ok(read) = serde_json::from_slice::<Body>(body) else {
        let first = (status >= 400).then(|| first_of_many(body)).flatten()?;
        return refused(status, vec![first]);
    };
    match (status, read.accepted) {
        (200 | 202, true) => {
            let message_id = read.message_id?;
            let ours = sent.is_none_or(|sent| sent.eq_ignore_ascii_case(&message_id));
            // A dry run wrote nothing.
            if !ours || read.dry_run || read.duplicate != (status == 200) {
                return None;
            }
            Some(if read.duplicate {
                Verdict::Duplicate { message_id }
            } else {
                Verdict::Accepted {
                    message_id,
                    family: read.family.as_str().map(ToOwned::to_owned),
                    tolerated: reasons(read.tolerated),
                }
            })
        }
        (400..=599, false) => refused(status, reasons(read.violations)),
        _ => None,
    }
}

fn refused(status: u16, reasons: Vec<Reason>) -> Option<Verdict> {
    let mut reasons = reasons.into_iter();
    Some(Verdict::Refused {
        first: reasons.next()?,
        others: reasons.collect(),
        retry: retry(status),
    })
}

/// Those of the list that are reasons.
fn reasons(list: Value) -> Vec<Reason> {
    let Value::Array(list) = list else {
        return Vec::new();
    };
    list.into_iter()
        .filter_map(|entry| Reason::deserialize(entry).ok())
        .filter(is_named)
        .take(MAX_KEPT)
        .collect()
}

fn is_named(reason: &Reason) -> bool {
    let is_name =
        |text: &str| (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_name(&reason.source) && is_name(&reason.rule)
}

/// The first violation of a refusal whose end is missing: a bus lists all that it finds, which can be megabytes.
fn first_of_many(body: &[u8]) -> Option<Reason> {
    let list = body.strip_prefix(REFUSAL)?;
    let mut list = serde_json::Deserializer::from_slice(list).into_iter::<Reason>();
    list.next()?.ok().filter(is_named)
}

/// What was there instead of a bus's answer. Nothing of its text is repeated: nobody knows whose it is.
fn foreign(status: u16, body: &[u8]) -> String {
    let start = body.trim_ascii_start();
    let what = match start.first() {
        None => "an empty answer",
        Some(b'<') => "a page in HTML or XML",
        Some(_) if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() => "JSON in another form",
        Some(_) => "no JSON",
    };
    let from = match status {
        300..=399 => "a redirect, which a token never follows: correct the base URL",
        429 => "a throttle on the way to the bus",
        500..=599 | 408 => "a gateway or proxy on the way to the bus, or the bus is down",
        _ => "a proxy, a log-in page or another service: check the base URL and what stands between",
    };
    format!("{status} with {what}, not from the bus itself: {from}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const YES: &str = r#"{"accepted":true,"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07","message_type":"story.context","family":null}"#;
    const NO: &str = r#"{"accepted":false,"violations":[{"source":"policy","rule":"a.b","message":"m"},{"source":"policy","rule":"c.d","message":"m"}]}"#;

    fn is_yes(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Accepted { .. } | Verdict::Duplicate { .. })
    }

    #[test]
    fn the_beginning_of_a_yes_is_none() {
        assert!(is_yes(&read(202, YES.as_bytes(), None)));
        for end in 0..YES.len() {
            assert!(!is_yes(&read(202, &YES.as_bytes()[..end], None)), "{end}");
        }
    }

    #[test]
    fn the_beginning_of_a_refusal_is_known_by_its_first_reason_if_that_is_whole() {
        let first = NO.find("},{").expect("two reasons") + 1;
        for end in 0..NO.len() {
            let verdict = read(400, &NO.as_bytes()[..end], None);
            let Verdict::Refused {
                first: reason, retry, ..
            } = verdict
            else {
                panic!("{verdict:?}");
            };
            let rule = if end < first { "http.400" } else { "a.b" };
            assert_eq!((reason.rule.as_str(), retry), (rule, Retry::No), "{end}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_is_a_yes_by_chance(status in 100..1000_u16, body in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(!is_yes(&read(status, &body, None)));
        }

        #[test]
        fn a_yes_needs_its_status(status in 100..1000_u16) {
            prop_assert_eq!(is_yes(&read(status, YES.as_bytes(), None)), status == 202);
        }

        #[test]
        fn a_yes_with_a_byte_changed_is_about_another_message_or_none(at in 0..YES.len(), byte in any::<u8>()) {
            let mut body = YES.as_bytes().to_vec();
            body[at] = byte;
            let sent = "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07";
            match read(202, &body, Some(sent)) {
                Verdict::Accepted { message_id, .. } => prop_assert!(message_id.eq_ignore_ascii_case(sent)),
                Verdict::Duplicate { .. } => prop_assert!(false),
                Verdict::Refused { first, .. } => prop_assert_eq!(first.rule, "http.202"),
            }
        }
    }
}
