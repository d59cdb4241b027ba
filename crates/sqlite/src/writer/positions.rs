//! Positions: places in the order of publication and in every queue, from one counter, so that what comes later is behind
//! all that came before, in whichever queue and by whichever way.
//!
//! A position is never given twice, not even when all that had one is gone: receipt handles and the places of jobs name them.
//! The database therefore holds a number that is ahead of the counter, written once for many positions; a start goes on
//! behind it. A transaction that is rolled back leaves a gap, and so does a start.

use std::cell::Cell;

use rusqlite::{Connection, OptionalExtension as _};

/// How many positions are reserved at a time.
const RESERVE: i64 = 1000;

/// The counter, which is the writer's own.
pub(super) struct Positions {
    last: Cell<i64>,
    /// Up to here the database knows that they may be given.
    reserved: i64,
}

impl Positions {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT value FROM meta WHERE name = 'positions'";
        let reserved = connection
            .query_row(sql, [], |row| row.get(0))
            .optional()?
            .unwrap_or_default();
        Ok(Self {
            last: Cell::new(reserved),
            reserved,
        })
    }

    pub(super) fn next(&self) -> i64 {
        let next = self.last.get() + 1;
        self.last.set(next);
        next
    }

    pub(super) fn last(&self) -> i64 {
        self.last.get()
    }

    /// What is to be written down before a position may be used, in a transaction that has reserved that much already.
    pub(super) fn reservation(&self, position: i64, in_transaction: i64) -> Option<i64> {
        (position > self.reserved.max(in_transaction)).then_some(position + RESERVE)
    }

    /// What a transaction reserved is committed.
    pub(super) fn reserved_until(&mut self, committed: i64) {
        self.reserved = self.reserved.max(committed);
    }
}
