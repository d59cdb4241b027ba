//! What relays and operators write: a row's whole changeable part, if nobody has claimed it since it was read, and then its line moves up.
//!
//! Call these between [`super::lock::begin`] and [`super::lock::commit`] only.

use std::sync::LazyLock;

use serde::Serialize;

use super::State;
use super::conn::{Arg, Conn, Sql};

/// A place in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turn {
    /// No relay has looked at it.
    New,
    /// The one of its group that may be under way.
    First,
}

/// What is known of the last answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Last {
    pub(crate) status: Option<u16>,
    pub(crate) outcome: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) detail: Option<String>,
}

/// A row's changeable part, as it is to be; and the claim that it was read under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Image {
    pub(crate) id: i64,
    /// Written only while this is still the row's fence,
    pub(crate) fence: i64,
    /// and this still its owner; empty: nobody.
    pub(crate) owner: String,
    /// Its fence then: the same for the claim's own settlement, a higher one for everybody else's write, so that the two can be told apart.
    pub(crate) next_fence: i64,
    pub(crate) state: State,
    /// `None`: it holds nobody.
    pub(crate) turn: Option<Turn>,
    pub(crate) attempts: i64,
    pub(crate) round_attempts: i64,
    pub(crate) rounds_since: Option<i64>,
    pub(crate) round_renewals: i64,
    pub(crate) due_at: i64,
    pub(crate) unsure_since: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    #[serde(flatten)]
    pub(crate) last: Last,
}

pub(super) static WRITE: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET state = v.to_state, turn = v.to_turn, attempts = v.to_attempts, round_attempts = v.to_round_attempts,
            rounds_since = v.to_rounds_since, round_renewals = v.to_renewals, due_at = v.to_due_at, unsure_since = v.to_unsure_since, finished_at = v.to_finished_at, fence = v.to_fence,
            last_status = v.to_status, last_outcome = v.to_outcome, last_rule = v.to_rule, last_detail = v.to_detail,
            lease_owner = NULL, lease_until = NULL
         FROM (SELECT CAST(value ->> 'id' AS BIGINT) AS of_id, CAST(value ->> 'fence' AS BIGINT) AS of_fence, value ->> 'owner' AS of_owner,
                CAST(value ->> 'next_fence' AS BIGINT) AS to_fence,
                value ->> 'state' AS to_state, value ->> 'turn' AS to_turn, CAST(value ->> 'attempts' AS BIGINT) AS to_attempts,
                CAST(value ->> 'round_attempts' AS BIGINT) AS to_round_attempts, CAST(value ->> 'rounds_since' AS BIGINT) AS to_rounds_since,
                CAST(value ->> 'round_renewals' AS BIGINT) AS to_renewals,
                CAST(value ->> 'due_at' AS BIGINT) AS to_due_at, CAST(value ->> 'unsure_since' AS BIGINT) AS to_unsure_since,
                CAST(value ->> 'finished_at' AS BIGINT) AS to_finished_at, CAST(value ->> 'status' AS BIGINT) AS to_status,
                value ->> 'outcome' AS to_outcome, value ->> 'rule' AS to_rule, value ->> 'detail' AS to_detail FROM {rows}) AS v
         WHERE id = v.of_id AND fence = v.of_fence AND COALESCE(lease_owner, '') = v.of_owner AND state NOT IN ('delivered', 'refused')
         RETURNING id, target, order_group, turn",
    )
});

/// A group that nothing is under way of: its lowest in line comes first. What is placed later has a higher id, but for a message that was resent
/// after its group had been released.
pub(super) static MOVE_UP: LazyLock<Sql> = LazyLock::new(|| {
    Sql::new(
        "UPDATE sender_log SET turn = 'first'
         WHERE id IN (SELECT (SELECT min(l.id) FROM sender_log AS l
                              WHERE l.target = v.of_target AND l.order_group = v.of_group AND l.turn IS NOT NULL)
                      FROM (SELECT value ->> 'target' AS of_target, value ->> 'group' AS of_group FROM {rows}) AS v)
           AND NOT EXISTS (SELECT 1 FROM sender_log AS f
                           WHERE f.target = sender_log.target AND f.order_group = sender_log.order_group AND f.turn = 'first')",
    )
});

/// A line: a target's group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Line {
    pub(crate) target: String,
    pub(crate) group: String,
}

/// Writes the rows that are still as they were read. The ids of those that were.
pub(crate) async fn write(conn: &mut Conn<'_>, images: &[Image]) -> Result<Vec<i64>, sqlx::Error> {
    if images.is_empty() {
        return Ok(Vec::new());
    }
    let rows = conn.rows(&WRITE, &[Arg::Text(&rows(images))]).await?;
    let mut written = Vec::with_capacity(rows.len());
    let mut lines = Vec::new();
    for row in rows {
        written.push(row.int(0)?);
        if let (Some(group), None) = (row.text_or_null(2)?, row.text_or_null(3)?) {
            lines.push(Line {
                target: row.text(1)?,
                group,
            });
        }
    }
    move_up(conn, &lines).await?;
    Ok(written)
}

/// Lets the next of each line come first, if nothing of it is.
pub(crate) async fn move_up(conn: &mut Conn<'_>, lines: &[Line]) -> Result<(), sqlx::Error> {
    if !lines.is_empty() {
        conn.run(&MOVE_UP, &[Arg::Text(&rows(lines))]).await?;
    }
    Ok(())
}

/// A list as one parameter.
pub(crate) fn rows<T: Serialize>(of: &[T]) -> String {
    // Nothing that is passed here can fail to be written as JSON: numbers, texts and flat structs.
    serde_json::to_string(of).unwrap_or_else(|_| String::from("[]"))
}
