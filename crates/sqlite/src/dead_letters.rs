//! The consumers' dead letters.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Row;
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::{Cause, DeadLetter};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::domain::time::Millis;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::queues::RETENTION;
use storybus_core::ports::{DeadLetters, StoreError};
use storybus_protocol::id::{JobId, MessageId, WorkspaceId};

use crate::error::Failure;
use crate::jobs;
use crate::messages;
use crate::reader::View;
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::{Change, Tx};

/// [`DeadLetters`] on SQLite.
///
/// Bodies are read by the reader. A take therefore reads first what it would get and then marks it on the writer, which sees
/// whether that is still so.
#[derive(Clone)]
pub struct SqliteDeadLetters {
    inner: Arc<Inner>,
}

impl SqliteDeadLetters {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    fn queue(&self, key: &QueueKey) -> Option<i64> {
        self.inner.registry().queue(key).map(|queue| queue.id())
    }

    /// What died by then is gone, unless a job holds it.
    fn cutoff(&self) -> Millis {
        rows::before(self.inner.clock().now(), RETENTION)
    }
}

#[async_trait]
impl DeadLetters for SqliteDeadLetters {
    async fn list(
        &self,
        key: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        let Some(queue) = self.queue(key) else {
            return Ok((Vec::new(), false));
        };
        let (workspace, cutoff, after) = (key.workspace.clone(), self.cutoff(), behind(after));
        self.inner
            .history()
            .call(move |view| {
                let rows = view.all(
                    concat!(
                        "SELECT ",
                        letter_columns!(),
                        " FROM dead_letter WHERE queue = ?1 AND position > ?2 AND (job IS NOT NULL OR dead_at > ?3)
                          ORDER BY position LIMIT ?4"
                    ),
                    (queue, after, cutoff.0, rows::limit(limits.letters.saturating_add(1))),
                    Stone::read,
                )?;
                let found = rows.len();
                let letters = load(view, &workspace, rows, limits)?;
                let more = letters.len() < found;
                Ok((letters, more))
            })
            .await
    }

    async fn take(
        &self,
        key: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        let look = Look {
            queue: self.queue(key).unwrap_or_default(),
            workspace: key.workspace.clone(),
            job: turn.job.clone(),
            after: behind(after),
            wanted: match wanted {
                Wanted::All { until } => Choice::Until(until),
                Wanted::Messages(ids) => Choice::Messages(ids.into()),
                Wanted::Held => Choice::Held,
            },
            limits,
        };
        loop {
            let (at, cutoff) = (look.clone(), self.cutoff());
            let found = self
                .inner
                .history()
                .call(move |view| at.read(view, cutoff))
                .await?;
            let (at, turn, held) = (look.clone(), turn.clone(), found.held);
            let places: Arc<[i64]> = found.letters.iter().map(|(place, _)| *place).collect();
            let marked = self
                .inner
                .writer()
                .call(move |tx| at.mark(tx, &turn, held, &places))
                .await?;
            match marked {
                Marked::Overtaken => return Ok(None),
                Marked::Changed => {}
                Marked::Taken(taken) => {
                    let letters = found.letters.into_iter();
                    let ours = letters.filter(|(place, _)| taken.contains(place));
                    let of_job = |letter| DeadLetter {
                        taken_by: Some(look.job.clone()),
                        ..letter
                    };
                    return Ok(Some(ours.map(|(_, letter)| of_job(letter)).collect()));
                }
            }
        }
    }

