//! Whether the file of an outbox is still the one that the relay has open: a backup that is renamed over it leaves the relay with the old one, in which
//! nobody enqueues any more.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use storybus_sender::ports::{Clock, SystemClock};

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What tells a file from all others that are there at the same time.
type Which = (u64, u64);

/// The file of an outbox on SQLite.
#[derive(Debug)]
pub(super) struct OpenFile {
    path: PathBuf,
    /// The one that was there at first.
    first: Which,
}

impl OpenFile {
    /// The file that is there now; `None` where there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        which(path).map(|first| Self {
            path: path.to_owned(),
            first,
        })
    }

    fn is_there(&self) -> bool {
        which(&self.path) == Some(self.first)
    }

    /// Comes back when another file is in its place, or none.
    pub(super) async fn replaced(self, clock: SystemClock) {
        while self.is_there() {
            clock.sleep(LOOK).await;
        }
    }
}

fn which(path: &Path) -> Option<Which> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_name_is_not_the_one_that_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outbox.db");
        assert!(OpenFile::of(&path).is_none());
        fs::write(&path, "one").unwrap();
        let file = OpenFile::of(&path).unwrap();
        fs::write(&path, "written to").unwrap();
        assert!(file.is_there());
        fs::write(folder.path().join("backup"), "written to").unwrap();
        fs::rename(folder.path().join("backup"), &path).unwrap();
        assert!(!file.is_there());
        fs::remove_file(&path).unwrap();
        assert!(!file.is_there());
    }
}
