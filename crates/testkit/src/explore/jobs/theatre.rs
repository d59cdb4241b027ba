//! A bus with its jobs, the runners, and what happens beside.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::job::Job;
use storybus_core::ops::admin::Actor;
use storybus_core::ops::jobs::{RedriveMembers, ReplayMembers, StepFailed, Stepped};
use storybus_core::ports::{Archive, Connections, DeadLetters, Jobs, QueueControl};
use storybus_core::{Bus, Settings};
use storybus_protocol::id::JobId;

use super::scene::{Ask, HALF_A_STEP, Scene};
use crate::clock::FakeClock;
use crate::executor::run;
use crate::explore::gate::{Gate, Late, Place};
use crate::explore::led::{Way, lead};
use crate::faulty::{Call, Fault, Faulty};
use crate::memory::Memory;
use crate::random::SeededRandom;
use crate::suite::sample::{self, Letter};
use crate::suite::world::{handles, number};
use crate::suite::{Engine, Stores, World};

/// The time between two publications.
const TICK: Duration = Duration::from_millis(1);

/// The body of every message.
static BODY: [u8; HALF_A_STEP] = [b' '; HALF_A_STEP];

/// A delivery that was seen: which message, by which job, if by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) message: u64,
    pub(super) mark: Option<String>,
}

/// What happens beside the runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Somebody wants this job to end.
    Cancel(usize),
    /// The consumer is deleted.
    Delete,
    /// A message is published.
    Publish,
    /// The consumer receives one message and rejects it.
    Reject,
    /// The consumer receives one message and acknowledges it.
    Acknowledge,
}

/// Everything that a schedule plays on.
pub(super) struct Theatre {
    pub(super) world: World,
    bus: Bus,
    actor: Actor,
    pub(super) queue: QueueKey,
    pub(super) scene: Scene,
    pub(super) jobs: Vec<JobId>,
    /// Where each dead letter lay in the beginning.
    pub(super) places: Vec<(u64, Position)>,
    body: Bytes,
    /// Every first receive of a delivery.
    pub(super) seen: Vec<Seen>,
    pub(super) rejected: Vec<u64>,
    pub(super) cancelled: Vec<usize>,
    pub(super) deleted: bool,
    published: u64,
    pub(super) late: Vec<Late>,
    pub(super) trace: Vec<String>,
    pub(super) attempts: usize,
}

/// One runner, which takes the steps of one job until it is over.
pub(super) struct Runner {
    pub(super) job: usize,
    name: usize,
    gate: Arc<Gate>,
    future: BoxFuture<'static, Result<Stepped, StepFailed>>,
}

impl Runner {
    /// The call that it is about to make.
    pub(super) fn call(&self) -> Option<Call> {
        match self.gate.place() {
            Place::Before(call) => Some(call),
            Place::Running | Place::After(_) | Place::Sleeping(_) | Place::Stopped => None,
        }
    }

    /// Ends it where it stands.
    pub(super) fn stop(&mut self) {
        self.future = Box::pin(std::future::pending());
    }
}

impl Theatre {
    pub(super) fn new(engine: Box<dyn Engine>, clock: FakeClock, scene: &Scene) -> Self {
        let world = World::new(engine, clock);
        let queue = run(world.queue());
        let bus = Bus::new(world.ports(), Settings::default());
        let mut theatre = Self {
            actor: Actor::bus(),
            bus,
            world,
            queue,
            scene: scene.clone(),
            jobs: Vec::new(),
            places: Vec::new(),
            body: Bytes::from_static(&BODY),
            seen: Vec::new(),
            rejected: Vec::new(),
            cancelled: Vec::new(),
            deleted: false,
            published: 0,
            late: Vec::new(),
            trace: Vec::new(),
            attempts: 0,
        };
        theatre.set();
        theatre
    }

