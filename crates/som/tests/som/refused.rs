//! Messages that do not hold to the standard: the envelope, versions and types, and all faults at once.

use serde_json::json;
use storybus_som::Options;

use crate::support::{Remove, Set, assert_refused, edited, judged, judged_text, version};

#[test]
fn the_envelope() {
    let refused = |edits: &[_], expected: &[&str]| assert_refused("story.context", edits, expected);
    refused(&[Remove("/correlation_id")], &["envelope.required "]);
    refused(
        &[Remove("/correlation_id"), Remove("/topic")],
        &["envelope.required ", "envelope.required "],
    );
    refused(
        &[Set("/message_id", json!("42"))],
        &["envelope.format.uuid /message_id"],
    );
    refused(&[Set("/message_id", json!(42))], &["envelope.type /message_id"]);
    refused(
        &[Set("/timestamp", json!("yesterday"))],
        &["envelope.format.date-time /timestamp"],
    );
    refused(
        &[Set("/topic", json!("story.context"))],
        &["envelope.pattern /topic"],
    );
    refused(&[Set("/source", json!({}))], &["envelope.false_schema /source"]);
    refused(
        &[Set("/signature", json!(null))],
        &["envelope.false_schema /signature"],
    );
    refused(&[Set("/priority", json!(1))], &["envelope.additionalProperties "]);
    refused(
        &[Set("/extensions", json!({"trace": 1}))],
        &["envelope.additionalProperties /extensions"],
    );
    refused(
        &[Set("/originating_system/system_type", json!("toaster"))],
        &["envelope.enum /originating_system/system_type"],
    );
    refused(
        &[Set("/originating_system", json!({}))],
        &["envelope.required /originating_system"; 2],
    );
    refused(
        &[Set("/@context", json!(1))],
        &[
            "envelope.type /@context",
            "envelope.type /@context",
            "envelope.anyOf /@context",
        ],
    );
    refused(
        &[Set("/modification_header", json!({"story_version": 1.5}))],
        &["envelope.type /modification_header/story_version"],
    );
    for version in ["1.0", "one", "1.0.0.0", "v1.0.0", "1.0.0\n", "٣.0.0"] {
        refused(
            &[Set("/som_version", json!(version))],
            &["envelope.pattern /som_version"],
        );
    }
    refused(&[Set("/som_version", json!(1))], &["envelope.type /som_version"]);
}

#[test]
fn a_root_that_is_no_object() {
    for text in ["[1]", "null", "1", "\"som\"", "true"] {
        assert_eq!(
            judged_text(text, Options::default()),
            Err(vec!["envelope.type ".to_owned()]),
            "{text}"
        );
    }
    assert_eq!(judged(&json!({})), Err(vec!["envelope.required ".to_owned(); 8]));
}

#[test]
fn a_payload_that_is_no_object_has_no_schema() {
    assert_refused(
        "story.context",
        &[Set("/payload", json!([{}]))],
        &["envelope.type /payload"],
    );
    assert_refused("story.context", &[Remove("/payload")], &["envelope.required "]);
}

#[test]
fn all_at_once_in_the_order_of_the_message() {
    let text = r#"{
        "topic": "z", "som_version": "1.0.0", "mood": 1,
        "payload": {
            "sequence_number": -1.5, "story_id": "s", "message_type": "story.other", "slug": [],
            "story_type": "ORPHAN", "updated_at": "then", "lifecycle": {"phase": "LIVE"}
        },
        "message_id": "x", "message_type": "story.context", "timestamp": "y",
        "originating_system": {"system_id": "a", "system_type": "ncs"}
    }"#;
    let expected = [
        "envelope.required ",
        "envelope.pattern /topic",
        "envelope.additionalProperties ",
        "envelope.format.uuid /message_id",
        "envelope.format.date-time /timestamp",
        "story-context.required /payload",
        "story-context.type /payload/sequence_number",
        "story-context.minimum /payload/sequence_number",
        "story-context.additionalProperties /payload",
        "story-context.type /payload/slug",
        "story-context.format.date-time /payload/updated_at",
        "story-context.required /payload/lifecycle",
        "story-context.enum /payload/lifecycle/phase",
        "story-context.not /payload",
        "payload.message_type_mismatch /payload/message_type",
    ];
    assert_eq!(
        judged_text(text, Options::default()),
        Err(expected.map(str::to_owned).into())
    );
}

#[test]
fn other_majors_are_refused_alone() {
    for (text, rule) in [
        ("0.3.2", "som_version.pre_1_0 /som_version"),
        ("0.99.0", "som_version.pre_1_0 /som_version"),
        ("2.0.0", "som_version.unsupported_major /som_version"),
        (
            "99999999999999999999.0.0",
            "som_version.unsupported_major /som_version",
        ),
    ] {
        assert_refused("story.context", &[version(text)], &[rule]);
        assert_refused(
            "story.context",
            &[version(text), Remove("/payload"), Set("/topic", json!(1))],
            &[rule],
        );
    }
}

#[test]
fn the_envelope_alone_chooses_the_schema() {
    let mut message = edited("link.committed", &[Set("/message_type", json!("system.audit"))]);
    let refused = judged(&message).unwrap_err();
    assert!(refused.contains(&"payload.message_type_mismatch /payload/message_type".to_owned()));
    assert!(refused.contains(&"system-audit.required /payload".to_owned()));
    assert!(refused.contains(&"system-audit.const /payload/message_type".to_owned()));
    assert!(!refused.iter().any(|rule| rule.starts_with("link-event")));
    // For a type without a schema too.
    message["message_type"] = json!("asset.noted");
    assert_eq!(
        judged(&message),
        Err(vec![
            "payload.message_type_mismatch /payload/message_type".to_owned()
        ])
    );
    // A type that is no text names nothing.
    assert_refused(
        "asset.noted",
        &[
            Set("/payload/message_type", json!("asset.noted")),
            Remove("/message_type"),
        ],
        &["envelope.required "],
    );
    assert_refused(
        "story.context",
        &[Set("/payload/message_type", json!(1))],
        &["story-context.additionalProperties /payload"],
    );
}

#[test]
fn types_without_a_schema() {
    for kind in [
        "telling.begun",
        "story.",
        "story.context.x",
        "link.x",
        "delivery.x",
        "system.x",
        "skill.warning.lowered",
    ] {
        assert_refused(
            "asset.noted",
            &[Set("/message_type", json!(kind))],
            &["message_type.unknown /message_type"],
        );
    }
    assert_refused(
        "asset.noted",
        &[Set("/message_type", json!("Asset.noted"))],
        &["envelope.pattern /message_type"],
    );
    assert_refused(
        "asset.noted",
        &[Set("/message_type", json!("telling.Begun"))],
        &["envelope.pattern /message_type"],
    );
    // With other violations, as one of them.
    assert_refused(
        "asset.noted",
        &[Set("/message_type", json!("link.x")), Remove("/topic")],
        &["envelope.required ", "message_type.unknown /message_type"],
    );
}

#[test]
fn a_strict_workspace() {
    let strict = Options {
        strict_message_types: true,
    };
    for text in ["1.0.0", "1.1.0"] {
        let message = edited("asset.noted", &[version(text)]).to_string();
        assert_eq!(
            judged_text(&message, strict),
            Err(vec!["message_type.unknown /message_type".to_owned()])
        );
    }
    let known = edited("system.audit", &[]).to_string();
    assert!(judged_text(&known, strict).is_ok());
}
