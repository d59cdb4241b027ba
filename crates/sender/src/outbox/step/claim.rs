//! Claiming: what is due, in the order in which it was due, and what is new, placed as far as there are slots for it.

use std::sync::LazyLock;

use bytes::Bytes;

use super::super::conn::{Arg, Conn, Row, Sql};
use super::super::write::{self, Image, Last};
use super::super::{OutboxError, State, lock};
use super::{Claim, Parked, Step, Stepped, Stuck, Want, ids, next, only, singly};
use crate::message::PayloadHash;

/// How many rows are placed by one statement. A multiple of what a relay has under way, so that the first of many groups come early.
const PLACED_AT_ONCE: i64 = 256;
/// How many times in one step, so that a step stays short whatever waits.
const LOOKS: usize = 5;

pub(in crate::outbox) static PLACE: LazyLock<Sql> = LazyLock::new(|| {
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

pub(super) const COLUMNS: &str =
    "id, fence, attempts, round_attempts, rounds_since, unsure_since, COALESCE(lease_owner, ''), key,
    CAST(octet_length(payload) AS BIGINT), last_status, last_outcome, last_rule, last_detail";

pub(in crate::outbox) static DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log
         WHERE target = $1 AND turn = 'first' AND state = 'pending' AND due_at <= $2 ORDER BY due_at, id LIMIT $3"
    ))
});

pub(in crate::outbox) static CLAIM: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET attempts = attempts + 1, round_attempts = round_attempts + 1, fence = fence + 1,
            rounds_since = COALESCE(rounds_since, $2), first_attempt_at = COALESCE(first_attempt_at, $2), last_attempt_at = $2,
            unsure_since = COALESCE(unsure_since, $2), lease_owner = $3, lease_until = $4, due_at = $4
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows})
         RETURNING id, key, payload, content_type, payload_hash, fence, attempts, round_attempts, rounds_since, unsure_since,
            round_renewals",
    )
});

static FILL_HASH: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new("UPDATE sender_log SET payload_hash = $2 WHERE id = $1 AND payload_hash IS NULL")
});

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Claims what is due of a target, and places what is new as long as there are slots for it.
pub(super) async fn claim(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
    want: &Want<'_>,
    now: i64,
    lines: Option<&[i64]>,
    done: &mut Stepped,
) -> Result<(), OutboxError> {
    let mut slots = want.slots;
    let mut bytes = want.bytes;
    for look in 0.. {
        let limit = count(slots);
        let due = match lines {
            None => {
                conn.rows(&DUE, &[Arg::Text(want.target), Arg::Int(now), Arg::Int(limit)])
                    .await?
            }
            Some(lines) => {
                conn.rows(
                    &only::ONLY_DUE,
                    &[
                        Arg::Text(&ids(lines)),
                        Arg::Text(want.target),
                        Arg::Int(now),
                        Arg::Int(limit),
                    ],
                )
                .await?
            }
        };
        let found = due.len();
        let chosen = choose(conn, step, want, now, due, &mut bytes, done).await?;
        slots -= chosen.len();
        if step.singly {
            take_singly(conn, step, want, now, &chosen, done).await?;
        } else {
            take(conn, step, want, now, &chosen, done).await?;
        }
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
        if lines.is_some() {
            break;
        }
        let placed = conn
            .run(&PLACE, &[Arg::Text(want.target), Arg::Int(PLACED_AT_ONCE)])
            .await?;
        if placed == 0 {
            break;
        }
    }
    next::look(conn, step, want, now, lines, done).await
}

/// A message that is to be sent.
#[derive(Debug, Clone)]
struct Chosen {
    id: i64,
    key: String,
    unsure_before: bool,
    last: Last,
}

/// Of what is due: what is to be sent. What must not be sent any more is parked here.
async fn choose(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
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
        // Of given messages' lines: what is not given is a relay's to give up, by its own policy.
        let ours = step.only.is_none_or(|given| given.contains(&id));
        let deserted = ours
            && !owner.is_empty()
            && round_attempts >= want.deserted_after
            && rounds_since.is_some_and(|since| now.saturating_sub(since) >= want.given_up_after);
        let mut last = Last {
            status: row.int_or_null(9)?.and_then(|status| u16::try_from(status).ok()),
            outcome: row.text_or_null(10)?,
            rule: row.text_or_null(11)?,
            detail: row.text_or_null(12)?,
        };
        if forgotten || deserted {
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
                round_renewals: 0,
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
            key: row.text(7)?,
            unsure_before: unsure_since.is_some(),
            last,
        });
    }
    if step.singly {
        let written = singly::write(conn, &parking, &mut done.stuck).await?;
        let mut of_these = Vec::new();
        done.parked.retain(|parked| {
            let kept = written.contains(&parked.id) || parking.iter().all(|image| image.id != parked.id);
            if !kept {
                of_these.push((parked.id, parked.target.clone(), parked.key.clone()));
            }
            kept
        });
        for (id, target, key) in of_these {
            if let Some(stuck) = done.stuck.get_mut(&id) {
                stuck.name = Some((target, key));
            }
        }
    } else {
        write::write(conn, &parking).await?;
    }
    Ok(chosen)
}

/// The rule of a message that the partner may have and may have forgotten.
pub(in crate::outbox) const RULE_FORGOTTEN: &str = "sender.partner_may_have_forgotten";
const DETAIL_FORGOTTEN: &str = "it may have arrived longer ago than the partner remembers keys: sending it again could deliver it twice, after newer ones. \
    Look there; then drop it, or resend it with a confirmation";
/// The rule of a message during whose attempts relay after relay ended.
const RULE_DESERTED: &str = "sender.relays_ended";
const DETAIL_DESERTED: &str = "relays ended, or lost their leases, while they were sending it, again and again: look at their logs before resending it";

/// [`take`], each for itself.
async fn take_singly(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
    want: &Want<'_>,
    now: i64,
    chosen: &[Chosen],
    done: &mut Stepped,
) -> Result<(), OutboxError> {
    for one in chosen {
        lock::part(conn).await?;
        let result = take(conn, step, want, now, std::slice::from_ref(one), done).await;
        lock::end_part(conn, result.is_ok()).await?;
        if let Err(error) = result {
            let stuck = Stuck {
                name: Some((want.target.to_owned(), one.key.clone())),
                trouble: singly::of_a_row(error)?,
            };
            done.stuck.insert(one.id, stuck);
        }
    }
    Ok(())
}

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
        let Some(one) = chosen.iter().find(|one| one.id == id) else {
            continue;
        };
        match row.bytes_or_null(4)? {
            Some(_) => {}
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
            unsure_before: one.unsure_before,
            round_renewals: row.int(10)?,
            last: one.last.clone(),
        });
    }
    // In the order in which they were chosen: what has waited longest is sent first.
    claims.sort_by_key(|claim: &Claim| chosen.iter().position(|one| one.id == claim.id));
    done.claims.append(&mut claims);
    Ok(())
}
