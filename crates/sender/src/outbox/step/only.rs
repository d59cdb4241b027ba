//! Given messages: their lines brought up, and where they stand. What else is new stays for a relay that sends everything.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::super::OutboxError;
use super::super::conn::{Arg, Conn, Sql};
use super::super::enqueue::parse_state;
use super::super::write::{self, Line};
use super::claim::COLUMNS;
use super::{Holder, Standing, Stepped, ids};

// Written so that no index but that of the ids can be taken: those are few, and what is new may be much.
pub(in crate::outbox) static ONLY_PLACE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET turn = 'first'
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND COALESCE(turn, '') = 'new' AND COALESCE(order_group, '') = ''",
    )
});

pub(in crate::outbox) static ONLY_STANDINGS: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT r.id, r.state, r.turn, r.target, r.order_group, f.id, f.state, f.due_at, COALESCE(f.lease_owner, ''), f.key
         FROM (SELECT CAST(value ->> 'id' AS BIGINT) AS of_id FROM {rows}) AS v
         JOIN sender_log AS r ON r.id = v.of_id
         LEFT JOIN sender_log AS f ON f.target = r.target AND f.order_group = r.order_group AND f.turn = 'first' AND r.turn IS NOT NULL
         ORDER BY r.id",
    )
});

// Written so that no index but that of the ids can be taken: those are few, and what is due may be much.
pub(in crate::outbox) static ONLY_DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(&format!(
        "SELECT {COLUMNS} FROM sender_log
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {{rows}}) AND COALESCE(target, '') = $2 AND COALESCE(turn, '') = 'first'
           AND state || '' = 'pending' AND COALESCE(due_at, 0) <= $3 ORDER BY due_at, id LIMIT $4"
    ))
});

pub(in crate::outbox) static ONLY_NEXT_DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT min(due_at), max(due_at) FROM sender_log
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND COALESCE(target, '') = $2 AND COALESCE(turn, '') = 'first'
           AND state || '' = 'pending'",
    )
});

/// Brings the wanted ones' lines up, and tells where they stand. The ids that may be claimed for them.
pub(super) async fn standings(
    conn: &mut Conn<'_>,
    only: &[i64],
    now: i64,
    far: i64,
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
                // What is further ahead than any pause is going to be brought nearer.
                due_in: Some(row.int(7)?.saturating_sub(now))
                    .filter(|due_in| *due_in <= far)
                    .unwrap_or(0),
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
