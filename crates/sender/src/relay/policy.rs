//! What the outbox makes of an answer, beyond one call. Pure: what is known goes in, the verdict comes out.

use std::time::Duration;

use crate::answer::{About, Answer, Retry};
use crate::call::Limits;

/// What the outbox makes of answers. [`Policy::default`] is a relay's, [`Policy::one_round`] that of a program that sends and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How often one call is repeated before a message is parked.
    pub rounds: Rounds,
    /// A no to this message alone. By default it is refused for good, and its group goes on. [`OnNo::Park`] keeps it for an operator, and
    /// its group waits.
    pub on_refusal: OnNo,
    /// Rules of a no to this message alone that park it, whatever `on_refusal` says.
    pub parking_rules: Vec<String>,
    /// A no to the sender (a token that is not given, a producer that is not registered). By default nothing is refused for it: the round is over,
    /// the whole target pauses for [`Policy::target_pause`], and then one message tries. Where there is one round only, nothing is parked for it
    /// either: the message stays pending, for whoever comes when the sender is mended. A pause of zero makes it a round like any other.
    pub on_sender: OnSender,
    /// How long a target pauses after a no to the sender.
    pub target_pause: Duration,
    /// Whether a parked message holds its group back until it is resent or dropped, as it does by default.
    pub parked_holds: bool,
}

/// How often one call is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// Not at all: after it the message is parked.
    One,
    /// For so long.
    For {
        /// Since the first attempt; the round that is running then is the last.
        span: Duration,
        /// Between a round and the next; each time between half of it and all of it.
        pause: Duration,
    },
}

impl Rounds {
    /// For 24 hours, with a minute between the rounds.
    pub const DAY: Self = Self::For {
        span: Duration::from_secs(24 * 3600),
        pause: Duration::from_secs(60),
    };
}

/// What becomes of a message that got a final no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNo {
    /// It is refused, and holds nobody.
    Refuse,
    /// It is kept for an operator.
    Park,
}

/// What becomes of a message when the no is to the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSender {
    /// Its round is over; it is parked when all are, but stays pending where there is only one.
    EndRound,
    /// It is kept for an operator at once.
    Park,
    /// It is refused.
    Refuse,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rounds: Rounds::DAY,
            on_refusal: OnNo::Refuse,
            parking_rules: Vec::new(),
            on_sender: OnSender::EndRound,
            target_pause: Duration::from_secs(30),
            parked_holds: true,
        }
    }
}

impl Policy {
    /// One round, then parked.
    #[must_use]
    pub fn one_round() -> Self {
        Self {
            rounds: Rounds::One,
            ..Self::default()
        }
    }
}

/// What is to become of a message after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The partner has it.
    Delivered,
    /// Refused for good.
    Refused,
    /// Kept for an operator.
    Parked,
    /// It stays pending and is due; there is no next attempt, unless somebody makes one when the pause of its target is over.
    Kept,
    /// It stays pending.
    Again {
        /// Not before.
        after: Duration,
        /// Whether a new round begins then.
        new_round: bool,
    },
}

/// How far a message has come, the attempt that was just answered included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoFar {
    /// Attempts in this round.
    pub round_attempts: u32,
    /// Since the first round began.
    pub since: Duration,
}

impl Policy {
    /// What is to become of the message. `fraction`, of `0..=1`, spreads the pauses.
    #[must_use]
    pub fn verdict(&self, limits: &Limits, answer: &Answer, so_far: SoFar, fraction: f64) -> Verdict {
        if answer.outcome.is_yes() {
            return Verdict::Delivered;
        }
        match (answer.about, answer.retry) {
            (About::Message, Retry::No) => self.refused(answer.rule.as_deref()),
            (About::Sender, Retry::No | Retry::NewToken) => match self.on_sender {
                OnSender::EndRound => self.sender_refused(so_far, fraction),
                OnSender::Park => Verdict::Parked,
                OnSender::Refuse => Verdict::Refused,
            },
            // For one call this is final (contention, say), but not for the outbox: the same bytes may go through in a moment.
            (About::Moment, Retry::No | Retry::NewToken)
            | (About::Message, Retry::NewToken)
            | (_, Retry::Backoff) => {
                if so_far.round_attempts >= limits.max_attempts {
                    self.round_over(so_far, fraction)
                } else {
                    Verdict::Again {
                        after: limits.delay(so_far.round_attempts, answer.retry_after, fraction),
                        new_round: false,
                    }
                }
            }
        }
    }

    /// The target's pause keeps others from being refused as well, so the message itself is due as soon as that is over.
    fn sender_refused(&self, so_far: SoFar, fraction: f64) -> Verdict {
        match self.rounds {
            _ if self.target_pause.is_zero() => self.round_over(so_far, fraction),
            Rounds::For { span, .. } if so_far.since >= span => Verdict::Parked,
            Rounds::One | Rounds::For { .. } => Verdict::Kept,
        }
    }

    fn refused(&self, rule: Option<&str>) -> Verdict {
        let parks = rule.is_some_and(|rule| self.parking_rules.iter().any(|parking| parking == rule));
        match self.on_refusal {
            OnNo::Refuse if !parks => Verdict::Refused,
            OnNo::Refuse | OnNo::Park => Verdict::Parked,
        }
    }

    fn round_over(&self, so_far: SoFar, fraction: f64) -> Verdict {
        match self.rounds {
            Rounds::One => Verdict::Parked,
            Rounds::For { span, .. } if so_far.since >= span => Verdict::Parked,
            Rounds::For { pause, .. } => Verdict::Again {
                after: pause.mul_f64(0.5 + 0.5 * fraction.clamp(0.0, 1.0)),
                new_round: true,
            },
        }
    }

    /// How long a message is tried since its first attempt.
    pub(crate) fn span(&self) -> Duration {
        match self.rounds {
            Rounds::One => Duration::ZERO,
            Rounds::For { span, .. } => span,
        }
    }
}
