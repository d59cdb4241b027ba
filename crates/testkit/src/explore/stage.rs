//! A bus on an engine, for attempts that are led call by call.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::Filter;
use storybus_core::domain::record::RecordState;
use storybus_core::domain::refusal::Refusal;
use storybus_core::domain::time::Millis;
use storybus_core::ops::Caller;
use storybus_core::ops::publish::{PublishRequest, Published};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Clock, Ledger, Topic};
use storybus_core::{Bus, Settings};

use super::actor::{Actor, Step};
use super::gate::{Gate, Late, NodeClock, Place, Punctual};
use super::message::Message;
use super::witness::{Breach, Promise, Spy, Verdict, WINDOW, Witness};
use super::{Broken, Choices};
use crate::clock::FakeClock;
use crate::executor::run;
use crate::faulty::{Call, Fault, Faulty};
use crate::memory::{Claims, Memory};
use crate::random::SeededRandom;
use crate::suite::{Stores, sample};

/// How long a function may run.
const FUNCTION: Duration = Duration::from_secs(15);
/// How much later than it was given up a call may still arrive.
pub(super) const ABANDONED: Duration = Duration::from_secs(5);

/// A bus, its engine, its time, and what was seen.
pub struct Stage {
    pub(super) clock: FakeClock,
    pub(super) stores: Stores,
    pub(super) memory: Option<Memory>,
    claims: Claims,
    random: Arc<SeededRandom>,
    bus: Bus,
    caller: Caller,
    pub(super) queue: QueueKey,
    pub(super) witness: Witness,
    /// What happened, for people.
    pub(super) trace: Vec<String>,
    pub(super) attempts: usize,
}

impl Stage {
    /// An empty bus on an engine in memory.
    #[must_use]
    pub fn in_memory(claims: Claims) -> Self {
        let clock = FakeClock::new();
        let memory = Memory::with_claims(Arc::new(clock.clone()), claims);
        let stores = Stores::of(&Arc::new(memory.clone()));
        run(Self::set_up(&stores, &clock));
        Self::assemble(
            clock,
            stores,
            Some(memory),
            claims,
            Arc::new(SeededRandom::default()),
            Witness::default(),
        )
    }

    /// An empty bus on an empty engine that takes its time from this clock.
    pub async fn over(stores: Stores, clock: FakeClock, claims: Claims) -> Self {
        Self::set_up(&stores, &clock).await;
        Self::assemble(
            clock,
            stores,
            None,
            claims,
            Arc::new(SeededRandom::default()),
            Witness::default(),
        )
    }

    /// The same bus on other stores: its own engine's, once that was closed and opened again, or none.
    pub(super) fn restock(&mut self, stores: Option<Stores>) {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        let stores = stores.unwrap_or_else(|| Stores::of(&Arc::new(Memory::new(Arc::new(clock.clone())))));
        let (witness, claims) = (std::mem::take(&mut self.witness), self.claims);
        let (trace, attempts) = (std::mem::take(&mut self.trace), self.attempts);
        *self = Self::assemble(clock, stores, None, claims, random, witness);
        (self.trace, self.attempts) = (trace, attempts);
    }

    async fn set_up(stores: &Stores, clock: &FakeClock) {
        let (caller, queue) = parties();
        let audit = sample::audit("explore", &[], clock.now());
        let consumer = sample::consumer(
            queue.consumer.as_str(),
            &queue.workspace,
            Filter::default(),
            clock.now(),
        );
        let made = async {
            stores.workspaces.create(&caller.workspace, &audit).await?;
            stores.connections.create(&caller.connection, &audit).await?;
            stores.connections.create(&consumer, &audit).await
        };
        assert!(
            made.await.is_ok(),
            "an empty engine takes a workspace, a producer and a consumer"
        );
    }

    fn assemble(
        clock: FakeClock,
        stores: Stores,
        memory: Option<Memory>,
        claims: Claims,
        random: Arc<SeededRandom>,
        witness: Witness,
    ) -> Self {
        let spy = Spy {
            topic: stores.topic.clone(),
            ledger: stores.ledger.clone(),
            clock: clock.clone(),
            sights: witness.sights.clone(),
        };
        let mut ports = crate::ports(&stores, Arc::new(clock.clone()), random.clone());
        ports.topic = Arc::new(spy);
        let bus = Bus::new(ports, Settings::with_window(WINDOW));
        let (caller, queue) = parties();
        Self {
            clock,
            stores,
            memory,
            claims,
            random,
            bus,
            caller,
            queue,
            witness,
            trace: Vec::new(),
            attempts: 0,
        }
    }

    /// The same world once more, to go another way from here. Only an engine in memory can be copied.
    #[must_use]
    pub fn fork(&self) -> Option<Self> {
        let clock = FakeClock::at(self.clock.now());
        let memory = self.memory.as_ref()?.fork(Arc::new(clock.clone()));
        let stores = Stores::of(&Arc::new(memory.clone()));
        let random = Arc::new(self.random.fork());
        let witness = self.witness.clone();
        let mut stage = Self::assemble(clock, stores, Some(memory), self.claims, random, witness);
        stage.trace.clone_from(&self.trace);
        Some(stage)
    }

