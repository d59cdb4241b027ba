//! `storybus activity`.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;
use storybus_protocol::id::{ConnectionId, ConnectionKind};
use storybus_protocol::rule;

use super::api::{Api, segment};
use super::connections::more;
use super::explain;
use super::flags::{Common, Paging, quoted};
use super::lists::{Gathered, ListKind};
use super::names::{Kind, Names};
use super::out::{self, Cell, Table, Tone};
use crate::exit::Failure;

pub(super) const HELP: &str = "The newest is first; with --follow the newest is last, and new entries come until Ctrl-C (with --json one line each). Duplicates and refusals
for want of credentials are not listed. Refusals are kept for 30 days, and may be lost in a crash. FAULT is whose it is to mend: the
caller's (the producer), an operator's, the bus's or nobody's; storybus explain RULE says more.

Examples:
  storybus activity --limit 20
  storybus activity --follow --producer planning
  storybus activity --message 0199b3d0-1111-7000-8000-00000000abcd
  storybus activity --rule sequence_number.not_increasing";

const LIST: ListKind = ListKind::newest("activity");
/// How often new entries are asked for.
const PACE: Duration = Duration::from_secs(2);
/// How many entries are remembered as told: an entry may be written down a moment late.
const REMEMBERED: usize = 20_000;
/// The most pages between two looks; who is behind by more does not read them anyway.
const MOST_PAGES: usize = 10;
/// How many old entries come before what is followed.
const BEFORE: u64 = 10;
const HEAD: [&str; 8] = [
    "TIME", "STATUS", "PRODUCER", "TYPE", "MESSAGE", "STORY", "FAULT", "RULE",
];
const WIDTHS: [usize; 7] = [24, 6, 20, 14, 36, 20, 8];

#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// Go on and print what comes, until Ctrl-C, after the last 10 or --limit
    #[arg(long, short = 'f', conflicts_with = "all")]
    follow: bool,
    /// Only refusals by this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only of this producer, by id or by name
    #[arg(long, value_name = "PRODUCER")]
    producer: Option<String>,
    /// Only of this message, among the newest 10,000 entries
    #[arg(long, value_name = "ID", conflicts_with_all = ["follow", "all"])]
    message: Option<String>,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Which entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
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

    /// Whether there are such a rule and such a producer at all: nothing was found of them. A producer that is gone has entries,
    /// and a newer bus may know more rules.
    fn is_known(&self, api: &mut Api) -> Result<(), Failure> {
        if let Some(named) = self.rule.as_deref().filter(|r| rule::about(r).is_none()) {
            return Err(Failure::unusable(explain::unknown(named)));
        }
        if let Some(producer) = &self.producer {
            api.named(Kind::Producer, producer)?;
        }
        Ok(())
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
    let producers = api.names(Kind::Producer);
    let choice = Choice {
        rule: args.rule.clone(),
        producer: producer.map(|p| meant(&mut api, &producers, p)).transpose()?,
    };
    if args.follow {
        return follow(&mut api, &route, &choice, args, &producers);
    }
    let all = match &args.message {
        Some(id) => of_message(&mut api, id, &choice)?,
        None => api.gather(&route, LIST, &choice.query(), &args.paging)?,
    };
    if all.entries.is_empty() {
        choice.is_known(&mut api)?;
    }
    if args.common.json {
        return out::document(&all.document()?);
    }
    let entries = all.values()?;
    let mut table = Table::new(&HEAD);
    for entry in &entries {
        table.row(cells(entry, &producers));
    }
    let none = if choice.query().is_empty() && args.message.is_none() {
        "nothing was published or refused lately"
    } else {
        "nothing that was published or refused lately fits"
    };
    table.print(none)?;
    more(all.next.as_deref());
    match entries.iter().find_map(|e| e["rule"].as_str()) {
        Some(rule) => out::next(&[(
            format!("storybus explain {}", quoted(rule)),
            "what it means, whose fault it is, what to do",
        )]),
        None => Ok(()),
    }
}

/// The id of the producer that is meant. One that is gone has entries still, so an id need not be one of those there are.
fn meant(api: &mut Api, producers: &Names, text: &str) -> Result<String, Failure> {
    let is_id = || {
        text.parse::<ConnectionId>()
            .is_ok_and(|id| id.kind() == ConnectionKind::Producer)
    };
    match producers.id(text) {
        Some(id) => Ok(id.to_owned()),
        None if is_id() => Ok(text.to_owned()),
        None => Ok(api.named(Kind::Producer, text)?.id),
    }
}

/// The entries of one message, among the newest.
pub(super) fn of_message(api: &mut Api, id: &str, choice: &Choice) -> Result<Gathered, Failure> {
    let route = format!("admin/tenants/{}/activity", segment(&api.workspace_id()?));
    let is_it = |entry: &RawValue| {
        let entry: Value = serde_json::from_str(entry.get()).unwrap_or_default();
        let same = entry["message_id"]
            .as_str()
            .is_some_and(|m| m.eq_ignore_ascii_case(id));
        same && choice.chooses(&entry)
    };
    let mut all = api.page(&route, LIST, &[], None, None)?;
    all.entries.retain(|e| is_it(e));
    for _ in 1..MOST_PAGES {
        let Some(next) = all.next.take() else { break };
        let page = api.page(&route, LIST, &[], None, Some(&next))?;
        all.entries.extend(page.entries.into_iter().filter(|e| is_it(e)));
        all.next = page.next;
    }
    all.next = None;
    Ok(all)
}

fn cells(entry: &Value, producers: &Names) -> Vec<Cell> {
    let status = Cell::of(entry, "status");
    let accepted = entry["status"].as_u64() == Some(202);
    let rules = entry
        .get("rules")
        .map_or_else(|| Cell::of(entry, "rule"), |_| Cell::of(entry, "rules"));
    let about = entry["rule"].as_str().and_then(rule::about);
    let fault = about.map_or_else(|| "-".to_owned(), |about| about.fault.to_string());
    vec![
        Cell::of(entry, "time"),
        status.toned(if accepted { Tone::Good } else { Tone::Bad }),
        producers.cell(entry, "producer_id"),
        Cell::of(entry, "message_type"),
        Cell::of(entry, "message_id"),
        Cell::of(entry, "story_id"),
        Cell::new(fault),
        rules,
    ]
}

/// Prints what there is, the oldest first, and then what comes.
fn follow(
    api: &mut Api,
    route: &str,
    choice: &Choice,
    args: &ActivityArgs,
    producers: &Names,
) -> Result<(), Failure> {
    let mut told = Told::default();
    // What comes is asked for without the choice: a choice that rarely finds anything would be looked for through all of the past,
    // each time. What is there before the first look is known from then on.
    newer(api, route, &mut told)?;
    let first = api.gather(route, LIST, &choice.query(), &args.paging.or(BEFORE))?;
    if first.entries.is_empty() {
        choice.is_known(api)?;
    }
    if !args.common.json && !out::read_on(&out::columns(&HEAD.map(Cell::new), &WIDTHS))? {
        return Ok(());
    }
    told.new_of(&first.entries);
    let mut page: Vec<String> = first.entries.iter().rev().map(|e| e.get().to_owned()).collect();
    loop {
        for text in &page {
            let entry: Value = serde_json::from_str(text).unwrap_or_default();
            let line = if args.common.json {
                out::line(text)
            } else {
                out::columns(&cells(&entry, producers), &WIDTHS)
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
