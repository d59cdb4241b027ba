//! The publish protocol as a pure function: from what the ledger knows to the next step.
//!
//! The record decides first and alone; then contention; then the order of the story. Nothing here reads a clock or a
//! store, so the model checker and the explorations walk the same code.

use std::time::Duration;

use storybus_protocol::id::MessageId;
use storybus_protocol::{Source, Violation, rule};
use storybus_som::story::StoryState;

use super::check::Message;
use crate::domain::record::{Record, RecordState, StoryKey, Token};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;
use crate::ports::ledger::Reading;

/// What to do next with a message.
#[derive(Debug)]
pub(super) enum Step {
    /// It was published: `200`.
    Duplicate,
    /// Refused; nothing is written.
    Refuse(Refusal),
    /// An attempt of it, or of a newer snapshot that may still fail, is at work until this time at most.
    InFlight(Millis),
    /// Another snapshot of its story is on its way: wait a little and read again.
    Contended,
    /// A left-over that a newer snapshot has overtaken: give it up for good.
    Supersede { read: Token, story: (StoryKey, Token) },
    /// A left-over past its window: take it over and publish it.
    Claim {
        read: Token,
        former: Millis,
        story: Option<(StoryKey, Token)>,
    },
    /// Unknown: record it and publish it.
    Record {
        story: Option<Move>,
        tolerated: Vec<Violation>,
    },
}

/// The story's move to a new snapshot.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) read: Option<(Token, MessageId)>,
    pub(super) state: StoryState,
}

pub(super) fn decide(message: &Message<'_>, reading: &Reading, now: Millis, window: Duration) -> Step {
    match &reading.record {
        Some(record) => known(message, record, reading, now, window),
        None => unknown(message, reading, now, window),
    }
}

/// The record decides alone.
fn known(message: &Message<'_>, record: &Record, reading: &Reading, now: Millis, window: Duration) -> Step {
    if record.content_hash != message.content_hash {
        return Step::Refuse(
            Refusal::policy(
                RefusalKind::Conflict,
                rule::MESSAGE_ID_REUSED,
                "this message_id is known with other content; a changed message needs an id of its own, a retry the same content",
            )
            .at("/message_id"),
        );
    }
    match record.state {
        RecordState::Published => return Step::Duplicate,
        RecordState::Superseded => return Step::Refuse(superseded()),
        RecordState::Recorded => {}
    }
    if record.in_flight(now, window) {
        return Step::InFlight(record.recorded_at.plus(window));
    }
    // Past its window: left over by an attempt that ended, or lost its answer.
    let Some((snapshot, story)) = message.snapshot.as_ref().zip(reading.story.as_ref()) else {
        return Step::Claim {
            read: record.attempt,
            former: record.recorded_at,
            story: None,
        };
    };
    let version = (snapshot.story.clone(), story.version);
    if story.head == message.key.message_id {
        return Step::Claim {
            read: record.attempt,
            former: record.recorded_at,
            story: Some(version),
        };
    }
    match &reading.head {
        // The newer one may still fail and put the story back.
        Some(head) if head.in_flight(now, window) => Step::InFlight(head.recorded_at.plus(window)),
        _ => Step::Supersede {
            read: record.attempt,
            story: version,
        },
    }
}

fn unknown(message: &Message<'_>, reading: &Reading, now: Millis, window: Duration) -> Step {
    let Some(snapshot) = &message.snapshot else {
        return Step::Record {
            story: None,
            tolerated: message.tolerated.clone(),
        };
    };
    let correlation_id = &message.attributes.correlation_id;
    let Some(story) = &reading.story else {
        let state = StoryState::first(snapshot.payload, correlation_id);
        return Step::Record {
            story: Some(Move { read: None, state }),
            tolerated: message.tolerated.clone(),
        };
    };
    // Before any story rule: a snapshot refused as stale against a head that then fails would be refused for nothing.
    if reading
        .head
        .as_ref()
        .is_some_and(|head| head.in_flight(now, window))
    {
        return Step::Contended;
    }
    let judgement = story.state.next(snapshot.payload, correlation_id);
    if !judgement.refused.is_empty() {
        return Step::Refuse(Refusal::of(RefusalKind::Conflict, judgement.refused));
    }
    let mut tolerated = message.tolerated.clone();
    tolerated.extend(judgement.tolerated);
    Step::Record {
        story: Some(Move {
            read: Some((story.version, story.head)),
            state: judgement.next,
        }),
        tolerated,
    }
}

/// `503 message.in_flight`, with the seconds left.
pub(super) fn in_flight(now: Millis, until: Millis) -> Refusal {
    Refusal::policy(
        RefusalKind::Unavailable,
        rule::MESSAGE_IN_FLIGHT,
        "an earlier attempt has recorded this message (or a newer snapshot of its story) and may still publish it; send the same bytes again after Retry-After",
    )
    .after(now.retry_after(until))
}

/// `409 message.superseded`.
pub(super) fn superseded() -> Refusal {
    Refusal::policy(
        RefusalKind::Conflict,
        rule::MESSAGE_SUPERSEDED,
        "a newer snapshot of the story has been accepted since this one was recorded; it will not be published any more",
    )
}

/// `409 commit.contention`.
pub(super) fn contention() -> Refusal {
    Refusal::of(
        RefusalKind::Conflict,
        vec![Violation::new(
            Source::Policy,
            rule::COMMIT_CONTENTION,
            "another snapshot of this story is being published; nothing was recorded for this one: send the same bytes again after a moment",
        )],
    )
}
