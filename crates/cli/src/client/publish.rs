//! `storybus publish`: one message from each file, in order.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use http::Method;
use storybus_protocol::answer::{Accepted, Duplicate};
use storybus_protocol::{Source, Violation, rule};

use super::answer::{Answer, GaveUp};
use super::bus::BusClient;
use super::settings::{BusArgs, Who};
use crate::exit::{self, Failure};

/// `storybus publish`.
#[derive(Debug, Args)]
#[command(
    after_help = "A file holds one SOM envelope, whose bytes are sent as they are; the bus does the checking. A time-out, a network error,
408, 429, 5xx and 409 commit.contention are tried again, with the same bytes, until --patience is over; the bus
knows a message that it has already. When one gets no final answer, those behind it are not sent.

Exit codes: 0 all were accepted, or duplicates of what was accepted before; 3 some were refused; 4 gave up on one;
2 a file, a flag or the credentials cannot be used."
)]
pub struct PublishArgs {
    /// The messages' files; - is the standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How long to try again for one message, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// The bus.
    #[command(flatten)]
    bus: BusArgs,
}

/// Runs it.
pub fn publish(args: &PublishArgs) -> Result<u8, Failure> {
    let secret = std::env::var("STORYBUS_CLIENT_SECRET").ok();
    let settings = args
        .bus
        .settings(Who::Producer, secret)
        .map_err(|e| Failure::new(exit::UNUSABLE, e))?;
    // All files first: a wrong name should not be found half-way.
    let mut messages = Vec::new();
    for file in &args.files {
        let bytes = read(file).map_err(|e| Failure::new(exit::UNUSABLE, e))?;
        messages.push((file.display().to_string(), bytes));
    }
    let mut client = BusClient::new(settings);
    let mut out = io::stdout().lock();
    let mut code = exit::DONE;
    let total = messages.len();
    for (number, (name, bytes)) in messages.iter().enumerate() {
        let told = |reason: &str, pause: Duration| {
            let _ = writeln!(
                io::stderr(),
                "{name}: {reason}; again in {:.1} s",
                pause.as_secs_f64()
            );
        };
        let patience = Duration::from_secs(args.patience);
        client.sent = false;
        let answer = client.until_final(patience, told, |c| {
            c.call(&Method::POST, "jwt/messages", bytes, Duration::ZERO)
        });
        match answer {
            Ok(answer) => {
                let (text, refused) = tell(name, &answer, client.client_id());
                out.write_all(text.as_bytes()).context("cannot write")?;
                if refused {
                    code = exit::REFUSED;
                }
            }
            Err(GaveUp::Login(reason)) => return Err(Failure::new(exit::REFUSED, anyhow!("{reason}"))),
            Err(GaveUp::TimeUp(reason) | GaveUp::Unknown(reason)) => {
                let left = total - number - 1;
                let rest = if left > 0 {
                    format!("; {left} more not sent")
                } else {
                    String::new()
                };
                let certain = if client.sent {
                    "not certain, so send the same file again later"
                } else {
                    "nothing was sent"
                };
                writeln!(out, "gave up    {name}: {reason}; {certain}{rest}").context("cannot write")?;
                return Ok(exit::GAVE_UP);
            }
            Err(GaveUp::Wrong(reason)) => return Err(Failure::unusable(reason)),
            Err(GaveUp::Stopped) => return Ok(exit::GAVE_UP),
        }
    }
    Ok(code)
}

fn read(file: &PathBuf) -> anyhow::Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read the standard input")?;
        return Ok(bytes);
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if bytes.is_empty() {
        bail!("{} is empty", file.display());
    }
    Ok(bytes)
}

fn place(violation: &Violation) -> String {
    violation
        .path
        .as_deref()
        .map(|path| format!(" at {}", if path.is_empty() { "the root" } else { path }))
        .unwrap_or_default()
}

