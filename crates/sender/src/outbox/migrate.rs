//! The table, made and kept up to date. The versions that are there stand in a table of ours, so that the caller's own migrations, by whatever
//! tool, are not mixed up with them.

use std::sync::LazyLock;

use super::conn::{Arg, Conn, POSTGRES_NOW, SQLITE_NOW, Sql};
use super::error::{OutboxError, Trouble};
use super::lock::{self, Lock};

/// A version's scripts, for SQLite and PostgreSQL.
const MIGRATIONS: [(&str, &str); 1] = [(
    include_str!("../../migrations/sqlite/0001_sender_log.sql"),
    include_str!("../../migrations/postgres/0001_sender_log.sql"),
)];

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migrated {
    /// It made the table.
    Made,
    /// It brought the table up to date.
    Updated,
    /// It found nothing to do.
    UpToDate,
}

/// What is there for whom this program is there: 0 nothing, 1 the table but not its versions, 2 both. Reading it needs no rights.
static FOUND: LazyLock<Sql> = LazyLock::new(|| {
    Sql::each(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sender_log_migrations') THEN 2 ELSE 0 END",
        "SELECT CAST(CASE WHEN to_regclass('sender_log_migrations') IS NULL THEN 0
            WHEN has_table_privilege(to_regclass('sender_log_migrations'), 'SELECT') THEN 2
            WHEN to_regclass('sender_log') IS NULL THEN 0 ELSE 1 END AS BIGINT)",
    )
});

static ENCODING: LazyLock<Sql> =
    LazyLock::new(|| Sql::each("SELECT 'UTF8'", "SELECT current_setting('server_encoding')"));

/// Whether the database can keep every text. One of PostgreSQL's that is not in UTF-8 cannot; SQLite's can in each of their encodings.
pub(crate) async fn suits(conn: &mut Conn<'_>) -> Result<(), OutboxError> {
    let found = conn
        .row(&ENCODING, &[])
        .await?
        .map_or(Ok(String::new()), |row| row.text(0))?;
    if found == "UTF8" {
        Ok(())
    } else {
        Err(OutboxError::Encoding { found })
    }
}

/// Whether a file of SQLite has no outbox yet.
static NEW: LazyLock<Sql> = LazyLock::new(|| {
    Sql::each(
        "SELECT NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sender_log_migrations')",
        "SELECT CAST(0 AS BIGINT)",
    )
});

/// Sets a file that gets its outbox now to write-ahead logging, which cannot be done within a transaction. A program that has set its file to another
/// mode since knows why.
async fn journal(conn: &mut Conn<'_>) -> Result<(), OutboxError> {
    if conn.row(&NEW, &[]).await?.map_or(Ok(0), |row| row.int(0))? == 0 {
        return Ok(());
    }
    match conn
        .script("PRAGMA journal_mode = WAL", "SELECT 1")
        .await
        .map_err(Trouble::from)
    {
        // Somebody is at work in the file: the outbox works in every mode.
        Err(trouble) if !trouble.is_conflict() => Err(trouble.into()),
        _ => Ok(()),
    }
}

/// Brings the table up to date, in one transaction. Several programs may do so at the same moment: one of them does it.
pub(crate) async fn migrate(mut conn: Conn<'_>) -> Result<Migrated, OutboxError> {
    suits(&mut conn).await?;
    journal(&mut conn).await?;
    let migrated = migrate_locked(&mut conn).await?;
    if migrated == Migrated::UpToDate {
        // A commit waits for readers where the file has no write-ahead log, even one that changes nothing.
        conn.script("ROLLBACK", "ROLLBACK").await?;
    } else {
        lock::commit(&mut conn).await?;
    }
    Ok(migrated)
}

async fn migrate_locked(conn: &mut Conn<'_>) -> Result<Migrated, OutboxError> {
    lock::begin(conn, Lock::Migrations).await?;
    match conn.row(&FOUND, &[]).await?.map_or(Ok(0), |row| row.int(0))? {
        // A relay's role need not be allowed to read the versions. There is only one so far, and the table is it; a later version has to look
        // for what it adds.
        1 => return Ok(Migrated::UpToDate),
        // Asked for first: PostgreSQL lets only those say `IF NOT EXISTS` who may create.
        0 => conn.script(BOOK, BOOK).await?,
        _ => {}
    }
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
    Ok(match found {
        0 => Migrated::Made,
        _ if found < known => Migrated::Updated,
        _ => Migrated::UpToDate,
    })
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
    let mut text = format!(
        "-- To be run once: it is one transaction, and where the table is already there it fails and changes nothing.\nBEGIN;\n{BOOK};\n"
    );
    for (version, scripts) in (1..).zip(MIGRATIONS) {
        text.push_str(&format!(
            "\n{}\nINSERT INTO sender_log_migrations (version, applied_at) VALUES ({version}, {now});\n",
            pick(scripts).trim_end()
        ));
    }
    text.push_str("COMMIT;\n");
    text
}
