//! A look at a data directory: whether everything in it fits together. It only reads, one snapshot; the bus may run.

mod groups;
mod references;

use std::path::Path;

use rusqlite::Connection;
use storybus_core::domain::job::Job;

use crate::archive::{self, BlockCache};
use crate::backup::open_read_only;
use crate::error::{Failure, OpenError};
use crate::reader::View;
use crate::registry::Registry;
use crate::rows::Rows as _;
use crate::schema;

/// How many findings of one kind are told one by one.
const MOST: usize = 20;

const RESTORE: &str = "the database is damaged: stop the bus, keep a copy of the directory, look after the disk, and restore the last backup";
const BLOCK: &str = "its messages are lost to the archive: receives and replays fail when they come to one; look after the disk, and restore a backup or replay around them";
const PURGE: &str = "receives of this consumer fail when they come to it: purge its queue, then replay to it what it still needs";
const DEAD: &str = "a look at this consumer's dead letters fails when it comes to it: restore a backup, or delete the consumer";
const REPORT: &str =
    "the bus goes on, but this should not be: keep a copy of the directory, and report it with this output";

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: String,
    /// What to do.
    pub advice: &'static str,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// Nothing, if all is well.
    pub findings: Vec<Finding>,
    /// Messages in queues.
    pub queued: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Jobs.
    pub jobs: u64,
}

/// Collects findings of one kind.
struct Kind<'a> {
    findings: &'a mut Vec<Finding>,
    advice: &'static str,
    found: usize,
}

impl Kind<'_> {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.found += 1;
        if self.found <= MOST {
            self.findings.push(Finding {
                what: what(),
                advice: self.advice,
            });
        }
    }
}

impl Drop for Kind<'_> {
    fn drop(&mut self) {
        if self.found > MOST {
            self.findings.push(Finding {
                what: format!("and {} more like this", self.found - MOST),
                advice: self.advice,
            });
        }
    }
}

impl Checked {
    fn kind(&mut self, advice: &'static str) -> Kind<'_> {
        Kind {
            findings: &mut self.findings,
            advice,
            found: 0,
        }
    }

    /// What a part of the look could not read is a finding too.
    fn part(
        &mut self,
        view: &View<'_>,
        name: &str,
        look: impl FnOnce(&mut Self, &View<'_>) -> Result<(), Failure>,
    ) {
        if let Err(failure) = look(self, view) {
            let reason = storybus_core::ports::StoreError::from(&failure);
            self.kind(RESTORE).add(|| format!("cannot read {name}: {reason}"));
        }
    }
}

/// Looks at a data directory, from the database's pages to what its rows say of one another. Takes as long as it takes to read
/// all of it.
///
/// # Errors
///
/// The database cannot be opened, or has another program version's format.
pub fn check(data: &Path) -> Result<Checked, OpenError> {
    let connection = open_read_only(data)?;
    let found = schema::version(&connection)?;
    if found < schema::known() {
        return Err(OpenError::OlderVersion {
            found,
            known: schema::known(),
        });
    }
    // one snapshot for everything
    connection.execute_batch("BEGIN")?;
    let mut checked = Checked::default();
    let blocks = BlockCache::default();
    let view = View::new(&connection, &blocks);
    checked.part(&view, "the pages", |checked, _| pages(checked, &connection));
    checked.part(&view, "workspaces and connections", |_, _| {
        Registry::load(&connection).map(drop)
    });
    checked.part(&view, "the queues", |checked, view| {
        let queues = references::queues(view)?;
        references::counters(checked, view, &queues)?;
        references::messages(checked, view, &queues)
    });
    checked.part(&view, "the order groups", groups::check);
    checked.part(&view, "the archive", blocks_of_archive);
    checked.part(&view, "the jobs", jobs);
    checked.part(&view, "the positions", positions);
    Ok(checked)
}

fn pages(checked: &mut Checked, connection: &Connection) -> Result<(), Failure> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut kind = checked.kind(RESTORE);
    for line in lines {
        let line = line?;
        if line != "ok" {
            kind.add(|| format!("the database: {line}"));
        }
    }
    Ok(())
}

fn blocks_of_archive(checked: &mut Checked, view: &View<'_>) -> Result<(), Failure> {
    let mut kind = checked.kind(BLOCK);
    archive::verify(view, |failure| {
        kind.add(|| storybus_core::ports::StoreError::from(failure).to_string());
    })
}

fn jobs(checked: &mut Checked, view: &View<'_>) -> Result<(), Failure> {
    let mut statement = view.prepare("SELECT id, version, finished_at IS NOT NULL, entry FROM job")?;
    let mut rows = statement.query([])?;
    let mut jobs = 0;
    let mut kind = checked.kind(REPORT);
    while let Some(row) = rows.next()? {
        jobs += 1;
        let id: String = row.get(0)?;
        let (version, over): (i64, bool) = (row.get(1)?, row.get(2)?);
        match serde_json::from_str::<Job>(&row.get::<_, String>(3)?) {
            Err(error) => kind.add(|| format!("job {id} cannot be read: {error}")),
            Ok(job)
                if job.id.as_str() != id || job.version.cast_signed() != version || job.is_over() != over =>
            {
                kind.add(|| format!("job {id} does not agree with its row"));
            }
            Ok(_) => {}
        }
    }
    let sql = "SELECT job, count(*) FROM dead_letter WHERE job IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM job WHERE id = dead_letter.job AND finished_at IS NULL) GROUP BY job";
    for (job, count) in view.all(sql, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })? {
        kind.add(|| format!("job {job} is over and still holds {count} dead letters"));
    }
    drop(kind);
    checked.jobs = jobs;
    Ok(())
}

/// What comes next comes behind everything.
fn positions(checked: &mut Checked, view: &View<'_>) -> Result<(), Failure> {
    let reserved = view
        .find("SELECT value FROM meta WHERE name = 'positions'", [], |row| {
            row.get::<_, i64>(0)
        })?
        .unwrap_or_default();
    let mut kind = checked.kind(RESTORE);
    for (table, column) in [
        ("message", "seq"),
        ("archive_block", "last_seq"),
        ("queue_message", "position"),
        ("dead_letter", "position"),
    ] {
        let sql = format!("SELECT max({column}) FROM {table}");
        let last = view.find(&sql, [], |row| row.get::<_, Option<i64>>(0))?.flatten();
        if let Some(last) = last.filter(|last| *last > reserved) {
            kind.add(|| {
                format!(
                    "{table} has position {last}, and the next to be given is {}",
                    reserved + 1
                )
            });
        }
    }
    Ok(())
}
