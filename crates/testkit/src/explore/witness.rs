//! What was seen from outside, and the promises it is held against.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::{Record, RecordKey, RecordState, StoryKey, Token};
use storybus_core::domain::refusal::Refusal;
use storybus_core::domain::time::Millis;
use storybus_core::ops::publish::Published;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{Ledger, Topic};
use storybus_protocol::id::MessageId;
use storybus_protocol::rule;

use super::message::Message;
use crate::clock::FakeClock;
use crate::faulty::Call;

/// The promises, by their letters in the documentation of the publish protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Never `duplicate` for a message that was not published.
    A,
    /// Of several retries at most one publishes.
    B,
    /// Never an older snapshot of a story behind a newer one.
    C,
    /// What is refused leaves nothing behind.
    D,
    /// Only the holder of a claim publishes.
    E,
    /// What is published again within 5 minutes is dropped; a snapshot, only while it is the latest.
    F,
    /// What was accepted is in the queue.
    Kept,
    /// With a working engine and enough retries every message gets a final answer.
    Final,
    /// An answer says what is true, and when to come again.
    Honest,
    /// A job delivers what it was asked to, each once.
    Delivered,
    /// In the order of the archive or of the dead letters, per correlation id.
    Ordered,
    /// A dead letter leaves when it was delivered, and no job that is over holds one.
    Removed,
    /// What a job says of itself is exact.
    Told,
    /// A job ends, and as it should.
    Over,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::A => "A: duplicate, though it was not published",
            Self::B => "B: published by two",
            Self::C => "C: an older snapshot behind a newer one",
            Self::D => "D: refused, and something is left",
            Self::E => "E: published without a claim",
            Self::F => "F: published again at the wrong time",
            Self::Kept => "accepted and lost",
            Self::Final => "no final answer",
            Self::Honest => "an answer that is not true",
            Self::Delivered => "a job skipped or doubled something",
            Self::Ordered => "a job delivered in the wrong order",
            Self::Removed => "a dead letter is where it should not be",
            Self::Told => "a job says what is not true",
            Self::Over => "a job does not end as it should",
        };
        f.write_str(text)
    }
}

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// `202`.
    Accepted,
    /// `200 duplicate`.
    Duplicate,
    /// `503 message.in_flight`, and when to come again.
    InFlight(u64),
    /// `503 bus.publish_failed`, and when to come again.
    PublishFailed(u64),
    /// `503 bus.unavailable`.
    Unavailable,
    /// `500 bus.internal_error`.
    Internal,
    /// `409 commit.contention`.
    Contended,
    /// `409 message.superseded`.
    Superseded,
    /// `409 message_id.reused`.
    Reused,
    /// `409` by a rule of the story's order.
    OutOfOrder,
    /// Anything else.
    Other,
}

impl Verdict {
    /// What an answer says.
    #[must_use]
    pub fn of(answer: &Result<Published, Refusal>) -> Self {
        let refusal = match answer {
            Ok(Published::Accepted(_)) => return Self::Accepted,
            Ok(Published::Duplicate(_)) => return Self::Duplicate,
            Err(refusal) => refusal,
        };
        let after = refusal.retry_after.unwrap_or(0);
        match refusal
            .violations
            .first()
            .map(|violation| violation.rule.as_ref())
        {
            Some(rule::MESSAGE_IN_FLIGHT) => Self::InFlight(after),
            Some(rule::BUS_PUBLISH_FAILED) => Self::PublishFailed(after),
            Some(rule::BUS_UNAVAILABLE) => Self::Unavailable,
            Some(rule::BUS_INTERNAL_ERROR) => Self::Internal,
            Some(rule::COMMIT_CONTENTION) => Self::Contended,
            Some(rule::MESSAGE_SUPERSEDED) => Self::Superseded,
            Some(rule::MESSAGE_ID_REUSED) => Self::Reused,
            Some(rule::SEQUENCE_NUMBER_NOT_INCREASING) => Self::OutOfOrder,
            Some(_) | None => Self::Other,
        }
    }

    /// Whether the client need not send it again.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Accepted | Self::Duplicate | Self::Superseded | Self::Reused | Self::OutOfOrder => true,
            Self::InFlight(_)
            | Self::PublishFailed(_)
            | Self::Unavailable
            | Self::Internal
            | Self::Contended
            | Self::Other => false,
        }
    }
}

/// A publication that the topic confirmed, and what the ledger said at that instant.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    message_id: MessageId,
    attempt: Token,
    at: Millis,
    until: Millis,
    record: Option<Record>,
    is_head: bool,
}

