//! `storybus activity`.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use super::api::{Api, id_in, segment};
use super::connections::more;
use super::flags::{Common, Paging};
use super::lists::ListKind;
use super::names::Kind;
use super::out::{self, Cell, Table, Tone};
use crate::exit::Failure;

pub(super) const HELP: &str = "The newest is first; with --follow the newest is last, and new entries come until Ctrl-C (with --json one line each). Duplicates and refusals
for want of credentials are not listed. Refusals are kept for 30 days, and may be lost in a crash.

Examples:
  storybus activity --limit 20
  storybus activity --follow --producer planning
  storybus activity --rule sequence_number.not_increasing";

const LIST: ListKind = ListKind::newest("activity");
/// How often new entries are asked for.
const PACE: Duration = Duration::from_secs(2);
/// How many entries are remembered as told: an entry may be written down a moment late.
const REMEMBERED: usize = 20_000;
/// The most pages between two looks; who is behind by more does not read them anyway.
const MOST_PAGES: usize = 10;

#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// Go on and print what comes, until Ctrl-C
    #[arg(long, short = 'f', conflicts_with = "all")]
    follow: bool,
    /// Only refusals by this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only of this producer, by id or by name
    #[arg(long, value_name = "PRODUCER")]
    producer: Option<String>,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    common: Common,
}

/// Which entries.
#[derive(Debug, Clone, Default)]
struct Choice {
    rule: Option<String>,
    producer: Option<String>,
}

impl Choice {
    /// As the bus takes it.
    fn query(&self) -> Vec<(&str, &str)> {
        [("rule", &self.rule), ("producer", &self.producer)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    /// The same, made here.
    fn chooses(&self, entry: &Value) -> bool {
        let rule = self.rule.as_deref().is_none_or(|rule| {
            let among = entry["rules"]
                .as_array()
                .is_some_and(|all| all.iter().any(|r| r == rule));
            among || entry["rule"] == rule
        });
        rule && self.producer.as_deref().is_none_or(|p| entry["producer_id"] == p)
    }
}

/// Runs it.
pub(super) fn run(args: &ActivityArgs) -> Result<(), Failure> {
    let mut api = Api::new(&args.common)?;
    let route = format!("admin/tenants/{}/activity", segment(&api.workspace_id()?));
    let producer = args.producer.as_deref();
    let choice = Choice {
        rule: args.rule.clone(),
        producer: producer.map(|p| producer_id(&mut api, p)).transpose()?,
    };
    if args.follow {
        return follow(&mut api, &route, &choice, args);
    }
    let all = api.gather(&route, LIST, &choice.query(), &args.paging)?;
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

/// The id of the only producer of this name; anything else is taken for an id, also that of a producer that is gone.
fn producer_id(api: &mut Api, text: &str) -> Result<String, Failure> {
    let route = api.route_of(Kind::Producer)?;
    let all = api
        .gather(&route, Kind::Producer.list(), &[], &Paging::ALL)?
        .values()?;
    let same: Vec<&Value> = all.iter().filter(|p| p["name"] == text).collect();
    match same.as_slice() {
        [only] if !all.iter().any(|p| p["client_id"] == text) => id_in(only, "client_id"),
        _ => Ok(text.to_owned()),
    }
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
fn follow(api: &mut Api, route: &str, choice: &Choice, args: &ActivityArgs) -> Result<(), Failure> {
    let mut told = Told::default();
    // What comes is asked for without the choice: a choice that rarely finds anything would be looked for through all of the past,
    // each time. What is there before the first look is known from then on.
    newer(api, route, &mut told)?;
    let first = api.gather(route, LIST, &choice.query(), &args.paging)?;
    told.new_of(&first.entries);
    let mut page: Vec<String> = first.entries.iter().rev().map(|e| e.get().to_owned()).collect();
    loop {
        for text in &page {
            let entry: Value = serde_json::from_str(text).unwrap_or_default();
            let line = if args.common.json {
                out::line(text)
            } else {
                out::columns(&cells(&entry), &[24, 3, 21, 24, 36, 12])
            };
            if choice.chooses(&entry) && !out::read_on(&line)? {
                return Ok(());
            }
        }
        api.pause(PACE);
        page = newer(api, route, &mut told)?;
    }
}

/// What has come since, the oldest first: pages from the newest on, until one has something that is known.
fn newer(api: &mut Api, route: &str, told: &mut Told) -> Result<Vec<String>, Failure> {
    let (mut entries, mut next) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = api.page(route, LIST, &[], Some(100), next.as_deref())?;
        let known = page.entries.iter().any(|e| told.knows(e.get()));
        entries.extend(page.entries);
        // At the very first look everything is new, and one page will do.
        if known || told.all.is_empty() || page.next.is_none() {
            break;
        }
        next = page.next;
    }
    Ok(told.new_of(&entries))
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
    fn a_choice_is_the_same_here_as_on_the_bus() {
        let args = |rule: Option<&str>, producer: Option<&str>| Choice {
            rule: rule.map(str::to_owned),
            producer: producer.map(str::to_owned),
        };
        let entry = serde_json::json!({"producer_id": "p1", "rule": "a.b", "rules": ["a.b", "c.d"]});
        assert!(args(None, None).chooses(&entry));
        assert!(args(Some("c.d"), Some("p1")).chooses(&entry));
        assert!(!args(Some("e.f"), None).chooses(&entry));
        assert!(!args(Some("a.b"), Some("p2")).chooses(&entry));
    }

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
