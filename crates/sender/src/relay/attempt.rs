//! What is done with one claim: an attempt, or two when the first one's credentials were refused.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;

use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::outbox::State;
use crate::outbox::step::{Claim, Settling};
use crate::outbox::write::{Image, Last, Turn};
use crate::ports::fraction;
use crate::transport::{Attempt, Outgoing, Transport};

use super::Relay;
use super::observer::Attempted;
use super::policy::{Policy, SoFar, Verdict};

/// How much longer than its time limit an attempt is waited for, before it is given up on.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// How long a message that was claimed too long ago to be sent rests.
const LATE: Duration = Duration::from_secs(1);
/// The most characters of an answer's detail that are kept.
const DETAIL: usize = 1_000;

/// A claim that is over.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) target: String,
    pub(super) key: String,
    pub(super) bytes: u64,
    pub(super) settling: Settling,
    /// What the partner said of this sender; `None`: nothing.
    pub(super) sender: Option<Standing>,
}

/// What an answer says of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may send.
    Good,
    /// It may not.
    Refused,
}

impl Relay {
    /// Sends what was claimed. `claimed` is when the step that claimed it began, by this process's clock.
    pub(super) async fn attempt(
        &self,
        claim: Claim,
        transport: &dyn Transport,
        policy: &Policy,
        claimed: Duration,
    ) -> Made {
        let lease_over = claimed + self.lease_of_a_claim();
        let mut last_answer = None;
        let mut left = claim.unsure_before;
        let mut more = 0;
        loop {
            let began = self.clock.elapsed();
            // A process that was stopped meanwhile, or a machine that slept: somebody else may be sending it now.
            if began + self.limits.timeout + GRACE >= lease_over {
                break;
            }
            let answer = self.once(&claim, transport, last_answer.is_some()).await;
            left = left || answer.left == Left::Maybe;
            // As in one call: a renewal is an attempt, and there is one in a round at most, however many claims that takes.
            let again = answer.retry == Retry::NewToken
                && claim.round_renewals + more == 0
                && claim.round_attempts + more < i64::from(self.limits.max_attempts);
            if again {
                self.tell(&claim, more, &answer, began, Some(Duration::ZERO));
                more += 1;
                last_answer = Some((answer, began));
            } else {
                last_answer = Some((answer, began));
                break;
            }
        }
        let made = |settling, sender| Made {
            target: claim.target.clone(),
            key: claim.key.clone(),
            bytes: claim.body.len() as u64,
            settling,
            sender,
        };
        let Some((answer, began)) = last_answer else {
            return made(late(&claim, &self.owner), None);
        };
        let round_attempts = claim.round_attempts + more;
        let so_far = SoFar {
            round_attempts: u32::try_from(round_attempts).unwrap_or(u32::MAX),
            since: Duration::from_millis(u64::try_from(claim.claimed_at - claim.rounds_since).unwrap_or(0))
                + self.clock.elapsed().saturating_sub(claimed),
        };
        let verdict = policy.verdict(&self.limits, &answer, so_far, fraction(&*self.random));
        let delay = match verdict {
            Verdict::Again { after, .. } => Some(after),
            Verdict::Delivered | Verdict::Refused | Verdict::Parked | Verdict::Kept => None,
        };
        self.tell(&claim, more, &answer, began, delay);
        let sender = match (answer.about, answer.outcome) {
            (_, Outcome::Accepted | Outcome::Duplicate) | (About::Message, Outcome::Refused) => {
                Some(Standing::Good)
            }
            (About::Sender, _) if answer.retry != Retry::Backoff => Some(Standing::Refused),
            _ => None,
        };
        made(
            settle(&claim, &self.owner, more, left, &answer, verdict, policy),
            sender,
        )
    }

