//! Refusals of the operator API in words: the rule, what it means, what to do.

use std::fmt;

use serde_json::{Value, json};
use storybus_protocol::{Violation, rule};

use super::api::Document;
use crate::client::json::plain;
use crate::exit::{self, Failure};

/// A refusal: the words for people, and the document for `--json`.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) text: String,
    pub(super) document: Document,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}

/// A refusal that the bus has not put into these words: the same document as if it had.
pub(super) fn refused(rule: &str, text: String) -> Failure {
    let first = text.lines().next().unwrap_or_default();
    let document =
        json!({"accepted": false, "violations": [{"source": "policy", "rule": rule, "message": first}]});
    let document = Document(document.to_string());
    Failure::new(exit::REFUSED, Refused { text, document })
}

/// A failure as a document: the refusal, or the message with the code that the process ends with.
pub(super) fn document(failure: &Failure) -> Document {
    let Some(refused) = failure.error.downcast_ref::<Refused>() else {
        let message = format!("{:#}", failure.error);
        let error: Value = json!({"error": {"exit_code": failure.code, "message": message}});
        return Document(error.to_string());
    };
    refused.document.clone()
}

/// What a rule means, and what an operator does about it.
struct Advice {
    rule: &'static str,
    means: &'static str,
    to_do: &'static str,
}

const fn advice(rule: &'static str, means: &'static str, to_do: &'static str) -> Advice {
    Advice { rule, means, to_do }
}

/// The rules that the operator API answers with.
const ADVICE: &[Advice] = &[
    advice(
        rule::OPERATOR_UNAUTHENTICATED,
        "the bus does not take the operator's token",
        "check --client-id and the secret; when the last operator is lost, `storybus serve --new-operator` makes one, and on AWS `storybus deploy-check STACK --new-operator`; while the signing key is changed, the same again in a minute",
    ),
    advice(
        rule::OPERATOR_NOT_REGISTERED,
        "this client is not an operator, or it is disabled or deleted",
        "use an operator's credentials: --credentials-file, --profile, or --client-id with --client-secret-file",
    ),
    advice(
        rule::REQUEST_INVALID,
        "this cannot be done, or not with this value, for the reason above",
        "mend what the reason names; the verb's --help has the ranges and an example",
    ),
    advice(
        rule::REQUEST_UNSUPPORTED,
        "something on the way has encoded the request",
        "take the proxy that compresses requests out of the way",
    ),
    advice(
        rule::ROUTE_NOT_FOUND,
        "there is no such route: the bus is older than this command, or the URL is not the bus's",
        "check --url; update the bus",
    ),
    advice(
        rule::METHOD_NOT_ALLOWED,
        "the route does not know this method: the bus is older than this command, or the URL is not the bus's",
        "check --url; update the bus",
    ),
    advice(
        rule::RATE_EXCEEDED,
        "too much at once: requests, or unfinished jobs (a workspace has at most 100)",
        "wait a moment; `storybus jobs list` shows what runs",
    ),
    advice(
        rule::BUS_UNAVAILABLE,
        "the bus's store cannot be reached, or has no room; nothing was done",
        "look at the bus's log and its disk, then do it again",
    ),
    advice(
        rule::BUS_INTERNAL_ERROR,
        "a fault of the bus",
        "look at the bus's log, then at what was done: `storybus audit`",
    ),
    advice(
        rule::TENANT_NOT_FOUND,
        "there is no such workspace",
        "storybus workspaces list",
    ),
    advice(
        rule::PRODUCER_NOT_FOUND,
        "there is no such producer in this workspace",
        "storybus producers list, or name another --workspace",
    ),
    advice(
        rule::CONSUMER_NOT_FOUND,
        "there is no such consumer in this workspace",
        "storybus consumers list, or name another --workspace",
    ),
    advice(
        rule::OPERATOR_NOT_FOUND,
        "there is no such operator",
        "storybus operators list",
    ),
    advice(
        rule::SECRET_NOT_FOUND,
        "the connection has no such secret (any more)",
        "storybus secrets list ID",
    ),
    advice(
        rule::JOB_NOT_FOUND,
        "there is no such job in this workspace; jobs are kept for 30 days after their end",
        "storybus jobs list, or name another --workspace",
    ),
    advice(
        rule::STORY_NOT_FOUND,
        "nothing is known of this story in this workspace",
        "storybus stories list; a story is named by its story_id",
    ),
    advice(
        rule::MESSAGE_NOT_FOUND,
        "nothing is known of this message in this workspace: it was never accepted here, or long ago",
        "storybus activity, to see whether it was refused",
    ),
    advice(
        rule::TENANT_NOT_EMPTY,
        "the workspace still has connections",
        "delete its producers and consumers first: storybus producers list, storybus consumers list",
    ),
    advice(
        rule::SECRET_LIMIT,
        "the connection has two live secrets already, the most there can be",
        "delete the one that nobody uses any more: storybus secrets list ID, storybus secrets delete ID SECRET_ID",
    ),
    advice(
        rule::SYSTEM_ID_TAKEN,
        "the system_id belongs to another producer; it belongs to one on the whole bus",
        "take it from that producer first (storybus producers update), or give this one another",
    ),
    advice(
        rule::JOB_FINISHED,
        "the job is over: there is nothing to cancel",
        "storybus jobs show JOB",
    ),
    advice(
        rule::CONSUMER_LIMIT,
        "the workspace has as many consumers as it can have (99 on AWS)",
        "delete one that nobody uses: storybus status",
    ),
];

