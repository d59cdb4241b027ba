//! Order groups: either something of a group is hidden, among its first rows, and nothing of it is ready; or its first row is
//! ready, and no other. A group that is neither never comes out, or comes out of order.

use super::{Checked, PURGE};
use crate::error::Failure;
use crate::queues::group::{Group, HIDDEN, MOST_HIDDEN, READY};
use crate::reader::View;

/// A group as far as it has been read.
#[derive(Default)]
struct Seen {
    rows: i64,
    hidden: bool,
    late_hidden: bool,
    first_ready: bool,
    other_ready: bool,
}

impl Seen {
    fn add(&mut self, state: i64) {
        match state {
            HIDDEN => {
                self.hidden = true;
                self.late_hidden |= self.rows >= MOST_HIDDEN;
            }
            READY if self.rows == 0 => self.first_ready = true,
            READY => self.other_ready = true,
            _ => {}
        }
        self.rows += 1;
    }

    fn is_sound(&self) -> bool {
        if self.hidden {
            !self.late_hidden && !self.first_ready && !self.other_ready
        } else {
            self.rows == 0 || (self.first_ready && !self.other_ready)
        }
    }
}

pub(super) fn check(checked: &mut Checked, view: &View<'_>) -> Result<(), Failure> {
    let mut statement = view.prepare(
        "SELECT queue, grp, state FROM queue_message INDEXED BY queue_group
         WHERE state < 3 AND queue IN (SELECT id FROM queue WHERE NOT closed) ORDER BY queue, grp, position",
    )?;
    let mut rows = statement.query([])?;
    let mut kind = checked.kind(PURGE);
    let mut at: Option<(i64, Group)> = None;
    let mut seen = Seen::default();
    let mut end = |at: Option<(i64, Group)>, seen: Seen| {
        if let Some((queue, group)) = at
            && !seen.is_sound()
        {
            let group: String = group.iter().map(|byte| format!("{byte:02x}")).collect();
            kind.add(|| {
                format!(
                    "queue {queue}: the messages of correlation id {group} are not in a state to be received"
                )
            });
        }
    };
    while let Some(row) = rows.next()? {
        let here = (row.get(0)?, row.get(1)?);
        if at != Some(here) {
            end(at, std::mem::take(&mut seen));
            at = Some(here);
        }
        seen.add(row.get(2)?);
    }
    end(at, seen);
    Ok(())
}
