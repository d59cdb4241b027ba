//! Where an attempt stops and waits for the scheduler.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use storybus_core::domain::message::Publication;
use storybus_core::domain::time::Millis;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{Clock, Topic};

use crate::clock::FakeClock;
use crate::faulty::{Call, Director, Fault};

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Between two stops.
    Running,
    /// A call is about to be made.
    Before(Call),
    /// A call was done; its answer has not been seen.
    After(Call),
    /// Asleep until then, by its own clock.
    Sleeping(Millis),
    /// Stopped for good.
    Stopped,
}

/// A call that its caller gave up and that has not arrived.
pub(super) struct Late {
    pub(super) call: Call,
    pub(super) since: Millis,
    pub(super) work: BoxFuture<'static, ()>,
}

/// One attempt's stops, and its clock, which may go before or after the others'.
pub(super) struct Gate {
    clock: FakeClock,
    skew: i64,
    stops_after: bool,
    inner: Mutex<Inner>,
}

struct Inner {
    place: Place,
    /// When it came there, by the true time.
    since: Millis,
    grant: Option<Fault>,
    /// What was done, in order.
    done: Vec<Call>,
    /// What was not done as asked.
    faults: Vec<(Call, Fault)>,
    late: Vec<Late>,
    /// What it began though it was too late.
    overstepped: Option<String>,
}

impl Gate {
    pub(super) fn new(clock: FakeClock, skew: i64, stops_after: bool) -> Arc<Self> {
        let inner = Inner {
            place: Place::Running,
            since: clock.now(),
            grant: None,
            done: Vec::new(),
            faults: Vec::new(),
            late: Vec::new(),
            overstepped: None,
        };
        Arc::new(Self {
            clock,
            skew,
            stops_after,
            inner: Mutex::new(inner),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn place(&self) -> Place {
        self.lock().place
    }

    pub(super) fn since(&self) -> Millis {
        self.lock().since
    }

    /// What the attempt did that took effect.
    pub(super) fn done(&self) -> Vec<Call> {
        self.lock().done.clone()
    }

    pub(super) fn faults(&self) -> Vec<(Call, Fault)> {
        self.lock().faults.clone()
    }

    pub(super) fn take_late(&self) -> Vec<Late> {
        std::mem::take(&mut self.lock().late)
    }

    pub(super) fn overstepped(&self) -> Option<String> {
        self.lock().overstepped.clone()
    }

    /// Lets the attempt go on from where it stands.
    pub(super) fn grant(&self, fault: Fault) {
        let mut inner = self.lock();
        if let (Place::Before(call), false) = (inner.place, fault == Fault::None) {
            inner.faults.push((call, fault));
        }
        inner.grant = Some(fault);
        inner.place = Place::Running;
    }

    /// The true time at which the attempt's own clock shows this.
    pub(super) fn true_time(&self, own: Millis) -> Millis {
        Millis(own.0 - self.skew)
    }

    async fn stand(&self, place: Place) -> Fault {
        {
            let mut inner = self.lock();
            inner.place = place;
            inner.since = self.clock.now();
        }
        // nobody is woken: the scheduler polls whom it granted something
        std::future::poll_fn(|_| self.lock().grant.take().map_or(Poll::Pending, Poll::Ready)).await
    }
}

#[async_trait]
impl Director for Gate {
    async fn before(&self, call: Call) -> Fault {
        self.stand(Place::Before(call)).await
    }

    async fn after(&self, call: Call, done: bool) {
        if done && call.writes() {
            self.lock().done.push(call);
        }
        if self.stops_after {
            self.stand(Place::After(call)).await;
        }
    }

    fn late(&self, call: Call, work: BoxFuture<'static, ()>) {
        let since = self.clock.now();
        self.lock().late.push(Late { call, since, work });
    }

    async fn stop(&self, _call: Call) -> Infallible {
        self.lock().place = Place::Stopped;
        std::future::pending().await
    }
}

/// The topic as the attempt sees it: what it begins must end before its claim and its function do.
pub(super) struct Punctual {
    pub(super) topic: Arc<dyn Topic>,
    pub(super) gate: Arc<Gate>,
    pub(super) deadline: Millis,
}

#[async_trait]
impl Topic for Punctual {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        let end = NodeClock(self.gate.clone()).now().plus(timeout);
        let limit = publication.claim.until.min(self.deadline);
        if end > limit {
            let seen = format!("a publication may end {} ms behind its limit", end.0 - limit.0);
            self.gate.lock().overstepped = Some(seen);
        }
        self.topic.publish(publication, timeout).await
    }
}

/// The clock of one attempt's node.
pub(super) struct NodeClock(pub(super) Arc<Gate>);

#[async_trait]
impl Clock for NodeClock {
    fn now(&self) -> Millis {
        Millis(self.0.clock.now().0 + self.0.skew)
    }

    async fn sleep(&self, span: Duration) {
        let until = self.now().plus(span);
        self.0.stand(Place::Sleeping(until)).await;
    }
}
