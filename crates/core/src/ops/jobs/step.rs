//! One step of a job: deliver, write down how far it is, then remove what has arrived.
//!
//! **Nothing is skipped and nothing counted twice, wherever it dies.** A step delivers first and writes down where it is
//! after; dying in between, it delivers the same messages again, which the queue takes once (deduplication by job and
//! position), and counts them then. A redrive's dead letters are removed at the beginning of the next step, from the list that was
//! written down with their arrival: dying before, they are removed by whoever goes on. Until then they stay the job's own, so
//! that no other redrive delivers them too. Before it ends, cancelled or not, a redrive delivers what it holds: a step
//! that was not written down may have delivered it already.
//!
//! **Two runners do no harm.** Everything that a step does is done under its [`Turn`](crate::domain::job::Turn): the first to write
//! the job ends the turns of the others, and what two of them do at the same turn is the same.
//!
//! A wish to end may be written beside a step. The step's own write then fails on the version, finds that no other step
//! was written, and is made again on what it read: the wish is seen at the next step. When the step was the last, the job is done.

use storybus_protocol::id::{JobId, MessageId};
use storybus_protocol::rule;

use super::MAX_ATTEMPTS;
use crate::bus::Bus;
use crate::domain::archived::{Archived, Position, Selection, TimeRange};
use crate::domain::connection::{Connection, Role};
use crate::domain::dead_letter::DeadLetter;
use crate::domain::delivery::QueueKey;
use crate::domain::job::{Job, JobError, JobState, Work};
use crate::domain::message::Attributes;
use crate::domain::record::story_digest;
use crate::domain::time::Millis;
use crate::ports::StoreError;
use crate::ports::archive::PartLimits;
use crate::ports::dead_letters::{DeadLetterLimits, Wanted};
use crate::ports::ledger::Written;
use crate::ports::queue_control::{MAX_REDELIVERIES, Redelivered, Redelivery};

/// Bytes of bodies of one step, at most, unless one message alone has more.
const STEP_BYTES: usize = 4 * 1024 * 1024;
/// Messages that one step of a replay looks at, at most.
const STEP_SCANNED: usize = 10_000;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// There is more to do.
    Goes,
    /// The job is over, or there is none.
    Over,
}

/// A step that could not be done; the same later.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the job's step was not done: {operation}: {reason}")]
pub struct StepFailed {
    /// At what.
    operation: &'static str,
    /// For the log.
    reason: String,
}

fn failed(operation: &'static str) -> impl Fn(StoreError) -> StepFailed {
    move |error| StepFailed {
        operation,
        reason: error.to_string(),
    }
}

/// How far a step has come.
#[derive(Default)]
struct Progress {
    scanned: u64,
    moved: u64,
    position: Option<Position>,
    position_at: Option<Millis>,
    unremoved: Vec<Position>,
    met: Vec<MessageId>,
    exhausted: bool,
    end: Option<JobState>,
    error: Option<JobError>,
}

impl Progress {
    fn end(state: JobState) -> Self {
        Self {
            end: Some(state),
            ..Self::default()
        }
    }

    /// The consumer was deleted.
    fn no_queue(job: &Job) -> Self {
        if job.cancel_requested {
            return Self::end(JobState::Cancelled);
        }
        Self {
            error: Some(JobError {
                rule: rule::CONSUMER_NOT_FOUND.to_owned(),
                message: "the consumer was deleted; what was moved before went with its queue".to_owned(),
            }),
            ..Self::end(JobState::Failed)
        }
    }

    fn apply(&self, job: &mut Job, now: Millis) {
        job.scanned += self.scanned;
        job.moved += self.moved;
        if self.position.is_some() {
            job.position.clone_from(&self.position);
        }
        if self.position_at.is_some() {
            job.position_at = self.position_at;
        }
        job.unremoved.clone_from(&self.unremoved);
        job.exhausted |= self.exhausted;
        job.unmet.retain(|id| !self.met.contains(id));
        job.started_at = job.started_at.or(Some(now));
        job.state = self.end.unwrap_or(JobState::Running);
        job.error.clone_from(&self.error);
        job.finished_at = self.end.map(|_| now);
        job.steps += 1;
        job.version += 1;
    }
}

