//! The table, made and kept up to date. The versions that are there stand in a table of ours, so that the caller's own migrations, by whatever
//! tool, are not mixed up with them.

use super::conn::{Arg, Conn, POSTGRES_NOW, SQLITE_NOW, Sql};
use super::error::OutboxError;
use super::lock::{self, Lock};

/// A version's scripts, for SQLite and PostgreSQL.
const MIGRATIONS: [(&str, &str); 1] = [(
    include_str!("../../migrations/sqlite/0001_sender_log.sql"),
    include_str!("../../migrations/postgres/0001_sender_log.sql"),
)];

/// Brings the table up to date, in one transaction. Several programs may do so at the same moment: one of them does it.
pub(crate) async fn migrate(mut conn: Conn<'_>) -> Result<(), OutboxError> {
    lock::begin(&mut conn, Lock::Migrations).await?;
    conn.script(BOOK, BOOK).await?;
    let found = conn
        .row(
            &Sql::new("SELECT COALESCE(max(version), 0) FROM sender_log_migrations"),
            &[],
        )
        .await?
        .map_or(Ok(0), |row| row.int(0))?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(OutboxError::Newer { found, known });
    }
    for (version, (sqlite, postgres)) in (1..).zip(MIGRATIONS) {
        if version > found {
            conn.script(sqlite, postgres).await?;
            conn.run(
                &Sql::new("INSERT INTO sender_log_migrations (version, applied_at) VALUES ($1, {now})"),
                &[Arg::Int(version)],
            )
            .await?;
        }
    }
    lock::commit(&mut conn).await?;
    Ok(())
}

const BOOK: &str = "CREATE TABLE IF NOT EXISTS sender_log_migrations (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";

/// A kind of database that can hold an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// Takes one of a version's scripts.
type Pick = fn((&'static str, &'static str)) -> &'static str;

/// The SQL that makes the table in an empty database, in one transaction, for whoever lets no program do so. Afterwards
/// [`super::Outbox::migrate`] finds nothing to do.
#[must_use]
pub fn schema(database: Database) -> String {
    let (now, pick): (_, Pick) = match database {
        Database::Sqlite => (SQLITE_NOW, |(sqlite, _)| sqlite),
        Database::Postgres => (POSTGRES_NOW, |(_, postgres)| postgres),
    };
    let mut text = format!("BEGIN;\n{BOOK};\n");
    for (version, scripts) in (1..).zip(MIGRATIONS) {
        text.push_str(&format!(
            "\n{}\nINSERT INTO sender_log_migrations (version, applied_at) VALUES ({version}, {now});\n",
            pick(scripts).trim_end()
        ));
    }
    text.push_str("COMMIT;\n");
    text
}
