//! `storybus jobs`, and the wait for one.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::api::{Api, Document, id_in, segment};
use super::connections::more;
use super::flags::{Noun, Paging, quoted};
use super::lists::ListKind;
use super::names::Kind;
use super::out::{self, Cell, Table, Tone};
use crate::client::json::plain;
use crate::exit::{self, Failure};

/// The first pause between two looks at a job, which grows to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub enum JobsVerb {
    /// The jobs of the workspace, the newest first
    #[command(after_help = "Example:\n  storybus jobs list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One job
    #[command(after_help = "Example:\n  storybus jobs show j3kq8")]
    Show {
        /// Its id
        job: String,
    },
    /// Cancel a job; what it has moved stays moved
    #[command(after_help = "The step under way is finished first.\n\nExample:\n  storybus jobs cancel j3kq8")]
    Cancel {
        /// Its id
        job: String,
    },
    /// Wait until a job is over
    #[command(after_help = "Ctrl-C ends the wait; the job goes on.

Exit codes: 0 done; 8 done, and nothing was moved; 6 failed or cancelled; 3 there is no such job.

Example:
  storybus jobs wait j3kq8")]
    Wait {
        /// Its id
        job: String,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<JobsVerb>) -> Result<u8, Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let route = format!("admin/tenants/{}/jobs", segment(&api.workspace_id()?));
    let path = |job: &str| format!("{route}/{}", segment(job));
    match &noun.verb {
        JobsVerb::List { paging } => {
            list(&mut api, &route, paging, json)?;
        }
        JobsVerb::Show { job } => {
            let seen = api.get(&path(job))?;
            show(&mut api, &seen, json)?;
        }
        JobsVerb::Cancel { job } => {
            let answer = api.delete(&path(job))?;
            show(&mut api, &answer, json)?;
        }
        JobsVerb::Wait { job } => {
            let seen = api.get(&path(job))?;
            return wait(&mut api, seen, &path(job), json);
        }
    }
    Ok(exit::DONE)
}

fn list(api: &mut Api, route: &str, paging: &Paging, json: bool) -> Result<(), Failure> {
    let all = api.gather(route, ListKind::of("jobs"), &[], paging)?;
    if json {
        return out::document(&all.document()?);
    }
    let mut table = Table::new(&[
        "JOB", "KIND", "CONSUMER", "STATE", "PROGRESS", "MOVED", "SCANNED", "CREATED", "BY", "OF", "ERROR",
    ]);
    let (consumers, operators) = (api.names(Kind::Consumer), api.names(Kind::Operator));
    for job in all.values()? {
        table.row(vec![
            Cell::of(&job, "job_id"),
            Cell::of(&job, "kind"),
            consumers.cell(&job, "consumer"),
            state(&job),
            Cell::new(percent(&job)),
            Cell::of(&job, "moved"),
            Cell::of(&job, "scanned"),
            Cell::of(&job, "created_at"),
            operators.cell(&job, "created_by"),
            Cell::new(chosen(&job)),
            error(&job),
        ]);
    }
    table.print("no jobs; storybus redrive and storybus replay make them")?;
    more(all.next.as_deref());
    Ok(())
}

/// What it was asked for, on one line.
fn chosen(job: &Value) -> String {
    let mut parts = Vec::new();
    if let (Some(from), Some(to)) = (job["from"].as_str(), job["to"].as_str()) {
        parts.push(format!("{from} to {to}"));
    }
    for member in ["message_types", "story_ids", "correlation_ids"] {
        let entries = job[member].as_array().into_iter().flatten();
        parts.extend(entries.filter_map(Value::as_str).map(str::to_owned));
    }
    match job["message_ids"].as_array().map_or(&[][..], Vec::as_slice) {
        [] => {}
        [only] => parts.push(only.as_str().unwrap_or_default().to_owned()),
        several => parts.push(format!("{} messages", several.len())),
    }
    if parts.is_empty() {
        "all".to_owned()
    } else {
        parts.join(" ")
    }
}

