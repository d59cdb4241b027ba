//! Backups of a data directory: taken while the bus runs, and put back.
//!
//! A backup is a directory with a database of its own, one snapshot of the bus's, and copies of the files beside it. The
//! snapshot is what the bus had committed at one instant: a prefix of its history, with every queue as it was then. It is made
//! by `VACUUM INTO`, which reads in one transaction, does not keep the bus from writing, and leaves out free pages.
//! <https://www.sqlite.org/lang_vacuum.html#vacuuminto>
//!
//! Neither a backup nor a restored directory is ever seen half made: the one is renamed as a whole when everything in it is on
//! disk, the other gets its database last, under another name until then.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::directory::{DATABASE, PART, wal_path};
use crate::error::OpenError;
use crate::schema;

/// Only the owner reads and writes: a backup holds keys, and what was published.
const PRIVATE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// A backup that was not made, or not put back. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no database that could be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        error: OpenError,
    },
    /// The place is taken.
    #[error("{} is there already: give a name that is not", .0.display())]
    Exists(PathBuf),
    /// Not a directory, or with something in it.
    #[error(
        "{} is not empty: a backup is put into an empty directory, or one that is not there yet; move what is in it away",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// A data directory, whose database is not all there is.
    #[error(
        "{} is the data directory of a bus, not a backup: take one with `storybus backup`",
        .0.display()
    )]
    NotABackup(PathBuf),
    /// The copy does not read back.
    #[error("the database in {} is damaged ({found}): use another backup", .path.display())]
    Damaged {
        /// Where it lies.
        path: PathBuf,
        /// What was found.
        found: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl BackupError {
    fn unreadable(path: &Path) -> impl Fn(OpenError) -> Self {
        move |error| Self::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The files, by their names in the directory.
    pub files: Vec<String>,
    /// Their bytes together.
    pub bytes: u64,
}

impl Copied {
    fn add(&mut self, name: &str, bytes: u64) {
        self.files.push(name.to_owned());
        self.bytes += bytes;
    }
}

/// Copies a data directory into a new one, `destination`, whose parent is there: the database as it is now, and of the files
/// `beside` it those that are there. The bus may run. All of it is for its owner alone (modes 700 and 600), read back, and
/// on disk when this returns.
///
/// # Errors
///
/// Then there is no `destination`; a process that is killed may leave its temporary directory, `.NAME.PID.tmp`, beside it.
pub fn backup(data: &Path, destination: &Path, beside: &[&str]) -> Result<Copied, BackupError> {
    let source = open_read_only(data).map_err(BackupError::unreadable(data))?;
    if destination.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(destination.to_owned()));
    }
    let parent = parent_of(destination);
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    let temporary = Temporary(parent.join(format!(".{name}.{}.tmp", std::process::id())));
    DirBuilder::new()
        .mode(PRIVATE_DIRECTORY)
        .create(&temporary.0)
        .map_err(BackupError::io(&temporary.0))?;
    let mut copied = Copied {
        files: Vec::new(),
        bytes: 0,
    };
    copied.add(DATABASE, snapshot(&source, data, &temporary.0)?);
    drop(source);
    copy_beside(data, &temporary.0, beside, &mut copied)?;
    sync_directory(&temporary.0)?;
    fs::rename(&temporary.0, destination).map_err(BackupError::io(destination))?;
    sync_directory(&parent)?;
    Ok(copied)
}

