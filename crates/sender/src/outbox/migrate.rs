//! The table, made and kept up to date. The versions that are there stand in a table of ours, so that the caller's own migrations, by whatever
//! tool, are not mixed up with them.

use super::conn::{Arg, Conn, Sql};
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
