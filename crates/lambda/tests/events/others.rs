//! Lines of the log.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::files;

#[test]
fn no_event_is_left_out() {
    let named = [
        "activity",
        "setup-create",
        "setup-update",
        "setup-delete",
        "sweep",
    ];
    let named: BTreeSet<String> = named.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files("others"), named);
}

#[test]
fn a_refusal_of_the_log_is_read() {
    let text = include_str!("../../../../events/others/activity.json");
    let event = RawValue::from_string(text.to_owned()).unwrap();
    let noted = storybus_lambda::refusals(&event).unwrap();
    assert_eq!(noted.len(), 1);
    assert_eq!(noted[0].refusal.workspace.as_str(), "w-demo");
    assert_eq!(noted[0].refusal.rules, ["envelope.required"]);
    let none = RawValue::from_string("{}".to_owned()).unwrap();
    assert!(storybus_lambda::refusals(&none).is_err());
}