/// A topic that writes down what the ledger says when something is published.
pub(super) struct Spy {
    pub(super) topic: Arc<dyn Topic>,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) clock: FakeClock,
    pub(super) sights: Arc<Mutex<Vec<Sight>>>,
}

#[async_trait]
impl Topic for Spy {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        let at = self.clock.now();
        let workspace = publication.workspace.clone();
        let key = RecordKey {
            workspace: workspace.clone(),
            message_id: publication.message_id,
        };
        let story = publication.story.map(|digest| StoryKey { workspace, digest });
        let reading = self.ledger.read(&key, story.as_ref(), at).await;
        self.topic.publish(publication, timeout).await?;
        let (record, head) = match reading {
            Ok(reading) => (reading.record, reading.story.map(|story| story.head)),
            Err(_) => (None, None),
        };
        let sight = Sight {
            message_id: publication.message_id,
            attempt: publication.claim.attempt,
            at,
            until: publication.claim.until,
            record,
            is_head: story.is_none() || head == Some(publication.message_id),
        };
        lock(&self.sights).push(sight);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the topic drops what it has published, and how long a claim lasts.
const DROPPED: Duration = Duration::from_secs(300);
pub(super) const WINDOW: Duration = Duration::from_secs(30);

/// Everything seen so far.
#[derive(Default)]
pub(super) struct Witness {
    pub(super) sights: Arc<Mutex<Vec<Sight>>>,
    /// What came out of the queue, in order.
    pub(super) log: Vec<(MessageId, Millis)>,
    /// What was ever sent.
    pub(super) sent: Vec<Message>,
    /// What a client was told is superseded, and how many sights there were then.
    superseded: Vec<(MessageId, usize)>,
    /// What was refused as out of order: the story must stay there.
    stale: BTreeSet<u64>,
    /// How far the nodes' clocks are apart.
    pub(super) skew: Duration,
    /// Whether records have expired meanwhile.
    pub(super) forgetful: bool,
}

impl Clone for Witness {
    fn clone(&self) -> Self {
        let sights = Arc::new(Mutex::new(lock(&self.sights).clone()));
        Self {
            sights,
            log: self.log.clone(),
            sent: self.sent.clone(),
            superseded: self.superseded.clone(),
            stale: self.stale.clone(),
            skew: self.skew,
            forgetful: self.forgetful,
        }
    }
}

/// A promise that does not hold, and why.
pub(super) type Breach = (Promise, String);

fn hold(holds: bool, promise: Promise, seen: impl FnOnce() -> String) -> Result<(), Breach> {
    if holds { Ok(()) } else { Err((promise, seen())) }
}

impl Witness {
    pub(super) fn sends(&mut self, message: &Message) {
        if !self.sent.contains(message) {
            self.sent.push(message.clone());
        }
    }

    fn name(&self, id: MessageId) -> String {
        self.sent
            .iter()
            .find(|m| m.id == id)
            .map_or_else(|| id.to_string(), |m| m.name.clone())
    }

    fn number(&self, id: MessageId) -> Option<u64> {
        self.sent.iter().find(|m| m.id == id).and_then(|m| m.snapshot)
    }

    pub(super) fn is_published(&self, id: MessageId) -> bool {
        self.log.iter().any(|(published, _)| *published == id)
    }

    /// Holds an answer against what was seen; `done` are the calls of the attempt that took effect, and
    /// `last` is the sequence number of the story's last accepted snapshot.
    pub(super) fn answered(
        &mut self,
        message: &Message,
        verdict: Verdict,
        done: &[Call],
        last: Option<u64>,
    ) -> Result<(), Breach> {
        let name = &message.name;
        let published = self.is_published(message.id);
        let writes = || {
            done.iter()
                .filter(|call| **call != Call::Supersede)
                .collect::<Vec<_>>()
        };
        let nothing_left = || {
            hold(writes().is_empty(), Promise::D, || {
                format!("{name} {verdict:?} after {done:?}")
            })
        };
        let comes_again = |after: u64| {
            let fits = (1..=WINDOW.as_secs() + self.skew.as_secs()).contains(&after);
            hold(fits, Promise::Honest, || {
                format!("{name} shall come again in {after} s")
            })
        };
        match verdict {
            Verdict::Accepted => {
                hold(published, Promise::Kept, || {
                    format!("{name} was accepted and is not in the queue")
                })?;
                hold(done.contains(&Call::Publish), Promise::Honest, || {
                    format!("{name} accepted after {done:?}")
                })
            }
            Verdict::Duplicate => {
                hold(published, Promise::A, || {
                    format!("{name} is a duplicate of nothing")
                })?;
                nothing_left()
            }
            Verdict::InFlight(after) => nothing_left().and_then(|()| comes_again(after)),
            Verdict::PublishFailed(after) => comes_again(after),
            Verdict::Contended | Verdict::Reused | Verdict::Unavailable => nothing_left(),
            Verdict::OutOfOrder => {
                let stale = message.snapshot.is_some() && message.snapshot <= last;
                hold(stale, Promise::D, || {
                    format!("{name} was refused as stale; the story is at {last:?}")
                })?;
                self.stale.extend(message.snapshot);
                nothing_left()
            }
            Verdict::Superseded => {
                let overtaken = message.snapshot.is_some() && message.snapshot < last;
                hold(overtaken, Promise::Honest, || {
                    format!("{name} superseded; the story is at {last:?}")
                })?;
                let sights = lock(&self.sights).len();
                self.superseded.push((message.id, sights));
                nothing_left()
            }
            Verdict::Internal => hold(
                done.iter().all(|call| *call == Call::Supersede),
                Promise::D,
                || format!("{name} failed after {done:?}"),
            ),
            Verdict::Other => Err((
                Promise::Honest,
                format!("{name} got an answer that nobody expects"),
            )),
        }
    }

