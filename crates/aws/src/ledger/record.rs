//! Items of records.

use std::time::Duration;

use storybus_core::domain::record::{ContentHash, Record, RecordKey, RecordState, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_core::ports::ledger::{GiveBack, Marking, NewClaim, Removal, Supersession};

use crate::item::{Attributes, Item, b, expired_by, expiry, is_live, n, s, unreadable};
use crate::keys;
use crate::writes::Action;

const RECORDED: &str = "RECORDED";
const PUBLISHED: &str = "PUBLISHED";
const SUPERSEDED: &str = "SUPERSEDED";

/// A record as an item.
pub(super) fn item(key: &RecordKey, record: &Record) -> Item {
    let mut item = keys::record(key);
    let state = match record.state {
        RecordState::Recorded => RECORDED,
        RecordState::Published => PUBLISHED,
        RecordState::Superseded => SUPERSEDED,
    };
    for (name, value) in [
        ("state", s(state)),
        ("attempt", b(record.attempt.0)),
        ("hash", b(record.content_hash.0)),
        ("recorded_at", n(record.recorded_at.0)),
        ("producer", s(record.producer.as_str())),
        ("expires_at", expiry(record.expires_at)),
    ] {
        item.insert(name.to_owned(), value);
    }
    if let Some(story) = record.story {
        item.insert("story".to_owned(), b(story));
    }
    if let Some(at) = record.published_at {
        item.insert("published_at".to_owned(), n(at.0));
    }
    item
}

fn read(item: &Item) -> Result<Record, StoreError> {
    let state = match item.need_text("state")? {
        RECORDED => RecordState::Recorded,
        PUBLISHED => RecordState::Published,
        SUPERSEDED => RecordState::Superseded,
        _ => return Err(unreadable("state")),
    };
    let story = match item.get("story") {
        Some(_) => Some(item.need_array("story")?),
        None => None,
    };
    let expires_at: i64 = item.need_number("expires_at")?;
    Ok(Record {
        content_hash: ContentHash(item.need_array("hash")?),
        state,
        recorded_at: Millis(item.need_number("recorded_at")?),
        attempt: Token(item.need_array("attempt")?),
        story,
        producer: item.need_parsed("producer")?,
        published_at: item.number("published_at").map(Millis),
        expires_at: Millis(expires_at.saturating_mul(1000)),
    })
}

/// The record, unless it is absent or has expired.
pub(super) fn live(item: Option<&Item>, now: Millis) -> Result<Option<Record>, StoreError> {
    item.filter(|item| is_live(item, now)).map(read).transpose()
}

/// RECORD: if the message is unknown.
pub(super) fn put(key: &RecordKey, record: &Record, now: Millis) -> Action {
    Action::put(item(key, record))
        .when("attribute_not_exists(pk) OR expires_at <= :now")
        .value(":now", expired_by(now))
}

/// That a story's head does not block it: its record is absent, expired, not `Recorded` any more, or past its window.
pub(super) fn unblocked(head: &RecordKey, now: Millis, window: Duration) -> Action {
    Action::check(keys::record(head))
        .when("attribute_not_exists(pk) OR expires_at <= :now OR #state <> :recorded OR recorded_at <= :past")
        .value(":now", expired_by(now))
        .value(":recorded", s(RECORDED))
        .value(":past", n(now.minus(window).0))
}

const HELD: &str = "attempt = :held AND #state = :recorded AND expires_at > :now";

fn held(action: Action, attempt: Token, now: Millis) -> Action {
    action
        .value(":held", b(attempt.0))
        .value(":recorded", s(RECORDED))
        .value(":now", expired_by(now))
}

/// CLAIM.
pub(super) fn claim(claim: &NewClaim) -> Action {
    let set = "SET recorded_at = :at, attempt = :attempt, expires_at = :expires";
    let action = Action::update(keys::record(&claim.key), set).when(HELD);
    held(action, claim.read, claim.now)
        .value(":at", n(claim.now.0))
        .value(":attempt", b(claim.attempt.0))
        .value(":expires", expiry(claim.expires_at))
}

/// SUPERSEDE.
pub(super) fn supersede(supersession: &Supersession) -> Action {
    let action = Action::update(keys::record(&supersession.key), "SET #state = :superseded").when(HELD);
    held(action, supersession.read, supersession.now).value(":superseded", s(SUPERSEDED))
}

/// REMOVE.
pub(super) fn remove(removal: &Removal) -> Action {
    let action = Action::delete(keys::record(&removal.key)).when(format!("{HELD} AND recorded_at > :past"));
    held(action, removal.attempt, removal.now).value(":past", n(removal.now.minus(removal.window).0))
}

/// GIVE BACK.
pub(super) fn give_back(back: &GiveBack) -> Action {
    let set = "SET recorded_at = :at, attempt = :attempt";
    let action = Action::update(keys::record(&back.key), set).when(HELD);
    held(action, back.attempt, back.now)
        .value(":at", n(back.recorded_at.0))
        .value(":attempt", b(back.new_attempt.0))
}

/// MARK.
pub(super) fn mark(marking: &Marking) -> Action {
    let set = "SET #state = :published, published_at = :at, expires_at = :expires";
    Action::update(keys::record(&marking.key), set)
        .when("attempt = :held AND expires_at > :now")
        .value(":held", b(marking.attempt.0))
        .value(":now", expired_by(marking.now))
        .value(":published", s(PUBLISHED))
        .value(":at", n(marking.now.0))
        .value(":expires", expiry(marking.expires_at))
}
