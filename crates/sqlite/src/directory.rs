//! The data directory: made, locked, synced.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::OpenError;

/// A directory that this process alone works in, until the value is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    // flock belongs to the open file: it goes with this value, and with the process however that ends
    _lock: File,
}

impl Directory {
    /// Makes it if it is not there (mode 700) and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => {}
            Err(_) if path.exists() && !path.is_dir() => {
                return Err(OpenError::NotADirectory(path.to_owned()));
            }
            Err(error) => return Err(at(path, error)),
        }
        let mut lock = private_file(&path.join("lock")).map_err(|error| at(path, error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // only for the message
                lock.read_to_string(&mut text).ok();
                return Err(OpenError::Locked {
                    pid: text.trim().parse().ok(),
                });
            }
            Err(error) => return Err(at(path, error.into())),
        }
        // the pid is there for people: a disk without room for it is told of by the database
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .ok();
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The database. Made here, so that it never has another mode than 600; SQLite gives its other files the same.
    pub(crate) fn database(&self) -> Result<PathBuf, OpenError> {
        let path = self.path.join("bus.db");
        drop(private_file(&path).map_err(|error| at(&self.path, error))?);
        Ok(path)
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