/// Puts a backup into `data`, which is empty or not there, after reading all of it; the next start brings an older
/// format up to date. On disk when this returns.
///
/// # Errors
///
/// Then `data` holds no database. A process that is killed leaves one under another name, with which no bus starts.
pub fn restore(backup: &Path, data: &Path, beside: &[&str]) -> Result<Copied, BackupError> {
    let database = backup.join(DATABASE);
    if wal_path(&database).metadata().is_ok_and(|log| log.len() > 0) {
        return Err(BackupError::NotABackup(backup.to_owned()));
    }
    let existed = data.exists();
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIRECTORY)
        .create(data)
        .map_err(BackupError::io(data))?;
    if fs::read_dir(data)
        .map_err(BackupError::io(data))?
        .next()
        .is_some()
    {
        return Err(BackupError::NotEmpty(data.to_owned()));
    }
    let mut copied = Copied {
        files: Vec::new(),
        bytes: 0,
    };
    // first: from now on no bus starts here until all is done
    let part = data.join(PART);
    let target = private_file(&part).map_err(BackupError::io(&part))?;
    let placed = open_read_only(backup)
        .map_err(BackupError::unreadable(backup))
        .and_then(|source| sound(&source, backup, "integrity_check"))
        .and_then(|()| copy_into(&database, target, &part))
        .map(|bytes| copied.add(DATABASE, bytes))
        .and_then(|()| copy_beside(backup, data, beside, &mut copied))
        .and_then(|()| sync_directory(data))
        .and_then(|()| fs::rename(&part, data.join(DATABASE)).map_err(BackupError::io(&part)));
    if let Err(error) = placed {
        // it was empty; the error that counts is the first one
        for name in copied.files.iter().map(String::as_str).chain([PART]) {
            fs::remove_file(data.join(name)).ok();
        }
        if !existed {
            fs::remove_dir(data).ok();
        }
        return Err(error);
    }
    sync_directory(data)?;
    // one may enter a parent that one may not read
    sync_directory(&parent_of(data)).ok();
    Ok(copied)
}

/// A database that is only read, of a format that this program knows. A process that has it open for writing is not disturbed.
pub(crate) fn open_read_only(directory: &Path) -> Result<Connection, OpenError> {
    let database = directory.join(DATABASE);
    if !database.metadata().is_ok_and(|file| file.len() > 0) {
        return Err(OpenError::NoDatabase);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    schema::version(&connection)?;
    Ok(connection)
}

/// Writes what the database has now into a new one, reads that back, and says how many bytes it has.
fn snapshot(source: &Connection, data: &Path, into: &Path) -> Result<u64, BackupError> {
    let path = into.join(DATABASE);
    // an empty file is as good as none, and SQLite leaves its mode
    let file = private_file(&path).map_err(BackupError::io(&path))?;
    source
        .execute("VACUUM INTO ?1", [path.to_string_lossy()])
        .map_err(|error| BackupError::unreadable(data)(error.into()))?;
    // SQLite does not sync it
    file.sync_all().map_err(BackupError::io(&path))?;
    let copy = open_read_only(into).map_err(BackupError::unreadable(into))?;
    sound(&copy, into, "quick_check")?;
    Ok(file.metadata().map_err(BackupError::io(&path))?.len())
}

fn sound(database: &Connection, path: &Path, pragma: &str) -> Result<(), BackupError> {
    let found: Result<String, rusqlite::Error> =
        database.query_row(&format!("PRAGMA {pragma}(1)"), [], |row| row.get(0));
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(BackupError::Damaged {
            path: path.to_owned(),
            found,
        }),
        Err(error) => Err(BackupError::unreadable(path)(error.into())),
    }
}

fn copy_beside(from: &Path, to: &Path, names: &[&str], copied: &mut Copied) -> Result<(), BackupError> {
    for name in names {
        let source = from.join(name);
        if source.try_exists().map_err(BackupError::io(&source))? {
            copied.add(name, copy(&source, &to.join(name))?);
        }
    }
    Ok(())
}

/// A copy for its owner alone, on disk.
fn copy(from: &Path, to: &Path) -> Result<u64, BackupError> {
    let target = private_file(to).map_err(BackupError::io(to))?;
    copy_into(from, target, to)
}

fn copy_into(from: &Path, mut target: File, to: &Path) -> Result<u64, BackupError> {
    let mut source = File::open(from).map_err(BackupError::io(from))?;
    let bytes = io::copy(&mut source, &mut target).map_err(BackupError::io(to))?;
    target.sync_all().map_err(BackupError::io(to))?;
    Ok(bytes)
}

fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)?;
    // the umask may have cut more
    file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
    Ok(file)
}

fn sync_directory(path: &Path) -> Result<(), BackupError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(BackupError::io(path))
}

/// The directory that a path is in; `.` for a bare name.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Removed with what is in it, unless it has got its name by then.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
