//! The ports of history and jobs, wrapped.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::{Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::{Job, Turn};
use storybus_core::domain::record::StoryKey;
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::QueueTrace;
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::ledger::Written;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::stories::NamedStory;
use storybus_core::ports::{ActivityLog, Archive, DeadLetters, Jobs, QueueControl, StoreError, Stories};
use storybus_protocol::id::{CorrelationId, JobId, MessageId, WorkspaceId};

use super::ports::through;
use super::{Call, Faulty, Outcome};

impl Outcome for Part {}
impl<T> Outcome for (Vec<T>, bool) {}

impl Outcome for Redelivered {
    fn done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

#[async_trait]
impl<P: Archive + ?Sized + 'static> Archive for Faulty<P> {
    fn retention(&self) -> Duration {
        self.inner.retention()
    }

    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let after = after.cloned();
        through!(self, ArchiveRead, |inner, workspace, selection| inner.read(
            &workspace,
            range,
            after.as_ref(),
            &selection,
            limits
        ))
    }

    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError> {
        through!(self, ArchiveFind, |inner, workspace| inner
            .find(&workspace, message_id))
    }

    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let (story, after) = (*story, after.cloned());
        through!(self, ArchiveAbout, |inner, workspace| inner.about(
            &workspace,
            &story,
            correlation,
            after.as_ref(),
            limit
        ))
    }

    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let before = before.cloned();
        through!(self, ArchiveLatest, |inner, workspace| inner.latest(
            &workspace,
            before.as_ref(),
            limit
        ))
    }

    fn is_position(&self, position: &Position) -> bool {
        self.inner.is_position(position)
    }
}

#[async_trait]
impl<P: DeadLetters + ?Sized + 'static> DeadLetters for Faulty<P> {
    async fn list(
        &self,
        queue: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        let after = after.cloned();
        through!(self, LetterList, |inner, queue| inner.list(
            &queue,
            after.as_ref(),
            limits
        ))
    }

    async fn take(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        let after = after.cloned();
        let chosen = match wanted {
            Wanted::Messages(ids) => ids.to_vec(),
            Wanted::All { .. } | Wanted::Held => Vec::new(),
        };
        let until = match wanted {
            Wanted::All { until } => Some(until),
            Wanted::Messages(_) | Wanted::Held => None,
        };
        let held = wanted == Wanted::Held;
        let (inner, queue, turn) = (Arc::clone(&self.inner), queue.clone(), turn.clone());
        self.around(Call::LetterTake, async move {
            let wanted = match until {
                _ if held => Wanted::Held,
                Some(until) => Wanted::All { until },
                None => Wanted::Messages(&chosen),
            };
            inner.take(&queue, &turn, wanted, after.as_ref(), limits).await
        })
        .await
    }

    async fn remove(&self, queue: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError> {
        through!(self, LetterRemove, |inner, queue, job, positions| inner
            .remove(&queue, &job, &positions))
    }

    async fn release(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        through!(self, LetterRelease, |inner, queue, job| inner
            .release(&queue, &job))
    }

    fn is_position(&self, position: &Position) -> bool {
        self.inner.is_position(position)
    }
}

#[async_trait]
impl<P: QueueControl + ?Sized + 'static> QueueControl for Faulty<P> {
    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        through!(self, Redeliver, |inner, queue, turn, mark, messages| inner
            .redeliver(&queue, &turn, &mark, &messages))
    }

    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        through!(self, Purge, |inner, queue, audit| inner.purge(&queue, &audit))
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        through!(self, Trace, |inner, workspace, publications| inner.trace(
            &workspace,
            message_id,
            &publications
        ))
    }
}

#[async_trait]
impl<P: Stories + ?Sized + 'static> Stories for Faulty<P> {
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<NamedStory>, StoreError> {
        let after = after.cloned();
        through!(self, StoryList, |inner, workspace| inner.list(
            &workspace,
            after.as_ref(),
            limit
        ))
    }

    async fn get(&self, key: &StoryKey) -> Result<Option<NamedStory>, StoreError> {
        through!(self, StoryGet, |inner, key| inner.get(&key))
    }

    fn is_position(&self, position: &Position) -> bool {
        self.inner.is_position(position)
    }
}

#[async_trait]
impl<P: Jobs + ?Sized + 'static> Jobs for Faulty<P> {
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError> {
        through!(self, JobCreate, |inner, job, audit| inner.create(&job, &audit))
    }

    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        through!(self, JobGet, |inner, id| inner.get(&id))
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let after = after.map(|(at, id)| (at, id.clone()));
        through!(self, JobList, |inner, workspace| inner.list(
            &workspace,
            after.as_ref().map(|(at, id)| (*at, id)),
            limit
        ))
    }

    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError> {
        let audit = audit.cloned();
        through!(self, JobUpdate, |inner, job| inner.update(&job, audit.as_ref()))
    }

    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        let workspace = workspace.cloned();
        through!(self, JobUnfinished, |inner| inner.unfinished(workspace.as_ref()))
    }
}

#[async_trait]
impl<P: ActivityLog + ?Sized + 'static> ActivityLog for Faulty<P> {
    /// Meets no fault: it promises nothing.
    fn note(&self, refusal: RefusedPublish) {
        self.inner.note(refusal);
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        let before = before.cloned();
        through!(self, RefusalList, |inner, workspace| inner.list(
            &workspace,
            before.as_ref(),
            limit
        ))
    }

    fn is_position(&self, position: &Position) -> bool {
        self.inner.is_position(position)
    }
}
