//! A dead letter as an item.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::{Cause, DeadLetter};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::message::{Attributes, MAX_WITH_ATTRIBUTES};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_core::ports::queues::RETENTION;
use storybus_protocol::id::MessageId;

use super::millis;
use crate::item::{Attributes as _, Item, b, json, key, n, s, unreadable};
use crate::keys::{self, hex};

/// A message that dies.
pub(crate) struct Letter {
    /// SQS's id of it.
    pub(crate) sqs_message_id: String,
    /// SQS's order within its group.
    pub(crate) sequence_number: String,
    pub(crate) message_id: MessageId,
    pub(crate) body: Bytes,
    pub(crate) attributes: Attributes,
    pub(crate) receive_count: u32,
    pub(crate) enqueued_at: Millis,
    pub(crate) cause: Cause,
    pub(crate) redelivery: Option<String>,
}

impl Letter {
    /// The item of one that dies now.
    pub(super) fn item(&self, queue: &QueueKey, now: Millis) -> Result<Item, StoreError> {
        let position = position(now, &self.sequence_number, &self.sqs_message_id);
        let list = keys::dead_letters_of_message(&queue.workspace, self.message_id);
        let body = zstd::bulk::compress(&self.body, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(unreadable)?;
        let mut item = key(keys::dead_letters(&queue.consumer), &position);
        item.extend(
            [
                ("list_pk", s(list)),
                ("list_sk", s(format!("{}#{position}", queue.consumer))),
                ("message_id", s(self.message_id.to_string())),
                ("body", b(body)),
                ("attributes", json(&self.attributes)?),
                ("receive_count", n(self.receive_count)),
                ("enqueued_at", n(self.enqueued_at.0)),
                ("dead_at", n(now.0)),
                ("cause", json(&self.cause)?),
                ("expires_at", n(kept_until(now))),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        if let Some(mark) = &self.redelivery {
            item.insert("redelivery".to_owned(), s(mark));
        }
        Ok(item)
    }
}

/// Until when a letter is kept that died then, in seconds.
pub(super) fn kept_until(dead_at: Millis) -> i64 {
    (dead_at.plus(RETENTION).0 + 999).div_euclid(1000)
}

fn position(at: Millis, sequence_number: &str, sqs_message_id: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(sqs_message_id.as_bytes()).into();
    format!("{:013}-{sequence_number:0>20}-{}", at.0.max(0), hex(&digest[..4]))
}

/// Whether a text is one.
pub(super) fn is_position(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let [at, number, digest] = parts[..] else {
        return false;
    };
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    at.len() == 13
        && digits(at)
        && (20..=39).contains(&number.len())
        && digits(number)
        && digest.len() == 8
        && digest.bytes().all(lower_hex)
}

/// Whether an item has expired: it is absent then, deleted yet or not.
pub(super) fn is_over(item: &Item, now_seconds: i64) -> bool {
    item.number::<i64>("expires_at")
        .is_some_and(|at| at <= now_seconds)
}

/// The letter of an item.
pub(super) fn letter(item: &Item) -> Result<DeadLetter, StoreError> {
    let body = item.bytes("body").ok_or_else(|| unreadable("body"))?;
    Ok(DeadLetter {
        position: Position(item.need_text("sk")?.to_owned()),
        message_id: item.need_parsed("message_id")?,
        body: Bytes::from(zstd::bulk::decompress(body, MAX_WITH_ATTRIBUTES).map_err(unreadable)?),
        attributes: item.need_json("attributes")?,
        receive_count: item.need_number("receive_count")?,
        enqueued_at: millis(item.need_number("enqueued_at")?),
        dead_at: millis(item.need_number("dead_at")?),
        cause: item.need_json("cause")?,
        redelivery: item.text("redelivery").map(str::to_owned),
        taken_by: item
            .text("taken_by")
            .map(|job| job.parse().map_err(|_| unreadable("taken_by")))
            .transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_sort_by_death_then_arrival() {
        let a = position(Millis(1_789_000_000_000), "00000000000000000009", "x");
        let b = position(Millis(1_789_000_000_000), "00000000000000000010", "a");
        let c = position(Millis(1_789_000_000_001), "00000000000000000001", "a");
        assert!(a < b && b < c);
        assert!([&a, &b, &c].into_iter().all(|text| is_position(text)));
        for text in [
            "",
            "1",
            "1789000000000-00000000000000000009",
            &a[1..],
            &a.to_uppercase().replace('0', "O"),
        ] {
            assert!(!is_position(text), "{text}");
        }
    }
}
