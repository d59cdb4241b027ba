//! An engine in memory: one lock around plain maps, written to be obviously right.
//!
//! It is the reference that the suites are tried on first, and what the explorations run on: it does every call in one
//! step, without a thread or a wait, and [`Memory::fork`] copies a whole world, so that every next step can be tried
//! from the same place.

mod activity;
mod archive;
mod audit;
mod connections;
mod dead_letters;
mod jobs;
mod ledger;
mod queue;
mod queue_control;
mod queues;
mod stories;
mod topic;
mod workspaces;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::domain::connection::{Connection, Workspace};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Job;
use storybus_core::domain::record::{Record, RecordKey, Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;
use storybus_core::ports::audit::AuditEntry;
use storybus_protocol::id::{ConnectionId, CorrelationId, JobId, MessageId, WorkspaceId};

use archive::Stored;
use queue::Queue;
use stories::Name;

/// Whether the topic checks the claim in the same step in which it publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// It does, as an engine with one database can.
    Checked,
    /// It cannot see the ledger, as SNS cannot: the time limits alone keep the promise.
    Trusted,
}

/// One message that the topic took, in the order in which it took them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// When.
    pub at: Millis,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Its order group.
    pub correlation_id: CorrelationId,
    /// The attempt that published it.
    pub attempt: Token,
}

/// Everything that an engine keeps.
#[derive(Clone, Default)]
struct State {
    records: BTreeMap<RecordKey, Record>,
    stories: BTreeMap<StoryKey, Story>,
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    connections: BTreeMap<ConnectionId, Connection>,
    audit: Vec<AuditEntry>,
    queues: BTreeMap<QueueKey, Queue>,
    /// When a message id was published, for as long as the topic drops it.
    published: BTreeMap<(WorkspaceId, MessageId), Millis>,
    taken: Vec<Taken>,
    /// In the order of publication.
    archive: Vec<Stored>,
    /// What each story is called.
    names: BTreeMap<StoryKey, Name>,
    jobs: BTreeMap<JobId, Job>,
    /// In the order in which they were noted, each with its number.
    refusals: Vec<(u64, RefusedPublish)>,
    /// Numbers messages and handles.
    next: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A record that has not expired.
    fn live(&self, key: &RecordKey, now: Millis) -> Option<&Record> {
        self.records.get(key).filter(|record| now < record.expires_at)
    }

    fn live_mut(&mut self, key: &RecordKey, now: Millis) -> Option<&mut Record> {
        self.records.get_mut(key).filter(|record| now < record.expires_at)
    }
}

/// A place in a list of this engine's: its number, as text.
fn position(number: u64) -> Position {
    Position(number.to_string())
}

/// The number of a place; `None` when the text is none of this engine's.
fn number(position: &Position) -> Option<u64> {
    let number = position.0.parse().ok()?;
    (self::position(number) == *position).then_some(number)
}

/// The engine. Clones share one state.
#[derive(Clone)]
pub struct Memory {
    clock: Arc<dyn Clock>,
    claims: Claims,
    state: Arc<Mutex<State>>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Who waits for something to change.
#[derive(Default)]
struct Waiting {
    changes: u64,
    wakers: Vec<Waker>,
    /// How many receives of each attempt there were: the last is the newest.
    attempts: BTreeMap<(QueueKey, String), u64>,
}

impl Memory {
    /// An empty engine whose topic checks claims.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_claims(clock, Claims::Checked)
    }

    /// An empty engine.
    #[must_use]
    pub fn with_claims(clock: Arc<dyn Clock>, claims: Claims) -> Self {
        Self {
            clock,
            claims,
            state: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// A copy of all it holds, on a clock of its own: what happens in one world is not seen in the other.
    #[must_use]
    pub fn fork(&self, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            claims: self.claims,
            state: Arc::new(Mutex::new(self.lock().clone())),
            waiting: Arc::default(),
        }
    }

    /// Every message that the topic took and did not drop, in order: what a consumer of everything gets.
    #[must_use]
    pub fn taken(&self) -> Vec<Taken> {
        self.lock().taken.clone()
    }

    /// All records, expired ones too.
    #[must_use]
    pub fn records(&self) -> BTreeMap<RecordKey, Record> {
        self.lock().records.clone()
    }

    /// All stories.
    #[must_use]
    pub fn stories(&self) -> BTreeMap<StoryKey, Story> {
        self.lock().stories.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a change.
    fn changed(&self) {
        let wakers = {
            let mut waiting = self.waiting();
            waiting.changes += 1;
            std::mem::take(&mut waiting.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many changes there were.
    fn changes(&self) -> u64 {
        self.waiting().changes
    }

    /// Comes back when there were more.
    fn changed_since(&self, seen: u64) -> impl Future<Output = ()> + Send + Unpin + '_ {
        std::future::poll_fn(move |cx| {
            let mut waiting = self.waiting();
            if waiting.changes != seen {
                return Poll::Ready(());
            }
            waiting.wakers.push(cx.waker().clone());
            Poll::Pending
        })
    }
}
