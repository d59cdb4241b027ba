//! A connection to either database, and statements that both understand.
//!
//! Three things are written differently, and a statement names them by a word in braces: `{now}` is the time of the database in
//! milliseconds, `{rows}` turns the parameter `$1`, a JSON array of objects, into rows with one column `value`, and `{lock}` takes the relays'
//! lock. A list as one parameter keeps a statement's text the same whatever its length, so that it is prepared once.

use std::sync::Arc;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlStr, Sqlite};

/// A connection or a transaction of the caller's, on a database that can hold an outbox.
#[derive(Debug)]
pub struct Conn<'c>(Kind<'c>);

#[derive(Debug)]
enum Kind<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl<'c> From<&'c mut SqliteConnection> for Conn<'c> {
    fn from(conn: &'c mut SqliteConnection) -> Self {
        Self(Kind::Sqlite(conn))
    }
}

impl<'c> From<&'c mut PgConnection> for Conn<'c> {
    fn from(conn: &'c mut PgConnection) -> Self {
        Self(Kind::Postgres(conn))
    }
}

/// A statement in both spellings.
#[derive(Debug)]
pub(crate) struct Sql {
    sqlite: Arc<str>,
    postgres: Arc<str>,
}

/// The time, where the inserting program's SQLite may be old, and everywhere alike.
pub(crate) const SQLITE_NOW: &str = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
pub(crate) const POSTGRES_NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

impl Sql {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            sqlite: text
                .replace("{now}", SQLITE_NOW)
                .replace("{rows}", "json_each($1)")
                .into(),
            postgres: text
                .replace("{now}", POSTGRES_NOW)
                .replace("{rows}", "json_array_elements(CAST($1 AS json))")
                .into(),
        }
    }

    /// A statement that only one of them needs.
    pub(crate) fn each(sqlite: &str, postgres: &str) -> Self {
        Self {
            sqlite: Self::new(sqlite).sqlite,
            postgres: Self::new(postgres).postgres,
        }
    }
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg<'a> {
    Int(i64),
    Text(&'a str),
    TextOrNull(Option<&'a str>),
    Bytes(&'a [u8]),
}

/// A row of an answer.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

// On SQLite a value of any type can stand in any column, whatever was declared, and is read as the type that is asked for: an odd row, which the
// table's checks keep out, must not stop all others.
macro_rules! column {
    ($name:ident, $type:ty) => {
        pub(crate) fn $name(&self, column: usize) -> Result<$type, sqlx::Error> {
            match self {
                Self::Sqlite(row) => row.try_get_unchecked(column),
                Self::Postgres(row) => row.try_get(column),
            }
        }
    };
}

impl Row {
    column!(int, i64);
    column!(int_or_null, Option<i64>);
    // A payload that was inserted into SQLite as text is kept as text, and its bytes are the payload.
    column!(bytes, Vec<u8>);
    column!(bytes_or_null, Option<Vec<u8>>);

    pub(crate) fn text(&self, column: usize) -> Result<String, sqlx::Error> {
        match self {
            Self::Sqlite(_) => self.bytes(column).map(as_text),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    pub(crate) fn text_or_null(&self, column: usize) -> Result<Option<String>, sqlx::Error> {
        match self {
            Self::Sqlite(_) => Ok(self.bytes_or_null(column)?.map(as_text)),
            Self::Postgres(row) => row.try_get(column),
        }
    }
}

fn as_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

macro_rules! bound {
    ($db:ty, $sql:expr, $args:expr) => {{
        let text: SqlStr = sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(Arc::clone($sql)));
        $args
            .iter()
            .fold(sqlx::query::<$db>(text), |query, arg| match *arg {
                Arg::Int(number) => query.bind(number),
                Arg::Text(text) => query.bind(text),
                Arg::TextOrNull(text) => query.bind(text),
                Arg::Bytes(bytes) => query.bind(bytes),
            })
    }};
}

impl Conn<'_> {
    /// The rows of an answer.
    pub(crate) async fn rows(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<Vec<Row>, sqlx::Error> {
        Ok(match &mut self.0 {
            Kind::Sqlite(conn) => {
                let rows = bound!(Sqlite, &sql.sqlite, args).fetch_all(&mut **conn).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            Kind::Postgres(conn) => {
                let rows = bound!(Postgres, &sql.postgres, args)
                    .fetch_all(&mut **conn)
                    .await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// The first row, if there is one.
    pub(crate) async fn row(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// How many rows were written.
    pub(crate) async fn run(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<u64, sqlx::Error> {
        Ok(match &mut self.0 {
            Kind::Sqlite(conn) => bound!(Sqlite, &sql.sqlite, args)
                .execute(&mut **conn)
                .await?
                .rows_affected(),
            Kind::Postgres(conn) => bound!(Postgres, &sql.postgres, args)
                .execute(&mut **conn)
                .await?
                .rows_affected(),
        })
    }

    /// How the database would carry a statement out, a line a step.
    #[cfg(test)]
    pub(crate) async fn explain(&mut self, sql: &Sql, args: &[Arg<'_>]) -> Result<Vec<String>, sqlx::Error> {
        let explained = Sql {
            sqlite: format!("EXPLAIN QUERY PLAN {}", sql.sqlite).into(),
            postgres: format!("EXPLAIN {}", sql.postgres).into(),
        };
        let column = match self.0 {
            Kind::Sqlite(_) => 3,
            Kind::Postgres(_) => 0,
        };
        let rows = self.rows(&explained, args).await?;
        rows.iter().map(|row| row.text(column)).collect()
    }

    /// Several statements without parameters, which are not worth preparing.
    pub(crate) async fn script(
        &mut self,
        sqlite: &'static str,
        postgres: &'static str,
    ) -> Result<(), sqlx::Error> {
        match &mut self.0 {
            Kind::Sqlite(conn) => sqlx::raw_sql(sqlite).execute(&mut **conn).await.map(drop),
            Kind::Postgres(conn) => sqlx::raw_sql(postgres).execute(&mut **conn).await.map(drop),
        }
    }
}
