//! What operators do with an outbox: list, show, resend, drop, count, purge.

use std::time::Duration;

use super::conn::{Arg, Conn, Row, Sql};
use super::enqueue::{parse_hash, parse_state};
use super::entry::{Confirmed, Count, Entry, Filter, LastAnswer, Stats};
use super::error::{OperatorError, OutboxError};
use super::lock::{self, Lock};
use super::migrate;
use super::step::RULE_FORGOTTEN;
use super::write::{self, Image, Last, Turn};
use super::{FAR, MEMORY, State};
use crate::message::{Key, Target};

/// The most rows of one list.
const MOST: i64 = 1_000;
/// How many rows a purge deletes in one transaction.
const PURGED_AT_ONCE: i64 = 500;
/// The rule of a message that an operator dropped.
const RULE_DROPPED: &str = "operator.dropped";

const COLUMNS: &str = "id, target, key, order_group, payload_hash, CAST(octet_length(payload) AS BIGINT), content_type, state, turn, attempts,
    due_at, enqueued_at, first_attempt_at, last_attempt_at, unsure_since, finished_at, COALESCE(lease_owner, ''), lease_until, last_status,
    last_outcome, last_rule, last_detail, fence, round_attempts, rounds_since, {now}";

/// A row with what only this module needs of it.
struct Found {
    entry: Entry,
    turn: Option<String>,
    owner: String,
    fence: i64,
    round_attempts: i64,
    rounds_since: Option<i64>,
    now: i64,
}

impl Found {
    fn read(row: &Row, offset: i64) -> Result<Self, OutboxError> {
        let state = parse_state(&row.text(7)?)?;
        let turn = row.text_or_null(8)?;
        let owner = row.text(16)?;
        let lease_until = row.int_or_null(17)?;
        let now = row.int(25)? + offset;
        let due_at = row.int(10)?;
        Ok(Self {
            entry: Entry {
                id: row.int(0)?,
                target: row.text(1)?,
                key: row.text(2)?,
                order_group: row.text_or_null(3)?,
                payload_hash: row
                    .bytes_or_null(4)?
                    .map(parse_hash)
                    .transpose()?
                    .map(|hash| hash.to_string()),
                size: unsigned(row.int(5)?),
                content_type: row.text_or_null(6)?,
                state,
                waiting: turn.as_deref() == Some("waiting"),
                attempts: unsigned(row.int(9)?),
                due_at: (state == State::Pending).then_some(due_at),
                enqueued_at: row.int(11)?,
                first_attempt_at: row.int_or_null(12)?,
                last_attempt_at: row.int_or_null(13)?,
                unsure_since: row.int_or_null(14)?,
                finished_at: row.int_or_null(15)?,
                under_way: !owner.is_empty() && lease_until.is_some_and(|until| leased(until, now)),
                last: LastAnswer {
                    status: row.int_or_null(18)?.and_then(|status| u16::try_from(status).ok()),
                    outcome: row.text_or_null(19)?,
                    rule: row.text_or_null(20)?,
                    detail: row.text_or_null(21)?,
                },
            },
            turn,
            owner,
            fence: row.int(22)?,
            round_attempts: row.int(23)?,
            rounds_since: row.int_or_null(24)?,
            now,
        })
    }

    /// As it is, but nobody's.
    fn image(&self) -> Image {
        Image {
            id: self.entry.id,
            fence: self.fence,
            next_fence: self.fence + 1,
            owner: self.owner.clone(),
            state: self.entry.state,
            turn: match self.turn.as_deref() {
                Some("first") => Some(Turn::First),
                Some(_) => Some(Turn::New),
                None => None,
            },
            attempts: i64::try_from(self.entry.attempts).unwrap_or(i64::MAX),
            round_attempts: self.round_attempts,
            rounds_since: self.rounds_since,
            round_renewals: 0,
            due_at: self.now,
            unsure_since: self.entry.unsure_since,
            finished_at: Some(self.now),
            last: Last {
                status: self.entry.last.status,
                outcome: self.entry.last.outcome.clone(),
                rule: self.entry.last.rule.clone(),
                detail: self.entry.last.detail.clone(),
            },
        }
    }
}