impl Bus {
    /// Takes a job one step further: at most 100 messages and about 4 MiB of them.
    ///
    /// # Errors
    ///
    /// A store that fails. The same step later is safe, by anybody, also while another takes it: it delivers nothing twice that the
    /// queue's deduplication knows.
    pub async fn job_step(&self, id: &JobId) -> Result<Stepped, StepFailed> {
        let Some(job) = self.ports.jobs.get(id).await.map_err(failed("jobs.get"))? else {
            return Ok(Stepped::Over);
        };
        if job.is_over() {
            return Ok(Stepped::Over);
        }
        if !job.unremoved.is_empty() {
            let removed = self
                .ports
                .dead_letters
                .remove(&job.queue(), id, &job.unremoved)
                .await;
            removed.map_err(failed("dead_letters.remove"))?;
        }
        let Some(progress) = self.advance(&job).await? else {
            return Ok(Stepped::Goes); // another has the turn
        };
        let (queue, is_redrive) = (job.queue(), matches!(job.work, Work::Redrive { .. }));
        if progress.end.is_some() && is_redrive {
            self.letters_release(&queue, id).await?;
        }
        let stepped = self.write_down(job, &progress).await?;
        if stepped == Stepped::Over && is_redrive {
            // what a runner in the same turn has taken since; from now on none can
            self.letters_release(&queue, id).await?;
        }
        Ok(stepped)
    }

    async fn letters_release(&self, queue: &QueueKey, id: &JobId) -> Result<(), StepFailed> {
        let released = self.ports.dead_letters.release(queue, id).await;
        released.map_err(failed("dead_letters.release"))
    }

    /// Delivers. `None`: the turn is over.
    async fn advance(&self, job: &Job) -> Result<Option<Progress>, StepFailed> {
        if job.cancel_requested && matches!(job.work, Work::Replay { .. }) {
            return Ok(Some(Progress::end(JobState::Cancelled)));
        }
        let consumer = self.ports.connections.get(&job.consumer).await;
        let Some(Connection {
            role: Role::Consumer(consumer),
            ..
        }) = consumer.map_err(failed("connections.get"))?
        else {
            return Ok(Some(Progress::no_queue(job)));
        };
        match &job.work {
            Work::Redrive { message_ids } => self.redrive(job, message_ids.as_deref()).await,
            Work::Replay {
                from,
                to,
                message_types,
                story_ids,
                correlation_ids,
            } => {
                let selection = Selection {
                    types: message_types.clone(),
                    stories: story_ids.iter().map(|id| story_digest(id)).collect(),
                    correlations: correlation_ids.clone(),
                    filter: consumer.filter,
                };
                let range = TimeRange { from: *from, to: *to };
                self.replay(job, range, &selection).await
            }
        }
    }

    async fn redrive(&self, job: &Job, chosen: Option<&[MessageId]>) -> Result<Option<Progress>, StepFailed> {
        let ending = job.cancel_requested || job.exhausted;
        let wanted = match chosen {
            _ if ending => Wanted::Held,
            Some(chosen) => Wanted::Messages(chosen),
            None => Wanted::All {
                until: job.created_at,
            },
        };
        let limits = DeadLetterLimits {
            letters: MAX_REDELIVERIES,
            bytes: STEP_BYTES,
        };
        let taken = self
            .ports
            .dead_letters
            .take(&job.queue(), &job.turn(), wanted, job.position.as_ref(), limits)
            .await
            .map_err(failed("dead_letters.take"))?;
        let Some(mut taken) = taken else {
            return Ok(None);
        };
        let Some(last) = taken.last() else {
            return Ok(Some(match job.cancel_requested {
                _ if !ending => Progress {
                    exhausted: true,
                    ..Progress::default()
                },
                true => Progress::end(JobState::Cancelled),
                false => Progress::end(JobState::Done),
            }));
        };
        let position = Some(last.position.clone());
        // What it delivered itself and died again is left alone: else a consumer that rejects would keep the job going for ever.
        let mark = mark(job);
        taken.retain(|letter| letter.redelivery.as_ref() != Some(&mark));
        let progress = Progress {
            scanned: count(taken.len()),
            moved: count(taken.len()),
            position,
            unremoved: taken.iter().map(|letter| letter.position.clone()).collect(),
            met: taken.iter().map(|letter| letter.message_id).collect(),
            ..Progress::default()
        };
        let messages = taken
            .into_iter()
            .map(from_dead_letter)
            .collect::<Result<_, _>>()?;
        self.redeliver(job, messages, progress).await
    }

