//! When there is something to do next.

use std::sync::LazyLock;

use super::super::OutboxError;
use super::super::conn::{Arg, Conn, Row, Sql};
use super::{Step, Stepped, Want, ids, only};

/// How many rows are brought nearer by one step.
const NEARER_AT_ONCE: i64 = 256;

pub(in crate::outbox) static NEXT_DUE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT (SELECT min(n.due_at) FROM sender_log AS n WHERE n.target = $1 AND n.turn = 'first' AND n.state = 'pending'),
            (SELECT max(l.due_at) FROM sender_log AS l WHERE l.target = $1 AND l.turn = 'first' AND l.state = 'pending')",
    )
});

pub(in crate::outbox) static FAR_AHEAD: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "SELECT id FROM sender_log WHERE target = $1 AND turn = 'first' AND state = 'pending' AND due_at > $2 ORDER BY due_at DESC LIMIT $3",
    )
});

/// What nobody has is due now; what somebody has is due when a lease that began now would be over. Written so that no index but that of the ids can
/// be taken.
pub(in crate::outbox) static NEARER: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET due_at = CASE WHEN lease_owner IS NULL THEN $2 ELSE $4 END,
            lease_until = CASE WHEN lease_owner IS NULL THEN NULL ELSE $4 END
         WHERE id IN (SELECT CAST(value ->> 'id' AS BIGINT) FROM {rows}) AND COALESCE(turn, '') = 'first' AND state || '' = 'pending'
           AND COALESCE(due_at, 0) > $3",
    )
});

/// Looks when the next of the target is due, of these lines or of all. What is due so far ahead that no pause and no lease can have put it there
/// is brought nearer: the database's clock has been set back since.
pub(super) async fn look(
    conn: &mut Conn<'_>,
    step: &Step<'_>,
    want: &Want<'_>,
    now: i64,
    lines: Option<&[i64]>,
    done: &mut Stepped,
) -> Result<(), OutboxError> {
    let next = match lines {
        None => conn.row(&NEXT_DUE, &[Arg::Text(want.target)]).await?,
        Some(lines) => {
            conn.row(
                &only::ONLY_NEXT_DUE,
                &[Arg::Text(&ids(lines)), Arg::Text(want.target)],
            )
            .await?
        }
    };
    let (first, last) = match &next {
        Some(row) => (row.int_or_null(0)?, row.int_or_null(1)?),
        None => (None, None),
    };
    if let Some(due) = first {
        let due_in = due.saturating_sub(now).max(0);
        done.due_in = Some(done.due_in.map_or(due_in, |known| known.min(due_in)));
    }
    let far = now.saturating_add(step.far);
    if last.is_some_and(|last| last > far) {
        let rows = match lines {
            None => {
                let args = [Arg::Text(want.target), Arg::Int(far), Arg::Int(NEARER_AT_ONCE)];
                let rows = conn.rows(&FAR_AHEAD, &args).await?;
                ids(&rows
                    .iter()
                    .map(|row: &Row| row.int(0))
                    .collect::<Result<Vec<_>, _>>()?)
            }
            Some(lines) => ids(lines),
        };
        let lease_over = now.saturating_add(step.lease);
        let args = [
            Arg::Text(&rows),
            Arg::Int(now),
            Arg::Int(far),
            Arg::Int(lease_over),
        ];
        conn.run(&NEARER, &args).await?;
        done.more = true;
    }
    Ok(())
}
