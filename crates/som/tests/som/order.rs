//! Story order: each rule of the contract's table, alone and with others.

use serde_json::{Value, json};
use storybus_json::Document;
use storybus_protocol::Source;
use storybus_som::story::{Judgement, StoryState};

use crate::support::{Listed, assert_reads_well, listed};

const CORRELATION: &str = "01a3c0de-0000-7000-8000-00000000f1e5";
const OTHER: &str = "01a3c0de-0000-7000-8000-00000000f1e6";

fn snapshot(number: u64) -> Value {
    json!({
        "story_id": "harbour-fire", "slug": "FIRE", "headline": "Fire", "story_type": "ACTIVE",
        "lifecycle": {"phase": "BREAKING", "phase_entered_at": "2026-10-02T06:00:00Z"},
        "sequence_number": number, "updated_at": "2026-10-02T07:00:00Z", "newsroom_id": "n",
        "assets": [asset("a", "VIDEO"), asset("b", "AUDIO")],
    })
}

fn asset(id: &str, kind: &str) -> Value {
    json!({"asset_id": id, "asset_type": kind, "status": "READY"})
}

fn with(mut payload: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        payload[name] = value.clone();
    }
    payload
}

fn without(mut payload: Value, names: &[&str]) -> Value {
    for name in names {
        assert!(payload.as_object_mut().unwrap().remove(*name).is_some());
    }
    payload
}

fn first(payload: &str) -> StoryState {
    StoryState::first(Document::parse(payload.as_bytes()).unwrap().root(), CORRELATION)
}

/// Judges, through a store.
fn judge(last: &StoryState, payload: &str, correlation: &str) -> Judgement {
    let stored = serde_json::to_string(last).unwrap();
    let last: StoryState = serde_json::from_str(&stored).unwrap();
    let judgement = last.next(Document::parse(payload.as_bytes()).unwrap().root(), correlation);
    for violation in judgement.refused.iter().chain(&judgement.tolerated) {
        assert_eq!(violation.source, Source::Sequence);
        assert_reads_well(violation);
    }
    judgement
}

/// What is refused and tolerated of the second after the first.
fn follows(one: &Value, two: &Value) -> (Listed, Listed) {
    let judgement = judge(&first(&one.to_string()), &two.to_string(), CORRELATION);
    (listed(&judgement.refused), listed(&judgement.tolerated))
}

#[track_caller]
fn assert_fine(one: &Value, two: &Value) {
    assert_eq!(follows(one, two), (vec![], vec![]));
}

#[track_caller]
fn assert_refused(one: &Value, two: &Value, expected: &[&str]) {
    let expected = expected.iter().map(ToString::to_string).collect();
    assert_eq!(follows(one, two), (expected, vec![]));
}

#[track_caller]
fn assert_tolerated(one: &Value, two: &Value, expected: &[&str]) {
    let expected = expected.iter().map(ToString::to_string).collect();
    assert_eq!(follows(one, two), (vec![], expected));
}

#[test]
fn the_next_snapshot() {
    assert_fine(&snapshot(3), &snapshot(4));
    assert_fine(&snapshot(0), &with(snapshot(1), &[("tags", json!([]))]));
}

#[test]
fn sequence_numbers() {
    let not_increasing = ["sequence_number.not_increasing /payload/sequence_number"];
    assert_refused(&snapshot(3), &snapshot(3), &not_increasing);
    assert_refused(&snapshot(3), &snapshot(2), &not_increasing);
    assert_tolerated(
        &snapshot(3),
        &snapshot(5),
        &["sequence_number.gap /payload/sequence_number"],
    );

    let numbered = |number: &str| {
        snapshot(1)
            .to_string()
            .replace("\"sequence_number\":1", &format!("\"sequence_number\":{number}"))
    };
    let rules = |one: &str, two: &str| {
        let judgement = judge(&first(&numbered(one)), &numbered(two), CORRELATION);
        (judgement.refused.len(), judgement.tolerated.len())
    };
    let (fine, refused, gap) = ((0, 0), (1, 0), (0, 1));
    assert_eq!(rules("1.0", "2e0"), fine);
    assert_eq!(rules("10", "1.1e1"), fine);
    assert_eq!(rules("10", "1e1"), refused);
    assert_eq!(rules("-0", "0"), refused);
    assert_eq!(rules("9007199254740992", "9007199254740993"), fine);
    assert_eq!(rules("9007199254740993", "9007199254740993.0"), refused);
    assert_eq!(
        rules(
            "99999999999999999999999999999999",
            "100000000000000000000000000000000"
        ),
        fine
    );
    assert_eq!(rules("18446744073709551615", "18446744073709551617"), gap);
    assert_eq!(rules("1e400", "1e401"), gap);
    assert_eq!(rules("1e999999999", "1"), refused);
    let long = "9".repeat(100_000);
    assert_eq!(rules(&long, &long), refused);
    assert_eq!(rules(&long, "1e100000"), fine);
}

