//! What happens to a call of AWS, and to the function that makes it.

use std::time::Duration;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The function is killed before the call arrives.
    KillBefore,
    /// The function is killed when the call has been answered, before it has the answer.
    KillAfter,
    /// The connection closes before the call arrives.
    RequestLost,
    /// The call arrives, and the connection closes before its answer.
    AnswerLost,
    /// The call arrives, and its answer comes so much later.
    LateAnswer(Duration),
    /// The call arrives so much later.
    LateRequest(Duration),
    /// The call arrives, and is never answered.
    Hang,
    /// The call does not arrive and is answered so.
    Answered(u16, &'static str),
    /// The call arrives and is answered so all the same.
    DeliveredBut(u16, &'static str),
    /// The function is frozen for a time.
    Frozen(Freeze, Duration),
}

/// What becomes of the call in which a function is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// It never arrives.
    Lost,
    /// It arrives when the function goes on.
    Held,
    /// It arrives at once; its answer waits for the function.
    Delivered,
}

impl Fault {
    /// Whether the function is dead after it.
    #[must_use]
    pub fn kills(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter)
    }
}

/// Which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// The n-th since the function started, from 0.
    Call(usize),
    /// The first of this name: `PutItem`, `Publish`.
    Named(&'static str),
}

/// What happens to the calls of a function.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// To one call, once.
    pub once: Option<(Where, Fault)>,
    /// To every call of this name that `once` does not strike.
    pub always: Option<(&'static str, Fault)>,
}

impl Plan {
    /// One fault at one call.
    #[must_use]
    pub fn at(place: Where, fault: Fault) -> Self {
        Self {
            once: Some((place, fault)),
            always: None,
        }
    }

    /// What strikes the n-th call, which has this name; and whether that was the one fault.
    pub(crate) fn strikes(&mut self, n: usize, name: &str) -> Option<(Fault, bool)> {
        let meant = self.once.is_some_and(|(place, _)| match place {
            Where::Call(at) => at == n,
            Where::Named(wanted) => wanted == name,
        });
        if meant {
            return self.once.take().map(|(_, fault)| (fault, true));
        }
        let (wanted, fault) = self.always?;
        (wanted == name).then_some((fault, false))
    }
}
