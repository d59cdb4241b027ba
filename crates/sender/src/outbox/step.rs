//! A relay's step: one transaction that settles what came back, moves the lines up, places what is new, and claims.

use std::collections::HashSet;
use std::sync::LazyLock;

use bytes::Bytes;
use serde::Serialize;

use super::conn::{Arg, Conn, Row, Sql};
use super::enqueue::{parse_hash, parse_state};
use super::lock::{self, Lock};
use super::write::{self, Image, Last, Line, Turn, rows};
use super::{OutboxError, State};
use crate::message::PayloadHash;

/// How many rows are placed by one statement. A multiple of what a relay has under way, so that the first of many groups come early.
const PLACED_AT_ONCE: i64 = 256;
/// How many times in one step, so that a step stays short whatever waits.
const LOOKS: usize = 5;

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
    /// More may be claimed at once: not everything has been placed yet.
    pub(crate) more: bool,
    /// When the next of the targets with free slots is due, in milliseconds.
    pub(crate) due_in: Option<i64>,
    /// Where the wanted ones stand.
    pub(crate) standings: Vec<Standing>,
}

pub(super) static PLACE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET turn = CASE
            WHEN order_group IS NULL THEN 'first'
            WHEN EXISTS (SELECT 1 FROM sender_log AS f
                         WHERE f.target = sender_log.target AND f.order_group = sender_log.order_group AND f.turn = 'first') THEN 'waiting'
            WHEN EXISTS (SELECT 1 FROM sender_log AS l
                         WHERE l.target = sender_log.target AND l.order_group = sender_log.order_group AND l.turn IS NOT NULL
                           AND l.id < sender_log.id) THEN 'waiting'
            ELSE 'first' END
         WHERE id IN (SELECT n.id FROM sender_log AS n WHERE n.target = $1 AND n.turn = 'new' ORDER BY n.id LIMIT $2)",
    )
});

const COLUMNS: &str =
    "id, fence, attempts, round_attempts, rounds_since, unsure_since, COALESCE(lease_owner, ''), key,
    CAST(octet_length(payload) AS BIGINT), last_status, last_outcome, last_rule, last_detail";

pub(super) static DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log
         WHERE target = $1 AND turn = 'first' AND state = 'pending' AND due_at <= $2 ORDER BY due_at, id LIMIT $3"
    ))
});

pub(super) static NEXT_DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new("SELECT min(due_at) FROM sender_log WHERE target = $1 AND turn = 'first' AND state = 'pending'")
});

pub(super) static CLAIM: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET attempts = attempts + 1, round_attempts = round_attempts + 1, fence = fence + 1,
            rounds_since = COALESCE(rounds_since, $2), first_attempt_at = COALESCE(first_attempt_at, $2), last_attempt_at = $2,
            unsure_since = COALESCE(unsure_since, $2), lease_owner = $3, lease_until = $4, due_at = $4
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows})
         RETURNING id, key, payload, content_type, payload_hash, fence, attempts, round_attempts, rounds_since, unsure_since",
    )
});

pub(super) static SETTLED_BEFORE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT id, fence, state FROM sender_log
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND lease_owner IS NULL",
    )
});

static FILL_HASH: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new("UPDATE sender_log SET payload_hash = $2 WHERE id = $1 AND payload_hash IS NULL")
});

// Here and below, conditions are written so that no index but that of the ids can be taken: those are few, and what is new or due may be much.
pub(super) static ONLY_PLACE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET turn = 'first'
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND COALESCE(turn, '') = 'new' AND COALESCE(order_group, '') = ''",
    )
});

pub(super) static ONLY_STANDINGS: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT r.id, r.state, r.turn, r.target, r.order_group, f.id, f.state, f.due_at, COALESCE(f.lease_owner, ''), f.key
         FROM (SELECT CAST(value ->> 'id' AS BIGINT) AS of_id FROM {rows}) AS v
         JOIN sender_log AS r ON r.id = v.of_id
         LEFT JOIN sender_log AS f ON f.target = r.target AND f.order_group = r.order_group AND f.turn = 'first' AND r.turn IS NOT NULL
         ORDER BY r.id",
    )
});

pub(super) static ONLY_DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {{rows}}) AND COALESCE(target, '') = $2 AND COALESCE(turn, '') = 'first'
           AND state || '' = 'pending' AND COALESCE(due_at, 0) <= $3 ORDER BY due_at, id LIMIT $4"
    ))
});

#[derive(Serialize)]
struct Id {
    id: i64,
}