#[test]
fn times() {
    let at = |number, time: &str| with(snapshot(number), &[("updated_at", json!(time))]);
    let backwards = ["updated_at.backwards /payload/updated_at"];
    assert_fine(&at(1, "2026-10-02T07:00:00Z"), &at(2, "2026-10-02T07:00:00Z"));
    assert_fine(
        &at(1, "2026-10-02T07:00:00Z"),
        &at(2, "2026-10-02T06:00:01-01:00"),
    );
    assert_refused(
        &at(1, "2026-10-02T07:00:00Z"),
        &at(2, "2026-10-02T08:59:59+02:00"),
        &backwards,
    );
    assert_refused(
        &at(1, "2026-10-02T07:00:00.00000000000000000002Z"),
        &at(2, "2026-10-02T07:00:00.00000000000000000001Z"),
        &backwards,
    );
    assert_refused(
        &at(1, "2016-12-31T23:59:60Z"),
        &at(2, "2016-12-31T23:59:59.9Z"),
        &backwards,
    );
    assert_fine(&at(1, "2016-12-31T23:59:60.9Z"), &at(2, "2017-01-01T00:00:00Z"));
}

#[test]
fn members() {
    let missing = ["snapshot.members_missing /payload"];
    assert_refused(&snapshot(1), &without(snapshot(2), &["newsroom_id"]), &missing);
    assert_refused(
        &with(snapshot(1), &[("tags", json!([]))]),
        &without(snapshot(2), &["newsroom_id"]),
        &missing,
    );
    // A story that is no longer ACTIVE has no lifecycle.
    let planned = with(
        without(snapshot(2), &["lifecycle"]),
        &[("story_type", json!("PLANNED"))],
    );
    assert_fine(&snapshot(1), &planned);
    // A member that only a later version of SOM knows counts as well.
    assert_refused(
        &with(snapshot(1), &[("mood", json!(null))]),
        &snapshot(2),
        &missing,
    );

    let mut many = snapshot(1);
    for index in 0..9 {
        many[format!("new_{index}\n{}", "x".repeat(100))] = json!(1);
    }
    let judgement = judge(&first(&many.to_string()), &snapshot(2).to_string(), CORRELATION);
    let message = &judgement.refused[0].message;
    assert!(
        message.contains("`new_0\\nxxx") && message.contains("xx…`") && message.ends_with(" and 4 more"),
        "{message}"
    );
}

#[test]
fn assets() {
    let of = |number, assets: Value| with(snapshot(number), &[("assets", assets)]);
    let (a, b) = (asset("a", "VIDEO"), asset("b", "AUDIO"));
    let dropped = ["snapshot.assets_dropped /payload/assets"];
    let changed = ["asset.type_changed /payload/assets"];
    assert_fine(&of(1, json!([a, b])), &of(2, json!([b, asset("c", "CG"), a])));
    assert_fine(&of(1, json!([])), &of(2, json!([a])));
    assert_refused(&of(1, json!([a, b])), &of(2, json!([b])), &dropped);
    assert_refused(&of(1, json!([a, b])), &of(2, json!([])), &dropped);
    assert_refused(
        &of(1, json!([a, b])),
        &of(2, json!([asset("a", "AUDIO"), b])),
        &changed,
    );
    assert_refused(
        &of(1, json!([a, b])),
        &of(2, json!([asset("A", "VIDEO"), b])),
        &dropped,
    );
    assert_refused(
        &of(1, json!([a])),
        &of(2, json!([asset("a", "x-video")])),
        &changed,
    );
    let both = [dropped[0], changed[0]];
    assert_refused(&of(1, json!([a, b])), &of(2, json!([asset("b", "VIDEO")])), &both);
    // Without `assets` the member is missing, and so are they.
    assert_refused(
        &of(1, json!([a])),
        &without(snapshot(2), &["assets"]),
        &["snapshot.members_missing /payload", dropped[0]],
    );
    assert_refused(
        &of(1, json!([])),
        &without(snapshot(2), &["assets"]),
        &["snapshot.members_missing /payload"],
    );
}

