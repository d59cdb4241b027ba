//! The rules of story order.

use storybus_json::{Number, Value};
use storybus_protocol::{Source, Violation, rule};

use super::digests::Digests;
use super::snapshot::{ASSET, ID, Snapshot};
use super::state::{End, StoryState};
use crate::rfc3339::Instant;
use crate::schema::quoted;

/// How many missing members a message names.
const NAMED: usize = 5;

/// What is to be said of a snapshot that wants to follow another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Why it must not be accepted: all reasons, in the order of the contract's table. Empty if it may be.
    pub refused: Vec<Violation>,
    /// What is odd and let pass.
    pub tolerated: Vec<Violation>,
    /// The story's state once the snapshot is accepted. Of no use if it is refused.
    pub next: StoryState,
}

impl StoryState {
    /// Judges a snapshot against the last accepted one, by all rules at once.
    ///
    /// - Sequence numbers compare as exact decimals of any size, times as instants to their last digit, correlation
    ///   ids regardless of letter case.
    /// - `lifecycle` is no missing member: the schema ties it to the story type. Every other member is one, also one
    ///   that only a later minor version of SOM knows.
    /// - An `asset_id` that stands more than once in a snapshot has all its types, and has changed when the sets of
    ///   types differ. An assertion that stands more than once is decided when none of its entries is PENDING.
    /// - Assets and reviews compare with the last snapshot alone: what an earlier one had is forgotten.
    pub fn next(&self, payload: Value<'_>, correlation_id: &str) -> Judgement {
        let snapshot = Snapshot(payload);
        let next = Self::after(snapshot, self.correlation_id.clone());
        let (mut refused, mut tolerated) = (Vec::new(), Vec::new());

        let last_number = self.sequence_number.as_deref().and_then(Number::parse);
        if let (Some(last), Some(number)) = (last_number, snapshot.sequence_number()) {
            if number <= last {
                refused.push(not_increasing(last));
            } else if !number.is_successor_of(last) {
                tolerated.push(gap(last));
            }
        }
        let last_time = self.updated_at.as_deref().and_then(Instant::parse);
        let time = snapshot.updated_at().and_then(Instant::parse);
        if let (Some(last), Some(time)) = (last_time, time)
            && time < last
        {
            refused.push(backwards());
        }
        refused.extend(members_missing(&self.members, &next.members));
        let (dropped, changed) = compare_assets(&self.assets, &next.assets);
        if dropped > 0 {
            refused.push(assets_dropped(dropped));
        }
        if changed > 0 {
            refused.push(type_changed(changed));
        }
        if let (Some(end), None) = (self.end, next.end) {
            refused.push(left_terminal(end));
        }

        if !self.correlation_id.eq_ignore_ascii_case(correlation_id) {
            tolerated.push(correlation_id_changed());
        }
        let pending = snapshot.reviews().pending;
        let regressed = pending
            .as_slice()
            .iter()
            .filter(|id| contains(&self.decided, id))
            .count();
        if regressed > 0 {
            tolerated.push(review_regressed(regressed));
        }
        Judgement {
            refused,
            tolerated,
            next,
        }
    }
}

fn contains(digests: &Digests<ID>, id: &[u8; ID]) -> bool {
    digests.as_slice().binary_search(id).is_ok()
}

/// How many asset ids of the last snapshot are gone, and how many have other types.
fn compare_assets(last: &Digests<ASSET>, next: &Digests<ASSET>) -> (usize, usize) {
    let same_asset = |a: &[u8; ASSET], b: &[u8; ASSET]| a.first_chunk::<ID>() == b.first_chunk::<ID>();
    let (mut dropped, mut changed) = (0, 0);
    // Sorted by id, so that the entries of an asset stand together.
    let mut candidates = next.as_slice().chunk_by(same_asset).peekable();
    for entries in last.as_slice().chunk_by(same_asset) {
        let id = entries.first().and_then(|entry| entry.first_chunk::<ID>());
        let id_of = |entries: &[[u8; ASSET]]| {
            entries
                .first()
                .and_then(|entry| entry.first_chunk::<ID>().copied())
        };
        while candidates
            .next_if(|candidate| id_of(candidate).as_ref() < id)
            .is_some()
        {}
        match candidates.next_if(|candidate| id_of(candidate).as_ref() == id) {
            None => dropped += 1,
            Some(candidate) if candidate != entries => changed += 1,
            Some(_) => {}
        }
    }
    (dropped, changed)
}

fn violation(rule: &'static str, path: &str, message: String) -> Violation {
    Violation::new(Source::Sequence, rule, message).at(path)
}

fn not_increasing(last: Number<'_>) -> Violation {
    let message = format!(
        "the story's last snapshot has number {}; a newer one needs a greater",
        quoted(last.text())
    );
    violation(
        rule::SEQUENCE_NUMBER_NOT_INCREASING,
        "/payload/sequence_number",
        message,
    )
}

fn gap(last: Number<'_>) -> Violation {
    let message = format!(
        "the story's last snapshot has number {}: one in between may be missing",
        quoted(last.text())
    );
    violation(rule::SEQUENCE_NUMBER_GAP, "/payload/sequence_number", message)
}

fn backwards() -> Violation {
    let message = "earlier than that of the story's last snapshot; a newer one cannot be older";
    violation(
        rule::UPDATED_AT_BACKWARDS,
        "/payload/updated_at",
        message.to_owned(),
    )
}

/// Both sorted.
fn members_missing(last: &[String], next: &[String]) -> Option<Violation> {
    let missing: Vec<&String> = last
        .iter()
        .filter(|name| next.binary_search(name).is_err())
        .collect();
    if missing.is_empty() {
        return None;
    }
    let mut message =
        String::from("a snapshot carries all of the story, and of the last one's members are missing: ");
    for (index, name) in missing.iter().take(NAMED).enumerate() {
        if index > 0 {
            message.push_str(", ");
        }
        message.push_str(&quoted(name));
    }
    if missing.len() > NAMED {
        message.push_str(&format!(" and {} more", missing.len() - NAMED));
    }
    Some(violation(rule::SNAPSHOT_MEMBERS_MISSING, "/payload", message))
}

fn assets_dropped(count: usize) -> Violation {
    let message = format!(
        "assets of the last snapshot that are absent: {count}; invalidate them instead of dropping them"
    );
    violation(rule::SNAPSHOT_ASSETS_DROPPED, "/payload/assets", message)
}

fn type_changed(count: usize) -> Violation {
    let message =
        format!("assets of another type than in the last snapshot: {count}; give a new asset a new id");
    violation(rule::ASSET_TYPE_CHANGED, "/payload/assets", message)
}

fn left_terminal(end: End) -> Violation {
    let message = format!(
        "the story is {}, and does not come back; begin another story",
        end.name()
    );
    violation(rule::STORY_TYPE_LEFT_TERMINAL, "/payload/story_type", message)
}

fn correlation_id_changed() -> Violation {
    let message = "not the story's first correlation id: consumers get the two without an order between them";
    violation(
        rule::CORRELATION_ID_CHANGED,
        "/correlation_id",
        message.to_owned(),
    )
}

fn review_regressed(count: usize) -> Violation {
    let message = format!("assertions whose review was decided and is pending again: {count}");
    violation(rule::ASSERTION_REVIEW_REGRESSED, "/payload/assertions", message)
}
