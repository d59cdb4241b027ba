//! When again, and when not: the rule of one call, as a state machine without time, chance or network.

use std::time::Duration;

use super::Limits;
use crate::answer::{Answer, Retry};
use crate::transport::Attempt;

/// One call that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    limits: Limits,
    /// Attempts that have been answered.
    made: u32,
    /// New credentials were asked for once.
    renewed: bool,
    /// The next attempt is to get new credentials first.
    renew: bool,
}

/// What comes after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The answer is final for this call: yes, or a no that another attempt would not change.
    Done,
    /// Again, after this pause; with new credentials at once.
    Again(Duration),
    /// Another attempt might change it, and there is none left.
    Exhausted,
}

impl Round {
    /// A call with no attempt made yet. There is always one, whatever the limit says.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            made: 0,
            renewed: false,
            renew: false,
        }
    }

    /// How many attempts have been answered.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.made
    }

    /// How the next attempt is to be made.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        Attempt {
            timeout: self.limits.timeout,
            new_credentials: self.renew,
        }
    }

    /// Takes the answer of an attempt. `fraction`, of `0..=1`, is the chance in the pause ([`Limits::delay`]).
    ///
    /// Refused credentials are renewed once a call, at once; the second refusal is final. A pause after a renewal is that of
    /// the attempt's number all the same.
    pub fn next(&mut self, answer: &Answer, fraction: f64) -> Step {
        self.made = self.made.saturating_add(1);
        self.renew = false;
        if answer.outcome.is_yes() {
            return Step::Done;
        }
        let left = self.made < self.limits.max_attempts;
        match answer.retry {
            Retry::No => Step::Done,
            Retry::NewToken if self.renewed || !left => Step::Done,
            Retry::NewToken => {
                self.renewed = true;
                self.renew = true;
                Step::Again(Duration::ZERO)
            }
            Retry::Backoff if left => Step::Again(self.limits.delay(self.made, answer.retry_after, fraction)),
            Retry::Backoff => Step::Exhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer::{About, Left, Outcome};

    fn answer(outcome: Outcome, retry: Retry) -> Answer {
        Answer {
            outcome,
            status: None,
            rule: None,
            detail: None,
            retry,
            retry_after: None,
            about: About::Moment,
            left: Left::Maybe,
        }
    }

    #[test]
    fn new_credentials_are_asked_for_once_and_for_one_attempt() {
        let unauthorised = answer(Outcome::Refused, Retry::NewToken);
        let failed = answer(Outcome::NetworkError, Retry::Backoff);
        let mut round = Round::new(Limits::default());
        assert!(!round.attempt().new_credentials);
        assert_eq!(round.next(&unauthorised, 1.0), Step::Again(Duration::ZERO));
        assert!(round.attempt().new_credentials);
        assert_eq!(
            round.next(&failed, 1.0),
            Step::Again(Duration::from_millis(1_000))
        );
        assert!(!round.attempt().new_credentials);
        assert_eq!(round.next(&unauthorised, 1.0), Step::Done);
        assert_eq!(round.made(), 3);
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let limits = Limits {
            max_attempts: 1,
            ..Limits::default()
        };
        let after = |answer: &Answer| Round::new(limits).next(answer, 1.0);
        assert_eq!(after(&answer(Outcome::Refused, Retry::NewToken)), Step::Done);
        assert_eq!(
            after(&answer(Outcome::NetworkError, Retry::Backoff)),
            Step::Exhausted
        );
        let none = Limits {
            max_attempts: 0,
            ..limits
        };
        let failed = answer(Outcome::TokenError, Retry::Backoff);
        assert_eq!(Round::new(none).next(&failed, 1.0), Step::Exhausted);
    }

    fn any_answer() -> impl Strategy<Value = Answer> {
        let outcome = prop_oneof![
            Just(Outcome::Accepted),
            Just(Outcome::Duplicate),
            Just(Outcome::Refused),
            Just(Outcome::NetworkError),
            Just(Outcome::TokenError),
        ];
        let retry = prop_oneof![1 => Just(Retry::No), 4 => Just(Retry::Backoff), 1 => Just(Retry::NewToken)];
        let wait = proptest::option::of((0..200_000_u64).prop_map(Duration::from_millis));
        (outcome, retry, wait).prop_map(|(outcome, retry, retry_after)| Answer {
            retry_after,
            ..answer(outcome, retry)
        })
    }

    proptest! {
        #[test]
        fn a_call_ends_within_its_limits(
            answers in proptest::collection::vec(any_answer(), 12),
            max_attempts in 1..10_u32,
            fraction in 0.0..=1.0_f64,
        ) {
            let limits = Limits { max_attempts, ..Limits::default() };
            let mut round = Round::new(limits);
            let (mut steps, mut renewals) = (Vec::new(), 0);
            for answer in &answers {
                let step = round.next(answer, fraction);
                renewals += u32::from(round.attempt().new_credentials);
                match step {
                    Step::Again(pause) => {
                        prop_assert!(!answer.outcome.is_yes() && answer.retry != Retry::No);
                        prop_assert!(pause <= limits.max_delay);
                        prop_assert!(pause.is_zero() || answer.retry == Retry::Backoff);
                    }
                    Step::Exhausted => prop_assert!(answer.retry == Retry::Backoff && round.made() == max_attempts),
                    Step::Done => prop_assert!(answer.outcome.is_yes() || answer.retry != Retry::Backoff),
                }
                steps.push(step);
                if !matches!(step, Step::Again(_)) {
                    break;
                }
            }
            prop_assert!(!matches!(steps.last(), Some(Step::Again(_))));
            prop_assert!(round.made() <= max_attempts && renewals <= 1);
        }
    }
}
