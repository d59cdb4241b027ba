//! Where a message lies: its hour and shard, and its place in the order of the archive.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use storybus_core::domain::archived::Position;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{CorrelationId, MessageId};

/// Partitions of one hour of a workspace: each takes about 1,000 write units a second.
pub(super) const SHARDS: u8 = 8;
const HOUR: i64 = 3_600_000;
/// The last time that thirteen digits can say.
const LAST: i64 = 9_999_999_999_999;
/// The base in which sequence numbers are written: 20 decimal digits are 13 of these.
const BASE: u128 = 36;

/// A place. Their order, and that of their texts, is the archive's: by time, then by shard, then as the queue numbered the
/// messages of a group. A correlation id has one shard, so its messages keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) at: Millis,
    pub(super) shard: u8,
    /// SQS gives 128 bits, which grow within a message group.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
    pub(super) sequence: u128,
    pub(super) message_id: MessageId,
}

impl Place {
    /// Its text: a sort key, and a [`Position`].
    pub(super) fn text(&self) -> String {
        let Self {
            at,
            shard,
            sequence,
            message_id,
        } = self;
        let sequence = digits(*sequence);
        format!(
            "{}-{shard}-{sequence}-{}",
            time(*at),
            sixteen(message_id.as_bytes())
        )
    }

    /// As a position.
    pub(super) fn position(&self) -> Position {
        Position(self.text())
    }

    /// Of a text that [`text`](Self::text) gave, and of no other.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '-');
        let place = Self {
            at: Millis(parts.next()?.parse().ok()?),
            shard: parts.next()?.parse().ok()?,
            sequence: number(parts.next()?)?,
            message_id: MessageId::from_bytes(of_sixteen(parts.next()?)?),
        };
        (place.shard < SHARDS && place.text() == text).then_some(place)
    }

    /// Its hour.
    pub(super) fn hour(&self) -> i64 {
        hour(self.at)
    }
}

/// The shard of a correlation id. It never changes: messages lie where it said.
pub(super) fn shard(correlation: &CorrelationId) -> u8 {
    // FNV-1a, and a finish that lets every bit reach the ones that are taken: the ids of one client may differ in a byte
    let hash = correlation.as_bytes().iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    u8::try_from((hash ^ (hash >> 16)) % u32::from(SHARDS)).unwrap_or_default()
}

/// The hour of a time, counted from 1970.
pub(super) fn hour(at: Millis) -> i64 {
    at.0.clamp(0, LAST) / HOUR
}

/// When an hour is over.
pub(super) fn end_of(hour: i64) -> Millis {
    Millis((hour + 1).saturating_mul(HOUR))
}

/// What the texts of all places of this time begin with; it lies before them and behind those of earlier times.
pub(super) fn time(at: Millis) -> String {
    format!("{:013}", at.0.clamp(0, LAST))
}

/// Lies behind this place, and before every other that does.
pub(super) fn behind(place: &Place) -> String {
    format!("{}!", place.text())
}

/// Sixteen bytes in 22 characters.
pub(super) fn sixteen(bytes: &[u8; 16]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The other way.
pub(super) fn of_sixteen(text: &str) -> Option<[u8; 16]> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// A number in as few characters as keep its order: a letter for how many digits there are, and they.
fn digits(mut number: u128) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        let digit = u8::try_from(number % BASE).unwrap_or_default();
        digits.push(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        });
        number /= BASE;
    }
    digits.push(b'a' + u8::try_from(digits.len()).unwrap_or_default());
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

fn number(text: &str) -> Option<u128> {
    // `digits` decides what is right; here it is only turned back
    text.get(1..)?.chars().try_fold(0_u128, |number, digit| {
        number
            .checked_mul(BASE)?
            .checked_add(u128::from(digit.to_digit(36)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: i64, shard: u8, sequence: u128, id: u8) -> Place {
        Place {
            at: Millis(at),
            shard,
            sequence,
            message_id: MessageId::from_bytes([id; 16]),
        }
    }

    #[test]
    fn texts_are_in_the_order_of_places_and_lead_back() {
        let mut places = Vec::new();
        for at in [0, 1, 999, 1_789_144_860_000, LAST] {
            for shard in 0..SHARDS {
                for sequence in [
                    0,
                    1,
                    35,
                    36,
                    1 << 64,
                    18_849_496_460_467_696_128,
                    18_849_496_460_467_696_384,
                    u128::MAX,
                ] {
                    for id in [0, 255] {
                        places.push(place(at, shard, sequence, id));
                    }
                }
            }
        }
        let texts: Vec<String> = places.iter().map(Place::text).collect();
        assert!(places.is_sorted() && texts.iter().map(|text| &text[..16]).is_sorted());
        for (one, two) in places.iter().zip(&places[1..]) {
            // ids tell apart, whichever comes first
            if one.sequence != two.sequence || one.shard != two.shard || one.at != two.at {
                assert!(one.text() < two.text(), "{} {}", one.text(), two.text());
                assert!(behind(one) < two.text());
            }
            assert!(behind(one) > one.text() && time(one.at) < one.text());
        }
        for (place, text) in places.iter().zip(&texts) {
            assert_eq!(Place::parse(text), Some(*place));
        }
    }

    #[test]
    fn no_other_text_is_a_place() {
        let text = place(1_789_144_860_000, 3, 77, 9).text();
        for wrong in [
            text.replace("-3-", "-8-"),
            text.replace("-3-", "-03-"),
            text.replace("-3-", "-+3-"),
            text[1..].to_owned(),
            format!("{text}="),
            format!("{text} "),
            text.to_uppercase(),
            text.replace("-c", "-d0"),
            text[..text.len() - 1].to_owned(),
        ] {
            assert_ne!(wrong, text);
            assert_eq!(Place::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn correlation_ids_are_spread_over_the_shards() {
        for byte in 0..16 {
            let mut counts = [0; SHARDS as usize];
            for n in 0..=255 {
                let mut bytes = [7; 16];
                bytes[byte] = n;
                counts[usize::from(shard(&CorrelationId::from_bytes(bytes)))] += 1;
            }
            assert!(
                counts.iter().all(|count| (10..=64).contains(count)),
                "{byte}: {counts:?}"
            );
        }
    }
}
