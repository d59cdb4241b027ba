//! From a verdict to what the outbox has to know: what a no is about, and what may be left of the message at the bus.

use std::time::Duration;

use storybus_protocol::rule;

use super::seconds;
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::transport::text::{clean, without};
use crate::transport::verdict::{Reason, TRANSPORT, Verdict};

/// So many characters of reasons are told, and then how many there are beside: a detail has room for 1,000.
const ROOM: usize = 970;

/// The answer that a verdict is, without any of these secrets.
pub(super) fn answer(
    verdict: Verdict,
    status: u16,
    retry_after: Option<Duration>,
    secrets: &[&str],
) -> Answer {
    let yes = |outcome| Answer {
        outcome,
        status: Some(status),
        rule: None,
        detail: None,
        retry: Retry::No,
        retry_after: None,
        about: About::Message,
        left: Left::Maybe,
    };
    match verdict {
        Verdict::Accepted { .. } => yes(Outcome::Accepted),
        Verdict::Duplicate { .. } => yes(Outcome::Duplicate),
        Verdict::Refused { first, others, retry } => {
            let (about, left) = if first.source == TRANSPORT {
                (about_foreign(status), left_foreign(status))
            } else {
                (about(status, &first.rule), left(status, &first.rule))
            };
            Answer {
                outcome: Outcome::Refused,
                status: Some(status),
                detail: Some(clean(&without(detail(&first, &others), secrets))),
                rule: Some(without(first.rule, secrets)),
                retry,
                retry_after,
                about,
                left,
            }
        }
    }
}

/// What a refusal of the bus's own is about. A message that cannot be sent as this sender stands is not refused for it: it is
/// not the message's fault, and it would be lost.
fn about(status: u16, rule: &str) -> About {
    match (status, rule) {
        // Headers that are too large may be those of this attempt alone: the others do not pause for them.
        (409, rule::COMMIT_CONTENTION) | (408 | 429 | 431 | 500..=599, _) => About::Moment,
        (_, rule::PRODUCER_NOT_REGISTERED | rule::REQUEST_INVALID) => About::Sender,
        // No credentials, no such route, an encoding that something on the way has added.
        (401 | 404 | 405 | 415, _) => About::Sender,
        _ => About::Message,
    }
}

/// What is left after a refusal of the bus's own. Its refusals leave nothing (guarantee D), but for those that speak of what it has.
fn left(status: u16, rule: &str) -> Left {
    match (status, rule) {
        (_, rule::MESSAGE_ID_REUSED | rule::MESSAGE_SUPERSEDED) => Left::Maybe,
        (503, rule::BUS_UNAVAILABLE) | (429, _) => Left::Nothing,
        (408 | 500..=599, _) => Left::Maybe,
        _ => Left::Nothing,
    }
}

/// What an answer that is not the bus's own is about. No word about the message, unless something on the way carries none so large. A
/// redirect, a wrong URL, a proxy that asks for a log-in stand in the way of every message; a firewall may dislike this one alone.
fn about_foreign(status: u16) -> About {
    match status {
        413 => About::Message,
        300..=399 | 401 | 404 | 405 | 407 => About::Sender,
        _ => About::Moment,
    }
}

/// What may be left after an answer that is not the bus's own: it may have come in place of the bus's. Some mean that the request was
/// not passed on.
fn left_foreign(status: u16) -> Left {
    match status {
        401 | 407 | 413 | 429 => Left::Nothing,
        _ => Left::Maybe,
    }
}

/// The reasons, as far as there is room for them, and how many others there are. The first one's rule stands elsewhere.
fn detail(first: &Reason, others: &[Reason]) -> String {
    let mut text = told(first);
    for (n, reason) in others.iter().enumerate() {
        let next = format!("; {}: {}", reason.rule, told(reason));
        if text.chars().count() + next.chars().count() > ROOM {
            let left = others.len() - n;
            let noun = if left == 1 { "reason" } else { "reasons" };
            text.push_str(&format!("; and {left} more {noun}"));
            break;
        }
        text.push_str(&next);
    }
    text
}

/// A reason's words and place; what has no path is about the whole.
fn told(reason: &Reason) -> String {
    match reason.path.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => format!("{} (at {path})", reason.message),
        None => reason.message.clone(),
    }
}

/// The envelope is another message than its row says. It is the message's own fault, and for good: neither changes any more.
pub(super) fn key_mismatch(key: &str, id: &str) -> Answer {
    Answer {
        outcome: Outcome::Refused,
        status: None,
        rule: Some(super::KEY_MISMATCH.to_owned()),
        detail: Some(clean(&format!(
            "the key {key} is not the envelope's message_id {id}; nothing was sent. Enqueue the envelope again with its message_id \
             in lower case as the key, and correct the program that wrote the row"
        ))),
        retry: Retry::No,
        retry_after: None,
        about: About::Message,
        left: Left::Nothing,
    }
}

/// No answer to the message in time.
pub(super) fn too_slow(time: Duration) -> Answer {
    Answer {
        outcome: Outcome::NetworkError,
        status: None,
        rule: None,
        detail: Some(format!("no answer within {}", seconds(time))),
        retry: Retry::Backoff,
        retry_after: None,
        about: About::Moment,
        left: Left::Maybe,
    }
}

/// No token in time.
pub(super) fn no_token_in_time(time: Duration) -> Answer {
    Answer {
        outcome: Outcome::TokenError,
        detail: Some(format!(
            "no access token within {}; the message was not sent",
            seconds(time)
        )),
        left: Left::Nothing,
        ..too_slow(time)
    }
}
