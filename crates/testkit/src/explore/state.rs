//! What a stage looks like inside: for edges of time, and to tell states apart.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use storybus_core::domain::record::{RecordKey, RecordState, StoryKey};

use super::message::Message;
use super::stage::Stage;
use super::witness::WINDOW;
use crate::executor::run;
use crate::suite::sample;

/// The first 16 bytes of the SHA-256 of `s`, the id of the one story.
const STORY_DIGEST: [u8; 16] = [
    0x04, 0x3a, 0x71, 0x87, 0x74, 0xc5, 0x72, 0xbd, 0x8a, 0x25, 0xad, 0xbe, 0xb1, 0xbf, 0xcd, 0x5c,
];

impl Stage {
    /// The sequence number of the story's last accepted snapshot.
    pub(super) fn last_accepted(&self) -> Option<u64> {
        let key = StoryKey {
            workspace: self.queue.workspace.clone(),
            digest: STORY_DIGEST,
        };
        let nobody = RecordKey {
            workspace: self.queue.workspace.clone(),
            message_id: sample::message_id(0),
        };
        let story = match &self.memory {
            Some(memory) => memory.stories().remove(&key),
            None => {
                run(self.stores.ledger.read(&nobody, Some(&key), self.clock.now()))
                    .ok()?
                    .story
            }
        };
        story?.state.sequence_number()?.parse().ok()
    }

    /// Whether the story's last accepted snapshot is another message that may still fail.
    pub(super) fn head_in_flight(&self, message: &Message) -> bool {
        let Some(memory) = &self.memory else {
            return false;
        };
        let (now, records) = (self.clock.now(), memory.records());
        memory.stories().into_iter().any(|(key, story)| {
            let head = RecordKey {
                workspace: key.workspace,
                message_id: story.head,
            };
            let in_flight = records.get(&head).is_some_and(|r| r.in_flight(now, WINDOW));
            story.head != message.id && message.snapshot.is_some() && in_flight
        })
    }

    /// Times at which something changes: the edges of the windows that are open.
    pub(super) fn edges(&self) -> Vec<Duration> {
        let now = self.clock.now();
        let Some(memory) = &self.memory else {
            return vec![WINDOW];
        };
        let open = memory
            .records()
            .into_values()
            .filter(|record| record.in_flight(now, WINDOW));
        let mut edges: Vec<Duration> = open
            .map(|record| now.until(record.recorded_at.plus(WINDOW)))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// What tells this state from others, tokens and absolute times aside: two states with one fingerprint have the
    /// same future. Records that differ only in how much of their 7 days is left are taken for equal, since time passes
    /// in seconds or in more than 7 days here.
    pub(super) fn fingerprint(&self) -> Option<u64> {
        let memory = self.memory.as_ref()?;
        let now = self.clock.now();
        let mut hasher = DefaultHasher::new();
        for (key, record) in memory.records().iter().filter(|(_, r)| now < r.expires_at) {
            key.hash(&mut hasher);
            record.content_hash.hash(&mut hasher);
            record.state.hash(&mut hasher);
            if record.state == RecordState::Recorded {
                record.recorded_at.until(now).min(WINDOW).hash(&mut hasher);
            }
        }
        for (key, story) in memory.stories() {
            key.hash(&mut hasher);
            story.head.hash(&mut hasher);
            story.state.sequence_number().hash(&mut hasher);
        }
        for taken in memory.taken() {
            taken.message_id.hash(&mut hasher);
            taken
                .at
                .until(now)
                .min(Duration::from_secs(300))
                .hash(&mut hasher);
        }
        self.witness.superseded().hash(&mut hasher);
        self.witness.forgetful.hash(&mut hasher);
        let mut sent: Vec<&str> = self.witness.sent.iter().map(|m| m.name.as_str()).collect();
        sent.sort_unstable();
        sent.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// What of this state a refused attempt must leave as it was.
    pub(super) fn substance(&self) -> Option<String> {
        let memory = self.memory.as_ref()?;
        let now = self.clock.now();
        let records: Vec<String> = memory
            .records()
            .iter()
            .filter(|(_, record)| now < record.expires_at)
            .map(|(key, r)| {
                format!(
                    "{} {:?} {:?} {:?}",
                    key.message_id, r.content_hash, r.state, r.recorded_at
                )
            })
            .collect();
        let stories: Vec<String> = memory
            .stories()
            .values()
            .map(|s| format!("{} {:?}", s.head, s.state))
            .collect();
        Some(format!("{records:?} {stories:?} {}", memory.taken().len()))
    }
}