    /// Holds everything seen so far against the promises; `last` is the sequence number of the story's last accepted
    /// snapshot.
    pub(super) fn check(&self, last: Option<u64>) -> Result<(), Breach> {
        self.check_log()?;
        let stale = self.stale.last().copied();
        hold(stale <= last, Promise::D, || {
            format!("snapshot {stale:?} was refused as out of order for nothing; the story is at {last:?}")
        })?;
        let sights = lock(&self.sights);
        for (place, sight) in sights.iter().enumerate() {
            let name = self.name(sight.message_id);
            let record = sight
                .record
                .as_ref()
                .filter(|record| record.attempt == sight.attempt);
            // the holder's own call, given up and repeated, may arrive behind the one that was marked: it is dropped
            let own = record.is_some_and(|record| record.state == RecordState::Published);
            let holds = own || record.is_some_and(|record| record.state == RecordState::Recorded);
            hold(holds, Promise::E, || {
                format!("{name} was published while the record was {:?}", sight.record)
            })?;
            let in_time = record.is_some_and(|r| sight.at < r.recorded_at.plus(WINDOW + self.skew));
            hold(in_time, Promise::E, || {
                format!("{name} was published past its window")
            })?;
            let well_within = record.is_some_and(|r| sight.until <= r.recorded_at.plus(WINDOW / 3));
            hold(well_within, Promise::E, || {
                format!("{name} might have been published until {:?}", sight.until)
            })?;
            hold(own || sight.is_head, Promise::F, || {
                format!("{name} was published while it was not the latest")
            })?;
            let earlier = sights[..place].iter().rfind(|s| s.message_id == sight.message_id);
            if let Some((earlier, record)) = earlier.and_then(|e| e.record.as_ref().map(|record| (e, record)))
            {
                let another = earlier.attempt != sight.attempt;
                let late = sight.at.plus(self.skew) >= record.recorded_at.plus(WINDOW);
                hold(!another || late, Promise::B, || {
                    format!("{name} was published by two within one window")
                })?;
            }
        }
        for (id, place) in &self.superseded {
            let again = sights[*place..].iter().any(|sight| sight.message_id == *id);
            let forgotten = self.forgetful;
            hold(!again || forgotten, Promise::F, || {
                format!("{} was superseded, then published", self.name(*id))
            })?;
        }
        Ok(())
    }

    fn check_log(&self) -> Result<(), Breach> {
        let mut last = None;
        for (place, (id, at)) in self.log.iter().enumerate() {
            if let Some(number) = self.number(*id) {
                hold(Some(number) >= last, Promise::C, || {
                    let names: Vec<String> = self.log.iter().map(|(id, _)| self.name(*id)).collect();
                    format!("the consumer got {}", names.join(" "))
                })?;
                last = Some(number);
            }
            let before = self.log[..place].iter().rfind(|(other, _)| other == id);
            let apart = before.is_none_or(|(_, earlier)| *at >= earlier.plus(DROPPED));
            hold(apart, Promise::F, || {
                format!("{} came twice within 5 minutes", self.name(*id))
            })?;
        }
        Ok(())
    }

    /// The number of the last snapshot that the consumer got.
    pub(super) fn last_seen(&self) -> Option<u64> {
        self.log.iter().rev().find_map(|(id, _)| self.number(*id))
    }

    /// What was told to be superseded, in the order of the ids.
    pub(super) fn superseded(&self) -> BTreeSet<MessageId> {
        self.superseded.iter().map(|(id, _)| *id).collect()
    }
}
