//! Whether anything gets through to each target: a bus that is away costs time, and somebody has to hear of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use storybus_core::domain::time::Millis;
use storybus_sender::answer::{About, Answer, Outcome, Retry};

/// So long nothing gets through before it is told. A restart of a bus is shorter.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known.
#[derive(Debug)]
pub(super) struct Reach(Mutex<BTreeMap<String, Target>>);

#[derive(Debug, Default)]
struct Target {
    last_delivered_at: Option<Millis>,
    failing: Option<Failing>,
}

#[derive(Debug)]
struct Failing {
    since: Duration,
    since_time: Millis,
    why: String,
    told: bool,
}

/// A moment, by the clock that only goes forward and by the one on the wall.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) elapsed: Duration,
    pub(super) time: Millis,
}

/// A target to which nothing gets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) target: String,
    pub(super) since: String,
    pub(super) why: String,
}

/// What is shown of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct View {
    target: String,
    /// By this relay, since it started.
    last_delivered_at: Option<String>,
    /// Nothing has got through since.
    unreachable_since: Option<String>,
    /// What came of the last attempt then.
    detail: Option<String>,
}

impl Reach {
    pub(super) fn new(targets: &[String]) -> Self {
        let known = targets.iter().map(|name| (name.clone(), Target::default()));
        Self(Mutex::new(known.collect()))
    }

    fn targets(&self) -> MutexGuard<'_, BTreeMap<String, Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an answer. For how long nothing had got through, if that was told and is over.
    pub(super) fn answered(&self, target: &str, answer: &Answer, now: Moment) -> Option<Duration> {
        let mut targets = self.targets();
        let known = targets.entry(target.to_owned()).or_default();
        match (answer.about, answer.outcome, answer.retry) {
            (_, Outcome::Accepted | Outcome::Duplicate, _) => known.last_delivered_at = Some(now.time),
            (About::Moment, _, Retry::Backoff) => {
                let why = why(answer);
                let failing = known.failing.get_or_insert_with(|| Failing {
                    since: now.elapsed,
                    since_time: now.time,
                    why: String::new(),
                    told: false,
                });
                failing.why = why;
                return None;
            }
            // A no is an answer, too.
            (About::Moment | About::Message | About::Sender, _, _) => {}
        }
        let failing = known.failing.take()?;
        failing.told.then(|| now.elapsed.saturating_sub(failing.since))
    }

    /// The targets to which nothing has got through for a while, each once.
    pub(super) fn lost(&self, now: Duration) -> Vec<Lost> {
        let mut lost = Vec::new();
        for (target, known) in self.targets().iter_mut() {
            if let Some(failing) = &mut known.failing
                && !failing.told
                && now.saturating_sub(failing.since) >= PATIENCE
            {
                failing.told = true;
                lost.push(Lost {
                    target: target.clone(),
                    since: failing.since_time.to_rfc3339(),
                    why: failing.why.clone(),
                });
            }
        }
        lost
    }

    /// All targets.
    pub(super) fn views(&self) -> Vec<View> {
        let targets = self.targets();
        let view = |(target, known): (&String, &Target)| View {
            target: target.clone(),
            last_delivered_at: known.last_delivered_at.map(|at| at.to_rfc3339()),
            unreachable_since: known.failing.as_ref().map(|f| f.since_time.to_rfc3339()),
            detail: known.failing.as_ref().map(|f| f.why.clone()),
        };
        targets.iter().map(view).collect()
    }
}

/// An answer in words.
fn why(answer: &Answer) -> String {
    let parts = [
        answer.status.map(|status| status.to_string()),
        answer.rule.clone(),
        answer.detail.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use storybus_sender::answer::Left;

    use super::*;

    fn answer(outcome: Outcome, about: About, retry: Retry) -> Answer {
        Answer {
            outcome,
            status: None,
            rule: None,
            detail: Some("the connection was refused".to_owned()),
            retry,
            retry_after: None,
            about,
            left: Left::Nothing,
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment {
            elapsed: Duration::from_secs(seconds),
            time: Millis(i64::try_from(seconds).unwrap() * 1000),
        }
    }

    #[test]
    fn a_target_that_is_away_is_told_once_and_once_when_it_is_back() {
        let reach = Reach::new(&["bus".to_owned()]);
        let away = answer(Outcome::NetworkError, About::Moment, Retry::Backoff);
        let yes = answer(Outcome::Accepted, About::Message, Retry::No);
        assert_eq!(reach.answered("bus", &yes, at(1)), None);
        assert_eq!(reach.answered("bus", &away, at(5)), None);
        assert_eq!(reach.answered("bus", &away, at(9)), None);
        assert!(reach.lost(at(14).elapsed).is_empty(), "a short while");
        let lost = reach.lost(at(15).elapsed);
        assert_eq!(lost.len(), 1);
        assert_eq!(
            (lost[0].since.as_str(), lost[0].why.as_str()),
            ("1970-01-01T00:00:05.000Z", "the connection was refused")
        );
        assert!(reach.lost(at(100).elapsed).is_empty(), "once");
        let view = &reach.views()[0];
        assert_eq!(
            (
                view.last_delivered_at.as_deref(),
                view.unreachable_since.as_deref()
            ),
            (Some("1970-01-01T00:00:01.000Z"), Some("1970-01-01T00:00:05.000Z"))
        );
        assert_eq!(
            reach.answered("bus", &yes, at(105)),
            Some(Duration::from_secs(100))
        );
        assert_eq!(reach.answered("bus", &yes, at(106)), None);
        assert_eq!(reach.views()[0].detail, None);
    }

    #[test]
    fn who_answers_at_all_is_not_away() {
        for no in [
            answer(Outcome::Refused, About::Message, Retry::No),
            answer(Outcome::Refused, About::Moment, Retry::No),
            answer(Outcome::TokenError, About::Sender, Retry::No),
        ] {
            let reach = Reach::new(&[]);
            let away = answer(Outcome::NetworkError, About::Moment, Retry::Backoff);
            reach.answered("bus", &away, at(0));
            reach.answered("bus", &no, at(5));
            reach.answered("bus", &away, at(9));
            assert!(reach.lost(at(15).elapsed).is_empty(), "{no:?}");
            assert_eq!(reach.lost(at(19).elapsed).len(), 1, "{no:?}");
        }
    }
}
