//! Ports that fail on purpose.
//!
//! [`Faulty`] wraps any port. Before each call it asks its [`Director`] what shall happen: nothing, a failure that
//! surely did nothing, one that did its work and lost the answer, or the end of the caller, as when a process is
//! killed. [`Plan`] is the director for tests that know what they want; the explorations have their own, which stops at
//! every call and tries everything; [`FaultSwitch`] brings the faults of a running bus that was started for tests.

mod history;
mod plan;
mod ports;
mod switch;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use storybus_core::ports::ledger::{Recorded, Written};
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{
    ActivityLog, Archive, AuditLog, Connections, DeadLetters, Jobs, Ledger, QueueControl, Queues, StoreError,
    Stories, Topic, Workspaces,
};

pub use plan::{Hold, Plan};
pub use switch::{FaultSwitch, UnknownFault};

use crate::suite::Stores;

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// Nothing: the call is done.
    None,
    /// It fails and surely did nothing; the same call may succeed in a moment.
    Before,
    /// It fails and surely did nothing, for good.
    Refused,
    /// It never arrived, and the caller cannot know.
    Lost,
    /// It was done, and its answer was lost: the caller cannot know.
    After,
    /// The caller gives up waiting and cannot know; the call arrives later, when the director lets it.
    Late,
    /// The caller is stopped before the call.
    StopBefore,
    /// The call is done and the caller stopped before it sees the answer.
    StopAfter,
    /// The same, but only when the call did what it was for; else the caller goes on.
    StopWhenDone,
}

/// A method of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Call {
    Read,
    Record,
    Claim,
    Supersede,
    Remove,
    GiveBack,
    Mark,
    Publish,
    Receive,
    Acknowledge,
    Release,
    Reject,
    Counts,
    Redeliver,
    Purge,
    Trace,
    LetterList,
    LetterTake,
    LetterRemove,
    LetterRelease,
    ArchiveRead,
    ArchiveFind,
    ArchiveAbout,
    ArchiveLatest,
    StoryList,
    StoryGet,
    JobCreate,
    JobGet,
    JobList,
    JobUpdate,
    JobUnfinished,
    RefusalList,
    WorkspaceCreate,
    WorkspaceGet,
    WorkspaceList,
    WorkspaceUpdate,
    WorkspaceDelete,
    ConnectionCreate,
    ConnectionGet,
    ConnectionList,
    ConnectionUpdate,
    ConnectionDelete,
    AuditList,
}

impl Call {
    /// Whether it can change anything.
    #[must_use]
    pub const fn writes(self) -> bool {
        match self {
            Self::Read
            | Self::Counts
            | Self::Trace
            | Self::LetterList
            | Self::ArchiveRead
            | Self::ArchiveFind
            | Self::ArchiveAbout
            | Self::ArchiveLatest
            | Self::StoryList
            | Self::StoryGet
            | Self::JobGet
            | Self::JobList
            | Self::JobUnfinished
            | Self::RefusalList
            | Self::WorkspaceGet
            | Self::WorkspaceList
            | Self::ConnectionGet
            | Self::ConnectionList
            | Self::AuditList => false,
            Self::Record
            | Self::Claim
            | Self::Supersede
            | Self::Remove
            | Self::GiveBack
            | Self::Mark
            | Self::Publish
            | Self::Receive
            | Self::Acknowledge
            | Self::Release
            | Self::Reject
            | Self::Redeliver
            | Self::Purge
            | Self::LetterTake
            | Self::LetterRemove
            | Self::LetterRelease
            | Self::JobCreate
            | Self::JobUpdate
            | Self::WorkspaceCreate
            | Self::WorkspaceUpdate
            | Self::WorkspaceDelete
            | Self::ConnectionCreate
            | Self::ConnectionUpdate
            | Self::ConnectionDelete => true,
        }
    }
}

/// Decides what happens at each call.
#[async_trait]
pub trait Director: Send + Sync {
    /// Asked before a call; holds the caller for as long as it takes to answer.
    async fn before(&self, call: Call) -> Fault;