    async fn remove(&self, key: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError> {
        let Some(queue) = self.queue(key) else {
            return Ok(());
        };
        let job = job.clone();
        let places: Vec<i64> = positions
            .iter()
            .filter_map(place)
            .map(|(place, _)| place)
            .collect();
        self.inner
            .writer()
            .call(move |tx| {
                for place in &places {
                    let sql = "DELETE FROM dead_letter WHERE queue = ?1 AND position = ?2 AND job = ?3";
                    if tx.execute(sql, (queue, place, job.as_str()))? > 0 {
                        let change = Change {
                            dead_lettered: -1,
                            ..Change::default()
                        };
                        tx.count(queue, change);
                    }
                }
                Ok(())
            })
            .await
    }

    async fn release(&self, key: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        let Some(queue) = self.queue(key) else {
            return Ok(());
        };
        let job = job.clone();
        let sql =
            "UPDATE dead_letter INDEXED BY dead_letter_job SET job = NULL WHERE queue = ?1 AND job = ?2";
        self.inner
            .writer()
            .call(move |tx| tx.execute(sql, (queue, job.as_str())).map(drop))
            .await
    }

    fn is_position(&self, position: &Position) -> bool {
        place(position).is_some()
    }
}

/// The place of a dead letter: its position in the queue, and the message, so that whoever gets it back finds that too.
fn position(place: i64, message: i64) -> Position {
    Position(format!("{place}.{message}"))
}

/// The two numbers of such a place; `None` for a text that is none.
pub(crate) fn place(text: &Position) -> Option<(i64, i64)> {
    let (place, message) = text.0.split_once('.')?;
    let (place, message) = (place.parse().ok()?, message.parse().ok()?);
    (place >= 0 && message >= 0 && *text == position(place, message)).then_some((place, message))
}

fn behind(after: Option<&Position>) -> i64 {
    after.and_then(place).map_or(i64::MIN, |(place, _)| place)
}

/// The columns of a dead letter, in the order [`Stone::read`] wants them.
macro_rules! letter_columns {
    () => {
        "position, message, receives, enqueued_at, dead_at, reason, redelivery, job"
    };
}
use letter_columns;

/// A dead letter without its message.
struct Stone {
    place: i64,
    message: i64,
    receives: u32,
    enqueued_at: Millis,
    dead_at: Millis,
    reason: Option<String>,
    redelivery: Option<String>,
    job: Option<JobId>,
}

impl Stone {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let job: Option<String> = row.get(7)?;
        Ok(Self {
            place: row.get(0)?,
            message: row.get(1)?,
            receives: row.get(2)?,
            enqueued_at: rows::millis(row, 3)?,
            dead_at: rows::millis(row, 4)?,
            reason: row.get(5)?,
            redelivery: row.get(6)?,
            job: job.map(|_| rows::parsed(row, 7)).transpose()?,
        })
    }
}

fn load(
    view: &View<'_>,
    workspace: &WorkspaceId,
    stones: Vec<Stone>,
    limits: DeadLetterLimits,
) -> Result<Vec<DeadLetter>, Failure> {
    let workspace = view.known_number(workspace)?.unwrap_or_default();
    let mut letters = Vec::new();
    let mut bytes = 0_usize;
    for stone in stones {
        if letters.len() >= limits.letters.max(1) {
            break;
        }
        let message = messages::load(view, workspace, stone.message)?.ok_or_else(|| {
            Failure::Stored(format!("message {} of a dead letter is not there", stone.message))
        })?;
        bytes = bytes.saturating_add(message.body.len());
        if bytes > limits.bytes && !letters.is_empty() {
            break;
        }
        letters.push(DeadLetter {
            position: position(stone.place, stone.message),
            message_id: message.head.message_id,
            body: message.body,
            attributes: message.head.attributes,
            receive_count: stone.receives,
            enqueued_at: stone.enqueued_at,
            dead_at: stone.dead_at,
            cause: stone.reason.map_or(Cause::MaxReceives, Cause::Rejected),
            redelivery: stone.redelivery,
            taken_by: stone.job,
        });
    }
    Ok(letters)
}

#[derive(Clone)]
enum Choice {
    Until(Millis),
    Messages(Arc<[MessageId]>),
    Held,
}

/// What a take looks for.
#[derive(Clone)]
struct Look {
    queue: i64,
    workspace: WorkspaceId,
    job: JobId,
    after: i64,
    wanted: Choice,
    limits: DeadLetterLimits,
}

