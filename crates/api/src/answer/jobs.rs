//! Jobs as the operator API shows them.

use serde::Serialize;
use storybus_core::domain::filter::TypePattern;
use storybus_core::domain::job::{Job, JobError, JobState, Work};
use storybus_protocol::id::{ConnectionId, CorrelationId, JobId, MessageId, WorkspaceId};

/// A job.
#[derive(Serialize)]
pub(crate) struct JobShown<'a> {
    job_id: &'a JobId,
    kind: &'static str,
    tenant: &'a WorkspaceId,
    consumer: &'a ConnectionId,
    state: JobState,
    moved: u64,
    scanned: u64,
    progress: f64,
    #[serde(flatten)]
    work: WorkShown<'a>,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    created_by: &'a str,
    cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a JobError>,
}

/// What only one kind has.
#[derive(Serialize)]
#[serde(untagged)]
enum WorkShown<'a> {
    RedriveAll {},
    Redrive {
        message_ids: &'a [MessageId],
        #[serde(skip_serializing_if = "Option::is_none")]
        missing: Option<&'a [MessageId]>,
    },
    Replay {
        from: String,
        to: String,
        message_types: &'a [TypePattern],
        story_ids: &'a [String],
        correlation_ids: &'a [CorrelationId],
    },
}

impl<'a> From<&'a Job> for JobShown<'a> {
    fn from(job: &'a Job) -> Self {
        let work = match &job.work {
            Work::Redrive { message_ids: None } => WorkShown::RedriveAll {},
            Work::Redrive {
                message_ids: Some(message_ids),
            } => WorkShown::Redrive {
                message_ids,
                missing: (job.state == JobState::Done).then_some(&job.unmet),
            },
            Work::Replay {
                from,
                to,
                message_types,
                story_ids,
                correlation_ids,
            } => WorkShown::Replay {
                from: from.to_rfc3339(),
                to: to.to_rfc3339(),
                message_types,
                story_ids,
                correlation_ids,
            },
        };
        Self {
            job_id: &job.id,
            kind: job.kind(),
            tenant: &job.workspace,
            consumer: &job.consumer,
            state: job.state,
            moved: job.moved,
            scanned: job.scanned,
            progress: job.progress(),
            work,
            created_at: job.created_at.to_rfc3339(),
            started_at: job.started_at.map(|at| at.to_rfc3339()),
            finished_at: job.finished_at.map(|at| at.to_rfc3339()),
            created_by: &job.created_by,
            cancel_requested: job.cancel_requested,
            error: job.error.as_ref(),
        }
    }
}