fn ids(of: &[i64]) -> String {
    rows(&of.iter().map(|id| Id { id: *id }).collect::<Vec<_>>())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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
    done.settled = write::write(conn, &images).await?.into_iter().collect();
    settled_before(conn, &images, &mut done.settled).await?;
    let lines = match step.only {
        Some(only) => Some(standings(conn, only, now, &mut done).await?),
        None => None,
    };
    for want in step.wants.iter().filter(|want| want.slots > 0) {
        claim(conn, step, want, now, lines.as_deref(), &mut done).await?;
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

/// Claims what is due of a target, and places what is new as long as there are slots for it.
async fn claim(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
    want: &Want<'_>,
    now: i64,
    only: Option<&[i64]>,
    done: &mut Stepped,
) -> Result<(), OutboxError> {
    let mut slots = want.slots;
    let mut bytes = want.bytes;
    for look in 0.. {
        let limit = count(slots);
        let due = match only {
            None => {
                conn.rows(&DUE, &[Arg::Text(want.target), Arg::Int(now), Arg::Int(limit)])
                    .await?
            }
            Some(only) => {
                let only = ids(only);
                conn.rows(
                    &ONLY_DUE,
                    &[
                        Arg::Text(&only),
                        Arg::Text(want.target),
                        Arg::Int(now),
                        Arg::Int(limit),
                    ],
                )
                .await?
            }
        };
        let found = due.len();
        let chosen = choose(conn, want, now, due, &mut bytes, done).await?;
        slots -= chosen.len();
        take(conn, step, want, now, &chosen, done).await?;
        // There may be more, for the next step, when there are slots again.
        if bytes == 0 || slots == 0 {
            return Ok(());
        }
        if look == LOOKS {
            done.more = true;
            return Ok(());
        }
        // Some of them were parked instead: look again.
        if found > chosen.len() {
            continue;
        }
        if only.is_some() {
            break;
        }
        let placed = conn
            .run(&PLACE, &[Arg::Text(want.target), Arg::Int(PLACED_AT_ONCE)])
            .await?;
        if placed == 0 {
            break;
        }
    }
    let next = conn.row(&NEXT_DUE, &[Arg::Text(want.target)]).await?;
    if let Some(due) = next.map(|row| row.int_or_null(0)).transpose()?.flatten() {
        let due_in = (due - now).max(0);
        done.due_in = Some(done.due_in.map_or(due_in, |known| known.min(due_in)));
    }
    Ok(())
}

/// A message that is to be sent.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    id: i64,
    unsure_before: bool,
}

/// Of what is due: what is to be sent. What must not be sent any more is parked here.
async fn choose(
    conn: &mut Conn<'_>,
    want: &Want<'_>,
    now: i64,
    due: Vec<Row>,
    bytes: &mut u64,
    done: &mut Stepped,
) -> Result<Vec<Chosen>, OutboxError> {
    let mut chosen = Vec::with_capacity(due.len());
    let mut parking = Vec::new();
    for row in due {
        let id = row.int(0)?;
        let unsure_since = row.int_or_null(5)?;
        let round_attempts = row.int(3)?;
        let owner = row.text(6)?;
        let forgotten = unsure_since.is_some_and(|since| now.saturating_sub(since) >= want.memory);
        let rounds_since = row.int_or_null(4)?;
        let deserted = !owner.is_empty()
            && round_attempts >= want.deserted_after
            && rounds_since.is_some_and(|since| now.saturating_sub(since) >= want.given_up_after);
        if forgotten || deserted {
            let mut last = Last {
                status: row.int_or_null(9)?.and_then(|status| u16::try_from(status).ok()),
                outcome: row.text_or_null(10)?,
                rule: row.text_or_null(11)?,
                detail: row.text_or_null(12)?,
            };
            last.rule = Some(if forgotten { RULE_FORGOTTEN } else { RULE_DESERTED }.to_owned());
            last.detail = Some(
                if forgotten {
                    DETAIL_FORGOTTEN
                } else {
                    DETAIL_DESERTED
                }
                .to_owned(),
            );
            let attempts = row.int(2)?;
            done.parked.push(Parked {
                id,
                target: want.target.to_owned(),
                key: row.text(7)?,
                attempts,
                last: last.clone(),
            });
            let fence = row.int(1)?;
            parking.push(Image {
                id,
                fence,
                next_fence: fence + 1,
                owner,
                state: State::Parked,
                turn: want.parked_turn,
                attempts,
                round_attempts,
                rounds_since,
                due_at: now,
                unsure_since,
                finished_at: Some(now),
                last,
            });
            continue;
        }
        let size = u64::try_from(row.int(8)?).unwrap_or(0);
        if size > *bytes && !(chosen.is_empty() && *bytes == want.bytes) {
            *bytes = 0;
            break;
        }
        *bytes = bytes.saturating_sub(size);
        chosen.push(Chosen {
            id,
            unsure_before: unsure_since.is_some(),
        });
    }
    write::write(conn, &parking).await?;
    Ok(chosen)
}

/// The rule of a message that the partner may have and may have forgotten.
pub(crate) const RULE_FORGOTTEN: &str = "sender.partner_may_have_forgotten";
const DETAIL_FORGOTTEN: &str = "it may have arrived longer ago than the partner remembers keys: sending it again could deliver it twice, after newer ones. \
    Look there; then drop it, or resend it with a confirmation";
/// The rule of a message during whose attempts relay after relay ended.
const RULE_DESERTED: &str = "sender.relays_ended";
const DETAIL_DESERTED: &str = "relays ended, or lost their leases, while they were sending it, again and again: look at their logs before resending it";

async fn take(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
    want: &Want<'_>,
    now: i64,
    chosen: &[Chosen],
    done: &mut Stepped,
) -> Result<(), OutboxError> {
    if chosen.is_empty() {
        return Ok(());
    }
    let rows = conn
        .rows(
            &CLAIM,
            &[
                Arg::Text(&ids(&chosen.iter().map(|one| one.id).collect::<Vec<_>>())),
                Arg::Int(now),
                Arg::Text(step.owner),
                Arg::Int(now.saturating_add(step.lease)),
            ],
        )
        .await?;
    let mut claims = Vec::with_capacity(rows.len());
    for row in rows {
        let (id, body) = (row.int(0)?, Bytes::from(row.bytes(2)?));
        match row.bytes_or_null(4)? {
            Some(hash) => {
                parse_hash(hash)?;
            }
            None => {
                conn.run(&FILL_HASH, &[Arg::Int(id), Arg::Bytes(&PayloadHash::of(&body).0)])
                    .await?;
            }
        }
        claims.push(Claim {
            id,
            target: want.target.to_owned(),
            key: row.text(1)?,
            body,
            content_type: row.text_or_null(3)?,
            fence: row.int(5)?,
            attempts: row.int(6)?,
            round_attempts: row.int(7)?,
            rounds_since: row.int(8)?,
            claimed_at: now,
            unsure_since: row.int(9)?,
            unsure_before: chosen.iter().any(|one| one.id == id && one.unsure_before),
        });
    }
    // In the order in which they were chosen: what has waited longest is sent first.
    claims.sort_by_key(|claim: &Claim| chosen.iter().position(|one| one.id == claim.id));
    done.claims.append(&mut claims);
    Ok(())
}

/// Brings the wanted ones' lines up, and tells where they stand. The ids that may be claimed for them.
async fn standings(
    conn: &mut Conn<'_>,
    only: &[i64],
    now: i64,
    done: &mut Stepped,
) -> Result<Vec<i64>, OutboxError> {
    if only.is_empty() {
        return Ok(Vec::new());
    }
    let only = ids(only);
    conn.run(&ONLY_PLACE, &[Arg::Text(&only)]).await?;
    let mut found = conn.rows(&ONLY_STANDINGS, &[Arg::Text(&only)]).await?;
    let mut idle = HashSet::new();
    for row in &found {
        if let (Some(_), Some(group), None) =
            (row.text_or_null(2)?, row.text_or_null(4)?, row.int_or_null(5)?)
        {
            idle.insert(Line {
                target: row.text(3)?,
                group,
            });
        }
    }
    if !idle.is_empty() {
        write::move_up(conn, &idle.into_iter().collect::<Vec<_>>()).await?;
        found = conn.rows(&ONLY_STANDINGS, &[Arg::Text(&only)]).await?;
    }
    let mut candidates = Vec::with_capacity(found.len());
    for row in found {
        let id = row.int(0)?;
        let holder = match row.int_or_null(5)? {
            Some(first) if first != id => Some(Holder {
                id: first,
                key: row.text(9)?,
                state: parse_state(&row.text(6)?)?,
                due_in: row.int(7)? - now,
                leased: !row.text(8)?.is_empty(),
            }),
            _ => None,
        };
        candidates.push(holder.as_ref().map_or(id, |holder| holder.id));
        done.standings.push(Standing {
            id,
            target: row.text(3)?,
            state: parse_state(&row.text(1)?)?,
            holder,
        });
    }
    candidates.sort_unstable();
    candidates.dedup();
    Ok(candidates)
}
