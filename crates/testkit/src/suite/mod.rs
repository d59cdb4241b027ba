//! The conformance suites: what the ports promise, one module a port, one function a behaviour.
//!
//! An engine's tests make a [`Factory`] and call [`exercise_all`]; every behaviour then runs on a fresh, empty engine,
//! with a clock that only the behaviour moves. Where engines really differ, the factory says what it lacks
//! ([`Ability`]), and what needs it is listed as skipped, never left out in silence. To add a behaviour, write the
//! function and name it in its module's list; a test holds the two equal.
#![expect(
    clippy::unwrap_used,
    reason = "a suite stops at the first surprise, as a test does"
)]

pub mod activity;
pub mod archive;
pub mod audit;
pub mod connections;
pub mod dead_letters;
pub mod jobs;
pub mod ledger;
pub mod queue_control;
pub mod queues;
pub mod sample;
pub mod stories;
pub mod topic;
pub mod workspaces;
pub(crate) mod world;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{
    ActivityLog, Archive, AuditLog, Connections, DeadLetters, Jobs, Ledger, QueueControl, Queues, Stories,
    Topic, Workspaces,
};

pub use world::World;

use crate::clock::{FakeClock, START};
use crate::memory::Memory;

/// The ports that an engine implements.
#[derive(Clone)]
pub struct Stores {
    /// Records and stories.
    pub ledger: Arc<dyn Ledger>,
    /// Publication.
    pub topic: Arc<dyn Topic>,
    /// The consumers' queues.
    pub queues: Arc<dyn Queues>,
    /// The same in an operator's hands.
    pub queue_control: Arc<dyn QueueControl>,
    /// The consumers' dead letters.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// What was published.
    pub archive: Arc<dyn Archive>,
    /// The stories.
    pub stories: Arc<dyn Stories>,
    /// Replays and redrives.
    pub jobs: Arc<dyn Jobs>,
    /// What was refused.
    pub activity: Arc<dyn ActivityLog>,
    /// The registry of workspaces.
    pub workspaces: Arc<dyn Workspaces>,
    /// The registry of connections.
    pub connections: Arc<dyn Connections>,
    /// The audit.
    pub audit: Arc<dyn AuditLog>,
}

impl Stores {
    /// All ports on one engine.
    pub fn of<E>(engine: &Arc<E>) -> Self
    where
        E: Ledger
            + Topic
            + Queues
            + QueueControl
            + DeadLetters
            + Archive
            + Stories
            + Jobs
            + ActivityLog
            + Workspaces
            + Connections
            + AuditLog
            + 'static,
    {
        Self {
            ledger: engine.clone(),
            topic: engine.clone(),
            queues: engine.clone(),
            queue_control: engine.clone(),
            dead_letters: engine.clone(),
            archive: engine.clone(),
            stories: engine.clone(),
            jobs: engine.clone(),
            activity: engine.clone(),
            workspaces: engine.clone(),
            connections: engine.clone(),
            audit: engine.clone(),
        }
    }
}

/// One engine with its data.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Its ports.
    fn stores(&self) -> Stores;

    /// Closes it and opens it again on the same data. Called only when the engine has [`Ability::Reopen`].
    async fn reopen(&mut self);

    /// Comes back when what was written is seen everywhere: a new subscription, a changed filter.
    async fn settle(&self) {}

    /// Does at once, and to its end, what it does in the background with what it has stored: comes back when everything
    /// that it would store in another form some day is in that form.
    async fn compact(&self) {}
}

/// Makes engines.
#[async_trait]
pub trait Factory: Send + Sync {
    /// A fresh, empty engine that takes its time from this clock.
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine>;

    /// When their clock begins: an engine on a service begins at the service's time.
    fn begins(&self) -> Millis {
        START
    }

    /// What its engines cannot do.
    fn lacks(&self) -> &[Ability] {
        &[]
    }
}

