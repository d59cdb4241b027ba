//! What a step writes, a row at a time: for when something in it can never be written, and nobody knows yet what.

use std::collections::{BTreeMap, HashSet};

use super::super::conn::Conn;
use super::super::write::{self, Image};
use super::super::{OutboxError, Trouble, lock};
use super::Stuck;

/// What is kept of an answer's texts, the most first.
#[derive(Debug, Clone, Copy)]
enum Texts {
    All,
    /// What every encoding has.
    Ascii,
    None,
}

/// Writes the rows that can be written. The ids of those that were; those that cannot be go to `stuck`.
pub(super) async fn write(
    conn: &mut Conn<'_>,
    images: &[Image],
    stuck: &mut BTreeMap<i64, Stuck>,
) -> Result<HashSet<i64>, OutboxError> {
    let mut written = HashSet::with_capacity(images.len());
    for image in images {
        let mut first_trouble = None;
        for texts in [Texts::All, Texts::Ascii, Texts::None] {
            lock::part(conn).await?;
            let result = write::write(conn, &[with(image, texts)]).await;
            lock::end_part(conn, result.is_ok()).await?;
            match result {
                Ok(ids) => {
                    written.extend(ids);
                    first_trouble = None;
                    break;
                }
                Err(error) => {
                    let trouble = of_a_row(error)?;
                    first_trouble.get_or_insert(trouble);
                }
            }
        }
        if let Some(trouble) = first_trouble {
            stuck.insert(image.id, Stuck { name: None, trouble });
        }
    }
    Ok(written)
}

/// The trouble, if it is about the row; what is not would only be repeated with the next.
pub(super) fn of_a_row(error: impl Into<OutboxError>) -> Result<Trouble, OutboxError> {
    match error.into() {
        OutboxError::Database(trouble) if trouble.is_of_a_row() => Ok(trouble),
        other => Err(other),
    }
}

fn with(image: &Image, texts: Texts) -> Image {
    let mut image = image.clone();
    let last = &mut image.last;
    for text in [&mut last.outcome, &mut last.rule, &mut last.detail] {
        *text = match texts {
            Texts::All => text.take(),
            Texts::Ascii => text.take().map(|text| {
                text.chars()
                    .map(|char| if matches!(char, ' '..='~') { char } else { '?' })
                    .collect()
            }),
            Texts::None => None,
        };
    }
    image
}
