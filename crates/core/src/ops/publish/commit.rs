//! The steps of the publish protocol over the ports: RECORD or CLAIM, PUBLISH, then MARK, REMOVE or GIVE BACK.
//!
//! The rules that make a retry safe:
//! - A message is published only by the holder of its record's attempt, within its window.
//! - What *surely* failed, in every call of this claim, is taken back; what is *not certain* stays, and a retry past the
//!   window publishes it again.
//! - Between RECORD and the answer nothing waits without a limit, and nothing is begun that would not end in time.

use std::time::Duration;

use storybus_protocol::answer::{Accepted, Duplicate};
use storybus_protocol::{Violation, rule};

use super::Published;
use super::check::Message;
use super::decide::{Move, Step, contention, decide, in_flight, superseded};
use crate::bus::Bus;
use crate::domain::message::{Claim, Publication};
use crate::domain::record::{RECORD_LIFETIME, Record, RecordState, Story, StoryKey, Token};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;
use crate::ops::refused_by_store;
use crate::ports::StoreError;
use crate::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, PutBack, Reading, Recorded, Removal, StoryMove, Supersession,
    Written,
};
use crate::ports::topic::PublishError;

/// The first pause when something is in the way; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A claim in our hands.
struct Held {
    attempt: Token,
    recorded_at: Millis,
    origin: Origin,
}

/// How we came by it, and so how to give it up.
enum Origin {
    /// By RECORD: the record is removed, the story put back.
    First(Box<Option<PutBack>>),
    /// By CLAIM: the claim is given back, since an earlier attempt may have published.
    Republish { former: Millis },
}

/// Something was in the way: what to answer when it does not pass in time.
enum InTheWay {
    Snapshot,
    Rival { until: Millis },
}

