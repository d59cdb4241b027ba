//! `storybus check`.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use storybus_sqlite::{Checked, Finding};

use crate::exit::{self, Failure};
use crate::ports::FileKeys;

/// `storybus check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Reads everything in the data directory, or in a backup, and changes nothing; the bus may run. Looked at: the database's pages and
indexes; that every message in a queue and every dead letter has its body; that the
archive's blocks unpack; that the counters agree with the rows; that each order
group can be received; that jobs, workspaces and connections can be read; the keys
that sign tokens. Not looked at: what the body of a message says that is not in a block yet.

Exit codes: 0 all is well; 1 something was found, each with what to do; 2 the directory cannot be used."
)]
pub struct CheckArgs {
    /// The data directory of the bus, or a backup
    #[arg(value_name = "DATA-DIR")]
    data: PathBuf,
    /// Say what was found as one line of JSON: ok, findings (each what and advice), queued, dead_letters, jobs, seconds
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    findings: Vec<Told<'a>>,
    queued: u64,
    dead_letters: u64,
    jobs: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Told<'a> {
    what: &'a str,
    advice: &'a str,
}

/// Runs it.
///
/// # Errors
///
/// The directory cannot be used.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    let (checked, seconds) = super::timed(|| storybus_sqlite::check(&args.data));
    let checked = checked.map_err(|error| {
        let directory = args.data.display();
        Failure::new(exit::UNUSABLE, anyhow!("cannot read {directory}: {error}"))
    })?;
    let mut checked = checked;
    if let Err(error) = FileKeys::check(args.data.join("keys.json")) {
        checked.findings.push(Finding {
            what: format!("the keys that sign tokens: {error}"),
            advice: "put keys.json back from a backup; or move it away: the next start makes new keys, and every client logs in again",
        });
    }
    let Checked {
        findings,
        queued,
        dead_letters,
        jobs,
    } = &checked;
    if args.json {
        super::say_json(&Report {
            ok: findings.is_empty(),
            findings: findings.iter().map(told).collect(),
            queued: *queued,
            dead_letters: *dead_letters,
            jobs: *jobs,
            seconds,
        })?;
    } else {
        let mut text = String::new();
        for Finding { what, advice } in findings {
            text.push_str(&format!("{what}\n    {advice}\n"));
        }
        let verdict = match findings.len() {
            0 => "all is well".to_owned(),
            n => format!("{n} findings"),
        };
        text.push_str(&format!(
            "{verdict}: {queued} messages in queues, {dead_letters} dead letters, {jobs} jobs ({seconds:.1} s)\n"
        ));
        super::say(&text)?;
    }
    Ok(if findings.is_empty() {
        exit::DONE
    } else {
        exit::FAILED
    })
}

fn told(finding: &Finding) -> Told<'_> {
    Told {
        what: &finding.what,
        advice: finding.advice,
    }
}