fn state(job: &Value) -> Cell {
    let cell = Cell::of(job, "state");
    match job["state"].as_str() {
        Some("done") => cell.toned(Tone::Good),
        Some("failed") => cell.toned(Tone::Bad),
        Some("cancelled") => cell.toned(Tone::Warn),
        Some("queued" | "running") if job["cancel_requested"] == true => {
            let state = job["state"].as_str().unwrap_or_default();
            Cell::new(format!("{state}, to be cancelled")).toned(Tone::Warn)
        }
        _ => cell,
    }
}

fn share(job: &Value) -> f64 {
    job["progress"].as_f64().unwrap_or(0.0).clamp(0.0, 1.0)
}

fn percent(job: &Value) -> String {
    format!("{:.0} %", (share(job) * 100.0).floor())
}

fn error(job: &Value) -> Cell {
    match job["error"].as_object() {
        None => Cell::new(""),
        Some(error) => {
            let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
            Cell::new(format!("{}: {}", text("rule"), text("message"))).toned(Tone::Bad)
        }
    }
}

/// Prints a job.
pub(super) fn show(api: &mut Api, document: &Document, json: bool) -> Result<(), Failure> {
    if json {
        return out::document(document);
    }
    let job = document.value()?;
    let (consumers, operators) = (api.names(Kind::Consumer), api.names(Kind::Operator));
    let mut fields = vec![
        ("job", Cell::of(&job, "job_id")),
        ("kind", Cell::of(&job, "kind")),
        ("consumer", consumers.field(&job, "consumer")),
        ("state", state(&job)),
        ("progress", Cell::new(percent(&job))),
        ("moved", Cell::of(&job, "moved")),
        ("scanned", Cell::of(&job, "scanned")),
    ];
    for (name, member) in [
        ("from", "from"),
        ("to", "to"),
        ("types", "message_types"),
        ("stories", "story_ids"),
        ("correlations", "correlation_ids"),
        ("messages", "message_ids"),
        ("missing", "missing"),
        ("created", "created_at"),
        ("by", "created_by"),
        ("started", "started_at"),
        ("finished", "finished_at"),
    ] {
        let there = match job.get(member) {
            None | Some(Value::Null) => false,
            Some(Value::Array(entries)) => !entries.is_empty(),
            Some(_) => true,
        };
        if there && member == "created_by" {
            fields.push((name, operators.field(&job, member)));
        } else if there {
            fields.push((name, Cell::of(&job, member)));
        }
    }
    if job["error"].is_object() {
        fields.push(("error", error(&job)));
    }
    out::fields(&fields)
}

