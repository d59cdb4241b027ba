//! What became of each attempt, one line of JSON each: identifiers and numbers, never a payload.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use storybus_sender::answer::Outcome;
use storybus_sender::relay::Attempted;

/// A line of `--json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    message_id: &'a str,
    attempt: u64,
    status: Option<u16>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
}

/// The line of an attempt.
pub(super) fn line(attempt: &Attempted<'_>) -> String {
    let line = Line {
        message_id: attempt.key,
        attempt: attempt.attempt,
        status: attempt.answer.status,
        outcome: attempt.answer.outcome,
        rule: attempt.answer.rule.as_deref(),
        delay_ms: attempt.delay.map(milliseconds),
    };
    // Texts and numbers are always JSON.
    serde_json::to_string(&line).unwrap_or_default()
}

/// Writes the line of an attempt to stdout, and waits for whoever reads it. That nobody reads it any more does not stop the sending.
pub(super) fn print(attempt: &Attempted<'_>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", line(attempt)).and_then(|()| out.flush());
}

pub(super) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use storybus_sender::answer::{About, Answer, Left, Retry};

    #[test]
    fn a_line_has_what_the_contract_names_and_nothing_else() {
        let answer = |outcome, status, rule: Option<&str>| Answer {
            outcome,
            status,
            rule: rule.map(str::to_owned),
            detail: Some("for people".to_owned()),
            retry: Retry::No,
            retry_after: None,
            about: About::Message,
            left: Left::Maybe,
        };
        let told = |answer: &Answer, delay| {
            line(&Attempted {
                id: 1,
                target: "bus",
                key: "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07",
                attempt: 2,
                round_attempt: 1,
                took: Duration::from_millis(3),
                answer,
                delay,
            })
        };
        assert_eq!(
            told(&answer(Outcome::Accepted, Some(202), None), None),
            r#"{"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07","attempt":2,"status":202,"outcome":"accepted"}"#
        );
        assert_eq!(
            told(
                &answer(Outcome::Refused, Some(503), Some("message.in_flight")),
                Some(Duration::from_millis(1_500))
            ),
            r#"{"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07","attempt":2,"status":503,"outcome":"refused","rule":"message.in_flight","delay_ms":1500}"#
        );
        assert_eq!(
            told(&answer(Outcome::NetworkError, None, None), None),
            r#"{"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07","attempt":2,"status":null,"outcome":"network_error"}"#
        );
    }
}
