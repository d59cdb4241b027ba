//! What a message of a later minor version may carry.

use serde_json::json;

use crate::support::{Remove, Set, assert_accepted, assert_refused, version};

#[test]
fn news_is_tolerated() {
    assert_accepted("story.context", &[version("1.1.0")], &[]);
    assert_accepted(
        "story.context-full",
        &[
            version("1.1.0"),
            Set("/payload/new_member", json!(1)),
            Set("/payload/story_type", json!("PAUSED")),
            Remove("/payload/lifecycle"),
        ],
        &[
            "story-context.enum /payload/story_type",
            "story-context.additionalProperties /payload",
        ],
    );
    assert_accepted(
        "story.context",
        &[version("1.18446744073709551616.0"), Set("/mood", json!(1))],
        &["envelope.additionalProperties "],
    );
    assert_accepted(
        "story.context",
        &[
            version("1.1.0"),
            Set("/originating_system/system_type", json!("drone")),
            Set("/extensions", json!({"x": 1})),
        ],
        &[
            "envelope.additionalProperties /extensions",
            "envelope.enum /originating_system/system_type",
        ],
    );
}

#[test]
fn in_1_0_it_is_not() {
    for text in ["1.0.0", "1.0.9", "1.00.1"] {
        assert_refused(
            "story.context",
            &[version(text), Set("/payload/new_member", json!(1))],
            &["story-context.additionalProperties /payload"],
        );
    }
}

#[test]
fn an_any_of_gives_way_when_one_branch_fails_by_news_alone() {
    assert_accepted(
        "story.context-full",
        &[
            version("1.1.0"),
            Set("/payload/assets/0/asset_type", json!("HOLOGRAM")),
        ],
        &[
            "story-context.enum /payload/assets/0/asset_type",
            "story-context.pattern /payload/assets/0/asset_type",
            "story-context.anyOf /payload/assets/0/asset_type",
        ],
    );
    assert_accepted(
        "story.context-full",
        &[
            version("1.1.0"),
            Set(
                "/payload/editorial_gates/0/blocks/0",
                json!({"kind": "SCENE", "ref": "s", "until": 1}),
            ),
        ],
        &[
            "story-context.enum /payload/editorial_gates/0/blocks/0/kind",
            "story-context.additionalProperties /payload/editorial_gates/0/blocks/0",
            "story-context.type /payload/editorial_gates/0/blocks/0",
            "story-context.anyOf /payload/editorial_gates/0/blocks/0",
        ],
    );
    // The branch of objects fails by a missing member too; its enum gives way, and what is left is refused.
    assert_refused(
        "story.context-full",
        &[
            version("1.1.0"),
            Set("/payload/editorial_gates/0/blocks/0", json!({"kind": "SCENE"})),
        ],
        &[
            "story-context.required /payload/editorial_gates/0/blocks/0",
            "story-context.type /payload/editorial_gates/0/blocks/0",
            "story-context.anyOf /payload/editorial_gates/0/blocks/0",
        ],
    );
    assert_refused(
        "story.context-full",
        &[version("1.1.0"), Set("/payload/assets/0/asset_type", json!(1))],
        &[
            "story-context.type /payload/assets/0/asset_type",
            "story-context.type /payload/assets/0/asset_type",
            "story-context.anyOf /payload/assets/0/asset_type",
        ],
    );
}

#[test]
fn a_refusal_lists_only_what_refuses() {
    assert_refused(
        "story.context",
        &[
            version("1.1.0"),
            Set("/payload/new_member", json!(1)),
            Set("/payload/story_type", json!("PAUSED")),
            Remove("/payload/headline"),
        ],
        &["story-context.required /payload"],
    );
    assert_refused(
        "asset.noted",
        &[version("1.1.0"), Remove("/topic"), Set("/mood", json!(1))],
        &["envelope.required "],
    );
}

#[test]
fn nothing_else_gives_way() {
    let refused = |edits: Vec<_>, expected: &[&str]| {
        let edits: Vec<_> = std::iter::once(version("1.1.0")).chain(edits).collect();
        assert_refused("story.context-full", &edits, expected);
    };
    // A type that 1.0 does not know is not ACTIVE, so there must be no lifecycle.
    refused(
        vec![Set("/payload/story_type", json!("PAUSED"))],
        &["story-context.not /payload"],
    );
    refused(
        vec![Set("/payload/ai_enrichments", json!([]))],
        &["story-context.false_schema /payload/ai_enrichments"],
    );
    refused(
        vec![Set("/payload/assets/2/usage/0/state", json!("planned"))],
        &["story-context.const /payload/assets/2/usage/0/state"],
    );
    refused(
        vec![Set("/payload/tags/0/scheme", json!("wikidata"))],
        &["story-context.pattern /payload/tags/0/scheme"],
    );
    refused(
        vec![Set("/payload/slug", json!(null))],
        &["story-context.type /payload/slug"],
    );
    refused(
        vec![Set("/payload/story_meaning/who", json!("x".repeat(281)))],
        &["story-context.maxLength /payload/story_meaning/who"],
    );
    assert_refused(
        "telling.started",
        &[
            version("1.1.0"),
            Set("/payload/message_type", json!("telling.paused")),
        ],
        &["payload.message_type_mismatch /payload/message_type"],
    );
}

#[test]
fn types_of_a_later_minor_version() {
    for kind in [
        "telling.paused",
        "story.merged",
        "skill.warning.lowered",
        "asset.noted",
    ] {
        assert_accepted(
            "asset.noted",
            &[version("1.1.0"), Set("/message_type", json!(kind))],
            &["payload.unvalidated /payload"],
        );
    }
    // An ill-formed version is of no minor: nothing is tolerated, and nothing is unknown to it.
    assert_refused(
        "asset.noted",
        &[
            version("1.1"),
            Set("/message_type", json!("telling.paused")),
            Set("/mood", json!(1)),
        ],
        &["envelope.additionalProperties ", "envelope.pattern /som_version"],
    );
}
