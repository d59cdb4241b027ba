//! Jobs: replays and redrives, which work in the background.

use serde::{Deserialize, Serialize};
use storybus_protocol::id::{ConnectionId, CorrelationId, JobId, MessageId, WorkspaceId};

use super::archived::Position;
use super::delivery::QueueKey;
use super::filter::TypePattern;
use super::time::Millis;

/// A job, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The consumer into whose queue it delivers.
    pub consumer: ConnectionId,
    /// What it does.
    pub work: Work,
    /// Who asked for it: an operator's id.
    pub created_by: String,
    /// When.
    pub created_at: Millis,
    /// When its first step was done.
    pub started_at: Option<Millis>,
    /// When it was over.
    pub finished_at: Option<Millis>,
    /// Where it stands.
    pub state: JobState,
    /// Why it failed.
    pub error: Option<JobError>,
    /// Whether somebody wants it to end.
    pub cancel_requested: bool,
    /// How many messages were looked at.
    pub scanned: u64,
    /// How many were put into the queue.
    pub moved: u64,
    /// How many there were to look at when it began, if that is known.
    pub total: Option<u64>,
    /// The last message that was looked at: it goes on behind it.
    pub position: Option<Position>,
    /// When that one was published, for a replay.
    pub position_at: Option<Millis>,
    /// How many steps were written down. A wish to end writes the job too and is none.
    pub steps: u64,
    /// Dead letters that have arrived in the queue and are removed before the next step.
    pub unremoved: Vec<Position>,
    /// A redrive takes no more dead letters: what it holds is delivered, and then it is done.
    #[serde(default)]
    pub exhausted: bool,
    /// Of a redrive's chosen messages, those that were not met yet.
    pub unmet: Vec<MessageId>,
    /// Grows with every write; an update names the one it read.
    pub version: u64,
}

/// The right to work at a job: as long as it stands as it was read. Whoever writes the job (a step that is done, a wish to
/// end) ends the turns of all who read it before, so that a runner that was paused does nothing more when it wakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The job.
    pub job: JobId,
    /// Its version when it was read.
    pub version: u64,
}

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Work {
    /// Dead letters back into the queue.
    Redrive {
        /// These; or else all that were dead when the job was made.
        message_ids: Option<Vec<MessageId>>,
    },
    /// Archived messages into the queue again.
    Replay {
        /// Inclusive.
        from: Millis,
        /// Exclusive.
        to: Millis,
        /// Empty: all.
        message_types: Vec<TypePattern>,
        /// Empty: all.
        story_ids: Vec<String>,
        /// Empty: all.
        correlation_ids: Vec<CorrelationId>,
    },
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No step is done yet.
    Queued,
    /// At work.
    Running,
    /// Over: everything was looked at.
    Done,
    /// Over: it could not go on.
    Failed,
    /// Over: somebody wanted it to end.
    Cancelled,
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The rule.
    pub rule: String,
    /// For people.
    pub message: String,
}

impl Job {
    /// Whether nothing more will happen.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self.state, JobState::Queued | JobState::Running)
    }

    /// The queue it delivers into.
    #[must_use]
    pub fn queue(&self) -> QueueKey {
        QueueKey {
            workspace: self.workspace.clone(),
            consumer: self.consumer.clone(),
        }
    }

    /// The turn of whoever has read it like this.
    #[must_use]
    pub fn turn(&self) -> Turn {
        Turn {
            job: self.id.clone(),
            version: self.version,
        }
    }

    /// `replay` or `redrive`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.work {
            Work::Redrive { .. } => "redrive",
            Work::Replay { .. } => "replay",
        }
    }

    /// How far it is, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f64 {
        if self.state == JobState::Done {
            return 1.0;
        }
        match &self.work {
            Work::Replay { from, to, .. } => {
                let at = self.position_at.unwrap_or(*from);
                ratio(from.until(at).as_secs_f64(), from.until(*to).as_secs_f64())
            }
            #[expect(clippy::cast_precision_loss, reason = "a share for people")]
            Work::Redrive { .. } => ratio(self.scanned as f64, self.total.unwrap_or_default() as f64),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        0.0
    }
}
