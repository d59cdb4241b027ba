//! What goes wrong, mapped to the ports' words.

use std::io;
use std::path::PathBuf;

use rusqlite::{ErrorCode, ffi};
use storybus_core::ports::StoreError;

/// A data directory that could not be opened. Each text reads after "cannot open the data directory: ".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path is there and is something else.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The process may not write there.
    #[error("{} is not writable", .0.display())]
    NotWritable(PathBuf),
    /// Another process has it open.
    #[error("another process{} is using it", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        /// Which, if it said so.
        pid: Option<u32>,
    },
    /// A later release of the program has written it.
    #[error("its format {found} is newer than this program, which knows up to {known}: use a later release")]
    NewerVersion {
        /// The version found.
        found: i64,
        /// The last version known.
        known: i64,
    },
    /// It has an earlier release's format, which is only read as it is.
    #[error("its format {found} is older than this program's, {known}: start the bus once with this program")]
    OlderVersion {
        /// The version found.
        found: i64,
        /// The version wanted.
        known: i64,
    },
    /// There is no database in it.
    #[error("there is no bus.db in it, or an empty one")]
    NoDatabase,
    /// The database in it belongs to another program.
    #[error("bus.db is not a storybus database")]
    NotStorybus,
    /// The database is damaged.
    #[error("bus.db is damaged ({0}): restore a backup")]
    Corrupt(String),
    /// The database is missing or empty, and what is there shows that there was one.
    #[error(
        "bus.db is missing or empty, but {left} shows that there was one: put it back, or restore a backup"
    )]
    DatabaseGone {
        /// The file that shows it.
        left: String,
    },
    /// The disk is full.
    #[error("no room on the disk")]
    NoRoom,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// SQLite failed in another way.
    #[error("{0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::StorageFull {
            Self::NoRoom
        } else {
            Self::Io(error)
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotStorybus,
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt(error.to_string()),
            Some(ErrorCode::DiskFull) => Self::NoRoom,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { pid: None },
            _ => Self::Sqlite(error),
        }
    }
}

/// A command that failed inside its transaction, which is rolled back: nothing of it was written.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// Something stored cannot be read.
    Stored(String),
    /// The command panicked.
    Panicked,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Stored(error.to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::from(&failure)
    }
}

impl From<&Failure> for StoreError {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Sqlite(error) if is_passing(error) => Self::Unavailable {
                reason: error.to_string(),
            },
            Failure::Sqlite(error) => Self::Internal {
                reason: error.to_string(),
            },
            Failure::Stored(reason) => Self::Internal {
                reason: reason.clone(),
            },
            Failure::Panicked => Self::Internal {
                reason: "a command panicked".to_owned(),
            },
        }
    }
}

/// Whether the fault is the machine's (no room, no access, a disk that fails), not our own.
fn is_passing(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::TooBig
        )
    )
}

/// Whether a failed COMMIT surely left nothing behind. When the frames did not fit, the commit frame, which is the last,
/// was not written whole; after any other failure it may be in the file, and a crash before the next write would bring
/// it back.
pub(crate) fn surely_not_committed(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OutOfMemory
        )
    )
}

/// Whether a sync failed: what was written and not yet synced may be lost, and a later sync would not tell.
pub(crate) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// The store is closed, or a thread of it died.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable {
        reason: "the store is closed".to_owned(),
    }
}
