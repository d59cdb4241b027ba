//! Example messages, edits of them, and what the crate says of them.

use serde_json::{Value, json};
use storybus_json::Document;
use storybus_protocol::{Source, Violation};
use storybus_som::{Family, Options, schema_rules, validate};

/// The valid examples by name: the type, with a suffix where there is more than one.
pub(crate) const EXAMPLES: [(&str, &str); 12] = [
    ("story.context", include_str!("../examples/story.context.json")),
    (
        "story.context-full",
        include_str!("../examples/story.context-full.json"),
    ),
    (
        "telling.started",
        include_str!("../examples/telling.started.json"),
    ),
    ("telling.ended", include_str!("../examples/telling.ended.json")),
    (
        "telling.exposed",
        include_str!("../examples/telling.exposed.json"),
    ),
    ("link.committed", include_str!("../examples/link.committed.json")),
    (
        "link.gate_changed",
        include_str!("../examples/link.gate_changed.json"),
    ),
    ("link.withdrawn", include_str!("../examples/link.withdrawn.json")),
    (
        "delivery.media_available",
        include_str!("../examples/delivery.media_available.json"),
    ),
    (
        "skill.warning.raised",
        include_str!("../examples/skill.warning.raised.json"),
    ),
    ("system.audit", include_str!("../examples/system.audit.json")),
    ("asset.noted", include_str!("../examples/asset.noted.json")),
];

pub(crate) fn example(name: &str) -> Value {
    let (_, text) = EXAMPLES.iter().find(|(known, _)| *known == name).unwrap();
    serde_json::from_str(text).unwrap()
}

/// Something to do to a message at a JSON Pointer.
pub(crate) enum Edit {
    Set(&'static str, Value),
    Remove(&'static str),
}

pub(crate) use Edit::{Remove, Set};

pub(crate) fn edited(name: &str, edits: &[Edit]) -> Value {
    let mut message = example(name);
    for edit in edits {
        match edit {
            Set(pointer, value) => {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                match message.pointer_mut(parent).unwrap() {
                    Value::Object(object) => {
                        object.insert(key.replace("~1", "/"), value.clone());
                    }
                    Value::Array(array) if key == "-" => array.push(value.clone()),
                    Value::Array(array) => array[key.parse::<usize>().unwrap()] = value.clone(),
                    other => panic!("{pointer}: {other}"),
                }
            }
            Remove(pointer) => {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                let removed = message
                    .pointer_mut(parent)
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove(key);
                assert!(removed.is_some(), "{pointer}");
            }
        }
    }
    message
}

/// Rules with paths, as `rule path`.
pub(crate) type Listed = Vec<String>;

pub(crate) fn listed(violations: &[Violation]) -> Listed {
    violations
        .iter()
        .map(|v| format!("{} {}", v.rule, v.path.as_deref().unwrap()))
        .collect()
}

/// The answer of stage 3: family and tolerated, or refused; sorted, as `serde_json` need not keep the order of members.
pub(crate) fn judged(message: &Value) -> Result<(Option<Family>, Listed), Listed> {
    let sorted = |mut listed: Listed| {
        listed.sort();
        listed
    };
    judged_text(&message.to_string(), Options::default())
        .map(|(family, tolerated)| (family, sorted(tolerated)))
        .map_err(sorted)
}

pub(crate) fn judged_text(text: &str, options: Options) -> Result<(Option<Family>, Listed), Listed> {
    let document = Document::parse(text.as_bytes()).unwrap();
    match validate(document.root(), options) {
        Ok(checked) => {
            checked.tolerated.iter().for_each(assert_reads_well);
            Ok((checked.family, listed(&checked.tolerated)))
        }
        Err(refused) => {
            assert!(!refused.is_empty());
            refused.iter().for_each(assert_reads_well);
            Err(listed(&refused))
        }
    }
}

/// What holds for every violation.
pub(crate) fn assert_reads_well(violation: &Violation) {
    let Violation {
        source,
        rule,
        message,
        path,
    } = violation;
    let of_schema = schema_rules().any(|known| known == rule);
    assert_eq!(of_schema, *source == Source::Schema, "{rule}");
    assert!(
        of_schema || storybus_protocol::rule::ALL.contains(&&**rule),
        "{rule}"
    );
    assert!(
        path.as_ref()
            .is_some_and(|path| path.is_empty() || path.starts_with('/')),
        "{rule}: {path:?}"
    );
    assert!((10..400).contains(&message.chars().count()), "{rule}: {message}");
    assert!(
        !message.contains(char::is_control) && !message.ends_with('.'),
        "{rule}: {message}"
    );
}

/// In any order.
#[track_caller]
pub(crate) fn assert_refused(name: &str, edits: &[Edit], expected: &[&str]) {
    assert_eq!(judged(&edited(name, edits)), Err(sorted(expected)), "{name}");
}

/// In any order.
#[track_caller]
pub(crate) fn assert_accepted(name: &str, edits: &[Edit], tolerated: &[&str]) {
    let message = edited(name, edits);
    let family = Family::of(message["message_type"].as_str().unwrap());
    assert_eq!(judged(&message), Ok((family, sorted(tolerated))), "{name}");
}

fn sorted(expected: &[&str]) -> Listed {
    let mut expected: Listed = expected.iter().map(ToString::to_string).collect();
    expected.sort();
    expected
}

pub(crate) fn version(text: &str) -> Edit {
    Set("/som_version", json!(text))
}