    /// Lets time pass.
    pub fn advance(&mut self, span: Duration) {
        self.clock.advance(span);
        if !span.is_zero() {
            self.trace.push(format!("{} s pass", span.as_secs_f64()));
        }
        self.witness.forgetful |= span > Duration::from_secs(24 * 3600);
    }

    /// Lets the nodes' clocks be apart.
    pub(super) fn skewed(&mut self, skew: Duration) {
        self.witness.skew = skew;
    }

    pub(super) fn is_trusting(&self) -> bool {
        self.claims == Claims::Trusted
    }

    /// Makes the future of one attempt; and when its function ends, by its own clock.
    pub(super) fn attempt(
        &self,
        message: &Message,
        gate: &Arc<Gate>,
    ) -> (BoxFuture<'static, Result<Published, Refusal>>, Millis) {
        let deadline = NodeClock(gate.clone()).now().plus(FUNCTION);
        let bus = self.bus.with_ports(|ports| {
            ports.clock = Arc::new(NodeClock(gate.clone()));
            ports.ledger = Arc::new(Faulty::<dyn Ledger>::new(ports.ledger.clone(), gate.clone()));
            let topic = Arc::new(Faulty::<dyn Topic>::new(ports.topic.clone(), gate.clone()));
            ports.topic = Arc::new(Punctual {
                topic,
                gate: gate.clone(),
                deadline,
            });
        });
        let request = PublishRequest {
            body: message.body.clone(),
            idempotency_key: None,
            deadline,
        };
        let caller = self.caller.clone();
        (
            Box::pin(async move { bus.publish(&caller, &request).await }),
            deadline,
        )
    }

    /// What a publish would be answered now.
    pub(super) fn foresee(&self, message: &Message) -> Verdict {
        let deadline = self.clock.now().plus(FUNCTION);
        let request = PublishRequest {
            body: message.body.clone(),
            idempotency_key: None,
            deadline,
        };
        Verdict::of(&run(self.bus.validate(&self.caller, &request)))
    }

    /// Leads one attempt alone to its end. `fault` is asked at each call.
    pub(super) fn lead(
        &mut self,
        message: &Message,
        mut fault: impl FnMut(Call) -> Fault,
    ) -> Result<Option<Verdict>, Breach> {
        let mut actor = self.enter(message, 0, false);
        loop {
            let fault = match actor.place() {
                Some(Place::Before(call)) => fault(call),
                Some(Place::After(_) | Place::Sleeping(_) | Place::Running | Place::Stopped) | None => {
                    Fault::None
                }
            };
            let ended = self.step(&mut actor, fault)?;
            if let Some(verdict) = ended {
                let late = actor.gate.take_late();
                late.into_iter().for_each(|late| self.arrive(late));
                return Ok(verdict);
            }
        }
    }

    /// A new attempt, which has not taken its first step.
    pub(super) fn enter(&mut self, message: &Message, skew: i64, stops_after: bool) -> Actor {
        self.attempts += 1;
        self.witness.sends(message);
        Actor::new(self, message, skew, stops_after)
    }

    /// One step of an attempt; when it ends by it, its verdict (`None` when it was stopped).
    pub(super) fn step(
        &mut self,
        actor: &mut Actor,
        fault: Fault,
    ) -> Result<Option<Option<Verdict>>, Breach> {
        let name = actor.message.name.clone();
        if let (Some(Place::Before(call)), true) = (actor.place(), fault != Fault::None) {
            self.trace.push(format!("{name}: {call:?} meets {fault:?}"));
        }
        let step = actor.step(self, fault);
        if let Some(seen) = actor.gate.overstepped() {
            return Err((Promise::E, seen));
        }
        match step {
            Step::Stands => Ok(None),
            Step::Stopped => {
                self.trace.push(format!("{name}: stopped"));
                Ok(Some(None))
            }
            Step::Answered(answer) => {
                let verdict = Verdict::of(&answer);
                self.trace.push(format!("{name}: answered {verdict:?}"));
                self.look();
                let last = self.last_accepted();
                let done = actor.gate.done();
                let answered = self.witness.answered(&actor.message, verdict, &done, last);
                let honest = verdict != Verdict::Internal
                    || actor
                        .gate
                        .faults()
                        .iter()
                        .any(|(_, fault)| *fault == Fault::Refused);
                answered?;
                if !honest {
                    return Err((
                        Promise::Honest,
                        format!("{name} met an internal error that nobody made"),
                    ));
                }
                Ok(Some(Some(verdict)))
            }
        }
    }

    /// Lets a call that was given up arrive, if it still does.
    pub(super) fn arrive(&mut self, late: Late) {
        if self.clock.now() <= late.since.plus(ABANDONED) {
            self.trace.push(format!("a late {:?} arrives", late.call));
            run(late.work);
        }
    }

