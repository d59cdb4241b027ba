//! A relay's step: one transaction that settles what came back, moves the lines up, places what is new, and claims.

mod claim;
mod next;
mod only;
mod singly;

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use bytes::Bytes;
use serde::Serialize;

use super::conn::{Arg, Conn, Sql};
use super::enqueue::parse_state;
use super::lock::{self, Lock};
use super::write::{self, Image, Last, Turn, rows};
use super::{OutboxError, State, Trouble};

pub(super) use claim::RULE_FORGOTTEN;
#[cfg(test)]
pub(super) use claim::{CLAIM, DUE, PLACE};
#[cfg(test)]
pub(super) use next::{FAR_AHEAD, NEARER, NEXT_DUE};
#[cfg(test)]
pub(super) use only::{ONLY_DUE, ONLY_NEXT_DUE, ONLY_PLACE, ONLY_STANDINGS};

/// What a relay wants of a target.
#[derive(Debug)]
pub(crate) struct Want<'a> {
    pub(crate) target: &'a str,
    /// At most so many messages,
    pub(crate) slots: usize,
    /// and so many bytes of them together; but one, however large.
    pub(crate) bytes: u64,
    /// How long its partner remembers a key, less the time that an attempt may take.
    pub(crate) memory: i64,
    /// What parks it without a settlement: so many attempts in a round, the last of whose owners never came back,
    pub(crate) deserted_after: i64,
    /// and so many milliseconds since its first round began.
    pub(crate) given_up_after: i64,
    /// The place of what is parked.
    pub(crate) parked_turn: Option<Turn>,
}

/// What a step is to do.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    /// Who claims.
    pub(crate) owner: &'a str,
    /// How long, in milliseconds.
    pub(crate) lease: i64,
    /// What came back: each image with its pause, which is counted from the database's time of this step.
    pub(crate) settle: &'a [Settling],
    pub(crate) wants: &'a [Want<'a>],
    /// Only these, and what stands in line before them.
    pub(crate) only: Option<&'a [i64]>,
    /// Added to the database's time.
    pub(crate) offset: i64,
    /// Each row for itself, since a step failed for what was written: so that one that can never be written does not stop the others.
    pub(crate) singly: bool,
    /// What is due or leased for so many milliseconds more was written before the clock was set back.
    pub(crate) far: i64,
}

/// What came of a claim.
#[derive(Debug, Clone)]
pub(crate) struct Settling {
    /// As it is to be written, but for the times.
    pub(crate) image: Image,
    /// Due again after so many milliseconds.
    pub(crate) pause: i64,
}

/// A message that is a relay's for the time of its lease.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) id: i64,
    pub(crate) target: String,
    pub(crate) key: String,
    pub(crate) body: Bytes,
    pub(crate) content_type: Option<String>,
    pub(crate) fence: i64,
    /// This one included.
    pub(crate) attempts: i64,
    /// This one included.
    pub(crate) round_attempts: i64,
    pub(crate) rounds_since: i64,
    pub(crate) round_renewals: i64,
    /// The answer before this attempt's.
    pub(crate) last: Last,
    /// By the database's clock.
    pub(crate) claimed_at: i64,
    /// The first attempt that may have left something, this one or an earlier.
    pub(crate) unsure_since: i64,
    /// Whether it was an earlier one.
    pub(crate) unsure_before: bool,
}

/// A message that was parked instead of being claimed.
#[derive(Debug, Clone)]
pub(crate) struct Parked {
    pub(crate) id: i64,
    pub(crate) target: String,
    pub(crate) key: String,
    pub(crate) attempts: i64,
    pub(crate) last: Last,
}

/// A message that could not be claimed, parked or settled.
#[derive(Debug, Clone)]
pub(crate) struct Stuck {
    /// Target and key, where it was not the caller who named it.
    pub(crate) name: Option<(String, String)>,
    pub(crate) trouble: Trouble,
}

/// Where a wanted message stands.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) id: i64,
    pub(crate) target: String,
    pub(crate) state: State,
    /// The one that is first in its line, when that is another.
    pub(crate) holder: Option<Holder>,
}

/// The first of a line.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) id: i64,
    pub(crate) key: String,
    pub(crate) state: State,
    /// In so many milliseconds.
    pub(crate) due_in: i64,
    pub(crate) leased: bool,
}

/// What a step did.
#[derive(Debug, Default)]
pub(crate) struct Stepped {
    /// The ids of those that were settled: the others had been taken over.
    pub(crate) settled: HashSet<i64>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) parked: Vec<Parked>,
    /// Those that the database did not let be written, by their ids.
    pub(crate) stuck: BTreeMap<i64, Stuck>,
    /// More may be claimed at once: not everything has been placed yet.
    pub(crate) more: bool,
    /// When the next of the targets with free slots is due, in milliseconds.
    pub(crate) due_in: Option<i64>,
    /// Where the wanted ones stand.
    pub(crate) standings: Vec<Standing>,
}

pub(super) static SETTLED_BEFORE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT id, fence, state FROM sender_log
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND lease_owner IS NULL",
    )
});

#[derive(Serialize)]
struct Id {
    id: i64,
}

fn ids(of: &[i64]) -> String {
    rows(&of.iter().map(|id| Id { id: *id }).collect::<Vec<_>>())
}

/// Does the step, whole or not at all. Repeated after a failure it settles what is not settled yet and changes nothing more; what the failed one
/// may have claimed without anybody knowing is claimed again when its lease has run out.
pub(crate) async fn step(mut conn: Conn<'_>, step: &Step<'_>) -> Result<Stepped, OutboxError> {
    let conn = &mut conn;
    let now = lock::begin(conn, Lock::Lines).await? + step.offset;
    let mut done = Stepped::default();
    let images: Vec<Image> = step
        .settle
        .iter()
        .map(|settling| Image {
            due_at: now.saturating_add(settling.pause),
            finished_at: (settling.image.state != State::Pending).then_some(now),
            ..settling.image.clone()
        })
        .collect();
    done.settled = if step.singly {
        singly::write(conn, &images, &mut done.stuck).await?
    } else {
        write::write(conn, &images).await?.into_iter().collect()
    };
    settled_before(conn, &images, &mut done.settled).await?;
    let lines = match step.only {
        Some(only) => Some(only::standings(conn, only, now, step.far, &mut done).await?),
        None => None,
    };
    for want in step.wants.iter().filter(|want| want.slots > 0) {
        claim::claim(conn, step, want, now, lines.as_deref(), &mut done).await?;
    }
    lock::commit(conn).await?;
    Ok(done)
}

/// A step whose commit got through, but not its answer, is repeated: what it has settled counts as settled, not as taken over.
async fn settled_before(
    conn: &mut Conn<'_>,
    images: &[Image],
    settled: &mut HashSet<i64>,
) -> Result<(), OutboxError> {
    let missing: Vec<&Image> = images
        .iter()
        .filter(|image| !settled.contains(&image.id))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let ids = ids(&missing.iter().map(|image| image.id).collect::<Vec<_>>());
    for row in conn.rows(&SETTLED_BEFORE, &[Arg::Text(&ids)]).await? {
        let (id, fence, state) = (row.int(0)?, row.int(1)?, parse_state(&row.text(2)?)?);
        if missing
            .iter()
            .any(|image| (image.id, image.fence, image.state) == (id, fence, state))
        {
            settled.insert(id);
        }
    }
    Ok(())
}
