//! `storybus jobs`, and the wait for one.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::api::{Api, Document, id_in, segment};
use super::connections::more;
use super::flags::{Noun, Paging};
use super::lists::ListKind;
use super::out::{self, Cell, Table, Tone};
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

Exit codes: 0 done; 6 failed or cancelled; 3 there is no such job.

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
        JobsVerb::Show { job } => show(&api.get(&path(job))?, json)?,
        JobsVerb::Cancel { job } => {
            let answer = api.delete(&path(job))?;
            show(&answer, json)?;
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
        "JOB", "KIND", "CONSUMER", "STATE", "PROGRESS", "MOVED", "SCANNED", "CREATED", "ERROR",
    ]);
    for job in all.values()? {
        table.row(vec![
            Cell::of(&job, "job_id"),
            Cell::of(&job, "kind"),
            Cell::of(&job, "consumer"),
            state(&job),
            Cell::new(percent(&job)),
            Cell::of(&job, "moved"),
            Cell::of(&job, "scanned"),
            Cell::of(&job, "created_at"),
            error(&job),
        ]);
    }
    table.print("no jobs; storybus redrive and storybus replay make them")?;
    more(all.next.as_deref());
    Ok(())
}

fn state(job: &Value) -> Cell {
    let cell = Cell::of(job, "state");
    match job["state"].as_str() {
        Some("done") => cell.toned(Tone::Good),
        Some("failed") => cell.toned(Tone::Bad),
        Some("cancelled") => cell.toned(Tone::Warn),
        Some("queued" | "running") if job["cancel_requested"] == true => {
            Cell::new("cancelling").toned(Tone::Warn)
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
pub(super) fn show(document: &Document, json: bool) -> Result<(), Failure> {
    if json {
        return out::document(document);
    }
    let job = document.value()?;
    let mut fields = vec![
        ("job", Cell::of(&job, "job_id")),
        ("kind", Cell::of(&job, "kind")),
        ("consumer", Cell::of(&job, "consumer")),
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
        if there {
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
        show(&seen, json)?;
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
        return Ok(code);
    }
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
    show(&job, json)?;
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
        let text = |name: &str| crate::client::json::plain(job[name].as_str().unwrap_or_default());
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
