//! A transaction of the writer, as a command sees it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row};
use storybus_core::domain::time::Millis;
use storybus_protocol::id::WorkspaceId;

use super::positions::Positions;
use crate::error::Failure;
use crate::registry::Registry;
use crate::rows::Rows;

/// How a queue's counters change.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    pub(crate) visible: i64,
    pub(crate) in_flight: i64,
    pub(crate) dead_lettered: i64,
}

type AfterCommit = Box<dyn FnOnce(&Registry)>;

/// What is to be done once the transaction is committed.
#[derive(Default)]
pub(crate) struct Effects {
    counters: HashMap<i64, Change>,
    pub(super) ready: Vec<i64>,
    pub(super) hidden: Vec<(i64, Millis)>,
    pub(super) numbers: Vec<(WorkspaceId, i64)>,
    pub(super) reserved: i64,
    pub(super) after: Vec<AfterCommit>,
}

/// One transaction.
pub(crate) struct Tx<'a> {
    connection: &'a Connection,
    registry: &'a Registry,
    numbers: &'a HashMap<WorkspaceId, i64>,
    positions: &'a Positions,
    now: Millis,
    effects: Effects,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        registry: &'a Registry,
        numbers: &'a HashMap<WorkspaceId, i64>,
        positions: &'a Positions,
        now: Millis,
    ) -> Self {
        Self {
            connection,
            registry,
            numbers,
            positions,
            now,
            effects: Effects::default(),
        }
    }

    /// The engine's time, the same for the whole transaction.
    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    /// The registry as of the last commit.
    pub(crate) fn registry(&self) -> &'a Registry {
        self.registry
    }

    /// A statement, prepared once.
    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'a>, Failure> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, Failure> {
        Ok(self.prepare(sql)?.execute(params)?)
    }

    /// The rows a query finds.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        Ok(self
            .prepare(sql)?
            .query_map(params, read)?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// The rowid of the last insert.
    pub(crate) fn last_id(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    /// A workspace's number, given to it on first use.
    pub(crate) fn number(&mut self, workspace: &WorkspaceId) -> Result<i64, Failure> {
        if let Some(number) = self.known_number(workspace)? {
            return Ok(number);
        }
        self.execute(
            "INSERT INTO workspace_number (workspace) VALUES (?1)",
            [workspace.as_str()],
        )?;
        let number = self.last_id();
        self.effects.numbers.push((workspace.clone(), number));
        Ok(number)
    }

    /// The next position: behind all that any queue has or had, and all that was published.
    pub(crate) fn next_position(&mut self) -> Result<i64, Failure> {
        let position = self.positions.next();
        if let Some(until) = self.positions.reservation(position, self.effects.reserved) {
            self.execute("UPDATE meta SET value = ?1 WHERE name = 'positions'", [until])?;
            self.effects.reserved = until;
        }
        Ok(position)
    }

    /// The last position that was given.
    pub(crate) fn last_position(&self) -> i64 {
        self.positions.last()
    }

    /// Changes a queue's counters.
    pub(crate) fn count(&mut self, queue: i64, change: Change) {
        match self.effects.counters.entry(queue) {
            Entry::Occupied(mut entry) => {
                let sum = entry.get_mut();
                sum.visible += change.visible;
                sum.in_flight += change.in_flight;
                sum.dead_lettered += change.dead_lettered;
            }
            Entry::Vacant(entry) => {
                entry.insert(change);
            }
        }
    }

    /// How the transaction has changed a queue's counters so far; it is added to them at its end.
    pub(crate) fn counted(&self, queue: i64) -> Change {
        self.effects.counters.get(&queue).copied().unwrap_or_default()
    }

    /// After the commit, one of those who wait at the queue looks again.
    pub(crate) fn wake(&mut self, queue: i64) {
        // the publications of a batch mostly name the same few queues, one after another
        if !self.effects.ready.contains(&queue) {
            self.effects.ready.push(queue);
        }
    }

    /// After the commit, those who wait at the queue know that something is hidden until then.
    pub(crate) fn hidden_until(&mut self, queue: i64, time: Millis) {
        self.effects.hidden.push((queue, time));
    }

    /// Does something in memory after the commit, before anyone is answered.
    pub(crate) fn after_commit(&mut self, effect: impl FnOnce(&Registry) + 'static) {
        self.effects.after.push(Box::new(effect));
    }

    /// Writes what was collected; what is left is for after the commit.
    pub(super) fn finish(mut self) -> Result<Effects, Failure> {
        for (queue, change) in std::mem::take(&mut self.effects.counters) {
            self.execute(
                "UPDATE queue SET visible = visible + ?2, in_flight = in_flight + ?3, dead_lettered = dead_lettered + ?4
                 WHERE id = ?1",
                [queue, change.visible, change.in_flight, change.dead_lettered],
            )?;
        }
        Ok(self.effects)
    }
}

impl Rows for Tx<'_> {
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        Ok(self.prepare(sql)?.query_row(params, read).optional()?)
    }

    fn known_number(&self, workspace: &WorkspaceId) -> Result<Option<i64>, Failure> {
        if let Some(number) = self.numbers.get(workspace) {
            return Ok(Some(*number));
        }
        let sql = "SELECT number FROM workspace_number WHERE workspace = ?1";
        self.find(sql, [workspace.as_str()], |row| row.get(0))
    }
}
