//! A look at every block: whether it says what its row says.

use super::block::{Block, COLUMNS};
use crate::error::Failure;
use crate::reader::View;
use crate::rows::{self, Rows as _};

/// Reads all blocks, one after another; tells of each that is not whole.
pub(crate) fn verify(view: &View<'_>, mut report: impl FnMut(&Failure)) -> Result<(), Failure> {
    let mut last = 0;
    loop {
        let next = view.find(
            &format!("SELECT {COLUMNS}, count FROM archive_block WHERE id > ?1 ORDER BY id LIMIT 1"),
            [last],
            |row| Ok((Block::read(row)?, row.get::<_, i64>("count")?)),
        )?;
        let Some((block, count)) = next else {
            return Ok(());
        };
        if let Err(failure) = one(view, block, count) {
            report(&failure);
        }
        last = block.id;
    }
}

fn one(view: &View<'_>, block: Block, count: i64) -> Result<(), Failure> {
    let heads = block.heads(view)?;
    let (mut read, mut bodies, mut end) = (0, 0, (block.first_seq, block.first_at));
    for head in heads.iter() {
        let head = head?;
        heads.head(&head)?;
        (read, bodies, end) = (read + 1, head.body.end, (head.seq, head.published_at));
    }
    if rows::limit(read) != count || end != (block.last_seq, block.last_at) {
        return Err(block.damaged("its heads are not those of its row"));
    }
    if block.bodies(view)?.len() != bodies {
        return Err(block.damaged("its bodies are not those of its heads"));
    }
    let row = view.find(
        "SELECT seq FROM message INDEXED BY message_workspace WHERE workspace = ?1 AND seq BETWEEN ?2 AND ?3 LIMIT 1",
        [block.workspace, block.first_seq, block.last_seq],
        |row| row.get::<_, i64>(0),
    )?;
    match row {
        Some(seq) => Err(block.damaged(&format!(
            "message {seq} is not in it, and lies among its messages"
        ))),
        None => Ok(()),
    }
}
