//! `storybus redrive` and `storybus replay`: messages that come again.

use clap::{ArgGroup, Args};
use serde_json::{Map, Value, json};

use super::api::Api;
use super::connections::body;
use super::flags::{self, Common};
use super::names::Kind;
use super::times::{self, Span, Time};
use super::{jobs, out};
use crate::exit::Failure;

/// A `to` in the future means now, by the bus's own clock.
const NOW: &str = "9999-12-31T23:59:59Z";

/// What a consumer has to be ready for.
const BEHIND: &str = "They land behind newer messages of their story: a consumer that keeps the newest has to compare sequence_number.";

pub(super) const REDRIVE_HELP: &str = "The dead letters land behind what waits in the queue, oldest first, with a fresh receive count, and so behind newer messages of
their story: a consumer that keeps the newest has to compare sequence_number. A dead letter is removed only once it has arrived.
Mend the consumer first: what it cannot take becomes a dead letter again, and done means only that it is in the queue.

Exit codes: with --wait 0 done, 8 done and nothing was moved, 6 the job failed or was cancelled; without, 0 once the job is accepted.
7: nobody knows whether the job was made, look with storybus jobs list.

Examples:
  storybus redrive rundown --message 0199b3d0-1111-7000-8000-00000000abcd --wait
  storybus redrive rundown --all --wait";

pub(super) const REPLAY_HELP: &str = "What was published in the span of time goes into the queue again, oldest first, behind what waits there, and so behind
newer messages of its story; what the consumer has had already comes again. A consumer that keeps the newest has to compare
sequence_number. The consumer's own filter applies. --from is included, --to is not. Several --type widen the choice, --story narrows it.
Times are UTC: 2026-09-11T10:30:00Z (RFC 3339), 10:30 or 10:30:15 (today), or \"90m ago\" (s, m, h, d).

Exit codes: with --wait 0 done, 8 done and nothing was moved, 6 the job failed or was cancelled; without, 0 once the job is accepted.
7: nobody knows whether the job was made, look with storybus jobs list.

Examples:
  storybus replay rundown --last 1h --wait
  storybus replay rundown --from 10:30 --to 11:00 --type 'story.*'
  storybus replay rundown --from \"2d ago\" --story 2026-0911-harbour";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["messages", "all"])))]
pub struct RedriveArgs {
    /// The consumer, by id or by name
    consumer: String,
    /// This dead letter; repeatable, or a,b
    #[arg(long = "message", value_name = "ID", value_delimiter = ',')]
    messages: Vec<String>,
    /// All dead letters that are there now
    #[arg(long)]
    all: bool,
    /// Wait until it is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("begin").required(true).args(["from", "last"])))]
pub struct ReplayArgs {
    /// The consumer, by id or by name
    consumer: String,
    /// From this time on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Time>,
    /// Up to this time [default: now]
    #[arg(long, value_name = "TIME", conflicts_with = "last")]
    to: Option<Time>,
    /// The last so long, up to now, such as 90m
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    last: Option<Span>,
    /// Only these message types: exact types, family.* or *. Repeatable, or a,b
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    message_types: Vec<String>,
    /// Only these stories (payload.story_id). Repeatable
    #[arg(long = "story", value_name = "STORY_ID")]
    story_ids: Vec<String>,
    /// Only these correlation ids. Repeatable, or a,b
    #[arg(long = "correlation", value_name = "ID", value_delimiter = ',')]
    correlation_ids: Vec<String>,
    /// Wait until it is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Runs `storybus redrive`.
pub(super) fn redrive(args: &RedriveArgs) -> Result<u8, Failure> {
    let messages = flags::list(&args.messages);
    if messages.is_empty() && !args.all {
        return Err(Failure::unusable("which messages? Give --message ID, or --all"));
    }
    let body = if args.all {
        Map::new()
    } else {
        body(vec![("message_ids", Some(messages.into()))])
    };
    begin(
        &args.common,
        &args.consumer,
        "redrives",
        &Value::Object(body),
        args.wait,
        &[BEHIND.to_owned()],
    )
}

/// Runs `storybus replay`.
pub(super) fn replay(args: &ReplayArgs) -> Result<u8, Failure> {
    let now = times::now();
    if let Some(yesterday) = args.from.as_ref().and_then(|from| from.to_come(now)) {
        return Err(Failure::unusable(format!(
            "--from is later today, which is still to come; yesterday it was --from {yesterday}"
        )));
    }
    let from = match (&args.from, args.last) {
        (Some(from), _) => from.rfc3339(now),
        (None, Some(last)) => last.before(now),
        (None, None) => return Err(Failure::unusable("from when on? Give --from or --last")),
    };
    let to = args.to.as_ref().map(|to| to.rfc3339(now));
    let chosen = |list: &[String]| {
        let list = flags::list(list);
        (!list.is_empty()).then(|| json!(list))
    };
    let mut notes = vec![
        format!(
            "what was published from {from} to {}",
            to.as_deref().unwrap_or("now")
        ),
        format!("{BEHIND} What the consumer has had already comes again."),
    ];
    if args.to.as_ref().is_some_and(|to| to.is_after(now)) {
        notes.push("--to is in the future: what is published from now on is not part of it".to_owned());
    }
    let body = body(vec![
        ("from", Some(from.into())),
        ("to", Some(to.as_deref().unwrap_or(NOW).into())),
        ("message_types", chosen(&args.message_types)),
        ("story_ids", chosen(&args.story_ids)),
        ("correlation_ids", chosen(&args.correlation_ids)),
    ]);
    begin(
        &args.common,
        &args.consumer,
        "replays",
        &Value::Object(body),
        args.wait,
        &notes,
    )
}

/// Makes the job, and then says what is to be known of it.
fn begin(
    common: &Common,
    consumer: &str,
    route: &str,
    body: &Value,
    wait: bool,
    notes: &[String],
) -> Result<u8, Failure> {
    let mut api = Api::new(common)?;
    let found = api.named(Kind::Consumer, consumer)?;
    let look = format!("storybus jobs list{}", api.carried);
    let job = api.post(&format!("{}/{route}", found.path), body, &look)?;
    for note in notes {
        out::note(note);
    }
    jobs::made(&mut api, job, wait, common.json)
}
