//! Messages.

use serde_json::{Value, json};

/// An event of a type that has no schema. Each number is an order group of its own.
pub(crate) fn note(number: u64) -> Value {
    json!({
        "som_version": "1.0.0",
        "message_id": format!("0199a1c4-7a2e-7b31-8c55-{number:012}"),
        "correlation_id": format!("0199a1c4-7a2e-7b31-9c55-{number:012}"),
        "message_type": "asset.note",
        "timestamp": "2026-09-11T16:41:00Z",
        "originating_system": {"system_id": "desk-1", "system_type": "ncs"},
        "topic": "som.asset.note",
        "payload": {"n": number},
    })
}

/// A snapshot of one story.
pub(crate) fn snapshot(number: u64, sequence: u64) -> Value {
    let mut message = note(number);
    message["message_type"] = json!("story.context");
    message["topic"] = json!("som.story.context");
    message["payload"] = json!({
        "story_id": "story-1",
        "slug": "SLUG",
        "headline": "Headline",
        "story_type": "ACTIVE",
        "lifecycle": {"phase": "DEVELOPING", "phase_entered_at": "2026-09-11T10:00:00Z"},
        "sequence_number": sequence,
        "updated_at": format!("2026-09-11T10:{sequence:02}:00Z"),
    });
    message
}
