//! Files that only their owner reads, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Only the owner reads and writes.
const PRIVATE: u32 = 0o600;
/// Only the owner enters.
const PRIVATE_DIR: u32 = 0o700;

/// Puts a file in place atomically, mode 600: a reader sees the old content or the new, and so does the next start after
/// the power went at any instant.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.file_name().is_none() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not the name of a file",
        ));
    }
    let temporary = temporary_of(path);
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The error that counts is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(folder_of(path))?.sync_all()
}

/// Whether [`write()`] could put a file there: nothing but a regular file is replaced, and the folder takes new files. Leaves
/// everything as it is.
pub fn check(path: &Path) -> io::Result<()> {
    let invalid = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if path.file_name().is_none() {
        return invalid("not the name of a file");
    }
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => return invalid("it is there and no regular file"),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let probe = temporary_of(path);
    write_new(&probe, b"")?;
    fs::remove_file(&probe)
}

/// Whether others than the owner can read a file that is there.
#[must_use]
pub fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o044 != 0)
}

/// Where the content of a file is written before it takes the file's place.
fn temporary_of(path: &Path) -> PathBuf {
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(path.file_name().unwrap_or_default());
    temporary.push(format!(".{}.tmp", std::process::id()));
    folder_of(path).join(temporary)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // A left-over of a process with the same id may have any mode.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)?;
    // The mode above is cut by the umask, which may be even stricter than the owner can live with.
    file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Removes a file for good; one that is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    }
    File::open(folder_of(path))?.sync_all()
}

/// Reads a file; `None` when there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a folder and those above it, mode 700 where they are new.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIR)
        .create(path)
}

/// The folder that a path is in; `.` for a bare name.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.json");
        assert_eq!(read(&path).unwrap(), None);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn a_failure_leaves_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"x").is_err(), "a folder is in the way");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("none/f"), b"x").is_err());
    }
}
