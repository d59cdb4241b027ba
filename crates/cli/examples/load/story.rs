//! What is published.

use std::fmt::Write;

use storybus_cli::ports::OsRandom;
use storybus_core::ports::Random;

fn uuid() -> String {
    let mut b = [0; 16];
    OsRandom.fill(&mut b);
    let hex: String = b.iter().fold(String::new(), |mut hex, b| {
        let _ = write!(hex, "{b:02x}");
        hex
    });
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The part of a snapshot that does not change: assets as a story under way has them.
pub(crate) fn assets() -> String {
    let assets: Vec<String> = (0..14)
        .map(|n| {
            format!(
                r#"{{"asset_id":"harbour-camera-{n}","asset_type":"VIDEO","status":"IN_PRODUCTION","evidential_position":"PRIMARY","acquisition_state":"CAPTURING","media_refs":[{{"source":"tams://harbour-store/camera-{n}/segment","label":"Harbour camera {n}, quay side, live since the morning"}}]}}"#
            )
        })
        .collect();
    assets.join(",")
}

/// A story that is told snapshot by snapshot.
pub(crate) struct Story {
    id: String,
    correlation: String,
    sequence: u64,
}

impl Story {
    /// A new one.
    pub(crate) fn new(number: usize) -> Self {
        Self {
            id: format!("load-{number}-{}", uuid()),
            correlation: uuid(),
            sequence: 0,
        }
    }

    pub(crate) fn next(&mut self, assets: &str, out: &mut String) {
        self.sequence += 1;
        let (n, id, correlation) = (self.sequence, &self.id, &self.correlation);
        let (message, hour, minute) = (uuid(), n / 60 % 24, n % 60);
        out.clear();
        let _ = write!(
            out,
            r#"{{"som_version":"1.0.0","message_id":"{message}","correlation_id":"{correlation}","message_type":"story.context","timestamp":"2026-10-05T06:30:00.120000Z","originating_system":{{"system_id":"demo-ncs","system_type":"ncs","system_name":"Load"}},"topic":"som.story.context.load","payload":{{"story_id":"{id}","slug":"FERRY-STRIKE","headline":"Ferry crews vote on a strike, update {n}","story_type":"ACTIVE","lifecycle":{{"phase":"DEVELOPING","phase_entered_at":"2026-10-05T06:30:00Z"}},"sequence_number":{n},"updated_at":"2026-10-05T{hour:02}:{minute:02}:00Z","assets":[{assets}]}}}}"#
        );
    }
}
