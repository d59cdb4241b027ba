//! Transactions of our own, one at a time: relays' steps, operators' changes, migrations.
//!
//! On SQLite the database's write lock does it. On PostgreSQL it is an advisory lock, which no caller's transaction takes. The first statement also
//! sets, for this transaction alone, what keeps it short and its plans independent of statistics (the table goes from empty to a million rows
//! faster than the server looks): that goes through a connection pooler too.

use std::sync::LazyLock;

use super::conn::{Conn, Sql};

/// The space of the advisory locks: `sbus` in ASCII. The trigger of the table uses it plus a number below 1,024, for groups.
const SPACE: &str = "1935832435";

/// What a transaction is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// Reading and writing `turn` and whatever a claim may write.
    Lines,
    /// Changing tables.
    Migrations,
}

static BEGIN_LINES: LazyLock<Sql> = LazyLock::new(|| begin_statement(1024));
static BEGIN_MIGRATIONS: LazyLock<Sql> = LazyLock::new(|| begin_statement(1025));

/// Target lists are evaluated from left to right: the settings, then the lock, then the time.
fn begin_statement(number: u32) -> Sql {
    Sql::each(
        "SELECT {now}",
        &format!(
            "SELECT {{now}} FROM (
                SELECT set_config('idle_in_transaction_session_timeout', '10s', true),
                       set_config('lock_timeout', '25s', true),
                       set_config('statement_timeout', '30s', true),
                       set_config('synchronous_commit', 'on', true),
                       set_config('plan_cache_mode', 'force_custom_plan', true),
                       set_config('jit', 'off', true),
                       set_config('enable_seqscan', 'off', true),
                       set_config('enable_hashjoin', 'off', true),
                       set_config('enable_mergejoin', 'off', true),
                       CAST(pg_advisory_xact_lock({SPACE}, {number}) AS TEXT)
                OFFSET 0
             ) AS held"
        ),
    )
}

/// Begins a transaction and waits for the lock. The database's time, then.
pub(crate) async fn begin(conn: &mut Conn<'_>, lock: Lock) -> Result<i64, sqlx::Error> {
    // READ COMMITTED whatever the database's default is: each statement sees what was committed before it, so before the lock was had.
    conn.script("BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED")
        .await?;
    let sql = match lock {
        Lock::Lines => &BEGIN_LINES,
        Lock::Migrations => &BEGIN_MIGRATIONS,
    };
    let row = conn.row(sql, &[]).await?;
    row.ok_or(sqlx::Error::RowNotFound)?.int(0)
}

/// Begins a part of the transaction that may fail alone.
pub(crate) async fn part(conn: &mut Conn<'_>) -> Result<(), sqlx::Error> {
    conn.script("SAVEPOINT sender_part", "SAVEPOINT sender_part")
        .await
}

/// Ends the part, and keeps what it wrote, or not.
pub(crate) async fn end_part(conn: &mut Conn<'_>, keep: bool) -> Result<(), sqlx::Error> {
    const END: &str = "RELEASE SAVEPOINT sender_part";
    const UNDO: &str = "ROLLBACK TO SAVEPOINT sender_part; RELEASE SAVEPOINT sender_part";
    let script = if keep { END } else { UNDO };
    conn.script(script, script).await
}

/// Makes it last.
pub(crate) async fn commit(conn: &mut Conn<'_>) -> Result<(), sqlx::Error> {
    conn.script("COMMIT", "COMMIT").await
}