/// Something that not every engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Its time is the test's clock. An engine on a service has the service's time.
    Time,
    /// It keeps its data when it is closed and opened again.
    Reopen,
    /// Its topic checks the claim in the same transaction.
    Claims,
    /// Its counts are exact.
    Counts,
    /// It knows when a message that died came into its queue: SQS forgets that when it moves one to a FIFO queue of dead letters, so
    /// the letters are in the order in which they died.
    Arrivals,
    /// It sees where in a queue a message is: nobody can look into an SQS queue. Dead letters and purges it tells.
    Traces,
    /// Handles end with a purge: SQS takes a deletion of what a purge took for done.
    Purges,
    /// Deliveries of a job are fenced by its turn, in the same transaction: on AWS a job has one runner.
    Turns,
    /// A queue remembers how far a job has come: SQS remembers the deliveries of 5 minutes, one by one.
    Forward,
    /// It stores what it archived in another form some day: what does not has nothing to show when it has done so.
    Compaction,
    /// Its answers arrive. A call that repeats itself and finds nothing to remove takes that for its own first try's doing.
    Answers,
}

/// One thing that a port promises.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// `<module>::<function>`.
    pub name: &'static str,
    /// What the engine must be able to do.
    pub needs: &'static [Ability],
    /// Panics when the engine does not keep the promise.
    pub run: for<'w> fn(&'w mut World) -> BoxFuture<'w, ()>,
}

/// Lists a module's behaviours, each with what it needs.
macro_rules! behaviours {
    ($($name:ident $(needs $($need:ident)+)?),* $(,)?) => {
        /// Every behaviour of this port.
        pub const ALL: &[$crate::suite::Behaviour] = &[$($crate::suite::Behaviour {
            name: concat!(module_path!(), "::", stringify!($name)),
            needs: &[$($($crate::suite::Ability::$need),+)?],
            run: |world| Box::pin($name(world)),
        }),*];
    };
}
pub(crate) use behaviours;

/// Lists a module's behaviours twice: as they are, and in a world that compacts whatever was published.
macro_rules! behaviours_both_ways {
    ($($name:ident $(needs $($need:ident)+)?),* $(,)?) => {
        $crate::suite::behaviours![$($name $(needs $($need)+)?),*];

        /// The same behaviours, over an engine that has compacted what it stored.
        pub const COMPACTED: &[$crate::suite::Behaviour] = &[$($crate::suite::Behaviour {
            name: concat!(module_path!(), "::compacted::", stringify!($name)),
            needs: &[$crate::suite::Ability::Compaction $($(, $crate::suite::Ability::$need)+)?],
            run: |world| {
                world.set_compacting();
                Box::pin($name(world))
            },
        }),*];
    };
}
pub(crate) use behaviours_both_ways;

/// The suites: one a port, or several where a port has much to promise.
pub const SUITES: &[&[Behaviour]] = &[
    ledger::records::ALL,
    ledger::stories::ALL,
    ledger::claims::ALL,
    ledger::supersessions::ALL,
    ledger::removals::ALL,
    topic::ALL,
    queues::receive::ALL,
    queues::visibility::ALL,
    queues::release::ALL,
    queues::dead_letters::ALL,
    queues::attempts::ALL,
    queues::waiting::ALL,
    queues::keeping::ALL,
    workspaces::ALL,
    connections::entries::ALL,
    connections::system_ids::ALL,
    connections::roles::ALL,
    connections::operators::ALL,
    connections::consumers::ALL,
    audit::ALL,
    dead_letters::list::ALL,
    dead_letters::take::ALL,
    dead_letters::keeping::ALL,
    queue_control::redeliver::ALL,
    queue_control::repeated::ALL,
    queue_control::purge::ALL,
    queue_control::trace::ALL,
    jobs::ALL,
    stories::ALL,
    activity::ALL,
    archive::order::ALL,
    archive::parts::ALL,
    archive::selection::ALL,
    archive::heads::ALL,
    archive::keeping::ALL,
    archive::many::ALL,
    archive::order::COMPACTED,
    archive::parts::COMPACTED,
    archive::selection::COMPACTED,
    archive::heads::COMPACTED,
    archive::keeping::COMPACTED,
    archive::many::COMPACTED,
];

/// What an exercise came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What ran and held.
    pub held: Vec<&'static str>,
    /// What did not hold; its panic stands in the test's output.
    pub broken: Vec<&'static str>,
    /// What the engine cannot be asked, with the ability it lacks.
    pub skipped: Vec<(&'static str, Ability)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            held,
            broken,
            skipped,
        } = self;
        write!(
            f,
            "{} behaviours held, {} broken, {} skipped",
            held.len(),
            broken.len(),
            skipped.len()
        )?;
        broken
            .iter()
            .try_for_each(|name| write!(f, "\n  broken: {name}"))?;
        skipped
            .iter()
            .try_for_each(|(name, ability)| write!(f, "\n  skipped: {name} (needs {ability:?})"))
    }
}

