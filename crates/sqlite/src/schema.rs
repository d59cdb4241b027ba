//! The schema and its versions.
//!
//! Versions only grow: to change the schema, add a file and a line to [`MIGRATIONS`]. Each runs in one transaction with
//! the number it leads to, so that a crash leaves either version whole.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;

/// Marks a file as a storybus database ("stry"), where `file` and we ourselves look for it.
/// <https://www.sqlite.org/pragma.html#pragma_application_id>
pub(crate) const APPLICATION_ID: i32 = 0x7374_7279;

const MIGRATIONS: &[&str] = &[
    include_str!("schema/001_initial.sql"),
    include_str!("schema/002_archive.sql"),
    include_str!("schema/003_jobs.sql"),
];

/// Brings the database to this program's version.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    migrate_to(connection, MIGRATIONS)
}

/// The version that this program works with.
pub(crate) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The version of a database that is only read: up to the one that this program works with.
pub(crate) fn version(connection: &Connection) -> Result<i64, OpenError> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION_ID {
        return Err(OpenError::NotStorybus);
    }
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known() {
        return Err(OpenError::NewerVersion {
            found,
            known: known(),
        });
    }
    Ok(found)
}

fn migrate_to(connection: &mut Connection, migrations: &[&str]) -> Result<(), OpenError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    // A file in which nothing was ever made is ours to begin with: the process may have died right after making it.
    let untouched = application == 0 && found == 0 && tables == 0;
    if application != APPLICATION_ID && !untouched {
        return Err(OpenError::NotStorybus);
    }
    if found > known {
        return Err(OpenError::NewerVersion { found, known });
    }
    for (version, sql) in (1..=known)
        .zip(migrations)
        .filter(|(version, _)| *version > found)
    {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", version)?;
        tx.commit()?;
        tracing::info!(version, "database migrated");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn migrates_once_and_forward() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate_to(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        migrate_to(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        assert_eq!(version(&connection), 1);
        migrate_to(&mut connection, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        assert_eq!(version(&connection), 2);
        let newer = migrate_to(&mut connection, &["CREATE TABLE a (x)"]);
        assert!(
            matches!(newer, Err(OpenError::NewerVersion { found: 2, known: 1 })),
            "{newer:?}"
        );
    }

    #[test]
    fn a_failing_migration_leaves_the_version_before() {
        let mut connection = Connection::open_in_memory().unwrap();
        let failed = migrate_to(
            &mut connection,
            &["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"],
        );
        assert!(failed.is_err());
        assert_eq!(version(&connection), 1);
        let b: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'b'", [], |r| {
                r.get(0)
            })
            .unwrap();
        assert_eq!(b, 0);
    }

    #[test]
    fn anothers_database_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE mine (x)").unwrap();
        assert!(matches!(migrate(&mut connection), Err(OpenError::NotStorybus)));
    }
}