/// Waits until the job is over, shows how far it is, and prints it. The code says how it ended.
pub(super) fn wait(api: &mut Api, mut seen: Document, path: &str, json: bool) -> Result<u8, Failure> {
    let mut pause = FIRST_PAUSE;
    let mut progress = Progress::new();
    loop {
        let job = seen.value()?;
        let code = match job["state"].as_str() {
            Some("done") => exit::DONE,
            Some("failed" | "cancelled") => exit::JOB_NOT_DONE,
            _ => {
                progress.tell(&job);
                api.pause(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                seen = api.get(path)?;
                continue;
            }
        };
        progress.end();
        show(api, &seen, json)?;
        let moved = job["moved"].as_u64().unwrap_or(0);
        if code == exit::DONE && moved == 0 {
            out::note(&nothing(&job, &api.carried));
            return Ok(exit::NOTHING_MOVED);
        }
        if let Some(missing) = job["missing"].as_array().filter(|m| !m.is_empty()) {
            out::note(&format!(
                "{} no dead letter (any more), or in the hands of another redrive",
                if missing.len() == 1 {
                    "1 message is".to_owned()
                } else {
                    format!("{} messages are", missing.len())
                }
            ));
        }
        if code == exit::DONE && !json {
            look(&job, &api.carried)?;
        }
        return Ok(code);
    }
}

/// Why a job may have moved nothing.
fn nothing(job: &Value, carried: &str) -> String {
    let consumer = plain(job["consumer"].as_str().unwrap_or_default());
    let some = |member: &str| job[member].as_array().is_some_and(|all| !all.is_empty());
    let (ids, stories) = (some("message_ids"), some("story_ids"));
    let why = match (job["kind"].as_str(), ids) {
        (Some("replay"), _) => format!(
            "nothing that was published in the span fits what was asked for and the consumer's own filter: storybus consumers show {consumer}{carried}{}",
            if stories {
                format!("; is the story one of storybus stories list{carried}?")
            } else {
                String::new()
            }
        ),
        (_, true) => format!(
            "none of the messages is a dead letter of {consumer} (any more), or another redrive holds it: storybus dead-letters list {consumer}{carried}"
        ),
        (_, false) => format!("{consumer} has no dead letters that no other redrive holds"),
    };
    format!("nothing was moved: {why}")
}

/// What to look at once messages are in the queue again.
fn look(job: &Value, carried: &str) -> Result<(), Failure> {
    let consumer = plain(job["consumer"].as_str().unwrap_or_default());
    out::note(
        "Done means: in the queue again. Whether the consumer takes them is seen later, and what it cannot take becomes a dead letter again.",
    );
    let mut steps = Vec::new();
    if let Some([only]) = job["message_ids"].as_array().map(Vec::as_slice) {
        let message = quoted(only.as_str().unwrap_or_default());
        steps.push((
            format!("storybus message show {message}{carried}"),
            "whether it was acknowledged this time",
        ));
    }
    steps.push((format!("storybus queue {consumer}{carried}"), "what still waits"));
    steps.push((
        format!("storybus dead-letters list {consumer}{carried}"),
        "whether any of them came back",
    ));
    out::next(&steps)
}

/// Goes on after a job was made: waits for it, or says how to.
pub(super) fn made(api: &mut Api, job: Document, wait_for_it: bool, json: bool) -> Result<u8, Failure> {
    let value = job.value()?;
    let (id, tenant) = (id_in(&value, "job_id")?, id_in(&value, "tenant")?);
    if wait_for_it {
        out::note(&format!(
            "{id} is under way; Ctrl-C ends the wait, not the job: storybus jobs wait {id}{}",
            api.carried
        ));
        let path = format!("admin/tenants/{}/jobs/{}", segment(&tenant), segment(&id));
        return wait(api, job, &path, json);
    }
    show(api, &job, json)?;
    if !json {
        out::next(&[
            (
                format!("storybus jobs wait {id}{}", api.carried),
                "until it is over",
            ),
            (format!("storybus jobs cancel {id}{}", api.carried), "stop it"),
        ])?;
    }
    Ok(exit::DONE)
}

/// How far a job is: a bar on a terminal, a line for each tenth elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    told: Option<(String, u8)>,
}

impl Progress {
    fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} [{bar:40}] {percent:>3} %  {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, told: None }
    }

    fn tell(&mut self, job: &Value) {
        let text = |name: &str| plain(job[name].as_str().unwrap_or_default());
        let number = |name: &str| job[name].as_u64().unwrap_or(0);
        let (state, share) = (text("state"), share(job));
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("{} {state}", text("job_id")));
            bar.set_message(format!("{} moved", number("moved")));
            bar.set_position((share * 1000.0) as u64);
            bar.tick();
            return;
        }
        let step = (state, (share * 10.0) as u8);
        if self.told.as_ref() != Some(&step) {
            out::note(&format!(
                "{} {}: {}, {} moved, {} scanned",
                text("job_id"),
                step.0,
                percent(job),
                number("moved"),
                number("scanned")
            ));
            self.told = Some(step);
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