    async fn replay(
        &self,
        job: &Job,
        range: TimeRange,
        selection: &Selection,
    ) -> Result<Option<Progress>, StepFailed> {
        let limits = PartLimits {
            messages: MAX_REDELIVERIES,
            scanned: STEP_SCANNED,
            bytes: STEP_BYTES,
        };
        let part = self
            .ports
            .archive
            .read(&job.workspace, range, job.position.as_ref(), selection, limits)
            .await
            .map_err(failed("archive.read"))?;
        let progress = Progress {
            scanned: part.scanned,
            moved: count(part.messages.len()),
            position: part.last,
            position_at: part.last_at,
            end: part.end.then_some(JobState::Done),
            ..Progress::default()
        };
        let messages = part
            .messages
            .into_iter()
            .map(from_archive)
            .collect::<Result<_, _>>()?;
        self.redeliver(job, messages, progress).await
    }

    /// Puts messages into the queue; then the step has come as far as `progress`.
    async fn redeliver(
        &self,
        job: &Job,
        messages: Vec<Redelivery>,
        progress: Progress,
    ) -> Result<Option<Progress>, StepFailed> {
        if messages.is_empty() {
            return Ok(Some(progress));
        }
        let redelivered = self
            .ports
            .queue_control
            .redeliver(&job.queue(), &job.turn(), &mark(job), &messages)
            .await;
        Ok(match redelivered.map_err(failed("queue_control.redeliver"))? {
            Redelivered::Done => Some(progress),
            Redelivered::NoQueue => Some(Progress::no_queue(job)),
            Redelivered::Overtaken => None,
        })
    }

    /// The checkpoint.
    async fn write_down(&self, read: Job, progress: &Progress) -> Result<Stepped, StepFailed> {
        let (id, steps) = (read.id.clone(), read.steps);
        let mut current = read;
        for _ in 0..MAX_ATTEMPTS {
            progress.apply(&mut current, self.ports.clock.now());
            let written = self.ports.jobs.update(&current, None).await;
            if written.map_err(failed("jobs.update"))? == Written::Done {
                return Ok(if current.is_over() {
                    Stepped::Over
                } else {
                    Stepped::Goes
                });
            }
            match self.ports.jobs.get(&id).await.map_err(failed("jobs.get"))? {
                // somebody wants it to end
                Some(job) if job.steps == steps && !job.is_over() => current = job,
                // another has taken this step
                Some(job) if !job.is_over() => return Ok(Stepped::Goes),
                _ => return Ok(Stepped::Over),
            }
        }
        Ok(Stepped::Goes)
    }
}

/// What the messages of a job bear as their `redelivery`.
fn mark(job: &Job) -> String {
    format!("{}:{}", job.kind(), job.id)
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn from_dead_letter(letter: DeadLetter) -> Result<Redelivery, StepFailed> {
    redelivery(letter.position, letter.message_id, letter.body, letter.attributes)
}

fn from_archive(message: Archived) -> Result<Redelivery, StepFailed> {
    let Archived { head, body } = message;
    redelivery(head.position, head.message_id, body, head.attributes)
}

fn redelivery(
    position: Position,
    message_id: MessageId,
    body: bytes::Bytes,
    attributes: Attributes,
) -> Result<Redelivery, StepFailed> {
    let correlation_id = attributes.correlation_id.parse().map_err(|_| StepFailed {
        operation: "correlation id",
        reason: format!("message {message_id} is stored with one that is no UUID"),
    })?;
    Ok(Redelivery {
        position,
        message_id,
        correlation_id,
        body,
        attributes,
    })
}
