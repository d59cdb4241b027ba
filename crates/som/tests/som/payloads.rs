//! Payloads that do not hold to their schemas: each kind of fault where it bites.

use serde_json::json;

use crate::support::{Remove, Set, assert_refused, edited, judged};

#[test]
fn snapshots() {
    let refused = |edits: &[_], expected: &[&str]| assert_refused("story.context-full", edits, expected);
    for name in [
        "ai_enrichments",
        "instances",
        "broadcaster_id",
        "sources",
        "content_ref",
    ] {
        let mut message = edited("story.context-full", &[]);
        message["payload"][name] = json!([]);
        assert_eq!(
            judged(&message),
            Err(vec![format!("story-context.false_schema /payload/{name}")])
        );
    }
    refused(
        &[Set("/payload/skills_config/broadcaster", json!(1))],
        &["story-context.false_schema /payload/skills_config/broadcaster"],
    );
    refused(
        &[Remove("/payload/story_id")],
        &["story-context.required /payload"],
    );
    refused(
        &[Set("/payload/assets/0/voice_count", json!(1))],
        &["story-context.additionalProperties /payload/assets/0"],
    );
    refused(
        &[Set("/payload/assets/0/status", json!("FINALIZING"))],
        &["story-context.enum /payload/assets/0/status"],
    );
    refused(
        &[Set("/payload/lifecycle/phase", json!("LIVE"))],
        &["story-context.enum /payload/lifecycle/phase"],
    );
    refused(
        &[Set("/payload/story_meaning/who", json!("x".repeat(281)))],
        &["story-context.maxLength /payload/story_meaning/who"],
    );
    refused(
        &[Set("/payload/story_meaning/confidence", json!(1.01))],
        &["story-context.maximum /payload/story_meaning/confidence"],
    );
    refused(
        &[Set("/payload/tags/0/value", json!(""))],
        &["story-context.minLength /payload/tags/0/value"],
    );
    refused(
        &[Set("/payload/tags/0/scheme", json!("com.harbour"))],
        &["story-context.pattern /payload/tags/0/scheme"],
    );
    refused(
        &[Set(
            "/payload/tags/-",
            json!({"value": "metro", "scheme": "newsroom"}),
        )],
        &["story-context.uniqueItems /payload/tags"],
    );
    refused(
        &[Set("/payload/assets/2/usage/0/state", json!("planned"))],
        &["story-context.const /payload/assets/2/usage/0/state"],
    );
    refused(
        &[Set("/payload/assets/0/asset_type", json!("HOLOGRAM"))],
        &[
            "story-context.enum /payload/assets/0/asset_type",
            "story-context.pattern /payload/assets/0/asset_type",
            "story-context.anyOf /payload/assets/0/asset_type",
        ],
    );
    refused(
        &[Set("/payload/assets/0/media_refs/0", json!({"label": "x"}))],
        &[
            "story-context.required /payload/assets/0/media_refs/0",
            "story-context.required /payload/assets/0/media_refs/0",
            "story-context.anyOf /payload/assets/0/media_refs/0",
        ],
    );
    refused(
        &[Set(
            "/payload/compliance/0/media_range",
            json!({"time_range": ["[0:0_", 1]}),
        )],
        &[
            "story-context.type /payload/compliance/0/media_range/time_range",
            "story-context.pattern /payload/compliance/0/media_range/time_range/0",
            "story-context.type /payload/compliance/0/media_range/time_range/1",
            "story-context.anyOf /payload/compliance/0/media_range/time_range",
            "story-context.required /payload/compliance/0/media_range",
            "story-context.required /payload/compliance/0/media_range",
            "story-context.anyOf /payload/compliance/0/media_range",
        ],
    );
}

#[test]
fn what_the_schemas_tie_together() {
    let refused = |edits: &[_], expected: &[&str]| assert_refused("story.context-full", edits, expected);
    refused(
        &[Remove("/payload/lifecycle")],
        &["story-context.required /payload"],
    );
    refused(
        &[Set("/payload/story_type", json!("KILLED"))],
        &["story-context.not /payload"],
    );
    // Without a type it is not ACTIVE.
    refused(
        &[Remove("/payload/story_type")],
        &["story-context.required /payload", "story-context.not /payload"],
    );
    refused(
        &[Set("/payload/assets/1/provenance/author", json!("HUMAN"))],
        &["story-context.not /payload/assets/1/provenance"],
    );
    refused(
        &[Set("/payload/assertions/0/claim", json!({}))],
        &["story-context.required /payload/assertions/0/claim"; 2],
    );
    refused(
        &[Set("/payload/assertions/0/assertion_type", json!("MATCH"))],
        &["story-context.required /payload/assertions/0/claim"],
    );
    refused(
        &[Set("/payload/assertions/0/assertion_type", json!("DETECTION"))],
        &["story-context.required /payload/assertions/0/claim"; 2],
    );
}

#[test]
fn events() {
    assert_refused(
        "telling.started",
        &[Remove("/payload/transforms/0/transform_type")],
        &["telling-event.required /payload/transforms/0"],
    );
    assert_refused(
        "telling.started",
        &[Set("/payload/transforms/0/transform_id", json!(1))],
        &["telling-event.additionalProperties /payload/transforms/0"],
    );
    assert_refused(
        "telling.started",
        &[Set("/payload/exposure_end", json!("2026-10-02T09:00:00Z"))],
        &["telling-event.not /payload"],
    );
    assert_refused(
        "telling.ended",
        &[Remove("/payload/exposure_end")],
        &["telling-event.required /payload"],
    );
    assert_refused(
        "telling.exposed",
        &[Remove("/payload/exposure_end"), Remove("/payload/exposure_start")],
        &["telling-event.required /payload"; 2],
    );
    assert_refused(
        "link.committed",
        &[Set("/payload/compliance_gate_status", json!("APPROVED"))],
        &["link-event.enum /payload/compliance_gate_status"],
    );
    assert_refused(
        "link.committed",
        &[Remove("/payload/committed_by"), Remove("/payload/committed_at")],
        &["link-event.required /payload"; 2],
    );
    assert_refused(
        "link.withdrawn",
        &[Remove("/payload/withdrawn")],
        &["link-event.required /payload"],
    );
    assert_refused(
        "link.gate_changed",
        &[Set(
            "/payload/withdrawn",
            json!({"withdrawn_by": "u", "withdrawn_at": "2026-10-02T09:00:00Z"}),
        )],
        &["link-event.not /payload"],
    );
    // An `if` about an absent member holds: such a payload is every type at once.
    assert_refused(
        "link.gate_changed",
        &[Remove("/payload/message_type")],
        &["link-event.required /payload"; 4],
    );
    assert_refused(
        "delivery.media_available",
        &[Remove("/payload/source")],
        &[
            "delivery-media-available.required /payload",
            "delivery-media-available.required /payload",
            "delivery-media-available.anyOf /payload",
        ],
    );
    assert_refused(
        "skill.warning.raised",
        &[
            Set("/payload/instance_ref", json!(1)),
            Set("/payload/timestamp", json!(1)),
        ],
        &[
            "skill-warning.false_schema /payload/instance_ref",
            "skill-warning.false_schema /payload/timestamp",
        ],
    );
    assert_refused(
        "skill.warning.raised",
        &[Set("/payload/severity", json!("HOLD"))],
        &["skill-warning.enum /payload/severity"],
    );
    assert_refused(
        "system.audit",
        &[Remove("/payload/actor"), Set("/payload/actor_id", json!("u"))],
        &[
            "system-audit.required /payload",
            "system-audit.additionalProperties /payload",
        ],
    );
}