/// Runs every behaviour of every port, each on an engine of its own, and says what ran.
///
/// # Panics
///
/// After all of them ran, if one was broken; the message lists the broken ones.
pub async fn exercise_all(factory: &dyn Factory) -> Report {
    exercise(factory, "").await
}

/// The same for the behaviours whose name contains `part`.
///
/// # Panics
///
/// As [`exercise_all`].
pub async fn exercise(factory: &dyn Factory, part: &str) -> Report {
    let mut report = Report::default();
    for behaviour in SUITES.iter().copied().flatten().filter(|b| b.name.contains(part)) {
        if let Some(ability) = behaviour.needs.iter().find(|need| factory.lacks().contains(need)) {
            report.skipped.push((behaviour.name, *ability));
            continue;
        }
        let clock = FakeClock::at(factory.begins());
        let mut world = World::new(factory.engine(clock.clone()).await, clock);
        let run = AssertUnwindSafe((behaviour.run)(&mut world));
        match run.catch_unwind().await {
            Ok(()) => report.held.push(behaviour.name),
            Err(_) => report.broken.push(behaviour.name),
        }
    }
    assert!(report.broken.is_empty(), "{report}");
    report
}

/// The reference: the engine in memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryFactory;

struct MemoryEngine {
    memory: Arc<Memory>,
    clock: FakeClock,
}

#[async_trait]
impl Engine for MemoryEngine {
    fn stores(&self) -> Stores {
        Stores::of(&self.memory)
    }

    async fn reopen(&mut self) {
        self.memory = Arc::new(self.memory.fork(Arc::new(self.clock.clone())));
    }
}

#[async_trait]
impl Factory for MemoryFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let memory = Arc::new(Memory::new(Arc::new(clock.clone())));
        Box::new(MemoryEngine { memory, clock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behaviour_is_listed() {
        let sources = [
            include_str!("ledger/records.rs"),
            include_str!("ledger/stories.rs"),
            include_str!("ledger/claims.rs"),
            include_str!("ledger/supersessions.rs"),
            include_str!("ledger/removals.rs"),
            include_str!("topic.rs"),
            include_str!("queues/receive.rs"),
            include_str!("queues/visibility.rs"),
            include_str!("queues/release.rs"),
            include_str!("queues/dead_letters.rs"),
            include_str!("queues/attempts.rs"),
            include_str!("queues/waiting.rs"),
            include_str!("queues/keeping.rs"),
            include_str!("workspaces.rs"),
            include_str!("connections/entries.rs"),
            include_str!("connections/system_ids.rs"),
            include_str!("connections/roles.rs"),
            include_str!("connections/operators.rs"),
            include_str!("connections/consumers.rs"),
            include_str!("audit.rs"),
            include_str!("dead_letters/list.rs"),
            include_str!("dead_letters/take.rs"),
            include_str!("dead_letters/keeping.rs"),
            include_str!("queue_control/redeliver.rs"),
            include_str!("queue_control/repeated.rs"),
            include_str!("queue_control/purge.rs"),
            include_str!("queue_control/trace.rs"),
            include_str!("jobs.rs"),
            include_str!("stories.rs"),
            include_str!("activity.rs"),
            include_str!("archive/order.rs"),
            include_str!("archive/parts.rs"),
            include_str!("archive/selection.rs"),
            include_str!("archive/heads.rs"),
            include_str!("archive/keeping.rs"),
            include_str!("archive/many.rs"),
            include_str!("archive/order.rs"),
            include_str!("archive/parts.rs"),
            include_str!("archive/selection.rs"),
            include_str!("archive/heads.rs"),
            include_str!("archive/keeping.rs"),
            include_str!("archive/many.rs"),
        ];
        assert_eq!(sources.len(), SUITES.len());
        for (source, suite) in sources.iter().zip(SUITES) {
            let written: Vec<&str> = source
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn "))
                .filter_map(|rest| rest.split('(').next())
                .collect();
            let listed: Vec<&str> = suite.iter().filter_map(|b| b.name.rsplit("::").next()).collect();
            for name in &written {
                assert!(listed.contains(name), "{name} is not in its list");
            }
            assert_eq!(written.len(), listed.len());
        }
    }
}