    /// Brings everything to where the scene begins.
    fn set(&mut self) {
        let mut times = vec![self.world.now()];
        for n in 1..=self.scene.messages {
            self.publish();
            if !self.scene.waiting.contains(&n) {
                let all = run(self.world.receive(&self.queue, 10));
                let (held, waiting): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|d| number(d.message_id) == n);
                run(self.world.release(&self.queue, &waiting, Duration::ZERO));
                if self.scene.dead.contains(&n) {
                    run(self.world.reject(&self.queue, &held, "bad"));
                } else {
                    run(self.world.acknowledge(&self.queue, &held));
                }
            }
            self.world.clock.advance(TICK);
            times.push(self.world.now());
        }
        run(self.world.file());
        let dead = run(self.world.dead_letters(&self.queue));
        self.places = dead
            .into_iter()
            .map(|l| (number(l.message_id), l.position))
            .collect();
        assert_eq!(self.places.len(), self.scene.dead.len());
        for ask in self.scene.jobs.clone() {
            let (tenant, consumer) = (self.queue.workspace.as_str(), self.queue.consumer.as_str());
            let made = match ask {
                Ask::All | Ask::Chosen(_) => {
                    let chosen = |ids: Vec<u64>| ids.into_iter().map(|n| sample::message_id(n).to_string());
                    let members = RedriveMembers {
                        message_ids: match ask {
                            Ask::Chosen(ids) => Some(chosen(ids).collect()),
                            _ => None,
                        },
                    };
                    run(self.bus.redrive_start(&self.actor, tenant, consumer, &members))
                }
                Ask::Replay { from, to, even } => {
                    let at = |n: u64| {
                        let place = usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
                        times.get(place).or(times.last()).map(|at| at.to_rfc3339())
                    };
                    let members = ReplayMembers {
                        from: at(from),
                        to: at(to),
                        message_types: even.then(|| vec!["even.*".to_owned()]),
                        ..ReplayMembers::default()
                    };
                    run(self.bus.replay_start(&self.actor, tenant, consumer, &members))
                }
            };
            match made {
                Ok(job) => self.jobs.push(job.id),
                Err(refusal) => unreachable!("the scene's jobs are taken: {refusal:?}"),
            }
        }
    }

    fn publish(&mut self) {
        self.published += 1;
        let n = self.published;
        let kind = if n.is_multiple_of(2) { "even.x" } else { "odd.x" };
        let letter = Letter {
            body: self.body.clone(),
            ..Letter::new(n, Scene::group(n)).of_type(kind)
        };
        run(self.world.send(&self.queue.workspace, &letter));
    }

    /// A runner that begins a step.
    pub(super) fn enter(&mut self, job: usize) -> Runner {
        self.attempts += 1;
        let gate = Gate::new(self.world.clock.clone(), 0, false);
        let name = self.attempts;
        self.trace.push(format!("runner {name} begins at job {job}"));
        Runner {
            job,
            name,
            future: self.step_of(job, &gate),
            gate,
        }
    }

    fn step_of(&self, job: usize, gate: &Arc<Gate>) -> BoxFuture<'static, Result<Stepped, StepFailed>> {
        let bus = self.bus.with_ports(|ports| {
            ports.jobs = Arc::new(Faulty::<dyn Jobs>::new(ports.jobs.clone(), gate.clone()));
            ports.archive = Arc::new(Faulty::<dyn Archive>::new(ports.archive.clone(), gate.clone()));
            ports.connections = Arc::new(Faulty::<dyn Connections>::new(
                ports.connections.clone(),
                gate.clone(),
            ));
            ports.dead_letters = Arc::new(Faulty::<dyn DeadLetters>::new(
                ports.dead_letters.clone(),
                gate.clone(),
            ));
            ports.queue_control = Arc::new(Faulty::<dyn QueueControl>::new(
                ports.queue_control.clone(),
                gate.clone(),
            ));
        });
        let id = self.jobs[job].clone();
        Box::pin(async move { bus.job_step(&id).await })
    }

    /// Lets a runner go on to its next stop; with a fault, its call meets that. Whether it goes on: not when it was
    /// stopped, nor when its job is over.
    pub(super) fn go(&mut self, runner: &mut Runner, fault: Fault) -> bool {
        if let Some(call) = runner.call() {
            let told = if fault == Fault::None {
                String::new()
            } else {
                format!(" meets {fault:?}")
            };
            self.trace.push(format!("runner {}: {call:?}{told}", runner.name));
            runner.gate.grant(fault);
        }
        loop {
            let way = lead(&mut runner.future, &runner.gate);
            self.late.extend(runner.gate.take_late());
            match way {
                Way::Stands => return true,
                Way::Stopped => return false,
                Way::Answered(Ok(Stepped::Over)) => {
                    self.trace.push(format!("runner {}: over", runner.name));
                    return false;
                }
                // on to the next step, or the same again
                Way::Answered(Ok(Stepped::Goes) | Err(_)) => {
                    self.attempts += 1;
                    runner.future = self.step_of(runner.job, &runner.gate);
                }
            }
        }
    }

    /// The process ends and another begins: the runners and the calls on their way are gone, what is stored is not.
    pub(super) fn restart(&mut self) {
        self.trace.push("the process ends, and begins anew".to_owned());
        self.late.clear();
        // nothing may hold the closed engine
        let nothing = Stores::of(&Arc::new(Memory::new(Arc::new(self.world.clock.clone()))));
        let random = Arc::new(SeededRandom::default());
        let ports = crate::ports(&nothing, Arc::new(self.world.clock.clone()), random);
        self.bus = Bus::new(ports, Settings::default());
        run(self.world.reopen());
        self.bus = Bus::new(self.world.ports(), Settings::default());
    }

    pub(super) fn happen(&mut self, event: Event) {
        self.trace.push(format!("beside: {event:?}"));
        self.world.clock.advance(TICK);
        match event {
            Event::Cancel(job) => {
                let (tenant, id) = (self.queue.workspace.to_string(), self.jobs[job].to_string());
                let cancelled = run(self.bus.job_cancel(&self.actor, &tenant, &id));
                if cancelled.is_ok() {
                    self.cancelled.push(job);
                }
            }
            Event::Delete => {
                let audit = sample::audit("consumer.delete", &["w1", "c1"], self.world.now());
                let deleted = run(self.world.connections().delete(&self.queue.consumer, &audit));
                self.deleted |= deleted.is_ok();
            }
            Event::Publish => self.publish(),
            Event::Reject => {
                let held = self.receive(1);
                self.rejected.extend(held.iter().map(|d| number(d.message_id)));
                run(self.world.reject(&self.queue, &held, "bad"));
            }
            Event::Acknowledge => {
                let held = self.receive(1);
                run(self.world.acknowledge(&self.queue, &held));
            }
        }
    }

    fn receive(&mut self, max: usize) -> Vec<Delivery> {
        let held = run(self.world.receive(&self.queue, max));
        let first = held.iter().filter(|d| d.receive_count == 1);
        self.seen.extend(first.map(|d| Seen {
            message: number(d.message_id),
            mark: d.redelivery.clone(),
        }));
        held
    }

    /// Receives and acknowledges all that there is.
    pub(super) fn drain(&mut self) {
        loop {
            let held = self.receive(10);
            if held.is_empty() {
                return;
            }
            let settled = run(self.world.queues().acknowledge(&self.queue, &handles(&held)));
            assert!(settled.is_ok());
        }
    }

    /// Lets every call arrive that was given up.
    pub(super) fn arrive(&mut self) {
        for late in std::mem::take(&mut self.late) {
            self.trace.push(format!("a late {:?} arrives", late.call));
            run(late.work);
        }
    }

    pub(super) fn job(&self, job: usize) -> Option<Job> {
        run(self.world.jobs().get(&self.jobs[job])).ok().flatten()
    }
}
