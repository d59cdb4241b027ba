//! The index: which blocks hold a message id, a correlation id or a story.
//!
//! Ids are random, and a B-tree of them would cost a random page a message. So they are written as sorted runs: of so many
//! blocks a run, of so many runs a longer one, and so on; each is appended page by page, and counts from the moment it is marked
//! whole, in the same step in which those it was made of are dropped. A look-up seeks once in each of the few runs there are, and
//! looks through the heads of the blocks that are in none yet.
//!
//! What a run holds of an id is a hash of 63 bits: a block that it names by mistake is looked at in vain.

use std::collections::BTreeSet;

use storybus_core::ports::StoreError;

use super::block::{Block, COLUMNS};
use super::compact::Archiving;
use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::Tx;

/// A hash and a block, big-endian: 8 bytes, and 4 as the distance from the run's first block.
const PAIR_BYTES: usize = 12;
/// Pairs of one page: as many as fit into a page of SQLite.
const PAGE_PAIRS: usize = 330;
/// Pages of one step: a quarter of a megabyte.
const STEP_PAGES: usize = 64;
/// Runs of this level are not merged any more: with the usual limits one holds two million messages.
const LAST_LEVEL: i64 = 3;

/// What is looked up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Message,
    Correlation,
    Story,
}

/// A key's hash. It is stored: it stays as it is.
pub(super) fn hash(kind: Kind, workspace: i64, key: &[u8; 16]) -> i64 {
    let [a, b] =
        [&key[..8], &key[8..]].map(|half| half.iter().fold(0, |sum: u64, b| sum << 8 | u64::from(*b)));
    let kind = match kind {
        Kind::Message => 1,
        Kind::Correlation => 2,
        Kind::Story => 3,
    };
    let seed = mix(workspace.cast_unsigned().wrapping_mul(4).wrapping_add(kind));
    (mix(mix(seed ^ a) ^ b) >> 1).cast_signed()
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014): every bit depends on every other.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

type Pair = (i64, i64);

/// A whole run.
#[derive(Debug, Clone, Copy)]
struct Run {
    id: i64,
    first_block: i64,
    last_block: i64,
}

fn pairs(bytes: &[u8], first_block: i64) -> impl DoubleEndedIterator<Item = Pair> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum: i64, b| sum << 8 | i64::from(*b));
    bytes
        .chunks_exact(PAIR_BYTES)
        .map(move |pair| (number(&pair[..8]), first_block + number(&pair[8..])))
}

/// The blocks that may hold one of the keys, from `from` on, and those that are in no run yet, in the order of their ids.
pub(super) fn blocks(view: &View<'_>, workspace: i64, keys: &[i64], from: i64) -> Result<Vec<i64>, Failure> {
    let runs = view.all(
        "SELECT id, first_block, last_block FROM archive_segment WHERE state = 1",
        [],
        read_run,
    )?;
    let mut found = BTreeSet::new();
    for run in runs.iter().filter(|run| run.last_block >= from) {
        for key in keys {
            seek(view, *run, *key, &mut found)?;
        }
    }
    let indexed = runs.iter().map(|run| run.last_block).max().unwrap_or_default();
    let rest = view.all(
        "SELECT id FROM archive_block NOT INDEXED WHERE id > ?1 AND workspace = ?2",
        (indexed.max(from - 1), workspace),
        |row| row.get::<_, i64>(0),
    )?;
    found.extend(rest);
    Ok(found.into_iter().filter(|id| *id >= from).collect())
}

/// Equal hashes may go over several pages; what is before them on the first of those is less.
fn seek(view: &View<'_>, run: Run, key: i64, found: &mut BTreeSet<i64>) -> Result<(), Failure> {
    let mut statement = view.prepare(
        "SELECT first, pairs FROM archive_run INDEXED BY archive_run_first WHERE segment = ?1 AND first <= ?2
         ORDER BY first DESC, id DESC",
    )?;
    let mut pages = statement.query((run.id, key))?;
    while let Some(page) = pages.next()? {
        let bytes = page.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let blocks = pairs(bytes, run.first_block).rev();
        found.extend(
            blocks
                .skip_while(|(hash, _)| *hash > key)
                .take_while(|(hash, _)| *hash == key)
                .map(|(_, block)| block),
        );
        if page.get::<_, i64>(0)? < key {
            break;
        }
    }
    Ok(())
}

fn read_run(row: &rusqlite::Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: row.get(0)?,
        first_block: row.get(1)?,
        last_block: row.get(2)?,
    })
}

