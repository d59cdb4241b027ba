//! Values as rows hold them.

use std::str::FromStr;
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Params, Row};
use storybus_core::domain::archived::Position;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{InvalidId, WorkspaceId};

use crate::error::Failure;

/// A time.
pub(crate) fn millis(row: &Row<'_>, column: usize) -> rusqlite::Result<Millis> {
    row.get(column).map(Millis)
}

/// An id.
pub(crate) fn parsed<T: FromStr<Err = InvalidId>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// A span in milliseconds.
pub(crate) fn span(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// So long before a time.
pub(crate) fn before(time: Millis, by: Duration) -> Millis {
    Millis(time.0.saturating_sub(span(by)))
}

/// A row's number as a place in a list.
pub(crate) fn position(number: i64) -> Position {
    Position(number.to_string())
}

/// The row's number of such a place; `None` for a text that is none.
pub(crate) fn place(position: &Position) -> Option<i64> {
    let number: i64 = position.0.parse().ok()?;
    (number >= 0 && position.0 == number.to_string()).then_some(number)
}

/// A number of rows.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Where rows are read from: the writer's transaction, or the reader's snapshot.
pub(crate) trait Rows {
    /// The row a query finds, if any.
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure>;

    /// A workspace's number, if it has one.
    fn known_number(&self, workspace: &WorkspaceId) -> Result<Option<i64>, Failure>;
}
