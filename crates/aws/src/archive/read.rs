//! Ranges of time: forwards in parts, and backwards from the newest.

use bytes::Bytes;
use storybus_core::domain::archived::{Archived, Head, Part, Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_core::ports::archive::PartLimits;
use storybus_protocol::id::WorkspaceId;

use super::buckets::Buckets;
use super::merge::{Between, Merge};
use super::place::{Place, SHARDS, behind, hour, time};
use super::{DynamoArchive, item_body, item_head, item_place};
use crate::item::Item;

/// The part of a range in which there is nothing.
fn nothing(end: bool) -> Part {
    Part {
        messages: Vec::new(),
        scanned: 0,
        last: None,
        last_at: None,
        end,
    }
}

impl DynamoArchive {
    /// The next part of a range behind a place: of what is whole, see [`watermark`](super::watermark).
    pub(super) async fn part(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<Place>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let from = range.from.max(self.begin());
        let from = after.map_or(from, |after| from.max(after.at));
        if from >= range.to {
            return Ok(nothing(true));
        }
        // what is answered after this call need not be looked at
        let whole = range.to.min(self.clock.now());
        let until = self.watermark.until(whole).await?.unwrap_or(Millis(0));
        let (to, end) = (range.to.min(until), until >= whole);
        if from >= to {
            return Ok(nothing(end));
        }
        let between = Between {
            first: match after {
                Some(after) if after.at >= from => behind(&after),
                _ => time(from),
            },
            last: time(to), // every place of that time is behind it
            forward: true,
            bodies: true,
        };
        let hours = (hour(from), hour(Millis(to.0 - 1)));
        let mut reading = Reading {
            selection,
            limits,
            bytes: 0,
            part: nothing(end),
        };
        let mut buckets = Buckets::new(&self.aws, workspace.as_str(), hours, true);
        loop {
            let partitions = buckets.next(usize::from(SHARDS)).await?;
            if partitions.is_empty() {
                return Ok(reading.part);
            }
            let wanted = limits.messages.min(limits.scanned);
            let mut merge = Merge::new(&self.aws, workspace.as_str(), &partitions, &between, wanted);
            while let Some(item) = merge.next().await? {
                if !reading.takes(&item)? {
                    reading.part.end = false;
                    return Ok(reading.part);
                }
            }
        }
    }

    /// Up to `limit` heads, newest first, older than `before`.
    pub(super) async fn newest_first(
        &self,
        workspace: &WorkspaceId,
        before: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let begin = self.begin();
        let between = Between {
            first: time(begin),
            last: before.map_or_else(|| "~".to_owned(), |before| before.text()),
            forward: false,
            bodies: false,
        };
        let newest = before.map_or(Millis(i64::MAX), |before| before.at);
        let hours = (hour(begin), hour(newest));
        let mut buckets = Buckets::new(&self.aws, workspace.as_str(), hours, false);
        let mut heads = Vec::new();
        while heads.len() < limit {
            let partitions = buckets.next(usize::from(SHARDS)).await?;
            if partitions.is_empty() {
                break;
            }
            let mut merge = Merge::new(
                &self.aws,
                workspace.as_str(),
                &partitions,
                &between,
                limit - heads.len(),
            );
            while heads.len() < limit
                && let Some(item) = merge.next().await?
            {
                if Some(item_place(&item)?) != before {
                    heads.push(item_head(&item)?);
                }
            }
        }
        Ok(heads)
    }
}

/// A part in the making.
struct Reading<'a> {
    selection: &'a Selection,
    limits: PartLimits,
    bytes: usize,
    part: Part,
}

impl Reading<'_> {
    /// Looks at one more; `false`, and it is not looked at, when the part is full.
    fn takes(&mut self, item: &Item) -> Result<bool, StoreError> {
        let (part, limits) = (&mut self.part, self.limits);
        if part.messages.len() >= limits.messages || part.scanned >= limits.scanned as u64 {
            return Ok(false);
        }
        let head = item_head(item)?;
        let body = if self.selection.matches(&head.attributes, &head.about) {
            let body = Bytes::from(item_body(item)?);
            if !part.messages.is_empty() && self.bytes + body.len() > limits.bytes {
                return Ok(false);
            }
            Some(body)
        } else {
            None
        };
        part.scanned += 1;
        part.last = Some(head.position.clone());
        part.last_at = Some(head.published_at);
        if let Some(body) = body {
            self.bytes += body.len();
            part.messages.push(Archived { head, body });
        }
        Ok(true)
    }
}
