//! What jobs put into a queue.

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::ports::StoreError;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_protocol::id::{CorrelationId, JobId, MessageId, WorkspaceId};

use super::{Arrival, enqueue};
use crate::error::Failure;
use crate::rows::{self, Rows as _};
use crate::writer::Tx;
use crate::{dead_letters, jobs, messages};

/// How long it is remembered how far a job has delivered, from its last delivery on: longer than anything that could be
/// delivered again is kept.
const MEMORY: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many messages of a job one transaction puts in.
pub(crate) const PART: usize = 25;

/// One message of a job, without its body: that is stored already.
struct Source {
    /// Its place where the job has it from.
    place: i64,
    message: i64,
    message_id: MessageId,
    group: CorrelationId,
}

/// What one call of a job puts in.
pub(crate) struct Redeliver {
    queue: Option<i64>,
    workspace: WorkspaceId,
    job: JobId,
    /// Looked at, if it is there.
    turn: Option<Turn>,
    mark: String,
    sources: Vec<Source>,
}

impl Redeliver {
    pub(crate) fn new(
        queue: Option<i64>,
        key: &QueueKey,
        job: &JobId,
        turn: Option<&Turn>,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Self, StoreError> {
        let source = |message: &Redelivery| {
            let (place, seq) = source_of(&message.position).ok_or_else(|| StoreError::Internal {
                reason: format!("{} is no place of this engine", message.position.0),
            })?;
            Ok(Source {
                place,
                message: seq,
                message_id: message.message_id,
                group: message.correlation_id,
            })
        };
        Ok(Self {
            queue,
            workspace: key.workspace.clone(),
            job: job.clone(),
            turn: turn.cloned(),
            mark: mark.to_owned(),
            sources: messages.iter().map(source).collect::<Result<_, StoreError>>()?,
        })
    }

    pub(crate) fn run(&self, tx: &mut Tx<'_>) -> Result<Redelivered, Failure> {
        if let Some(turn) = &self.turn
            && !jobs::has_turn(tx, turn)?
        {
            return Ok(Redelivered::Overtaken);
        }
        // the registry is as of the last commit
        let open = "SELECT id FROM queue WHERE id = ?1 AND NOT closed";
        let Some(queue) = tx.find(open, [self.queue], |row| row.get::<_, i64>(0))? else {
            return Ok(Redelivered::NoQueue);
        };
        let job = self.job.as_str();
        let through: i64 = tx
            .find(
                "SELECT through FROM redelivered WHERE job = ?1 AND queue = ?2",
                (job, queue),
                |row| row.get(0),
            )?
            .unwrap_or(i64::MIN);
        let workspace = tx.number(&self.workspace)?;
        let mut last = through;
        for source in &self.sources {
            if source.place <= last {
                continue;
            }
            last = source.place;
            // read from the archive just before its time was over
            if !messages::exists(tx, workspace, source.message)? {
                continue;
            }
            let arrival = Arrival {
                position: tx.next_position()?,
                message: source.message,
                message_id: source.message_id,
                group: &source.group,
                redelivery: Some(&self.mark),
            };
            enqueue(tx, queue, arrival)?;
        }
        if last > through {
            tx.execute(
                "INSERT INTO redelivered (job, queue, through, at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (job, queue) DO UPDATE SET through = excluded.through, at = excluded.at",
                (job, queue, last, tx.now().0),
            )?;
        }
        Ok(Redelivered::Done)
    }
}

/// A place in the archive or among the dead letters, and the message that is there.
fn source_of(position: &Position) -> Option<(i64, i64)> {
    dead_letters::place(position).or_else(|| rows::place(position).map(|seq| (seq, seq)))
}

/// Forgets jobs that have delivered nothing for long, up to a number; whether there may be more.
pub(crate) fn sweep(tx: &Tx<'_>, budget: usize) -> Result<bool, Failure> {
    let over = tx.all(
        "SELECT job, queue FROM redelivered WHERE at <= ?1 ORDER BY at LIMIT ?2",
        (rows::before(tx.now(), MEMORY).0, rows::limit(budget)),
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)),
    )?;
    for (job, queue) in &over {
        tx.execute(
            "DELETE FROM redelivered WHERE job = ?1 AND queue = ?2",
            (job, queue),
        )?;
    }
    Ok(over.len() == budget)
}
