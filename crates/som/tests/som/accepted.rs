//! Messages that hold to the standard.

use serde_json::json;
use storybus_json::Document;
use storybus_som::{Family, Options, validate};

use crate::support::{EXAMPLES, Remove, Set, assert_accepted, example, judged, version};

#[test]
fn an_example_of_every_type() {
    for (name, _) in EXAMPLES {
        let message = example(name);
        let family = Family::of(message["message_type"].as_str().unwrap());
        let tolerated = if name == "asset.noted" {
            vec!["payload.unvalidated /payload".to_owned()]
        } else {
            vec![]
        };
        assert_eq!(family.is_none(), name == "asset.noted");
        assert_eq!(judged(&message), Ok((family, tolerated)), "{name}");
    }
}

#[test]
fn what_the_bus_needs_of_a_message() {
    let text = example("story.context").to_string();
    let document = Document::parse(text.as_bytes()).unwrap();
    let checked = validate(document.root(), Options::default()).unwrap();
    assert_eq!(checked.family, Some(Family::StoryContext));
    assert_eq!(checked.message_id, "01a3c0de-0000-7000-8000-000000000001");
    assert_eq!(checked.correlation_id, "01a3c0de-0000-7000-8000-00000000f1e5");
    assert_eq!(checked.message_type, "story.context");
    assert_eq!(checked.system_id, "harbour-ncs");
    assert_eq!(checked.topic, "som.story.context");
    assert_eq!(checked.som_version, "1.0.0");
    assert_eq!(checked.timestamp, "2026-10-02T06:15:30.250000Z");
    assert_eq!(
        checked.payload.get("story_id").and_then(|id| id.as_str()),
        Some("harbour-fire")
    );
}

#[test]
fn what_is_no_fault() {
    assert_accepted(
        "story.context",
        &[Set("/message_id", json!("01A3C0DE-0000-7000-8000-00000000000A"))],
        &[],
    );
    assert_accepted("story.context", &[Set("/@context", json!({"a": 1}))], &[]);
    assert_accepted(
        "story.context",
        &[Set("/@context", json!("https://example.com"))],
        &[],
    );
    assert_accepted("story.context", &[version("01.00.00")], &[]);
    // 255 characters and more are not counted anywhere but in story_meaning.
    assert_accepted(
        "story.context",
        &[Set("/payload/headline", json!("x".repeat(10_000)))],
        &[],
    );
    assert_accepted(
        "story.context-full",
        &[Set("/payload/story_meaning/who", json!("🎥".repeat(280)))],
        &[],
    );
    // Formats other than uuid and date-time are not asserted.
    assert_accepted(
        "story.context-full",
        &[Set("/payload/content_refs/0/uri", json!("no uri at all"))],
        &[],
    );
    assert_accepted(
        "story.context-full",
        &[Set("/payload/sequence_number", json!(12.0))],
        &[],
    );
    assert_accepted(
        "story.context-full",
        &[Set("/payload/relations/0/anything", json!(1))],
        &[],
    );
    assert_accepted("story.context-full", &[Set("/payload/tags", json!([]))], &[]);
    assert_accepted(
        "link.gate_changed",
        &[Set("/payload/committed_by", json!("u-1"))],
        &[],
    );
    assert_accepted("system.audit", &[Remove("/payload/message_type")], &[]);
    assert_accepted(
        "delivery.media_available",
        &[
            Remove("/payload/source"),
            Set("/payload/locator", json!({"store": "s", "ref": "r"})),
        ],
        &[],
    );
}

#[test]
fn times_to_their_limits() {
    for time in [
        "2016-12-31T23:59:60Z",
        "2026-09-11t16:41:00z",
        "2026-12-31T15:59:60.25-08:00",
        "0000-02-29T00:00:00-00:00",
    ] {
        assert_accepted("story.context", &[Set("/timestamp", json!(time))], &[]);
    }
}
