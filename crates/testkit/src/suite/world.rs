//! What a behaviour runs in: an engine, its clock, and the usual errands.

use std::sync::Arc;
use std::time::Duration;

use storybus_core::Ports;
use storybus_core::domain::connection::Role;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::domain::job::Turn;
use storybus_core::domain::message::{Claim, Publication};
use storybus_core::domain::record::{ContentHash, RECORD_LIFETIME, Record, RecordKey, RecordState, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::dead_letters::DeadLetterLimits;
use storybus_core::ports::ledger::{Marking, NewRecord, Recorded, Removal, Written};
use storybus_core::ports::queues::Receive;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{
    ActivityLog, Archive, AuditLog, Connections, DeadLetters, Jobs, Ledger, QueueControl, Queues, Random,
    Stories, Workspaces,
};
use storybus_protocol::id::{JobId, MessageId, WorkspaceId};

use super::sample::{self, Letter};
use super::{Engine, Stores};
use crate::clock::FakeClock;
use crate::random::SeededRandom;

/// How long an attempt holds its claim, in the suites.
pub(super) const WINDOW: Duration = Duration::from_secs(30);
/// How long a received message stays hidden, in the suites.
pub(super) const VISIBILITY: Duration = Duration::from_secs(60);

/// An engine under test, and its time.
pub struct World {
    /// The engine's time.
    pub clock: FakeClock,
    engine: Box<dyn Engine>,
    stores: Stores,
    random: SeededRandom,
    compacting: bool,
}

impl World {
    /// A world around an engine.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, clock: FakeClock) -> Self {
        let stores = engine.stores();
        Self {
            clock,
            engine,
            stores,
            random: SeededRandom::default(),
            compacting: false,
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// All ports of a bus on the engine.
    #[must_use]
    pub fn ports(&self) -> Ports {
        crate::ports(
            &self.stores,
            Arc::new(self.clock.clone()),
            Arc::new(self.random.fork()),
        )
    }

    /// The engine's ledger.
    #[must_use]
    pub fn ledger(&self) -> &dyn Ledger {
        &*self.stores.ledger
    }

    /// The engine's queues.
    #[must_use]
    pub fn queues(&self) -> &dyn Queues {
        &*self.stores.queues
    }

    /// The engine's queues in an operator's hands.
    #[must_use]
    pub fn queue_control(&self) -> &dyn QueueControl {
        &*self.stores.queue_control
    }

    /// The engine's dead letters.
    #[must_use]
    pub fn letters(&self) -> &dyn DeadLetters {
        &*self.stores.dead_letters
    }

    /// The engine's archive.
    #[must_use]
    pub fn archive(&self) -> &dyn Archive {
        &*self.stores.archive
    }

    /// The engine's stories.
    #[must_use]
    pub fn stories(&self) -> &dyn Stories {
        &*self.stores.stories
    }

    /// The engine's jobs.
    #[must_use]
    pub fn jobs(&self) -> &dyn Jobs {
        &*self.stores.jobs
    }

    /// The engine's log of refusals.
    #[must_use]
    pub fn activity(&self) -> &dyn ActivityLog {
        &*self.stores.activity
    }

    /// The engine's workspaces.
    #[must_use]
    pub fn workspaces(&self) -> &dyn Workspaces {
        &*self.stores.workspaces
    }

    /// The engine's connections.
    #[must_use]
    pub fn connections(&self) -> &dyn Connections {
        &*self.stores.connections
    }

    /// The engine's audit.
    #[must_use]
    pub fn audit(&self) -> &dyn AuditLog {
        &*self.stores.audit
    }

    /// Closes the engine and opens it again.
    pub async fn reopen(&mut self) {
        // nothing may hold the closed one
        self.stores = Stores::of(&Arc::new(crate::Memory::new(Arc::new(self.clock.clone()))));
        self.engine.reopen().await;
        self.stores = self.engine.stores();
    }

    /// Waits until what was written is seen everywhere.
    pub async fn settle(&self) {
        self.engine.settle().await;
    }

    /// Lets the engine store in its lasting form what it has.
    pub async fn compact(&self) {
        self.engine.compact().await;
    }

    pub(super) fn set_compacting(&mut self) {
        self.compacting = true;
    }

    /// Comes back when what was published is in the archive, and in a world that compacts, compacted.
    pub async fn file(&self) {
        self.settle().await;
        if self.compacting {
            self.compact().await;
        }
    }

    /// A token that was never used.
    pub fn token(&self) -> Token {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        Token(bytes)
    }

    /// Adds a workspace.
    pub async fn workspace(&self, id: &str) -> WorkspaceId {
        let workspace = sample::workspace(id, self.now());
        let audit = sample::audit("tenant.create", &[id], self.now());
        self.workspaces().create(&workspace, &audit).await.unwrap();
        workspace.id
    }

    /// Adds a consumer with a filter.
    pub async fn consumer(&self, id: &str, workspace: &WorkspaceId, filter: Filter) -> QueueKey {
        let consumer = sample::consumer(id, workspace, filter, self.now());
        let audit = sample::audit("consumer.create", &[workspace.as_str(), id], self.now());
        self.connections().create(&consumer, &audit).await.unwrap();
        self.settle().await;
        QueueKey {
            workspace: workspace.clone(),
            consumer: consumer.id,
        }
    }

    /// A workspace `w1` with one consumer `c1` of everything.
    pub async fn queue(&self) -> QueueKey {
        let workspace = self.workspace("w1").await;
        self.consumer("c1", &workspace, Filter::default()).await
    }

    /// A record of a letter, made now.
    pub fn record_of(&self, workspace: &WorkspaceId, letter: &Letter) -> NewRecord {
        let now = self.now();
        NewRecord {
            key: RecordKey {
                workspace: workspace.clone(),
                message_id: letter.message_id,
            },
            record: Record {
                content_hash: ContentHash([7; 32]),
                state: RecordState::Recorded,
                recorded_at: now,
                attempt: self.token(),
                story: None,
                producer: letter.attributes.producer_id.clone(),
                published_at: None,
                expires_at: now.plus(RECORD_LIFETIME),
            },
            story: None,
            now,
            window: WINDOW,
        }
    }

    /// What is handed to the topic for a letter by this attempt.
    pub fn publication(&self, workspace: &WorkspaceId, letter: &Letter, attempt: Token) -> Publication {
        Publication {
            workspace: workspace.clone(),
            message_id: letter.message_id,
            correlation_id: letter.correlation_id,
            story: None,
            body: letter.body.clone(),
            attributes: letter.attributes.clone(),
            about: letter.about.clone(),
            claim: Claim {
                attempt,
                until: self.now().plus(WINDOW / 3),
            },
        }
    }

    /// Hands a publication to the topic.
    pub async fn publish(&self, publication: &Publication) -> Result<(), PublishError> {
        self.stores.topic.publish(publication, WINDOW / 6).await
    }

    /// Sends a letter as the bus does: RECORD, PUBLISH, MARK.
    pub async fn send(&self, workspace: &WorkspaceId, letter: &Letter) {
        let new = self.record_of(workspace, letter);
        assert_eq!(self.ledger().record(&new).await.unwrap(), Recorded::Done);
        self.publish(&self.publication(workspace, letter, new.record.attempt))
            .await
            .unwrap();
        let marking = Marking {
            key: new.key,
            attempt: new.record.attempt,
            now: self.now(),
            expires_at: self.now().plus(RECORD_LIFETIME),
        };
        assert_eq!(self.ledger().mark(&marking).await.unwrap(), Written::Done);
    }

    /// Sends message `n` of order group `group`.
    pub async fn send_to(&self, queue: &QueueKey, n: u64, group: u64) {
        self.send(&queue.workspace, &Letter::new(n, group)).await;
    }

    /// Publishes a letter by a right of its own: a second time when it was published before, as a retry past the window does.
    pub async fn publish_anew(&self, workspace: &WorkspaceId, letter: &Letter) {
        let new = self.record_of(workspace, letter);
        let attempt = match self.ledger().record(&new).await.unwrap() {
            Recorded::Done => new.record.attempt,
            Recorded::Known(known) => known.attempt,
            Recorded::StoryMoved => unreachable!("an event has no story"),
        };
        self.publish(&self.publication(workspace, letter, attempt))
            .await
            .unwrap();
        let removal = Removal {
            key: new.key,
            attempt,
            story: None,
            now: self.now(),
            window: WINDOW,
        };
        self.ledger().remove(&removal).await.unwrap();
    }

    /// Makes a job that delivers into a queue; whoever works at it has this turn.
    pub async fn job(&self, queue: &QueueKey, id: &str) -> Turn {
        let job = sample::job(id, queue, self.now());
        let audit = sample::audit("job.create", &[id], self.now());
        assert_eq!(self.jobs().create(&job, &audit).await.unwrap(), Written::Done);
        job.turn()
    }

    /// Lets another write the job: a new turn.
    pub async fn next_turn(&self, job: &JobId) -> Turn {
        let mut job = self.jobs().get(job).await.unwrap().unwrap();
        job.version += 1;
        assert_eq!(self.jobs().update(&job, None).await.unwrap(), Written::Done);
        job.turn()
    }

    /// Receives up to `max`, without waiting, hidden for the sample visibility.
    pub async fn receive(&self, queue: &QueueKey, max: usize) -> Vec<Delivery> {
        self.receive_as(queue, &receive(max)).await
    }

    /// Receives.
    pub async fn receive_as(&self, queue: &QueueKey, receive: &Receive) -> Vec<Delivery> {
        self.queues().receive(queue, receive).await.unwrap()
    }

    /// Gives a consumer this limit of receives: the receive that keeps to it. An engine may take it from the one or the other.
    pub async fn limited(&self, queue: &QueueKey, max_receives: u32) -> Receive {
        let mut connection = self.connections().get(&queue.consumer).await.unwrap().unwrap();
        connection.version += 1;
        if let Role::Consumer(consumer) = &mut connection.role {
            consumer.max_receives = max_receives;
        }
        let audit = sample::audit("consumer.update", &[queue.consumer.as_str()], self.now());
        self.connections().update(&connection, &audit).await.unwrap();
        self.settle().await;
        Receive {
            max_receives,
            ..receive(1)
        }
    }

    /// Acknowledges deliveries.
    pub async fn acknowledge(&self, queue: &QueueKey, deliveries: &[Delivery]) -> Vec<Settled> {
        self.queues()
            .acknowledge(queue, &handles(deliveries))
            .await
            .unwrap()
    }

    /// Gives deliveries back after a delay.
    pub async fn release(&self, queue: &QueueKey, deliveries: &[Delivery], delay: Duration) -> Vec<Settled> {
        self.queues()
            .release(queue, &handles(deliveries), delay)
            .await
            .unwrap()
    }

    /// Rejects deliveries.
    pub async fn reject(&self, queue: &QueueKey, deliveries: &[Delivery], reason: &str) -> Vec<Settled> {
        self.queues()
            .reject(queue, &handles(deliveries), reason)
            .await
            .unwrap()
    }

    /// How full a queue is.
    pub async fn counts(&self, queue: &QueueKey) -> QueueCounts {
        self.queues().counts(queue).await.unwrap()
    }

    /// All dead letters of a queue.
    pub async fn dead_letters(&self, queue: &QueueKey) -> Vec<DeadLetter> {
        let limits = DeadLetterLimits {
            letters: 10_000,
            bytes: usize::MAX,
        };
        self.letters().list(queue, None, limits).await.unwrap().0
    }

    /// Everything that a queue holds, in order: receives and acknowledges until nothing comes.
    pub async fn drain(&self, queue: &QueueKey) -> Vec<Delivery> {
        let mut all = Vec::new();
        loop {
            let received = self.receive(queue, 10).await;
            if received.is_empty() {
                return all;
            }
            self.acknowledge(queue, &received).await;
            all.extend(received);
        }
    }
}

/// A receive of up to `max` that does not wait.
#[must_use]
pub(super) fn receive(max: usize) -> Receive {
    Receive {
        max,
        wait: Duration::ZERO,
        visibility: VISIBILITY,
        max_receives: 5,
        attempt: None,
    }
}

/// The receipt handles of deliveries.
#[must_use]
pub(crate) fn handles(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| delivery.receipt_handle.clone())
        .collect()
}

/// The number that a message was made from.
#[must_use]
pub(crate) fn number(message_id: MessageId) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message_id.as_bytes()[8..]);
    u64::from_be_bytes(bytes)
}

/// Which messages these are, by the numbers they were made from.
#[must_use]
pub(super) fn numbers(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries
        .iter()
        .map(|delivery| number(delivery.message_id))
        .collect()
}