/// Whether a lease runs. One that ends further ahead than any can is of a time that the database's clock has been set back from.
fn leased(until: i64, now: i64) -> bool {
    until > now && until.saturating_sub(now) <= millis(FAR)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

async fn find(conn: &mut Conn<'_>, target: &Target, key: &Key, offset: i64) -> Result<Found, OperatorError> {
    let sql = Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log WHERE target = $1 AND key = $2"
    ));
    match conn
        .row(&sql, &[Arg::Text(target.as_str()), Arg::Text(key.as_str())])
        .await?
    {
        Some(row) => Ok(Found::read(&row, offset)?),
        None => Err(OperatorError::NotFound {
            target: target.clone(),
            key: key.clone(),
        }),
    }
}

/// Writes nothing, as whoever may write.
pub(crate) async fn probe(mut conn: Conn<'_>) -> Result<(), OutboxError> {
    migrate::suits(&mut conn).await?;
    conn.script("BEGIN IMMEDIATE", "BEGIN").await?;
    let nobody = Sql::new("SELECT key, payload FROM sender_log WHERE id < 0");
    conn.rows(&nobody, &[]).await?;
    let nothing =
        Sql::new("UPDATE sender_log SET turn = turn, lease_owner = lease_owner, fence = fence WHERE id < 0");
    conn.run(&nothing, &[]).await?;
    conn.script("ROLLBACK", "ROLLBACK").await?;
    Ok(())
}

pub(crate) async fn show(
    mut conn: Conn<'_>,
    target: &Target,
    key: &Key,
    offset: i64,
) -> Result<Entry, OperatorError> {
    Ok(find(&mut conn, target, key, offset).await?.entry)
}

pub(crate) async fn payload(
    mut conn: Conn<'_>,
    target: &Target,
    key: &Key,
) -> Result<Vec<u8>, OperatorError> {
    let sql = Sql::new("SELECT payload FROM sender_log WHERE target = $1 AND key = $2");
    match conn
        .row(&sql, &[Arg::Text(target.as_str()), Arg::Text(key.as_str())])
        .await?
    {
        Some(row) => Ok(row.bytes(0)?),
        None => Err(OperatorError::NotFound {
            target: target.clone(),
            key: key.clone(),
        }),
    }
}

pub(crate) async fn list(
    mut conn: Conn<'_>,
    filter: &Filter,
    limit: usize,
    offset: i64,
) -> Result<Vec<Entry>, OutboxError> {
    let limit = i64::try_from(limit).unwrap_or(MOST).clamp(1, MOST);
    let mut args = vec![Arg::Int(limit)];
    let mut conditions = vec![String::from("id <> 0")];
    if let Some(state) = filter.state {
        // Of a fixed set, and as a literal, so that the index can be chosen by it.
        conditions.push(format!("state = '{state}'"));
    }
    let mut condition = |text: &str, arg| {
        args.push(arg);
        conditions.push(format!("{text} ${}", args.len()));
    };
    if let Some(target) = &filter.target {
        condition("target =", Arg::Text(target));
    }
    if let Some(group) = &filter.group {
        condition("turn IS NOT NULL AND order_group =", Arg::Text(group));
    }
    if let Some(after) = filter.after {
        condition(if filter.newest_first { "id <" } else { "id >" }, Arg::Int(after));
    }
    let sql = Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log WHERE {} ORDER BY id {} LIMIT $1",
        conditions.join(" AND "),
        if filter.newest_first { "DESC" } else { "ASC" }
    ));
    let rows = conn.rows(&sql, &args).await?;
    rows.iter()
        .map(|row| Ok(Found::read(row, offset)?.entry))
        .collect()
}

pub(crate) async fn resend(
    mut conn: Conn<'_>,
    target: &Target,
    key: &Key,
    confirmed: Option<Confirmed>,
    offset: i64,
) -> Result<(), OperatorError> {
    lock::begin(&mut conn, Lock::Lines).await?;
    let found = find(&mut conn, target, key, offset).await?;
    match found.entry.state {
        State::Pending if found.entry.under_way => return Err(OperatorError::UnderWay { key: key.clone() }),
        State::Parked | State::Pending => {}
        state @ (State::Delivered | State::Refused) => {
            return Err(OperatorError::Final {
                key: key.clone(),
                state,
            });
        }
    }
    let age = found
        .entry
        .unsure_since
        .map(|since| Duration::from_millis(unsigned(found.now.saturating_sub(since))));
    let forgotten = found.entry.last.rule.as_deref() == Some(RULE_FORGOTTEN);
    if let (Some(age), None) = (age, confirmed)
        && (age >= MEMORY || forgotten)
    {
        const DAY: u64 = 24 * 3600;
        return Err(OperatorError::MayRepeat {
            key: key.clone(),
            days: age.as_secs() / DAY,
            remembers: MEMORY.min(age).as_secs() / DAY,
        });
    }
    // What is pending goes on in its round, only sooner.
    let rounds = match found.entry.state {
        State::Pending => (found.round_attempts, found.rounds_since),
        State::Parked | State::Delivered | State::Refused => (0, None),
    };
    let image = Image {
        state: State::Pending,
        // One that does not hold its group stands in line again; by its number before all that came later.
        turn: Some(found.image().turn.unwrap_or(Turn::New)),
        round_attempts: rounds.0,
        rounds_since: rounds.1,
        finished_at: None,
        unsure_since: match confirmed {
            Some(Confirmed) => None,
            None => found.entry.unsure_since,
        },
        ..found.image()
    };
    write::write(&mut conn, &[image]).await?;
    lock::commit(&mut conn).await?;
    Ok(())
}

