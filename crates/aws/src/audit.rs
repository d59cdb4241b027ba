//! The audit.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::{AuditLog, StoreError};

use crate::Aws;
use crate::item::{Attributes as _, Item, key, s, unreadable};
use crate::keys::{self, AUDIT};
use crate::query::Range;
use crate::writes::{Action, client_token};

/// [`AuditLog`] on DynamoDB. A cursor is the sort key of an entry: its time, its number among those of its process, and a digest
/// that tells entries of two processes apart. So entries of one process keep their order within a millisecond; entries of two processes have none there.
#[derive(Clone)]
pub struct DynamoAudit {
    aws: Aws,
}

impl Aws {
    /// The audit.
    #[must_use]
    pub fn audit(&self) -> DynamoAudit {
        DynamoAudit { aws: self.clone() }
    }
}

/// An entry that is written now, for the transaction of the write that it tells of. Nothing else writes its item.
pub(crate) fn write(entry: &AuditEntry) -> Result<Action, StoreError> {
    item(entry).map(Action::put)
}

fn item(entry: &AuditEntry) -> Result<Item, StoreError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let text = serde_json::to_string(entry).map_err(unreadable)?;
    let digest = keys::hex(&Sha256::digest(&text)[..4]);
    let place = format!("{}-{number:010}-{digest}", keys::ordered(entry.at));
    let mut item = key(AUDIT, place);
    item.insert("entry".to_owned(), s(text));
    Ok(item)
}

/// Writes an entry together with what it tells of.
pub(crate) async fn write_with(
    aws: &Aws,
    mut actions: Vec<Action>,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let item = item(entry)?;
    let token = client_token(&aws.config.table, &[item.need_text("sk")?.as_bytes()]);
    actions.push(Action::put(item));
    let written = aws.write_together(&aws.config.table, token, actions).await;
    written.map(|_| ())
}

/// Whether a text is a place as [`write`] makes them.
fn is_place(text: &str) -> bool {
    let digits = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
    match *text.split('-').collect::<Vec<_>>() {
        [at, number, rest] => {
            let hex = rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            digits(at, 20) && digits(number, 10) && rest.len() == 8 && hex
        }
        _ => false,
    }
}

#[async_trait]
impl AuditLog for DynamoAudit {
    async fn list(
        &self,
        before: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        if before.is_some_and(|cursor| !is_place(&cursor.0)) {
            return Ok(None);
        }
        let range = Range::of(AUDIT)
            .backwards(before.map(|cursor| cursor.0.as_str()))
            .limit(limit.saturating_add(1));
        let mut items = self.aws.range(range).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().map(|item| item.need_text("sk")).transpose()?;
        let cursor = last.filter(|_| more).map(|sk| AuditCursor(sk.to_owned()));
        let entries = items.iter().map(|item| item.need_json("entry"));
        Ok(Some((entries.collect::<Result<_, _>>()?, cursor)))
    }
}