/// What was left unfinished is swept like what is done with.
pub(super) fn drop_unfinished(at: &Archiving<'_>) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM archive_segment WHERE state = 0 LIMIT 1";
    if at.view.find(sql, [], |_| Ok(()))?.is_some() {
        let sql = "UPDATE archive_segment SET state = 2 WHERE state = 0";
        at.inner.writer().call_blocking(|tx| tx.execute(sql, []))?;
    }
    Ok(())
}

/// Makes a run of the first blocks that are in none; whether there were enough.
pub(super) fn build(at: &Archiving<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT max(last_block) FROM archive_segment WHERE state = 1";
    let indexed = at.view.find(sql, [], |row| row.get::<_, Option<i64>>(0))?;
    let blocks = at.view.all(
        &format!("SELECT {COLUMNS} FROM archive_block WHERE id > ?1 ORDER BY id LIMIT ?2"),
        (
            indexed.flatten().unwrap_or_default(),
            rows::limit(at.limits.run_blocks),
        ),
        Block::read,
    )?;
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return Ok(false);
    };
    if blocks.len() < at.limits.run_blocks {
        return Ok(false);
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for block in &blocks {
        match keys(at, *block) {
            Ok(keys) => pairs.extend(keys.into_iter().map(|key| (key, block.id))),
            // whoever needs this block will be told; the others' way goes on
            Err(failure) => {
                let error = StoreError::from(failure);
                tracing::error!(%error, "an archive block cannot be indexed");
            }
        }
    }
    pairs.sort_unstable();
    let mut writing = RunWriter::begin(at, 0, first.id, last.id)?;
    for pair in pairs {
        writing.push(pair)?;
    }
    writing.finish(&[])?;
    Ok(true)
}

/// The keys of a block, each once; none of one that has been swept meanwhile.
fn keys(at: &Archiving<'_>, block: Block) -> Result<BTreeSet<i64>, Failure> {
    let sql = "SELECT 1 FROM archive_block WHERE id = ?1";
    let mut keys = BTreeSet::new();
    if at.view.find(sql, [block.id], |_| Ok(()))?.is_none() {
        return Ok(keys);
    }
    let heads = block.heads(&at.view)?;
    for head in heads.iter() {
        let head = head?;
        keys.insert(hash(Kind::Message, block.workspace, &head.message_id));
        if let Some(correlation) = head.correlation() {
            keys.insert(hash(Kind::Correlation, block.workspace, &correlation));
        }
        if let Some(story) = head.story {
            keys.insert(hash(Kind::Story, block.workspace, &story));
        }
    }
    Ok(keys)
}

/// Makes one run of the first neighbours of a level; whether there were enough.
pub(super) fn merge(at: &Archiving<'_>) -> Result<bool, StoreError> {
    for level in 0..LAST_LEVEL {
        let runs = at.view.all(
            "SELECT id, first_block, last_block FROM archive_segment WHERE state = 1 AND level = ?1
             ORDER BY first_block LIMIT ?2",
            (level, rows::limit(at.limits.fan)),
            read_run,
        )?;
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            continue;
        };
        if runs.len() < at.limits.fan {
            continue;
        }
        let mut writing = RunWriter::begin(at, level + 1, first.first_block, last.last_block)?;
        let mut cursors = runs
            .iter()
            .map(|run| Cursor::open(&at.view, *run))
            .collect::<Result<Vec<_>, Failure>>()?;
        while let Some(least) = cursors
            .iter_mut()
            .filter(|cursor| cursor.pair.is_some())
            .min_by_key(|cursor| cursor.pair)
        {
            if let Some(pair) = least.pair {
                writing.push(pair)?;
            }
            least.step(&at.view)?;
        }
        writing.finish(&runs)?;
        return Ok(true);
    }
    Ok(false)
}

/// A place in a run.
struct Cursor {
    run: Run,
    /// The page it is at: its first hash, and its number.
    page: (i64, i64),
    pairs: std::vec::IntoIter<Pair>,
    pair: Option<Pair>,
}

impl Cursor {
    fn open(view: &View<'_>, run: Run) -> Result<Self, Failure> {
        let mut cursor = Self {
            run,
            page: (-1, 0),
            pairs: Vec::new().into_iter(),
            pair: None,
        };
        cursor.step(view)?;
        Ok(cursor)
    }

    fn step(&mut self, view: &View<'_>) -> Result<(), Failure> {
        self.pair = self.pairs.next();
        if self.pair.is_some() {
            return Ok(());
        }
        let page = view.find(
            "SELECT first, id, pairs FROM archive_run INDEXED BY archive_run_first
             WHERE segment = ?1 AND (first, id) > (?2, ?3) ORDER BY first, id LIMIT 1",
            (self.run.id, self.page.0, self.page.1),
            |row| Ok(((row.get(0)?, row.get(1)?), row.get::<_, Vec<u8>>(2)?)),
        )?;
        if let Some((page, bytes)) = page {
            self.page = page;
            self.pairs = pairs(&bytes, self.run.first_block)
                .collect::<Vec<_>>()
                .into_iter();
            self.pair = self.pairs.next();
        }
        Ok(())
    }
}