#[test]
fn assets_compare_with_the_last_snapshot_alone() {
    let of = |number, kind| {
        with(
            snapshot(number),
            &[("assets", json!([asset("a", kind), asset("b", "AUDIO")]))],
        )
        .to_string()
    };
    let state = first(&of(1, "VIDEO"));
    assert_eq!(
        listed(&judge(&state, &of(2, "STILL"), CORRELATION).refused),
        ["asset.type_changed /payload/assets"]
    );
    // What is added becomes part of what the next one must have.
    let grown = with(
        snapshot(2),
        &[(
            "assets",
            json!([asset("a", "VIDEO"), asset("b", "AUDIO"), asset("c", "CG")]),
        )],
    );
    let state = judge(&state, &grown.to_string(), CORRELATION).next;
    assert_eq!(
        listed(&judge(&state, &of(3, "VIDEO"), CORRELATION).refused),
        ["snapshot.assets_dropped /payload/assets"]
    );
}

#[test]
fn an_asset_id_that_stands_twice_has_all_its_types() {
    let of = |number, kinds: &[&str]| {
        let assets: Vec<_> = kinds.iter().map(|kind| asset("a", kind)).collect();
        with(snapshot(number), &[("assets", json!(assets))])
    };
    let changed = ["asset.type_changed /payload/assets"];
    assert_fine(&of(1, &["VIDEO", "AUDIO"]), &of(2, &["AUDIO", "VIDEO", "AUDIO"]));
    assert_fine(&of(1, &["VIDEO", "VIDEO"]), &of(2, &["VIDEO"]));
    assert_refused(&of(1, &["VIDEO", "AUDIO"]), &of(2, &["VIDEO"]), &changed);
    assert_refused(&of(1, &["VIDEO"]), &of(2, &["VIDEO", "AUDIO"]), &changed);
}

#[test]
fn the_end_of_a_story() {
    let of = |number, kind: &str| {
        with(
            without(snapshot(number), &["lifecycle"]),
            &[("story_type", json!(kind))],
        )
    };
    let left = ["story_type.left_terminal /payload/story_type"];
    for end in ["KILLED", "SPIKED", "ARCHIVED"] {
        assert_fine(&snapshot(1), &of(2, end));
        assert_fine(&of(1, end), &of(2, "ARCHIVED"));
        assert_fine(&of(1, end), &of(2, "KILLED"));
        assert_refused(&of(1, end), &snapshot(2), &left);
        assert_refused(&of(1, end), &of(2, "ORPHAN"), &left);
        // Also for a type of a later version: it is none of the three.
        assert_refused(&of(1, end), &of(2, "PAUSED"), &left);
    }
    assert_fine(&of(1, "PAUSED"), &snapshot(2));
    assert_fine(&of(1, "ORPHAN"), &of(2, "PLANNED"));
}

#[test]
fn the_first_correlation_id_stays_the_first() {
    let changed = ["correlation_id.changed /correlation_id"];
    let state = StoryState::first(
        Document::parse(snapshot(1).to_string().as_bytes())
            .unwrap()
            .root(),
        &CORRELATION.to_uppercase(),
    );
    assert_eq!(
        (state.correlation_id(), state.sequence_number()),
        (CORRELATION, Some("1"))
    );
    let judgement = judge(&state, &snapshot(2).to_string(), CORRELATION);
    assert_eq!(listed(&judgement.tolerated), [""; 0]);
    let judgement = judge(&judgement.next, &snapshot(3).to_string(), OTHER);
    assert_eq!(listed(&judgement.tolerated), changed);
    let judgement = judge(&judgement.next, &snapshot(4).to_string(), OTHER);
    assert_eq!(listed(&judgement.tolerated), changed);
    let judgement = judge(
        &judgement.next,
        &snapshot(5).to_string(),
        &CORRELATION.to_uppercase(),
    );
    assert_eq!(listed(&judgement.tolerated), [""; 0]);
}