pub(crate) async fn drop(
    mut conn: Conn<'_>,
    target: &Target,
    key: &Key,
    offset: i64,
) -> Result<(), OperatorError> {
    lock::begin(&mut conn, Lock::Lines).await?;
    let found = find(&mut conn, target, key, offset).await?;
    match found.entry.state {
        State::Parked => {}
        State::Pending if found.entry.under_way => {
            return Err(OperatorError::UnderWay { key: key.clone() });
        }
        State::Pending => {}
        state @ (State::Delivered | State::Refused) => {
            return Err(OperatorError::Final {
                key: key.clone(),
                state,
            });
        }
    }
    let mut image = Image {
        state: State::Refused,
        turn: None,
        ..found.image()
    };
    image.last.rule = Some(RULE_DROPPED.to_owned());
    image.last.detail = Some(match found.entry.unsure_since {
        Some(_) => String::from("an operator dropped it; an earlier attempt may have arrived"),
        None => String::from("an operator dropped it; it never arrived"),
    });
    write::write(&mut conn, &[image]).await?;
    lock::commit(&mut conn).await?;
    Ok(())
}

pub(crate) async fn stats(mut conn: Conn<'_>, offset: i64) -> Result<Stats, OutboxError> {
    // A state at a time, so that the index of the states answers it.
    let each = State::ALL.map(|state| {
        format!("SELECT target, '{state}' AS state, count(*) FROM sender_log WHERE state = '{state}' GROUP BY target")
    });
    let rows = conn
        .rows(
            &Sql::new(&format!("{} ORDER BY 1, 2", each.join(" UNION ALL "))),
            &[],
        )
        .await?;
    let counts = rows
        .iter()
        .map(|row| {
            Ok(Count {
                target: row.text(0)?,
                state: parse_state(&row.text(1)?)?,
                count: unsigned(row.int(2)?),
            })
        })
        .collect::<Result<_, OutboxError>>()?;
    let oldest = conn
        .row(
            &Sql::new(
                "SELECT {now} - enqueued_at FROM sender_log WHERE state = 'pending' ORDER BY id LIMIT 1",
            ),
            &[],
        )
        .await?;
    let held = conn
        .row(
            &Sql::new("SELECT count(*) FROM sender_log WHERE state = 'parked' AND turn = 'first' AND order_group IS NOT NULL"),
            &[],
        )
        .await?;
    Ok(Stats {
        counts,
        oldest_pending_ms: oldest
            .map(|row| row.int(0))
            .transpose()?
            .map(|age| unsigned(age + offset)),
        held_groups: held.map(|row| row.int(0)).transpose()?.map_or(0, unsigned),
    })
}

/// One transaction's worth; whether there may be more.
pub(crate) async fn purge(
    mut conn: Conn<'_>,
    state: State,
    older: Duration,
    offset: i64,
) -> Result<u64, OutboxError> {
    let now = lock::begin(&mut conn, Lock::Lines).await? + offset;
    let before = now.saturating_sub(millis(older));
    let sql = Sql::new(&format!(
        "DELETE FROM sender_log WHERE id IN (SELECT p.id FROM sender_log AS p WHERE p.state = '{state}' AND p.finished_at < $1
         ORDER BY p.id LIMIT $2)"
    ));
    let purged = conn
        .run(&sql, &[Arg::Int(before), Arg::Int(PURGED_AT_ONCE)])
        .await?;
    lock::commit(&mut conn).await?;
    Ok(purged)
}

/// How many rows one [`purge`] deletes at most.
pub(crate) const fn purged_at_once() -> u64 {
    PURGED_AT_ONCE.unsigned_abs()
}
