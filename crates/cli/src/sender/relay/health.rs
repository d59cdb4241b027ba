//! Whether a relay can do its work: the database answers, and no partner refuses the sender itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use storybus_sender::answer::{About, Answer, Outcome, Retry};
use storybus_sender::ports::{Clock, SystemClock};

use super::reach::Reach;

/// A relay takes a step every half second, and one step ends within a minute: after this it is stuck.
const STUCK: Duration = Duration::from_secs(90);

/// What is known.
#[derive(Debug)]
pub(super) struct Health {
    clock: SystemClock,
    pub(super) reach: Reach,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the last step went well, or the relay started.
    well_at: Duration,
    /// Whether any has.
    started: bool,
    trouble: Option<(String, Duration)>,
    /// Which targets refuse the sender: why, and since when.
    refused: BTreeMap<String, (String, Duration)>,
}

/// Why a relay is not well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// `outbox`, `sender_refused`, `starting` or `stuck`.
    pub(super) reason: &'static str,
    /// Whose refusal it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// For people.
    pub(super) detail: String,
    /// For how long.
    pub(super) seconds: u64,
}

impl Health {
    pub(super) fn new(clock: SystemClock, reach: Reach) -> Self {
        Self {
            clock,
            reach,
            state: Mutex::new(State {
                well_at: clock.elapsed(),
                started: false,
                trouble: None,
                refused: BTreeMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step went well. Whether one before it had not.
    pub(super) fn stepped(&self) -> bool {
        let now = self.clock.elapsed();
        let mut state = self.state();
        state.well_at = now;
        state.started = true;
        state.trouble.take().is_some()
    }

    /// A step failed. Whether it is the first in a row.
    pub(super) fn troubled(&self, error: &str) -> bool {
        let now = self.clock.elapsed();
        let mut state = self.state();
        let since = state.trouble.as_ref().map(|(_, since)| *since);
        state.trouble = Some((error.to_owned(), since.unwrap_or(now)));
        since.is_none()
    }

    /// A partner answered. What has changed for this sender there, if something has. `delay` is until the next attempt.
    pub(super) fn answered(
        &self,
        target: &str,
        answer: &Answer,
        delay: Option<Duration>,
    ) -> Option<Standing> {
        let welcome = match (answer.about, answer.outcome) {
            (_, Outcome::Accepted | Outcome::Duplicate) | (About::Message, Outcome::Refused) => true,
            // Credentials that were refused are made anew at once, and tried once more.
            (About::Sender, _) if answer.retry == Retry::NewToken && delay == Some(Duration::ZERO) => {
                return None;
            }
            (About::Sender, _) if answer.retry != Retry::Backoff => false,
            _ => return None,
        };
        let now = self.clock.elapsed();
        let mut state = self.state();
        if welcome {
            return state.refused.remove(target).map(|_| Standing::Welcome);
        }
        let since = state.refused.get(target).map(|(_, since)| *since);
        let why = [answer.rule.clone(), answer.detail.clone()];
        let why: Vec<String> = why.into_iter().flatten().collect();
        state
            .refused
            .insert(target.to_owned(), (why.join(": "), since.unwrap_or(now)));
        since.is_none().then_some(Standing::Refused)
    }

    /// Why it is not well; empty when it is.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let now = self.clock.elapsed();
        let state = self.state();
        let seconds = |since: Duration| now.saturating_sub(since).as_secs();
        let mut reasons = Vec::new();
        if let Some((detail, since)) = &state.trouble {
            reasons.push(Reason {
                reason: "outbox",
                target: None,
                detail: detail.clone(),
                seconds: seconds(*since),
            });
        } else if !state.started || now.saturating_sub(state.well_at) > STUCK {
            let (reason, detail) = if state.started {
                ("stuck", "the relay has not looked into the outbox for too long")
            } else {
                ("starting", "the relay has not looked into the outbox yet")
            };
            reasons.push(Reason {
                reason,
                target: None,
                detail: detail.to_owned(),
                seconds: seconds(state.well_at),
            });
        }
        reasons.extend(state.refused.iter().map(|(target, (detail, since))| Reason {
            reason: "sender_refused",
            target: Some(target.clone()),
            detail: detail.clone(),
            seconds: seconds(*since),
        }));
        reasons
    }
}

/// How a partner takes the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes messages again.
    Welcome,
    /// It refuses the sender itself.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use storybus_sender::answer::Left;

    fn answer(outcome: Outcome, about: About, retry: Retry) -> Answer {
        Answer {
            outcome,
            status: Some(401),
            rule: Some("producer.unauthenticated".to_owned()),
            detail: Some("log in again".to_owned()),
            retry,
            retry_after: None,
            about,
            left: Left::Nothing,
        }
    }

    #[test]
    fn a_relay_is_well_once_it_has_looked() {
        let health = Health::new(SystemClock, Reach::new(&[]));
        assert_eq!(health.reasons()[0].reason, "starting");
        assert!(!health.stepped());
        assert!(health.reasons().is_empty());
        assert!(health.troubled("gone") && !health.troubled("still gone"));
        let reasons = health.reasons();
        assert_eq!(
            (reasons[0].reason, reasons[0].detail.as_str()),
            ("outbox", "still gone")
        );
        assert!(health.stepped() && health.reasons().is_empty());
    }

    #[test]
    fn a_partner_that_refuses_the_sender_makes_it_unwell_until_it_takes_something() {
        let health = Health::new(SystemClock, Reach::new(&[]));
        health.stepped();
        let refused = answer(Outcome::Refused, About::Sender, Retry::No);
        let again = answer(Outcome::Refused, About::Sender, Retry::NewToken);
        let at_once = Some(Duration::ZERO);
        assert_eq!(
            health.answered("bus", &again, at_once),
            None,
            "a new token may be taken"
        );
        assert_eq!(health.answered("bus", &again, None), Some(Standing::Refused));
        assert_eq!(health.answered("bus", &refused, None), None, "that is known");
        let reasons = health.reasons();
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0].target.as_deref(), Some("bus"));
        assert_eq!(reasons[0].detail, "producer.unauthenticated: log in again");
        let down = answer(Outcome::NetworkError, About::Moment, Retry::Backoff);
        assert_eq!(health.answered("bus", &down, None), None);
        assert_eq!(health.reasons().len(), 1);
        let other = answer(Outcome::Accepted, About::Message, Retry::No);
        assert_eq!(health.answered("acme", &other, None), None);
        assert_eq!(health.answered("bus", &other, None), Some(Standing::Welcome));
        assert!(health.reasons().is_empty());
    }
}