#[test]
fn reviews() {
    let of = |number, states: &[Option<&str>]| {
        let assertion = |state: &Option<&str>| match state {
            Some(state) => json!({"assertion_id": "x", "review": {"state": state}}),
            None => json!({"assertion_id": "x"}),
        };
        with(
            snapshot(number),
            &[("assertions", states.iter().map(assertion).collect())],
        )
    };
    let (pending, confirmed, rejected) = (Some("PENDING"), Some("CONFIRMED"), Some("REJECTED"));
    let regressed = ["assertion.review_regressed /payload/assertions"];
    assert_tolerated(&of(1, &[confirmed]), &of(2, &[pending]), &regressed);
    assert_tolerated(&of(1, &[rejected]), &of(2, &[pending]), &regressed);
    for fine in [
        [confirmed, rejected],
        [pending, confirmed],
        [pending, pending],
        [None, pending],
        [confirmed, None],
        [confirmed, Some("DISPUTED")],
    ] {
        assert_fine(&of(1, &fine[..1]), &of(2, &fine[1..]));
    }
    // An id that stands twice is decided when none of its entries is pending.
    assert_tolerated(
        &of(1, &[confirmed, rejected]),
        &of(2, &[confirmed, pending]),
        &regressed,
    );
    assert_fine(&of(1, &[confirmed, pending]), &of(2, &[pending, confirmed]));
    // It may go, and with it what was decided.
    assert_fine(&of(1, &[confirmed]), &of(2, &[]));
}

#[test]
fn all_rules_at_once() {
    let one = with(
        without(snapshot(7), &["lifecycle"]),
        &[
            ("story_type", json!("KILLED")),
            (
                "assertions",
                json!([{"assertion_id": "x", "review": {"state": "CONFIRMED"}}]),
            ),
        ],
    );
    let two = with(
        without(snapshot(7), &["newsroom_id"]),
        &[
            ("updated_at", json!("2020-01-01T00:00:00Z")),
            ("assets", json!([asset("a", "STILL")])),
            (
                "assertions",
                json!([{"assertion_id": "x", "review": {"state": "PENDING"}}]),
            ),
        ],
    );
    let judgement = judge(&first(&one.to_string()), &two.to_string(), OTHER);
    assert_eq!(
        listed(&judgement.refused),
        [
            "sequence_number.not_increasing /payload/sequence_number",
            "updated_at.backwards /payload/updated_at",
            "snapshot.members_missing /payload",
            "snapshot.assets_dropped /payload/assets",
            "asset.type_changed /payload/assets",
            "story_type.left_terminal /payload/story_type",
        ]
    );
    assert_eq!(
        listed(&judgement.tolerated),
        [
            "correlation_id.changed /correlation_id",
            "assertion.review_regressed /payload/assertions"
        ]
    );
}

#[test]
fn the_state_is_small_and_readable_by_later_versions() {
    let stored = serde_json::to_value(first(&snapshot(1).to_string())).unwrap();
    assert_eq!(
        stored,
        json!({
            "n": "1", "u": "2026-10-02T07:00:00Z", "c": CORRELATION, "t": "ACTIVE",
            "m": ["assets", "headline", "newsroom_id", "sequence_number", "slug", "story_id", "story_type", "updated_at"],
            "a": stored["a"],
        })
    );
    assert_eq!(stored["a"].as_str().unwrap().len(), 2 * 32);
    let mut later = stored.clone();
    later["x"] = json!(1);
    assert_eq!(
        serde_json::from_value::<StoryState>(later).unwrap(),
        first(&snapshot(1).to_string())
    );
    // one that was stored before the story type was kept
    let mut earlier = stored.clone();
    earlier.as_object_mut().unwrap().remove("t");
    assert_eq!(
        serde_json::from_value::<StoryState>(earlier)
            .unwrap()
            .story_type(),
        None
    );
    for (name, broken) in [
        ("a", json!("AAAA")),
        ("a", json!("*")),
        ("r", json!("A")),
        ("e", json!("ACTIVE")),
    ] {
        let mut state = stored.clone();
        state[name] = broken;
        assert!(serde_json::from_value::<StoryState>(state).is_err(), "{name}");
    }
}
