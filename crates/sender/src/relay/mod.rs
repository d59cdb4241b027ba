//! The relay: empties an outbox.
//!
//! It claims messages, sends them through the transport of their target, many at a time but one of an order group, and writes down what came of it.
//! Any number of relays may work on one outbox. Each claim is a lease with a number: a relay that was stopped, and whose lease another took
//! over, changes nothing when it goes on.
//!
//! [`Relay::run`] goes on until it is stopped; [`Relay::send`] sends given messages, with what stands in line before them, and ends.
//! [`Policy`] says what becomes of a message, [`Limits`] how one call is repeated, an [`Observer`] hears of each attempt.

pub(crate) mod attempt;
mod goal;
mod observer;
mod policy;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use goal::{Fate, Sent};
pub use observer::{Attempted, Ended, Observer, StepTaken, Unobserved};
pub use policy::{OnNo, OnSender, Policy, Rounds, SoFar, Verdict};

use crate::call::Limits;
use crate::message::Target;
use crate::outbox::{FAR, Outbox, OutboxError};
use crate::ports::{Clock, Random};
use crate::transport::Transport;

/// How many messages of one target are under way at most, unless told otherwise.
pub const CONCURRENCY: usize = 64;
/// How many bytes of messages are held at most, unless told otherwise.
pub const BYTES: u64 = 32 * 1024 * 1024;
/// How long an idle relay waits before it looks again, unless told otherwise.
pub const POLL: Duration = Duration::from_millis(500);

/// Sends what is in an outbox.
pub struct Relay {
    outbox: Outbox,
    transports: BTreeMap<String, Arc<dyn Transport>>,
    policy: Policy,
    limits: Limits,
    concurrency: usize,
    bytes: u64,
    /// What was asked for.
    asked_lease: Duration,
    poll: Duration,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    observer: Arc<dyn Observer>,
    owner: String,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("outbox", &self.outbox)
            .field("targets", &self.transports.keys())
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl Relay {
    /// A relay without transports yet. It works under a random name of its own.
    pub fn new(outbox: Outbox, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        let mut name = [0; 8];
        random.fill(&mut name);
        Self {
            outbox,
            transports: BTreeMap::new(),
            policy: Policy::default(),
            asked_lease: Duration::ZERO,
            limits: Limits::default(),
            concurrency: CONCURRENCY,
            bytes: BYTES,
            poll: POLL,
            clock,
            random,
            observer: Arc::new(Unobserved),
            owner: format!("{:016x}", u64::from_be_bytes(name)),
        }
    }

    /// How messages for this target are sent. Those for others are left alone: another relay may have a transport for them.
    #[must_use]
    pub fn transport(mut self, target: Target, transport: Arc<dyn Transport>) -> Self {
        self.transports.insert(target.as_str().to_owned(), transport);
        self
    }

    /// What becomes of a message.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How one call is repeated, and how long an attempt may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many messages of one target are under way at most; at least one.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// How many bytes of messages are held at most, over all targets; each may have one message under way, however large.
    #[must_use]
    pub fn bytes(mut self, most: u64) -> Self {
        self.bytes = most;
        self
    }

    /// How long a message is this relay's once it was claimed. After that any relay may send it: when this one died, so long does its message rest. At least
    /// twice an attempt's time limit and ten seconds, which is the default, and at most an hour.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.asked_lease = lease;
        self
    }

    /// How long an idle relay waits before it looks again. [`Outbox::wake`] ends the wait.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Who hears of attempts.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// The name under which it holds leases.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Sends until it is stopped. Then it claims nothing more, waits for the attempts under way, which end within their time limit, and writes down what came
    /// of them.
    ///
    /// A database that fails is tried again for ever ([`Observer::troubled`] hears of it). An error comes only if it still fails half a minute after
    /// the stop: then the messages of the last attempts are sent again, by whichever relay runs when their leases are over.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<(), OutboxError> {
        self.work(&mut goal::Goal::Everything, stop).await
    }

    /// Sends these messages, by their numbers in the outbox, and ends when each of them is delivered, refused or parked, or cannot be for now; a [`Sent`]
    /// for each, in the order given. Nothing else is sent but what stands in line before them, and that is not parked by this relay's policy: it
    /// keeps a relay's rounds.
    ///
    /// An error is as with [`Relay::run`], but also comes when the database fails for half a minute.
    pub async fn send(
        &self,
        ids: &[i64],
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Vec<Sent>, OutboxError> {
        let mut goal = goal::Goal::These(goal::These::new(ids));
        self.work(&mut goal, stop).await?;
        match goal {
            goal::Goal::These(these) => Ok(these.sent(ids)),
            goal::Goal::Everything => Ok(Vec::new()),
        }
    }

    /// What is due or leased for longer was written before the database's clock was set back: no pause of this relay's is as long, and none of another's
    /// that has the same policy.
    fn far(&self) -> Duration {
        let pause = match self.policy.rounds {
            Rounds::One => Duration::ZERO,
            Rounds::For { pause, .. } => pause,
        };
        let longest = pause.max(self.limits.max_delay).max(self.lease_of_a_claim());
        FAR.max(longest.saturating_mul(2))
    }

    /// How long a claim is this relay's.
    fn lease_of_a_claim(&self) -> Duration {
        self.asked_lease
            .min(FAR)
            .max(self.limits.timeout * 2 + Duration::from_secs(10))
    }
}
