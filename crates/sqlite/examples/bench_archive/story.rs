//! What is published: snapshots of stories as a newsroom has them, about 4 kB each, no two stories alike.

use std::fmt::Write as _;

use bytes::Bytes;
use storybus_core::domain::message::{About, Attributes};
use storybus_core::domain::record::story_digest;
use storybus_protocol::id::{CorrelationId, MessageId};

const WORDS: [&str; 32] = [
    "harbour", "ferry", "strike", "council", "flood", "minister", "bridge", "verdict", "league", "final",
    "storm", "market", "union", "budget", "hospital", "school", "police", "election", "airport", "rail",
    "energy", "border", "summit", "court", "festival", "museum", "drought", "fire", "rescue", "island",
    "tunnel", "port",
];

/// Numbers that look random and never repeat.
pub(crate) fn scatter(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

pub(crate) fn sixteen(n: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scatter(n).to_be_bytes());
    bytes[8..].copy_from_slice(&scatter(!n).to_be_bytes());
    bytes
}

fn text(seed: u64, words: u64) -> String {
    let mut text = String::new();
    for n in 0..words {
        let word = WORDS[usize::try_from(scatter(seed.wrapping_add(n << 40)) % 32).unwrap()];
        let _ = write!(text, "{}{word}", if n == 0 { "" } else { " " });
    }
    text
}

/// A message, with what travels beside it.
pub(crate) struct Snapshot {
    pub(crate) message_id: MessageId,
    pub(crate) correlation_id: CorrelationId,
    pub(crate) attributes: Attributes,
    pub(crate) about: About,
    pub(crate) body: Bytes,
}

impl Snapshot {
    /// Message `n` of `stories` stories that are told in turn; with a long body or a very short one.
    pub(crate) fn new(n: u64, stories: u64, long: bool) -> Self {
        let (story, sequence) = (n % stories, n / stories + 1);
        let message_id = MessageId::from_bytes(sixteen(n << 1));
        let correlation_id = CorrelationId::from_bytes(sixteen(story << 1 | 1));
        let story_id = format!("{}-{:x}", text(story, 2).replace(' ', "-"), scatter(story));
        let body = if long {
            let (slug, headline) = (text(story, 3).to_uppercase(), text(n, 9));
            format!(
                r#"{{"som_version":"1.0.0","message_id":"{message_id}","correlation_id":"{correlation_id}","message_type":"story.context","timestamp":"2026-10-05T06:{:02}:{:02}.{:06}Z","originating_system":{{"system_id":"demo-ncs","system_type":"ncs","system_name":"Newsroom"}},"topic":"som.story.context.news","payload":{{"story_id":"{story_id}","slug":"{slug}","headline":"{headline}","story_type":"ACTIVE","lifecycle":{{"phase":"DEVELOPING","phase_entered_at":"2026-10-05T06:30:00Z"}},"sequence_number":{sequence},"updated_at":"2026-10-05T07:{:02}:00Z","assets":[{}]}}}}"#,
                n / 60 % 60,
                n % 60,
                scatter(n) % 1_000_000,
                sequence % 60,
                assets(story, sequence)
            )
        } else {
            format!(r#"{{"n":{n}}}"#)
        };
        Self {
            message_id,
            correlation_id,
            attributes: Attributes {
                message_type: "story.context".to_owned(),
                family: Some("story-context".to_owned()),
                topic: "som.story.context.news".to_owned(),
                correlation_id: correlation_id.to_string(),
                producer_id: "p1".parse().unwrap(),
                system_id: "demo-ncs".to_owned(),
                som_version: "1.0.0".to_owned(),
            },
            about: About {
                story: Some(story_digest(&story_id)),
                story_id: Some(story_id),
                sequence_number: Some(sequence.to_string()),
            },
            body: Bytes::from(body),
        }
    }
}

/// The assets of a story, which change little from snapshot to snapshot.
fn assets(story: u64, sequence: u64) -> String {
    let of = |n: u64| {
        let seed = story * 64 + n;
        let status = if sequence > n { "READY" } else { "IN_PRODUCTION" };
        format!(
            r#"{{"asset_id":"{}-{:08x}","asset_type":"VIDEO","status":"{status}","evidential_position":"PRIMARY","acquisition_state":"CAPTURING","media_refs":[{{"source":"tams://store-{}/{:016x}","label":"{}"}}]}}"#,
            text(seed, 1),
            scatter(seed) >> 32,
            story % 7,
            scatter(seed ^ 0x5555),
            text(seed << 8, 6)
        )
    };
    (0..13).map(of).collect::<Vec<_>>().join(",")
}
