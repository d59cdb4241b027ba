//! A range of time, part by part.

use std::ops::ControlFlow;

use bytes::Bytes;
use storybus_core::domain::archived::{Archived, Head, Part, Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;

use super::Look;
use super::block::Block;
use crate::error::Failure;
use crate::messages::{BODY, head_columns, read_head};

/// The part of a range in which there is nothing.
pub(super) fn nothing() -> Part {
    Part {
        messages: Vec::new(),
        scanned: 0,
        last: None,
        last_at: None,
        end: true,
    }
}

impl Look<'_> {
    /// The next part of a range behind a place.
    pub(super) fn read(
        &self,
        range: TimeRange,
        after: i64,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, Failure> {
        let mut reading = Reading {
            range: TimeRange {
                from: range.from.max(Millis(self.horizon.0.saturating_add(1))),
                to: range.to,
            },
            after,
            selection,
            limits,
            bytes: 0,
            part: nothing(),
        };
        if let ControlFlow::Break(end) = self.read_blocks(&mut reading)? {
            reading.part.end = end;
        } else if let ControlFlow::Break(end) = self.read_rows(&mut reading)? {
            reading.part.end = end;
        }
        Ok(reading.part)
    }

    /// Breaks with whether that was the end of the range.
    fn read_blocks(&self, reading: &mut Reading<'_>) -> Result<ControlFlow<bool>, Failure> {
        let first = Block::find(
            self.view,
            "INDEXED BY archive_block_at WHERE workspace = ?1 AND last_at >= ?2 ORDER BY last_at, id",
            [self.workspace, reading.range.from.0],
        )?;
        let Some(first) = first else {
            return Ok(ControlFlow::Continue(()));
        };
        let begin = first.first_seq.max(reading.after.saturating_add(1));
        let mut next = super::block_of(self.view, self.workspace, begin)?;
        if next.is_none() {
            next = self.block_behind(begin)?;
        }
        while let Some(block) = next {
            if block.first_at >= reading.range.to {
                return Ok(ControlFlow::Break(true));
            }
            let heads = block.heads(self.view)?;
            for head in heads.iter() {
                let place = head?;
                if place.seq <= reading.after {
                    continue;
                }
                let flow = reading.offer(
                    place.published_at,
                    place.body.len(),
                    || heads.head(&place),
                    || {
                        let whole = self.view.blocks().whole(self.view, block)?;
                        Ok(whole.heads.archived(&place, &whole.bodies)?.body)
                    },
                )?;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            next = self.block_behind(block.last_seq)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn block_behind(&self, seq: i64) -> Result<Option<Block>, Failure> {
        Block::find(
            self.view,
            "INDEXED BY archive_block_seq WHERE workspace = ?1 AND first_seq > ?2 ORDER BY first_seq",
            [self.workspace, seq],
        )
    }

    fn read_rows(&self, reading: &mut Reading<'_>) -> Result<ControlFlow<bool>, Failure> {
        let mut statement = self.view.prepare(concat!(
            "SELECT ",
            head_columns!(),
            ", body FROM message INDEXED BY message_workspace WHERE workspace = ?1 AND seq > ?2 ORDER BY seq"
        ))?;
        let mut found = statement.query([self.workspace, reading.after])?;
        while let Some(row) = found.next()? {
            let head = read_head(row)?;
            let body = row.get_ref(BODY)?.as_blob().map_err(rusqlite::Error::from)?;
            let flow = reading.offer(
                head.published_at,
                body.len(),
                || Ok(head.clone()),
                || Ok(Bytes::copy_from_slice(body)),
            )?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A part in the making.
struct Reading<'s> {
    range: TimeRange,
    after: i64,
    selection: &'s Selection,
    limits: PartLimits,
    bytes: usize,
    part: Part,
}

impl Reading<'_> {
    /// Looks at the next message. Breaks before one that is behind the range, or does not fit.
    fn offer(
        &mut self,
        at: Millis,
        body_len: usize,
        head: impl FnOnce() -> Result<Head, Failure>,
        body: impl FnOnce() -> Result<Bytes, Failure>,
    ) -> Result<ControlFlow<bool>, Failure> {
        if at < self.range.from {
            return Ok(ControlFlow::Continue(()));
        }
        if at >= self.range.to {
            return Ok(ControlFlow::Break(true));
        }
        let scanned = usize::try_from(self.part.scanned).unwrap_or(usize::MAX);
        let taken = self.part.messages.len();
        if scanned >= self.limits.scanned.max(1) || taken >= self.limits.messages.max(1) {
            return Ok(ControlFlow::Break(false));
        }
        let head = head()?;
        let position = head.position.clone();
        if self.selection.matches(&head.attributes, &head.about) {
            if taken > 0 && self.bytes.saturating_add(body_len) > self.limits.bytes {
                return Ok(ControlFlow::Break(false));
            }
            self.bytes += body_len;
            self.part.messages.push(Archived { head, body: body()? });
        }
        self.part.scanned += 1;
        self.part.last = Some(position);
        self.part.last_at = Some(at);
        Ok(ControlFlow::Continue(()))
    }
}
