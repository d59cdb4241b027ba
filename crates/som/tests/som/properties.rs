//! What holds of any JSON at all.

use proptest::prelude::*;
use serde_json::{Map, Value};
use storybus_json::Document;
use storybus_som::story::StoryState;

use crate::support::{EXAMPLES, example, judged};

/// Any small JSON value; strings are often ones that mean something.
fn json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC{0,8}",
        prop::sample::select(vec![
            "story.context",
            "1.1.0",
            "2026-10-02T07:00:00Z",
            "CONFIRMED",
            "PENDING",
            "KILLED",
            "ACTIVE"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let name = prop_oneof!["\\PC{0,8}", prop::sample::select(names())];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn names() -> Vec<String> {
    [
        "payload",
        "assets",
        "asset_id",
        "asset_type",
        "assertions",
        "assertion_id",
        "review",
        "state",
        "story_type",
        "sequence_number",
        "updated_at",
        "message_type",
        "som_version",
        "extensions",
        "lifecycle",
        "tags",
    ]
    .map(str::to_owned)
    .into()
}

/// An example with one of its values, anywhere, replaced.
fn broken_example() -> impl Strategy<Value = Value> {
    (
        prop::sample::select(EXAMPLES.map(|(name, _)| name).to_vec()),
        any::<prop::sample::Index>(),
        json(),
    )
        .prop_map(|(name, place, value)| {
            let mut message = example(name);
            let mut pointers = Vec::new();
            collect(&message, String::new(), &mut pointers);
            *message.pointer_mut(place.get::<String>(&pointers)).unwrap() = value;
            message
        })
}

fn collect(value: &Value, pointer: String, out: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                collect(value, format!("{pointer}/{}", name.replace('/', "~1")), out);
            }
        }
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                collect(value, format!("{pointer}/{index}"), out);
            }
        }
        _ => {}
    }
    out.push(pointer);
}

/// Every path that is listed leads somewhere.
fn paths_lead_somewhere(message: &Value, listed: &[String]) -> bool {
    let path = |rule: &String| rule.split_once(' ').map(|(_, path)| path.to_owned());
    listed
        .iter()
        .filter_map(path)
        .all(|path| message.pointer(&path).is_some())
}

proptest! {
    #[test]
    fn anything_is_judged(message in prop_oneof![json(), broken_example()]) {
        match judged(&message) {
            Ok((_, tolerated)) => prop_assert!(paths_lead_somewhere(&message, &tolerated)),
            Err(refused) => prop_assert!(paths_lead_somewhere(&message, &refused)),
        }
    }

    /// Story order takes whatever it gets: an absent or odd member breaks no rule and no process.
    #[test]
    fn anything_is_a_snapshot(one in json(), two in json()) {
        let (one, two) = (one.to_string(), two.to_string());
        let (one, two) = (Document::parse(one.as_bytes()).unwrap(), Document::parse(two.as_bytes()).unwrap());
        let state = StoryState::first(one.root(), "A");
        prop_assert_eq!(serde_json::from_str::<StoryState>(&serde_json::to_string(&state).unwrap()).unwrap(), state.clone());
        let judgement = state.next(two.root(), "a");
        prop_assert_eq!(judgement.next, StoryState::first(two.root(), "a"));
        // Against itself a snapshot has one fault at most: it is not newer.
        let again = state.next(one.root(), "a");
        prop_assert!(again.tolerated.is_empty());
        prop_assert!(again.refused.iter().all(|violation| violation.rule == "sequence_number.not_increasing"));
    }
}
