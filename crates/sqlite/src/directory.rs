//! The data directory: made, locked, synced.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use crate::error::OpenError;

pub(crate) const DATABASE: &str = "bus.db";
/// What a backup that is being put back has instead.
pub(crate) const PART: &str = "bus.db.part";

/// A directory that this process alone works in, until the value is dropped.
///
/// Two locks say so: one on a file of its own, and, for the case that somebody has removed that one, one on the database
/// itself. Both are `flock`s, which belong to the open file: they go with this value, and with the process however that
/// ends.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// SQLite's own locks on the database are `fcntl`'s, which go when the process closes any descriptor of the file: this
    /// one is closed after all connections.
    /// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
    database: Arc<File>,
    _lock: File,
}

impl Directory {
    /// Makes it if it is not there (mode 700), locks it, and makes its database if there never was one. `traces` are names
    /// of files that lie in it only when there was one.
    pub(crate) fn open(path: &Path, traces: &[&str]) -> Result<Self, OpenError> {
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => {}
            Err(_) if path.exists() && !path.is_dir() => {
                return Err(OpenError::NotADirectory(path.to_owned()));
            }
            Err(error) => return Err(at(path, error)),
        }
        let mut lock = private_file(&path.join("lock")).map_err(|error| at(path, error))?;
        if !locked(&lock).map_err(|error| at(path, error))? {
            let mut text = String::new();
            // only for the message
            lock.read_to_string(&mut text).ok();
            return Err(OpenError::Locked {
                pid: text.trim().parse().ok(),
            });
        }
        let file = path.join(DATABASE);
        if size(&file)? == 0
            && let Some(left) = left_behind(path, traces)?
        {
            return Err(OpenError::DatabaseGone { left });
        }
        // Made here, so that it never has another mode than 600; SQLite gives its other files the same.
        let database = private_file(&file).map_err(|error| at(path, error))?;
        // Elsewhere than on Linux, and on some network file systems, it would be in the way of SQLite's own locks.
        if cfg!(target_os = "linux") && !locked(&database).map_err(|error| at(path, error))? {
            return Err(OpenError::Locked { pid: None });
        }
        // the pid is there for people: a disk without room for it is told of by the database
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .ok();
        Ok(Self {
            path: path.to_owned(),
            database: Arc::new(database),
            _lock: lock,
        })
    }

    /// Where the database is.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// A descriptor of the database.
    pub(crate) fn database(&self) -> &Arc<File> {
        &self.database
    }

    /// Puts the directory's entries on disk.
    pub(crate) fn sync(&self) -> Result<(), OpenError> {
        let sync = |path: &Path| File::open(path).and_then(|dir| dir.sync_all());
        sync(&self.path)?;
        if let Some(parent) = self.path.canonicalize()?.parent() {
            // the directory's own entry; one may enter a parent that one may not read
            sync(parent).ok();
        }
        Ok(())
    }
}

/// Takes the lock on a file, unless another has it.
fn locked(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// How long a file is; one that is not there is empty.
fn size(file: &Path) -> io::Result<u64> {
    match file.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// What shows that there was a database: SQLite would throw its log away, and a new database would begin.
fn left_behind(path: &Path, traces: &[&str]) -> io::Result<Option<String>> {
    if size(&wal_path(&path.join(DATABASE)))? > 0 {
        return Ok(Some(format!("{DATABASE}-wal")));
    }
    for trace in [PART].iter().chain(traces) {
        if path.join(trace).try_exists()? {
            return Ok(Some((*trace).to_owned()));
        }
    }
    Ok(None)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn at(path: &Path, error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::NotWritable(path.to_owned())
        }
        io::ErrorKind::NotADirectory => OpenError::NotADirectory(path.to_owned()),
        _ => error.into(),
    }
}

/// The write-ahead log of a database.
pub(crate) fn wal_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