    /// Looks into the consumer's queue.
    pub(super) fn look(&mut self) {
        if let Some(memory) = &self.memory {
            let taken = memory.taken();
            let known = self.witness.log.len();
            self.witness
                .log
                .extend(taken[known..].iter().map(|t| (t.message_id, t.at)));
            return;
        }
        let receive = Receive {
            max: 10,
            wait: Duration::ZERO,
            visibility: Duration::from_secs(60),
            max_receives: 5,
            attempt: None,
        };
        let (queues, queue) = (self.stores.queues.clone(), self.queue.clone());
        let drained = run(async move {
            let mut drained = Vec::new();
            loop {
                let received = queues.receive(&queue, &receive).await?;
                if received.is_empty() {
                    return Ok::<_, storybus_core::ports::StoreError>(drained);
                }
                let handles: Vec<String> = received.iter().map(|d| d.receipt_handle.clone()).collect();
                queues.acknowledge(&queue, &handles).await?;
                drained.extend(received);
            }
        });
        if let Ok(drained) = drained {
            self.witness
                .log
                .extend(drained.iter().map(|d| (d.message_id, d.enqueued_at)));
        }
    }

    /// Holds everything seen so far against the promises.
    pub(super) fn check(&mut self) -> Result<(), Breach> {
        self.look();
        self.witness.check(self.last_accepted())?;
        let Some(memory) = &self.memory else { return Ok(()) };
        for (key, record) in memory.records() {
            if record.state == RecordState::Published && !self.witness.is_published(key.message_id) {
                return Err((Promise::A, format!("a record is marked published: {record:?}")));
            }
        }
        Ok(())
    }

    /// Lets every message be sent again until it has a final answer, and looks whether all is well then.
    pub(super) fn heal(&mut self) -> Result<(), Breach> {
        self.trace.push("from here on nothing fails".to_owned());
        let mut open = self.witness.sent.clone();
        for _ in 0..4 {
            let mut left = Vec::new();
            for message in open {
                let verdict = self.lead(&message, |_| Fault::None)?;
                if !verdict.is_some_and(Verdict::is_final) {
                    left.push(message);
                }
            }
            open = left;
            if open.is_empty() {
                break;
            }
            self.advance(WINDOW);
        }
        if !open.is_empty() {
            let names: Vec<&str> = open.iter().map(|m| m.name.as_str()).collect();
            return Err((Promise::Final, format!("{} still open", names.join(" "))));
        }
        let newest = self.witness.sent.iter().filter_map(|m| m.snapshot).max();
        if let Some(newest) = newest {
            let (accepted, seen) = (self.last_accepted(), self.witness.last_seen());
            if accepted != seen && !self.witness.forgetful {
                return Err((
                    Promise::Kept,
                    format!("the story is at {accepted:?}, the consumer saw {seen:?}"),
                ));
            }
            let verdict = self.lead(&Message::snapshot(newest + 1), |_| Fault::None)?;
            if verdict != Some(Verdict::Accepted) {
                return Err((Promise::Final, format!("the next snapshot got {verdict:?}")));
            }
        }
        self.check()
    }

    /// What a breach was, with how it came to it.
    pub(super) fn broken(&self, (promise, seen): Breach) -> Broken {
        Broken {
            promise,
            seen,
            schedule: self.trace.clone(),
        }
    }

    /// Runs attempts in a row, each stopped after so many calls that were done (or led to its end), to make a place to
    /// start from.
    ///
    /// # Panics
    ///
    /// When a promise is broken on the way.
    #[must_use]
    pub fn after(mut self, attempts: &[(Message, Option<Call>)]) -> Self {
        for (message, stop) in attempts {
            let fault = |call| {
                if Some(call) == *stop {
                    Fault::StopAfter
                } else {
                    Fault::None
                }
            };
            let led = self.lead(message, fault);
            assert!(led.is_ok(), "{led:?}");
        }
        self
    }
}

fn parties() -> (Caller, QueueKey) {
    let start = crate::clock::START;
    let workspace = sample::workspace("w1", start);
    let producer = sample::producer("p1", &workspace.id, &["ncs"], start);
    let consumer = sample::consumer("c1", &workspace.id, Filter::default(), start);
    let queue = QueueKey {
        workspace: workspace.id.clone(),
        consumer: consumer.id,
    };
    (
        Caller {
            workspace,
            connection: producer,
        },
        queue,
    )
}

/// Which faults a call can meet, besides none.
pub(super) fn faults_of(call: Call) -> &'static [Fault] {
    if call.writes() {
        &[
            Fault::Before,
            Fault::Refused,
            Fault::Lost,
            Fault::After,
            Fault::Late,
            Fault::StopAfter,
        ]
    } else {
        &[Fault::Before, Fault::StopAfter]
    }
}

/// Picks a fault for a call, none first.
pub(super) fn pick_fault(choices: &mut Choices, call: Call) -> Fault {
    let faults = faults_of(call);
    match choices.pick(faults.len() + 1) {
        0 => Fault::None,
        n => faults[n - 1],
    }
}
