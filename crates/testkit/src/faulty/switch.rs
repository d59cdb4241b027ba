//! The faults of a running bus.
//!
//! A bus that was built and started for it lets one publish at a time meet a fault that the request names, so that a
//! test from outside can look at what is left. See `--faults` of `storybus serve`.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::Ports;
use storybus_core::ports::{Ledger, Topic};

use super::{Call, Director, Fault, Faulty};

/// A fault that a publish can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSwitch {
    /// The process ends after the record was written (or claimed), before the publication.
    StopAfterRecord,
    /// The process ends after the publication, before it is marked.
    StopAfterPublish,
    /// The publication fails, surely.
    FailPublish,
    /// The publication fails, surely, and so does taking the record back.
    FailPublishAndRemove,
    /// The publication is done and its answer lost.
    PublishAnswerLost,
}

/// The text names no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFault;

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the name of a fault; known are")?;
        FaultSwitch::ALL
            .iter()
            .try_for_each(|fault| write!(f, " {}", fault.name()))
    }
}

impl std::error::Error for UnknownFault {}

impl FaultSwitch {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::StopAfterRecord,
        Self::StopAfterPublish,
        Self::FailPublish,
        Self::FailPublishAndRemove,
        Self::PublishAnswerLost,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StopAfterRecord => "stop-after-record",
            Self::StopAfterPublish => "stop-after-publish",
            Self::FailPublish => "fail-publish",
            Self::FailPublishAndRemove => "fail-publish-and-remove",
            Self::PublishAnswerLost => "publish-answer-lost",
        }
    }

    /// Puts the fault into the ports of one request. `stop` ends the process; should it come back, the request hangs.
    pub fn apply(self, ports: &mut Ports, stop: impl Fn() + Send + Sync + 'static) {
        let director: Arc<dyn Director> = Arc::new(Switch {
            fault: self,
            stop: Box::new(stop),
        });
        ports.ledger = Arc::new(Faulty::<dyn Ledger>::new(
            Arc::clone(&ports.ledger),
            Arc::clone(&director),
        ));
        ports.topic = Arc::new(Faulty::<dyn Topic>::new(Arc::clone(&ports.topic), director));
    }

    fn at(self, call: Call) -> Fault {
        match (self, call) {
            (Self::StopAfterRecord, Call::Record | Call::Claim) | (Self::StopAfterPublish, Call::Publish) => {
                Fault::StopWhenDone
            }
            (Self::FailPublish | Self::FailPublishAndRemove, Call::Publish) => Fault::Refused,
            (Self::FailPublishAndRemove, Call::Remove | Call::GiveBack) => Fault::Before,
            (Self::PublishAnswerLost, Call::Publish) => Fault::After,
            _ => Fault::None,
        }
    }
}

impl FromStr for FaultSwitch {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        Self::ALL
            .into_iter()
            .find(|fault| fault.name() == text)
            .ok_or(UnknownFault)
    }
}

struct Switch {
    fault: FaultSwitch,
    stop: Box<dyn Fn() + Send + Sync>,
}

#[async_trait]
impl Director for Switch {
    async fn before(&self, call: Call) -> Fault {
        self.fault.at(call)
    }

    async fn stop(&self, _call: Call) -> Infallible {
        (self.stop)();
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_wire() {
        for fault in FaultSwitch::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
        assert_eq!("stop".parse::<FaultSwitch>(), Err(UnknownFault));
        assert!(UnknownFault.to_string().ends_with("publish-answer-lost"));
    }
}