/// What it has seen, each with its place.
struct Found {
    /// Whether the job holds them already.
    held: bool,
    letters: Vec<(i64, DeadLetter)>,
}

enum Marked {
    Taken(Vec<i64>),
    /// It is no longer as it was seen.
    Changed,
    Overtaken,
}

impl Look {
    fn read(&self, view: &View<'_>, cutoff: Millis) -> Result<Found, Failure> {
        let limit = rows::limit(self.limits.letters);
        let held = view.all(
            concat!(
                "SELECT ",
                letter_columns!(),
                " FROM dead_letter INDEXED BY dead_letter_job WHERE queue = ?1 AND job = ?2 AND position > ?3
                  ORDER BY position LIMIT ?4"
            ),
            (self.queue, self.job.as_str(), self.after, limit),
            Stone::read,
        )?;
        let is_held = !held.is_empty();
        let stones = if is_held { held } else { self.free(view, cutoff)? };
        let places: Vec<i64> = stones.iter().map(|stone| stone.place).collect();
        let letters = load(view, &self.workspace, stones, self.limits)?;
        Ok(Found {
            held: is_held,
            letters: places.into_iter().zip(letters).collect(),
        })
    }

    /// What no job holds.
    fn free(&self, view: &View<'_>, cutoff: Millis) -> Result<Vec<Stone>, Failure> {
        let limit = self.limits.letters;
        match &self.wanted {
            Choice::Held => Ok(Vec::new()),
            Choice::Until(until) => view.all(
                concat!(
                    "SELECT ",
                    letter_columns!(),
                    " FROM dead_letter WHERE queue = ?1 AND position > ?2 AND +job IS NULL AND +dead_at > ?3 AND +dead_at <= ?4
                      ORDER BY position LIMIT ?5"
                ),
                (self.queue, self.after, cutoff.0, until.0, rows::limit(limit)),
                Stone::read,
            ),
            Choice::Messages(ids) => {
                let mut all = Vec::new();
                for id in ids.iter() {
                    all.extend(view.all(
                        concat!(
                            "SELECT ",
                            letter_columns!(),
                            " FROM dead_letter INDEXED BY dead_letter_message_id
                              WHERE queue = ?1 AND message_id = ?2 AND position > ?3 AND job IS NULL AND dead_at > ?4"
                        ),
                        (self.queue, id.as_bytes(), self.after, cutoff.0),
                        Stone::read,
                    )?);
                }
                all.sort_unstable_by_key(|stone| stone.place);
                all.dedup_by_key(|stone| stone.place);
                all.truncate(limit);
                Ok(all)
            }
        }
    }

    /// Makes what was seen the job's own, unless it is not as it was seen.
    fn mark(&self, tx: &Tx<'_>, turn: &Turn, held: bool, places: &[i64]) -> Result<Marked, Failure> {
        if !jobs::has_turn(tx, turn)? {
            return Ok(Marked::Overtaken);
        }
        let holds = tx.all(
            "SELECT position FROM dead_letter INDEXED BY dead_letter_job WHERE queue = ?1 AND job = ?2 AND position > ?3
             ORDER BY position LIMIT ?4",
            (self.queue, self.job.as_str(), self.after, rows::limit(self.limits.letters)),
            |row| row.get::<_, i64>(0),
        )?;
        if held || !holds.is_empty() {
            let same = held && holds.starts_with(places);
            return Ok(if same {
                Marked::Taken(holds)
            } else {
                Marked::Changed
            });
        }
        let mut taken = Vec::with_capacity(places.len());
        for place in places {
            let sql = "UPDATE dead_letter SET job = ?3 WHERE queue = ?1 AND position = ?2 AND job IS NULL";
            if tx.execute(sql, (self.queue, place, self.job.as_str()))? > 0 {
                taken.push(*place);
            }
        }
        if taken.is_empty() && !places.is_empty() {
            return Ok(Marked::Changed);
        }
        Ok(Marked::Taken(taken))
    }
}