impl Bus {
    /// Brings a checked message to its answer.
    pub(super) async fn commit(&self, message: &Message<'_>, deadline: Millis) -> Result<Published, Refusal> {
        let started = self.ports.clock.now();
        let give_up = started.plus(self.settings.contention_wait).min(deadline);
        let mut pause = FIRST_PAUSE;
        // An event needs no first read: its RECORD finds out by itself.
        let mut known = if message.snapshot.is_some() {
            Some(self.read(message).await?)
        } else {
            None
        };
        loop {
            let (reading, now) = match known.take() {
                Some(known) => known,
                None if message.snapshot.is_some() => self.read(message).await?,
                None => (Reading::default(), self.ports.clock.now()),
            };
            let in_the_way = match decide(message, &reading, now, self.settings.window) {
                Step::Duplicate => return Ok(duplicate(message)),
                Step::Refuse(refusal) => return Err(refusal),
                Step::InFlight(until) => return Err(in_flight(self.ports.clock.now(), until)),
                Step::Contended => InTheWay::Snapshot,
                Step::Supersede { read, story } => {
                    let supersession = Supersession {
                        key: message.key.clone(),
                        read,
                        story,
                        version: self.fresh_token(),
                        now,
                    };
                    match self.ports.ledger.supersede(&supersession).await {
                        Ok(Written::Done) => return Err(superseded()),
                        Ok(Written::Lost) => InTheWay::Rival { until: now },
                        Err(error) => return Err(refused_by_store("supersede", &error)),
                    }
                }
                Step::Claim { read, former, story } => {
                    match self.take_over(message, read, former, story, now).await? {
                        Some(held) => {
                            return self
                                .deliver(message, held, message.tolerated.clone(), deadline)
                                .await;
                        }
                        None => InTheWay::Rival { until: now },
                    }
                }
                Step::Record { story, tolerated } => {
                    match self.record(message, &reading, story, now).await? {
                        Outcome::Held(held) => return self.deliver(message, held, tolerated, deadline).await,
                        Outcome::Known(record) if message.snapshot.is_none() => {
                            // Decided at once from what RECORD found; a second look only if that leads nowhere.
                            let reading = Reading {
                                record: Some(record),
                                ..Reading::default()
                            };
                            known = Some((reading, now));
                            continue;
                        }
                        Outcome::Known(record) => InTheWay::Rival {
                            until: record.recorded_at.plus(self.settings.window),
                        },
                        Outcome::StoryMoved => InTheWay::Snapshot,
                    }
                }
            };
            let now = self.ports.clock.now();
            if now >= give_up {
                return Err(match in_the_way {
                    InTheWay::Snapshot => contention(),
                    InTheWay::Rival { until } => in_flight(now, until),
                });
            }
            let spread = self.spread(pause);
            self.ports.clock.sleep(spread.min(now.until(give_up))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if message.snapshot.is_none() {
                known = Some(self.read(message).await?);
            }
        }
    }

    /// What a publish would answer now.
    pub(super) async fn foresee(&self, message: &Message<'_>) -> Result<Published, Refusal> {
        let (reading, now) = self.read(message).await?;
        let tolerated = match decide(message, &reading, now, self.settings.window) {
            Step::Duplicate => return Ok(duplicate(message)),
            Step::Refuse(refusal) => return Err(refusal),
            Step::InFlight(until) => return Err(in_flight(self.ports.clock.now(), until)),
            Step::Contended => return Err(contention()),
            Step::Supersede { .. } => return Err(superseded()),
            Step::Claim { .. } => message.tolerated.clone(),
            Step::Record { tolerated, .. } => tolerated,
        };
        Ok(accepted(message, tolerated, true))
    }

    /// What the ledger knows, and the time that it is judged by: the one from before the read. Judged by a later one, a
    /// snapshot that was in flight when it was read would count as past its window to an attempt that was held up since,
    /// though it was taken back within it; and the message would be refused as stale against what no longer stands.
    async fn read(&self, message: &Message<'_>) -> Result<(Reading, Millis), Refusal> {
        let story = message.snapshot.as_ref().map(|s| &s.story);
        let now = self.ports.clock.now();
        let reading = self.ports.ledger.read(&message.key, story, now).await;
        reading
            .map(|reading| (reading, now))
            .map_err(|error| refused_by_store("read", &error))
    }

    /// RECORD.
    async fn record(
        &self,
        message: &Message<'_>,
        reading: &Reading,
        story: Option<Move>,
        now: Millis,
    ) -> Result<Outcome, Refusal> {
        let attempt = self.fresh_token();
        let story = message
            .snapshot
            .as_ref()
            .zip(story)
            .map(|(snapshot, moved)| StoryMove {
                key: snapshot.story.clone(),
                story_id: snapshot.story_id.to_owned(),
                read: moved.read,
                state: moved.state,
                version: self.fresh_token(),
            });
        let put_back = story.as_ref().map(|moved| PutBack {
            key: moved.key.clone(),
            version: moved.version,
            story: reading.story.as_ref().map(|read| Story {
                version: self.fresh_token(),
                ..read.clone()
            }),
        });
        let new = NewRecord {
            key: message.key.clone(),
            record: Record {
                content_hash: message.content_hash,
                state: RecordState::Recorded,
                recorded_at: now,
                attempt,
                story: message.snapshot.as_ref().map(|s| s.story.digest),
                producer: message.attributes.producer_id.clone(),
                published_at: None,
                expires_at: now.plus(RECORD_LIFETIME),
            },
            story,
            now,
            window: self.settings.window,
        };
        let held = Held {
            attempt,
            recorded_at: now,
            origin: Origin::First(Box::new(put_back)),
        };
        match self.ports.ledger.record(&new).await {
            Ok(Recorded::Done) => Ok(Outcome::Held(held)),
            Ok(Recorded::Known(record)) => Ok(Outcome::Known(record)),
            Ok(Recorded::StoryMoved) => Ok(Outcome::StoryMoved),
            Err(error @ StoreError::Unknown { .. }) => {
                Err(self.abandon(message, held, "record", &error).await)
            }
            Err(error) => Err(refused_by_store("record", &error)),
        }
    }

    /// CLAIM. `None` when a rival was faster.
    async fn take_over(
        &self,
        message: &Message<'_>,
        read: Token,
        former: Millis,
        story: Option<(StoryKey, Token)>,
        now: Millis,
    ) -> Result<Option<Held>, Refusal> {
        let attempt = self.fresh_token();
        let claim = NewClaim {
            key: message.key.clone(),
            read,
            attempt,
            story,
            now,
            expires_at: now.plus(RECORD_LIFETIME),
        };
        let held = Held {
            attempt,
            recorded_at: now,
            origin: Origin::Republish { former },
        };
        match self.ports.ledger.claim(&claim).await {
            Ok(Written::Done) => Ok(Some(held)),
            Ok(Written::Lost) => Ok(None),
            Err(error @ StoreError::Unknown { .. }) => {
                Err(self.abandon(message, held, "claim", &error).await)
            }
            Err(error) => Err(refused_by_store("claim", &error)),
        }
    }

    /// A RECORD or CLAIM of unknown outcome: nothing is published, it is taken back once.
    async fn abandon(
        &self,
        message: &Message<'_>,
        held: Held,
        operation: &'static str,
        error: &StoreError,
    ) -> Refusal {
        tracing::warn!(operation, %error, message_id = %message.key.message_id, "outcome unknown, taking it back");
        let taken_back = self.take_back(message, &held).await;
        self.publish_failed(&held, taken_back)
    }

    /// PUBLISH with the claim in our hands, then MARK; or, when it surely failed, REMOVE or GIVE BACK.
    async fn deliver(
        &self,
        message: &Message<'_>,
        held: Held,
        tolerated: Vec<Violation>,
        deadline: Millis,
    ) -> Result<Published, Refusal> {
        let publication = Publication {
            workspace: message.key.workspace.clone(),
            message_id: message.key.message_id,
            correlation_id: message.correlation_id,
            story: message.snapshot.as_ref().map(|s| s.story.digest),
            body: message.body.clone(),
            attributes: message.attributes.clone(),
            about: message.about.clone(),
            claim: Claim {
                attempt: held.attempt,
                until: held.recorded_at.plus(self.settings.publish_limit),
            },
        };
        let end = publication.claim.until.min(deadline);
        let mut surely_failed = true;
        let mut pause = FIRST_PAUSE;
        // A call begins only if it would end in time: a slow attempt never publishes after a retry took over.
        while self.ports.clock.now().plus(self.settings.publish_timeout) <= end {
            match self
                .ports
                .topic
                .publish(&publication, self.settings.publish_timeout)
                .await
            {
                Ok(()) => {
                    self.mark(message, &held).await;
                    return Ok(accepted(message, tolerated, false));
                }
                Err(PublishError::Refused { reason, retryable }) => {
                    tracing::error!(reason, retryable, message_id = %message.key.message_id, "publication refused");
                    if !retryable {
                        break;
                    }
                }
                Err(PublishError::Unknown { reason }) => {
                    tracing::error!(reason, message_id = %message.key.message_id, "outcome of the publication unknown");
                    surely_failed = false;
                }
            }
            self.ports.clock.sleep(self.spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        let taken_back = surely_failed && self.take_back(message, &held).await;
        Err(self.publish_failed(&held, taken_back))
    }

    /// MARK. Whatever comes of it, the message is published and the answer stands: a record left unmarked is published
    /// again by a retry past its window.
    async fn mark(&self, message: &Message<'_>, held: &Held) {
        let mut pause = FIRST_PAUSE;
        let end = held.recorded_at.plus(self.settings.publish_limit);
        loop {
            let now = self.ports.clock.now();
            let marking = Marking {
                key: message.key.clone(),
                attempt: held.attempt,
                now,
                expires_at: now.plus(RECORD_LIFETIME),
            };
            match self.ports.ledger.mark(&marking).await {
                Ok(Written::Done) => return,
                Ok(Written::Lost) => {
                    tracing::warn!(message_id = %message.key.message_id, "published, but another attempt holds the record");
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, message_id = %message.key.message_id, "published, but not marked");
                    if matches!(error, StoreError::Internal { .. })
                        || self.ports.clock.now().plus(pause) >= end
                    {
                        return;
                    }
                }
            }
            self.ports.clock.sleep(self.spread(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// REMOVE or GIVE BACK. Whether the message is free again for a retry at once.
    async fn take_back(&self, message: &Message<'_>, held: &Held) -> bool {
        let now = self.ports.clock.now();
        let key = message.key.clone();
        let written = match &held.origin {
            Origin::First(put_back) => {
                let removal = Removal {
                    key,
                    attempt: held.attempt,
                    story: (**put_back).clone(),
                    now,
                    window: self.settings.window,
                };
                self.ports.ledger.remove(&removal).await
            }
            Origin::Republish { former } => {
                let give_back = GiveBack {
                    key,
                    attempt: held.attempt,
                    new_attempt: self.fresh_token(),
                    recorded_at: *former,
                    now,
                };
                self.ports.ledger.give_back(&give_back).await
            }
        };
        match written {
            // Lost: there is nothing of ours (any more).
            Ok(Written::Done | Written::Lost) => true,
            Err(error) => {
                tracing::error!(%error, message_id = %message.key.message_id, "claim not taken back; it ends with its window");
                false
            }
        }
    }

    fn publish_failed(&self, held: &Held, taken_back: bool) -> Refusal {
        let now = self.ports.clock.now();
        let after = if taken_back {
            1
        } else {
            now.retry_after(held.recorded_at.plus(self.settings.window))
        };
        Refusal::policy(
            RefusalKind::Unavailable,
            rule::BUS_PUBLISH_FAILED,
            "the message could not be published, or it is not certain that it was; send the same bytes again after Retry-After",
        )
        .after(after)
    }

    /// A pause between half and the whole of `span`, so that rivals do not meet again.
    fn spread(&self, span: Duration) -> Duration {
        let mut byte = [0];
        self.ports.random.fill(&mut byte);
        span / 2 + span * u32::from(byte[0]) / 512
    }
}

/// What RECORD came to.
enum Outcome {
    Held(Held),
    Known(Record),
    StoryMoved,
}

fn duplicate(message: &Message<'_>) -> Published {
    Published::Duplicate(Duplicate {
        accepted: true,
        duplicate: true,
        message_id: message.message_id.to_owned(),
    })
}

fn accepted(message: &Message<'_>, tolerated: Vec<Violation>, dry_run: bool) -> Published {
    Published::Accepted(Accepted {
        accepted: true,
        message_id: message.message_id.to_owned(),
        message_type: message.attributes.message_type.clone(),
        family: message.attributes.family.clone(),
        tolerated,
        dry_run,
    })
}