    async fn once(&self, claim: &Claim, transport: &dyn Transport, new_credentials: bool) -> Answer {
        let outgoing = Outgoing {
            key: &claim.key,
            body: &claim.body,
            content_type: claim.content_type.as_deref(),
        };
        let how = Attempt {
            timeout: self.limits.timeout,
            new_credentials,
        };
        // A transport that panics over one message must not end the relay of all others.
        let attempt = AssertUnwindSafe(transport.attempt(outgoing, how)).catch_unwind();
        let failed = |detail: &str| Answer {
            outcome: Outcome::NetworkError,
            status: None,
            rule: None,
            detail: Some(detail.to_owned()),
            retry: Retry::Backoff,
            retry_after: None,
            about: About::Moment,
            left: Left::Maybe,
        };
        tokio::select! {
            biased;
            answer = attempt => answer.unwrap_or_else(|_| failed("the transport failed: a fault of this program, whose log has its place")),
            () = self.clock.sleep(self.limits.timeout + GRACE) => failed("the attempt did not end within its time limit"),
        }
    }

    fn tell(&self, claim: &Claim, more: i64, answer: &Answer, began: Duration, delay: Option<Duration>) {
        self.observer.attempted(&Attempted {
            id: claim.id,
            target: &claim.target,
            key: &claim.key,
            attempt: u64::try_from(claim.attempts + more).unwrap_or(0),
            round_attempt: u32::try_from(claim.round_attempts + more).unwrap_or(u32::MAX),
            took: self.clock.elapsed().saturating_sub(began),
            answer,
            delay,
        });
    }
}

/// The row as this claim found it, still pending.
fn image(claim: &Claim, owner: &str) -> Image {
    Image {
        id: claim.id,
        fence: claim.fence,
        next_fence: claim.fence,
        owner: owner.to_owned(),
        state: State::Pending,
        turn: Some(Turn::First),
        attempts: claim.attempts,
        round_attempts: claim.round_attempts,
        rounds_since: Some(claim.rounds_since),
        round_renewals: claim.round_renewals,
        due_at: claim.claimed_at,
        unsure_since: Some(claim.unsure_since),
        finished_at: None,
        last: claim.last.clone(),
    }
}

/// Given back without an attempt.
fn late(claim: &Claim, owner: &str) -> Settling {
    Settling {
        image: Image {
            round_attempts: (claim.round_attempts - 1).max(0),
            unsure_since: claim.unsure_before.then_some(claim.unsure_since),
            last: if claim.last == Last::default() {
                Last {
                    detail: Some(String::from(
                        "the relay was stopped between the claim and the attempt, which was not made",
                    )),
                    ..Last::default()
                }
            } else {
                // What an answer said tells more.
                claim.last.clone()
            },
            ..image(claim, owner)
        },
        pause: millis(LATE),
    }
}

/// What the verdict makes of the row.
pub(crate) fn settle(
    claim: &Claim,
    owner: &str,
    more: i64,
    left: bool,
    answer: &Answer,
    verdict: Verdict,
    policy: &Policy,
) -> Settling {
    let mut image = Image {
        attempts: claim.attempts + more,
        round_attempts: claim.round_attempts + more,
        round_renewals: claim.round_renewals + more,
        unsure_since: left.then_some(claim.unsure_since),
        last: Last {
            status: answer.status,
            outcome: Some(answer.outcome.as_str().to_owned()),
            rule: answer.rule.as_deref().map(kept),
            detail: answer.detail.as_deref().map(kept),
        },
        ..image(claim, owner)
    };
    let mut pause = 0;
    match verdict {
        Verdict::Delivered => {
            image.state = State::Delivered;
            image.turn = None;
        }
        Verdict::Refused => {
            image.state = State::Refused;
            image.turn = None;
        }
        Verdict::Parked => {
            image.state = State::Parked;
            image.turn = policy.parked_turn();
        }
        Verdict::Kept => (image.round_attempts, image.round_renewals) = (0, 0),
        Verdict::Again { after, new_round } => {
            pause = millis(after);
            if new_round {
                (image.round_attempts, image.round_renewals) = (0, 0);
            }
        }
    }
    Settling { image, pause }
}

impl Policy {
    /// The place of what is parked.
    pub(super) fn parked_turn(&self) -> Option<Turn> {
        self.parked_holds.then_some(Turn::First)
    }
}

/// A text of the partner's, as far as both databases keep it.
fn kept(text: &str) -> String {
    text.chars().filter(|char| *char != '\0').take(DETAIL).collect()
}

pub(super) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