/// A run in the making, a step at a time.
struct RunWriter<'a> {
    inner: &'a Inner,
    id: i64,
    first_block: i64,
    page: Page,
    full: Vec<Page>,
}

#[derive(Default)]
struct Page {
    first: i64,
    pairs: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    fn begin(at: &Archiving<'a>, level: i64, first_block: i64, last_block: i64) -> Result<Self, StoreError> {
        let id = at.inner.writer().call_blocking(move |tx| {
            tx.execute(
                "INSERT INTO archive_segment (level, first_block, last_block, state) VALUES (?1, ?2, ?3, 0)",
                [level, first_block, last_block],
            )?;
            Ok(tx.last_id())
        })?;
        Ok(Self {
            inner: at.inner,
            id,
            first_block,
            page: Page::default(),
            full: Vec::new(),
        })
    }

    /// Adds a pair, which is not less than the one before.
    fn push(&mut self, (hash, block): Pair) -> Result<(), StoreError> {
        if self.page.pairs.is_empty() {
            self.page.first = hash;
        }
        let distance = u32::try_from(block - self.first_block)
            .map_err(|_| Failure::Stored(format!("archive block {block} is not in its run's range")))?;
        self.page.pairs.extend_from_slice(&hash.to_be_bytes());
        self.page.pairs.extend_from_slice(&distance.to_be_bytes());
        if self.page.pairs.len() >= PAGE_PAIRS * PAIR_BYTES {
            self.full.push(std::mem::take(&mut self.page));
        }
        if self.full.len() < STEP_PAGES {
            return Ok(());
        }
        let (id, pages) = (self.id, std::mem::take(&mut self.full));
        self.inner
            .writer()
            .call_blocking(move |tx| insert_pages(tx, id, &pages))
    }

    /// It is whole, and stands for those it was made of.
    fn finish(mut self, made_of: &[Run]) -> Result<(), StoreError> {
        if !self.page.pairs.is_empty() {
            self.full.push(self.page);
        }
        let (id, pages) = (self.id, self.full);
        let made_of: Vec<i64> = made_of.iter().map(|run| run.id).collect();
        self.inner.writer().call_blocking(move |tx| {
            insert_pages(tx, id, &pages)?;
            for id in &made_of {
                tx.execute("UPDATE archive_segment SET state = 2 WHERE id = ?1", [id])?;
            }
            tx.execute("UPDATE archive_segment SET state = 1 WHERE id = ?1", [id])?;
            Ok(())
        })
    }
}

fn insert_pages(tx: &Tx<'_>, segment: i64, pages: &[Page]) -> Result<(), Failure> {
    for page in pages {
        tx.execute(
            "INSERT INTO archive_run (segment, first, pairs) VALUES (?1, ?2, ?3)",
            (segment, page.first, &page.pairs),
        )?;
    }
    Ok(())
}

/// Sweeps a few pages of what was dropped, and drops a run whose blocks are all gone; whether there may be more.
pub(super) fn sweep(tx: &Tx<'_>) -> Result<bool, Failure> {
    let sql = "SELECT id FROM archive_segment WHERE state = 2 ORDER BY id LIMIT 1";
    if let Some(dropped) = tx.find(sql, [], |row| row.get::<_, i64>(0))? {
        let deleted = tx.execute(
            "DELETE FROM archive_run WHERE id IN
             (SELECT id FROM archive_run INDEXED BY archive_run_first WHERE segment = ?1 ORDER BY first, id LIMIT ?2)",
            (dropped, rows::limit(STEP_PAGES)),
        )?;
        if deleted == 0 {
            tx.execute("DELETE FROM archive_segment WHERE id = ?1", [dropped])?;
        }
        return Ok(true);
    }
    let dropped = tx.execute(
        "UPDATE archive_segment SET state = 2 WHERE state = 1 AND NOT EXISTS
         (SELECT 1 FROM archive_block WHERE id BETWEEN first_block AND last_block)",
        [],
    )?;
    Ok(dropped > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_what_directories_hold() {
        let key = *b"0123456789abcdef";
        let hashes = [
            hash(Kind::Message, 1, &key),
            hash(Kind::Correlation, 1, &key),
            hash(Kind::Story, 2, &key),
        ];
        assert_eq!(
            hashes,
            [
                854_411_929_180_329_981,
                3_449_664_843_520_120_219,
                5_824_606_778_065_830_538
            ]
        );
        assert!(hashes.iter().all(|hash| *hash >= 0));
    }
}
