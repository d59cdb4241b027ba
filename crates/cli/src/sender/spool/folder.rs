//! The directory: which files are taken, and where they go.

use std::collections::{BTreeSet, BinaryHeap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use storybus_sender::envelope::MAX_BUS_MESSAGE;

/// What an answer's file is called after the message's.
pub(super) const ANSWER: &str = ".answer.json";
/// The longest name of a file: an answer's temporary name beside it, with a key in it, still is a name.
const LONGEST: usize = 180;
/// How many files are taken at once, and how many are looked for.
const BATCH: usize = 500;
const FOUND: usize = 2_000;
/// How many names of what is left alone are remembered, so that each is logged once.
const REMEMBERED: usize = 1_000;

/// Where a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Failed,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// The directory.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// Found and not taken yet, the first at the end.
    found: Vec<OsString>,
    /// What is left alone and was told of.
    told: BTreeSet<OsString>,
    /// Held for as long as the relay runs.
    _lock: File,
}

impl Folder {
    pub(super) fn open(root: &Path) -> Result<Self> {
        let shown = root.display();
        if !root.is_dir() {
            return Err(anyhow!(
                "--spool {shown} is no directory: make it, and let this user write to it"
            ));
        }
        for name in ["taking", "sending", "done", "failed"] {
            fs::DirBuilder::new()
                .recursive(true)
                .create(root.join(name))
                .with_context(|| format!("--spool {shown}: cannot make {name}/ in it"))?;
        }
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(root.join(".storybus-relay.lock"))
            .with_context(|| format!("--spool {shown}: cannot write to it"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => anyhow!("--spool {shown}: another relay watches it; one is enough"),
            other => anyhow!(other).context(format!("--spool {shown}: cannot be locked")),
        })?;
        Ok(Self {
            root: root.to_owned(),
            found: Vec::new(),
            told: BTreeSet::new(),
            _lock: lock,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn taking(&self) -> PathBuf {
        self.root.join("taking")
    }

    pub(super) fn sending(&self) -> PathBuf {
        self.root.join("sending")
    }

    /// The files that are taken and not enqueued: those that an earlier run has left, or the next ones of the directory, in the order of their times,
    /// then of their names.
    pub(super) fn take(&mut self) -> Result<Vec<OsString>> {
        let left = first_by_time(&self.taking(), |_| true)?;
        if !left.is_empty() {
            return Ok(left.into_iter().take(BATCH).map(|(_, name)| name).collect());
        }
        if self.found.is_empty() {
            self.found = self.find()?;
            self.found.reverse();
        }
        let mut taken = Vec::new();
        while taken.len() < BATCH {
            let Some(name) = self.found.pop() else {
                break;
            };
            match fs::rename(self.root.join(&name), self.taking().join(&name)) {
                Ok(()) => taken.push(name),
                // Its program has taken it back.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.leave_alone(&name, &format!("it cannot be moved: {error}")),
            }
        }
        Ok(taken)
    }

    /// The next files. A list of a directory is no snapshot: while it is read, it can miss a file and show one that was renamed there later. What was
    /// there before a file of one list is in the next list, which begins afterwards; so two lists say which files have nothing before them that was missed.
    fn find(&mut self) -> Result<Vec<OsString>> {
        let first = self.list()?;
        if first.is_empty() {
            return Ok(Vec::new());
        }
        Ok(surely_next(&first, self.list()?))
    }

    fn list(&mut self) -> Result<Vec<Found>> {
        let mut odd = Vec::new();
        let found = first_by_time(&self.root, |entry| match what_is(entry) {
            Kind::Message => true,
            Kind::Ours => false,
            Kind::Odd(why) => {
                if odd.len() < REMEMBERED {
                    odd.push((entry.file_name(), why));
                }
                false
            }
        })?;
        let there: BTreeSet<&OsString> = odd.iter().map(|(name, _)| name).collect();
        self.told.retain(|name| there.contains(name));
        for (name, why) in odd {
            self.leave_alone(&name, why);
        }
        Ok(found)
    }

    fn leave_alone(&mut self, name: &OsStr, why: &str) {
        if self.told.len() < REMEMBERED && self.told.insert(name.to_owned()) {
            tracing::warn!(name = %name.display(), why, "left alone in the spool");
        }
    }

    /// The bytes of a file that was taken, or why it cannot be a message.
    pub(super) fn read(&self, name: &OsStr) -> Result<Vec<u8>, String> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let told = |error: io::Error| format!("it cannot be read: {error}");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
            .open(self.taking().join(name))
            .map_err(told)?;
        if !file.metadata().map_err(told)?.is_file() {
            return Err("it is no regular file".to_owned());
        }
        let mut bytes = Vec::new();
        // One byte more than a message may have tells that it has too many.
        let most = u64::try_from(MAX_BUS_MESSAGE)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        file.take(most).read_to_end(&mut bytes).map_err(told)?;
        Ok(bytes)
    }

    /// Moves a file that was enqueued to where it waits for its end.
    pub(super) fn to_sending(&self, name: &OsStr, key: &str) -> Result<()> {
        let waits = self.sending().join(key);
        match fs::create_dir(&waits) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let free = (0..)
            .map(|n| other_name(name, "", n))
            .find(|name| is_free(&waits.join(name)));
        let free = free.unwrap_or_else(|| name.to_owned());
        fs::rename(self.taking().join(name), waits.join(free))?;
        Ok(())
    }

    /// The files that wait under a key; empty when it has come to its end.
    pub(super) fn waiting(&self, key: &str) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        let entries = match fs::read_dir(self.sending().join(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            if !name.as_bytes().ends_with(ANSWER.as_bytes()) && !name.as_bytes().starts_with(b".") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Moves a file to its end: first the answer, whose text `answer` makes of the name that the file gets there. `ours` says whether an
    /// answer without its file is one that was written before this very move was cut off.
    pub(super) fn finish(
        &self,
        from: &Path,
        end: End,
        tag: &str,
        answer: impl Fn(&OsStr) -> Vec<u8>,
        ours: impl Fn(&[u8]) -> bool,
    ) -> Result<OsString> {
        let folder = self.root.join(end.name());
        let name = from.file_name().context("a file has a name")?;
        // Names end: each number is tried once.
        let free = (0..)
            .map(|n| other_name(name, tag, n))
            .find(|name| {
                let beside = answer_of(&folder.join(name));
                is_free(&folder.join(name))
                    && (is_free(&beside) || fs::read(&beside).is_ok_and(|text| ours(&text)))
            })
            .context("there is no free name")?;
        let to = folder.join(&free);
        put(&answer_of(&to), &answer(&free))?;
        fs::rename(from, &to)?;
        File::open(&folder)?.sync_all()?;
        Ok(free)
    }

    /// Removes the place of a key that has come to its end.
    pub(super) fn clear(&self, key: &str) -> io::Result<()> {
        let place = self.sending().join(key);
        for entry in fs::read_dir(&place)? {
            let name = entry?.file_name();
            if name.as_bytes().ends_with(ANSWER.as_bytes()) || name.as_bytes().starts_with(b".") {
                fs::remove_file(place.join(name))?;
            }
        }
        fs::remove_dir(place)
    }
}

/// The answer's place, beside a message.
pub(super) fn answer_of(message: &Path) -> PathBuf {
    let mut name = message.file_name().unwrap_or_default().to_owned();
    name.push(ANSWER);
    message.with_file_name(name)
}

/// Writes a file whole or not at all. Everybody who may see the directory may read it.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<()> {
    let mut temporary = OsString::from(".");
    temporary.push(path.file_name().unwrap_or_default());
    temporary.push(".tmp");
    let temporary = path.with_file_name(temporary);
    let mut file = File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    Ok(())
}

/// A name with a tag and a number before its ending: the name itself for 0, then `a.TAG.json`, `a.TAG-2.json`, …
fn other_name(name: &OsStr, tag: &str, n: u32) -> OsString {
    let tag = match (n, tag) {
        (0, _) => return name.to_owned(),
        (1, "") => "1".to_owned(),
        (1, tag) => tag.to_owned(),
        (n, "") => n.to_string(),
        (n, tag) => format!("{tag}-{n}"),
    };
    let path = Path::new(name);
    let mut other = path.file_stem().unwrap_or(name).to_owned();
    other.push(".");
    other.push(tag);
    if let Some(ending) = path.extension() {
        other.push(".");
        other.push(ending);
    }
    other
}

fn is_free(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// What an entry of the directory is.
enum Kind {
    Message,
    /// The relay's own, or a file that its program is still writing.
    Ours,
    /// Nothing that is taken, and why.
    Odd(&'static str),
}

fn what_is(entry: &DirEntry) -> Kind {
    let name = entry.file_name();
    let bytes = name.as_bytes();
    if bytes.starts_with(b".") || bytes.ends_with(b".tmp") || bytes.ends_with(b".part") {
        return Kind::Ours;
    }
    if [b"taking".as_slice(), b"sending", b"done", b"failed"].contains(&bytes) {
        return Kind::Ours;
    }
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => Kind::Odd("it is a link: rename the file itself"),
        Ok(kind) if kind.is_dir() => Kind::Odd("it is a directory"),
        Ok(kind) if !kind.is_file() => Kind::Odd("it is no regular file"),
        // It has gone meanwhile.
        Err(_) => Kind::Ours,
        Ok(_) if bytes.ends_with(ANSWER.as_bytes()) => Kind::Odd("it has the name of an answer"),
        Ok(_) if bytes.len() > LONGEST => Kind::Odd("its name is longer than 180 bytes"),
        Ok(_) => Kind::Message,
    }
}

/// A file in a list: when it was changed, and its name.
pub(super) type Found = (SystemTime, OsString);

/// The files of the second list before the first that the first list does not have: the others wait for the next look.
pub(super) fn surely_next(first: &[Found], second: Vec<Found>) -> Vec<OsString> {
    let first: BTreeSet<&Found> = first.iter().collect();
    second
        .into_iter()
        .take_while(|found| first.contains(found))
        .map(|(_, name)| name)
        .collect()
}

/// The first files of a directory by the time of change, then by name: at most [`FOUND`], however many there are.
fn first_by_time(folder: &Path, mut wanted: impl FnMut(&DirEntry) -> bool) -> Result<Vec<Found>> {
    let mut first: BinaryHeap<Found> = BinaryHeap::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot look into {}", folder.display()))?;
        if !wanted(&entry) {
            continue;
        }
        // Of the entry itself, not of what a link leads to; one that has gone is not there.
        let Ok(time) = entry.metadata().and_then(|of| of.modified()) else {
            continue;
        };
        first.push((time, entry.file_name()));
        if first.len() > FOUND {
            first.pop();
        }
    }
    Ok(first.into_sorted_vec())
}
