//! `storybus activity`.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use super::api::{Api, Gathered, ListKind, segment};
use super::connections::more;
use super::flags::{Common, Paging};
use super::out::{self, Cell, Table, Tone};
use crate::exit::Failure;

pub(super) const HELP: &str = "The newest is first; with --follow the newest is last, and new entries come until Ctrl-C (with --json one line each). Duplicates and refusals
for want of credentials are not listed. Refusals are kept for 30 days, and may be lost in a crash.

Examples:
  storybus activity --limit 20
  storybus activity --follow --producer p4fq0w9
  storybus activity --rule sequence_number.not_increasing";

/// How often new entries are asked for.
const PACE: Duration = Duration::from_secs(2);
/// How many entries are remembered as told: an entry may be written down a moment late.
const REMEMBERED: usize = 20_000;

#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// Go on and print what comes, until Ctrl-C
    #[arg(long, short = 'f', conflicts_with = "all")]
    follow: bool,
    /// Only refusals by this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only of this producer, by id
    #[arg(long, value_name = "ID")]
    producer: Option<String>,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    common: Common,
}

/// Runs it.
pub(super) fn run(args: &ActivityArgs) -> Result<(), Failure> {
    let mut api = Api::new(&args.common)?;
    let route = format!("admin/tenants/{}/activity", segment(&api.workspace_id()?));
    let chosen: Vec<(&str, &str)> = [("rule", &args.rule), ("producer", &args.producer)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .collect();
    let all = api.gather(&route, ListKind::newest("activity"), &chosen, &args.paging)?;
    if args.follow {
        return follow(&mut api, &route, &chosen, &all, args.common.json);
    }
    if args.common.json {
        return out::document(&all.document()?);
    }
    let mut table = Table::new(&["TIME", "STATUS", "PRODUCER", "TYPE", "MESSAGE", "STORY", "RULE"]);
    for entry in all.values()? {
        table.row(cells(&entry));
    }
    table.print("nothing was published or refused lately")?;
    more(all.next.as_deref());
    Ok(())
}

fn cells(entry: &Value) -> Vec<Cell> {
    let status = Cell::of(entry, "status");
    let accepted = entry["status"].as_u64() == Some(202);
    let rules = entry
        .get("rules")
        .map_or_else(|| Cell::of(entry, "rule"), |_| Cell::of(entry, "rules"));
    vec![
        Cell::of(entry, "time"),
        status.toned(if accepted { Tone::Good } else { Tone::Bad }),
        Cell::of(entry, "producer_id"),
        Cell::of(entry, "message_type"),
        Cell::of(entry, "message_id"),
        Cell::of(entry, "story_id"),
        rules,
    ]
}

/// Prints what there is, the oldest first, and then what comes.
fn follow(
    api: &mut Api,
    route: &str,
    chosen: &[(&str, &str)],
    first: &Gathered,
    json: bool,
) -> Result<(), Failure> {
    let mut told = Told::default();
    let mut page = told.new_of(&first.entries);
    loop {
        for entry in &page {
            let line = if json {
                out::line(entry)
            } else {
                let entry = serde_json::from_str(entry).unwrap_or_default();
                out::columns(&cells(&entry), &[24, 3, 12, 24, 36, 12])
            };
            if !out::read_on(&line)? {
                return Ok(());
            }
        }
        api.pause(PACE);
        page = newer(api, route, chosen, &mut told)?;
    }
}

/// What has come since: pages from the newest on, until one has nothing new.
fn newer(
    api: &mut Api,
    route: &str,
    chosen: &[(&str, &str)],
    told: &mut Told,
) -> Result<Vec<String>, Failure> {
    let mut most = 100;
    loop {
        let all = api.gather(
            route,
            ListKind::newest("activity"),
            chosen,
            &Paging::at_most(most),
        )?;
        let known = all.entries.iter().any(|e| told.knows(e.get()));
        // Everything is new, so there may be more behind it.
        if known || all.next.is_none() || most >= REMEMBERED as u64 {
            return Ok(told.new_of(&all.entries));
        }
        most *= 10;
    }
}

/// What was told already.
#[derive(Default)]
struct Told {
    all: HashSet<String>,
    order: VecDeque<String>,
}

impl Told {
    fn knows(&self, entry: &str) -> bool {
        self.all.contains(entry)
    }

    /// What of these was not told yet, the oldest first. It counts as told from now on.
    fn new_of(&mut self, newest_first: &[Box<RawValue>]) -> Vec<String> {
        let new: Vec<String> = newest_first
            .iter()
            .rev()
            .map(|e| e.get().to_owned())
            .filter(|e| !self.all.contains(e))
            .collect();
        for entry in &new {
            self.all.insert(entry.clone());
            self.order.push_back(entry.clone());
        }
        while self.order.len() > REMEMBERED {
            if let Some(old) = self.order.pop_front() {
                self.all.remove(&old);
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_told_once_and_in_order() {
        let raw = |n: u32| RawValue::from_string(n.to_string()).unwrap();
        let mut told = Told::default();
        assert_eq!(told.new_of(&[raw(2), raw(1)]), ["1", "2"]);
        assert_eq!(told.new_of(&[raw(4), raw(3), raw(2), raw(1)]), ["3", "4"]);
        assert!(told.new_of(&[raw(4), raw(3)]).is_empty());
        assert!(told.knows("4") && !told.knows("5"));
    }
}