/// The flag that gave a member of a body.
fn flag_of(path: &str) -> &'static str {
    match path.trim_start_matches('/').split('/').next().unwrap_or_default() {
        "from" => " (--from, --last)",
        "to" => " (--to)",
        "message_types" => " (--type)",
        "story_ids" => " (--story)",
        "correlation_ids" => " (--correlation)",
        "message_ids" => " (--message)",
        "system_ids" => " (--system-id)",
        "topic_prefixes" => " (--topic-prefix)",
        "sources" => " (--source)",
        "max_receives" => " (--max-receives)",
        "visibility_seconds" => " (--visibility)",
        "rate" => " (--rate)",
        "limit" | "max" => " (--limit)",
        _ => "",
    }
}

/// A refusal for people.
pub(super) fn told(status: u16, violations: &[Violation], client_id: &str) -> String {
    if violations.is_empty() {
        return format!("{status}, and not in the words of a bus; is the URL right?");
    }
    let mut text = format!("the bus refuses ({status})");
    for v in violations {
        let place = match v.path.as_deref() {
            None => String::new(),
            Some("") => " at the root".to_owned(),
            Some(path) => format!(" at {}{}", plain(path), flag_of(path)),
        };
        text.push_str(&format!("\n  {}{place}: {}", plain(&v.rule), plain(&v.message)));
    }
    let mut seen: Vec<&str> = Vec::new();
    for v in violations {
        if seen.contains(&&*v.rule) {
            continue;
        }
        seen.push(&v.rule);
        if let Some(known) = ADVICE.iter().find(|a| a.rule == v.rule) {
            text.push_str(&format!(
                "\n  means:   {}\n  to do:   {}",
                known.means, known.to_do
            ));
        }
        if v.rule == rule::OPERATOR_NOT_REGISTERED && !client_id.starts_with('o') {
            text.push_str(&format!("\n           ({} is no operator)", plain(client_id)));
        }
        // Only what is a rule: the answer may be anybody's.
        if let Some(about) = rule::about(&v.rule) {
            text.push_str(&format!(
                "\n  fault:   {}; retry: {}\n  page:    storybus explain {rule}",
                about.fault,
                about.retry,
                rule = v.rule
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use storybus_protocol::Source;

    #[test]
    fn says_what_it_means_and_what_to_do_and_escapes_what_others_wrote() {
        let text = told(
            409,
            &[Violation::new(
                Source::Policy,
                rule::SECRET_LIMIT,
                "two\u{1b}[2J live",
            )],
            "o1",
        );
        assert_eq!(
            text,
            "the bus refuses (409)\n  secret.limit: two\\u001b[2J live\n  means:   the connection has two live secrets already, the most there can be\n  to do:   delete the one that nobody uses any more: storybus secrets list ID, storybus secrets delete ID SECRET_ID\n  fault:   caller; retry: no\n  page:    storybus explain secret.limit"
        );
        let text = told(
            403,
            &[Violation::new(Source::Policy, rule::OPERATOR_NOT_REGISTERED, "m")],
            "p1",
        );
        assert!(text.contains("(p1 is no operator)"), "{text}");
        assert!(told(502, &[], "o1").contains("is the URL right?"));
        let mut at = Violation::new(Source::Policy, rule::REQUEST_INVALID, "too old");
        at.path = Some("/from".to_owned());
        let text = told(400, &[at], "o1");
        assert!(
            text.contains("request.invalid at /from (--from, --last): too old"),
            "{text}"
        );
    }

    #[test]
    fn every_rule_stands_once() {
        for (n, a) in ADVICE.iter().enumerate() {
            assert!(rule::ALL.contains(&a.rule), "{}", a.rule);
            assert!(!ADVICE[..n].iter().any(|b| b.rule == a.rule), "{}", a.rule);
        }
        let of_operators = rule::ALL
            .iter()
            .filter(|r| r.ends_with(".not_found") || r.starts_with("operator."));
        for known in of_operators {
            assert!(ADVICE.iter().any(|a| a.rule == *known), "no advice for {known}");
        }
    }
}
