//! Faults that a test plans.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures::future::{BoxFuture, Either, select};

use super::{Call, Director, Fault};

/// What shall happen, by the number of the call or by its method. Clones share one plan.
#[derive(Clone, Default)]
pub struct Plan {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    calls: Vec<Call>,
    at: BTreeMap<usize, Fault>,
    next: HashMap<Call, VecDeque<Step>>,
    always: HashMap<Call, Fault>,
    answers: HashMap<Call, VecDeque<Hold>>,
    late: Vec<BoxFuture<'static, ()>>,
    stopped: bool,
    wakers: Vec<Waker>,
}

#[derive(Clone)]
enum Step {
    Fault(Fault),
    Hold(Hold),
}

/// A call that waits until it is released.
#[derive(Clone, Default)]
pub struct Hold {
    inner: Arc<Mutex<HoldInner>>,
}

#[derive(Default)]
struct HoldInner {
    reached: bool,
    released: bool,
    wakers: Vec<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hold {
    /// Comes back when the call is there and waits.
    pub async fn reached(&self) {
        self.until(|inner| inner.reached).await;
    }

    /// Lets the call go on.
    pub fn release(&self) {
        self.set(|inner| inner.released = true);
    }

    fn set(&self, change: impl FnOnce(&mut HoldInner)) {
        let wakers = {
            let mut inner = lock(&self.inner);
            change(&mut inner);
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn until(&self, condition: impl Fn(&HoldInner) -> bool) {
        std::future::poll_fn(|cx| {
            let mut inner = lock(&self.inner);
            if condition(&inner) {
                return Poll::Ready(());
            }
            inner.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    async fn wait(&self) {
        self.set(|inner| inner.reached = true);
        self.until(|inner| inner.released).await;
    }
}

impl Plan {
    /// A plan in which nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Call number `number`, counted from 0 over all wrapped ports, meets this fault.
    #[must_use]
    pub fn at(self, number: usize, fault: Fault) -> Self {
        lock(&self.inner).at.insert(number, fault);
        self
    }

    /// The next call of this method that nothing is planned for meets this fault.
    #[must_use]
    pub fn next(self, call: Call, fault: Fault) -> Self {
        lock(&self.inner)
            .next
            .entry(call)
            .or_default()
            .push_back(Step::Fault(fault));
        self
    }

    /// Every call of this method that nothing else is planned for meets this fault.
    #[must_use]
    pub fn always(self, call: Call, fault: Fault) -> Self {
        lock(&self.inner).always.insert(call, fault);
        self
    }

    /// The next call of this method that nothing is planned for waits until it is released, and is done then.
    #[must_use]
    pub fn hold(&self, call: Call) -> Hold {
        let hold = Hold::default();
        lock(&self.inner)
            .next
            .entry(call)
            .or_default()
            .push_back(Step::Hold(hold.clone()));
        hold
    }

    /// The next call of this method that is done keeps its answer to itself until it is released.
    #[must_use]
    pub fn hold_answer(&self, call: Call) -> Hold {
        let hold = Hold::default();
        lock(&self.inner)
            .answers
            .entry(call)
            .or_default()
            .push_back(hold.clone());
        hold
    }

    /// Every call so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.inner).calls.clone()
    }

    /// Whether the caller was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        lock(&self.inner).stopped
    }

    /// Runs the caller to its end, or until the plan stops it: then it is dropped, and `None` comes back.
    pub async fn run<F: Future>(&self, caller: F) -> Option<F::Output> {
        let stopped = std::future::poll_fn(|cx| {
            let mut inner = lock(&self.inner);
            if inner.stopped {
                return Poll::Ready(());
            }
            inner.wakers.push(cx.waker().clone());
            Poll::Pending
        });
        match select(pin!(caller), stopped).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(((), _)) => None,
        }
    }

    /// Lets every late call arrive, in the order in which they were given up.
    pub async fn arrive(&self) {
        let late = std::mem::take(&mut lock(&self.inner).late);
        for work in late {
            work.await;
        }
    }
}

#[async_trait]
impl Director for Plan {
    async fn before(&self, call: Call) -> Fault {
        let step = {
            let mut inner = lock(&self.inner);
            let number = inner.calls.len();
            inner.calls.push(call);
            let numbered = inner.at.get(&number).copied().map(Step::Fault);
            let named = || inner.next.get_mut(&call).and_then(VecDeque::pop_front);
            let step = numbered.or_else(named);
            step.unwrap_or_else(|| Step::Fault(inner.always.get(&call).copied().unwrap_or(Fault::None)))
        };
        match step {
            Step::Fault(fault) => fault,
            Step::Hold(hold) => {
                hold.wait().await;
                Fault::None
            }
        }
    }

    async fn after(&self, call: Call, _done: bool) {
        let hold = lock(&self.inner)
            .answers
            .get_mut(&call)
            .and_then(VecDeque::pop_front);
        if let Some(hold) = hold {
            hold.wait().await;
        }
    }

    fn late(&self, _call: Call, work: BoxFuture<'static, ()>) {
        lock(&self.inner).late.push(work);
    }

    async fn stop(&self, _call: Call) -> Infallible {
        let wakers = {
            let mut inner = lock(&self.inner);
            inner.stopped = true;
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use storybus_core::ports::StoreError;
    use storybus_core::ports::Workspaces;
    use storybus_core::ports::workspaces::RegistryError;

    use super::super::Faulty;
    use super::*;
    use crate::executor::run_alone;
    use crate::suite::sample;
    use crate::{FakeClock, Memory};

    fn wrapped(plan: &Plan) -> (FakeClock, Memory, Faulty<Memory>) {
        let clock = FakeClock::new();
        let memory = Memory::new(Arc::new(clock.clone()));
        let faulty = Faulty::new(Arc::new(memory.clone()), Arc::new(plan.clone()));
        (clock, memory, faulty)
    }

    async fn create(workspaces: &dyn Workspaces, clock: &FakeClock, id: &str) -> Result<(), RegistryError> {
        let now = clock.now();
        workspaces
            .create(
                &sample::workspace(id, now),
                &sample::audit("tenant.create", &[id], now),
            )
            .await
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let plan = Plan::new()
            .at(0, Fault::Before)
            .at(1, Fault::Refused)
            .at(2, Fault::Lost)
            .at(3, Fault::After)
            .at(4, Fault::Late)
            .next(Call::WorkspaceCreate, Fault::None)
            .always(Call::WorkspaceCreate, Fault::Before);
        let (clock, memory, faulty) = wrapped(&plan);
        run_alone(async {
            let errors: [fn(&StoreError) -> bool; 5] = [
                |e| matches!(e, StoreError::Unavailable { .. }),
                |e| matches!(e, StoreError::Internal { .. }),
                |e| matches!(e, StoreError::Unknown { .. }),
                |e| matches!(e, StoreError::Unknown { .. }),
                |e| matches!(e, StoreError::Unknown { .. }),
            ];
            for (n, is) in errors.iter().enumerate() {
                let answer = create(&faulty, &clock, &format!("w{n}")).await;
                assert!(
                    matches!(&answer, Err(RegistryError::Store(e)) if is(e)),
                    "{n}: {answer:?}"
                );
            }
            let ids = async || {
                let list = Workspaces::list(&memory, None, 10).await.unwrap();
                list.iter().map(|w| w.id.as_str().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(ids().await, ["w3"], "only the one whose answer was lost");
            plan.arrive().await;
            assert_eq!(ids().await, ["w3", "w4"], "and the late one, now");
            assert!(create(&faulty, &clock, "w5").await.is_ok(), "planned by method");
            assert!(
                create(&faulty, &clock, "w6").await.is_err(),
                "and always from then on"
            );
            assert_eq!(plan.calls(), [Call::WorkspaceCreate; 7]);
        });
    }

    #[test]
    fn a_stopped_caller_never_goes_on() {
        for (fault, written) in [
            (Fault::StopBefore, false),
            (Fault::StopAfter, true),
            (Fault::StopWhenDone, true),
        ] {
            let plan = Plan::new().next(Call::WorkspaceCreate, fault);
            let (clock, memory, faulty) = wrapped(&plan);
            run_alone(async {
                assert!(plan.run(create(&faulty, &clock, "w1")).await.is_none());
                assert!(plan.is_stopped());
                assert_eq!(
                    Workspaces::list(&memory, None, 1).await.unwrap().len(),
                    usize::from(written)
                );
            });
        }
    }

    #[test]
    fn a_held_call_is_done_when_it_is_released() {
        let plan = Plan::new();
        let hold = plan.hold(Call::WorkspaceCreate);
        let (clock, memory, faulty) = wrapped(&plan);
        run_alone(async {
            let test = async {
                hold.reached().await;
                assert!(Workspaces::list(&memory, None, 1).await.unwrap().is_empty());
                clock.advance(Duration::from_secs(60));
                hold.release();
            };
            let (answer, ()) = futures::join!(create(&faulty, &clock, "w1"), test);
            assert!(answer.is_ok());
        });
    }
}