    /// Told after a call that was done, before the caller sees its answer; `done`: it did what it was for.
    async fn after(&self, _call: Call, _done: bool) {}

    /// Takes a call that arrives late.
    fn late(&self, _call: Call, work: BoxFuture<'static, ()>) {
        drop(work);
    }

    /// Ends the caller: never comes back.
    async fn stop(&self, _call: Call) -> Infallible {
        std::future::pending().await
    }
}

/// A port that does what its director says.
pub struct Faulty<P: ?Sized> {
    inner: Arc<P>,
    director: Arc<dyn Director>,
}

impl<P: ?Sized> Faulty<P> {
    /// A wrapper around a port.
    #[must_use]
    pub fn new(inner: Arc<P>, director: Arc<dyn Director>) -> Self {
        Self { inner, director }
    }

    async fn around<T, E>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Outcome + Send + 'static,
        E: Failing + Send + 'static,
    {
        let done = |result: &Result<T, E>| result.as_ref().is_ok_and(Outcome::done);
        match self.director.before(call).await {
            Fault::None => {
                let result = work.await;
                self.director.after(call, done(&result)).await;
                result
            }
            Fault::Before => Err(E::not_now()),
            Fault::Refused => Err(E::refused()),
            Fault::Lost => Err(E::unknown()),
            Fault::After => {
                let result = work.await;
                self.director.after(call, done(&result)).await;
                Err(E::unknown())
            }
            Fault::Late => {
                self.director.late(call, work.map(drop).boxed());
                Err(E::unknown())
            }
            Fault::StopBefore => match self.director.stop(call).await {},
            Fault::StopAfter => {
                let result = work.await;
                self.director.after(call, done(&result)).await;
                match self.director.stop(call).await {}
            }
            Fault::StopWhenDone => {
                let result = work.await;
                if done(&result) {
                    match self.director.stop(call).await {}
                }
                result
            }
        }
    }
}

/// An engine's ports, each doing what this director says.
#[must_use]
pub fn stores(stores: &Stores, director: &Arc<dyn Director>) -> Stores {
    macro_rules! wrapped {
        ($($field:ident: $port:ident),* $(,)?) => {
            Stores { $($field: Arc::new(Faulty::<dyn $port>::new(stores.$field.clone(), director.clone()))),* }
        };
    }
    wrapped! {
        ledger: Ledger,
        topic: Topic,
        queues: Queues,
        queue_control: QueueControl,
        dead_letters: DeadLetters,
        archive: Archive,
        stories: Stories,
        jobs: Jobs,
        activity: ActivityLog,
        workspaces: Workspaces,
        connections: Connections,
        audit: AuditLog,
    }
}

/// Whether a call did what it was for.
trait Outcome {
    fn done(&self) -> bool {
        true
    }
}

impl Outcome for Recorded {
    fn done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl Outcome for Written {
    fn done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

/// A port's error, made on purpose.
trait Failing {
    /// Surely nothing was done; the same call may succeed in a moment.
    fn not_now() -> Self;
    /// Surely nothing was done, and nothing will be.
    fn refused() -> Self;
    /// Nobody knows.
    fn unknown() -> Self;
}

fn on_purpose() -> String {
    "failed on purpose".to_owned()
}

impl Failing for StoreError {
    fn not_now() -> Self {
        Self::Unavailable { reason: on_purpose() }
    }

    fn refused() -> Self {
        Self::Internal { reason: on_purpose() }
    }

    fn unknown() -> Self {
        Self::Unknown { reason: on_purpose() }
    }
}

impl Failing for RegistryError {
    fn not_now() -> Self {
        StoreError::not_now().into()
    }

    fn refused() -> Self {
        StoreError::refused().into()
    }

    fn unknown() -> Self {
        StoreError::unknown().into()
    }
}

impl Failing for PublishError {
    fn not_now() -> Self {
        Self::Refused {
            reason: on_purpose(),
            retryable: true,
        }
    }

    fn refused() -> Self {
        Self::Refused {
            reason: on_purpose(),
            retryable: false,
        }
    }

    fn unknown() -> Self {
        Self::Unknown { reason: on_purpose() }
    }
}