/// What the answer means, and whether it is a no.
fn tell(name: &str, answer: &Answer, client_id: &str) -> (String, bool) {
    if let (202, Ok(accepted)) = (answer.status, serde_json::from_slice::<Accepted>(&answer.body)) {
        let mut text = format!(
            "accepted   {}  {}  {name}\n",
            accepted.message_id, accepted.message_type
        );
        for t in &accepted.tolerated {
            text.push_str(&format!("  tolerated {}{}: {}\n", t.rule, place(t), t.message));
        }
        return (text, false);
    }
    if let (200, Ok(duplicate)) = (answer.status, serde_json::from_slice::<Duplicate>(&answer.body)) {
        return (
            format!(
                "duplicate  {}  published before, not again  {name}\n",
                duplicate.message_id
            ),
            false,
        );
    }
    let violations = answer.violations();
    if violations.is_empty() {
        let status = answer.status;
        return (
            format!("refused    {name}: {status}, and not in the words of a bus; is the URL right?\n"),
            true,
        );
    }
    let mut text = format!("refused    {name}: {}\n", answer.status);
    for v in &violations {
        text.push_str(&format!("  {}{}: {}\n", v.rule, place(v), v.message));
    }
    text.push_str(&format!(
        "  -> {}\n",
        advice(answer.status, &violations, client_id)
    ));
    (text, true)
}

/// What to do about a refusal.
fn advice(status: u16, violations: &[Violation], client_id: &str) -> String {
    let is = |rule: &str| violations.iter().any(|v| v.rule == rule);
    let kind = match client_id.as_bytes().first() {
        Some(b'c') => "consumer",
        Some(b'o') => "operator",
        _ => "producer",
    };
    if status == 403 && kind != "producer" && is(rule::PRODUCER_NOT_REGISTERED) {
        return format!(
            "{client_id} is {} {kind}; publishing needs a producer",
            article(kind)
        );
    }
    let advice = match status {
        // the client has logged in anew just before
        401 => {
            "the bus has just given a token and does not take it: the client was disabled or deleted meanwhile (an operator sees it), or the signing key is being changed, and the same succeeds in some minutes"
        }
        403 => "an operator can grant this; until then the same message is refused",
        409 if is(rule::MESSAGE_ID_REUSED) => "a changed message needs a message_id of its own",
        409 if is(rule::MESSAGE_SUPERSEDED) => "nothing to do: a newer snapshot of the story is out",
        409 if violations.iter().any(|v| v.source == Source::Sequence) => {
            "the story has moved on: make the next snapshot from its present state"
        }
        413 => "send less, or a reference instead of the content",
        _ => "mend the message; the same bytes will be refused again",
    };
    advice.to_owned()
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with('o') { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, body: &str) -> (String, bool) {
        tell(
            "f.json",
            &Answer {
                status,
                retry_after: None,
                body: body.as_bytes().to_vec(),
            },
            "c1",
        )
    }

    #[test]
    fn answers_are_told_in_words() {
        let (text, refused) = told(
            202,
            r#"{"accepted":true,"message_id":"m","message_type":"story.context","family":"story-context","tolerated":[{"source":"sequence","rule":"sequence_number.gap","message":"by 2","path":"/payload/sequence_number"}]}"#,
        );
        assert_eq!(
            text,
            "accepted   m  story.context  f.json\n  tolerated sequence_number.gap at /payload/sequence_number: by 2\n"
        );
        assert!(!refused);
        let (text, refused) = told(200, r#"{"accepted":true,"duplicate":true,"message_id":"m"}"#);
        assert!(text.starts_with("duplicate  m  ") && !refused);
        let (text, refused) = told(
            409,
            r#"{"accepted":false,"violations":[{"source":"sequence","rule":"sequence_number.not_increasing","message":"1 after 3","path":"/payload/sequence_number"}]}"#,
        );
        assert!(
            text.contains("sequence_number.not_increasing at /payload/sequence_number: 1 after 3")
                && text.contains("moved on"),
            "{text}"
        );
        assert!(refused);
        let (text, _) = told(
            403,
            r#"{"accepted":false,"violations":[{"source":"policy","rule":"producer.not_registered","message":"m"}]}"#,
        );
        assert!(
            text.contains("-> c1 is a consumer; publishing needs a producer"),
            "{text}"
        );
        let (text, _) = told(
            401,
            r#"{"accepted":false,"violations":[{"source":"policy","rule":"producer.unauthenticated","message":"m"}]}"#,
        );
        assert!(text.contains("-> the bus has just given a token"), "{text}");
        let (text, refused) = told(200, "<html>");
        assert!(text.contains("is the URL right?") && refused);
    }
}
