//! What the activity tells of a refused publish.

use storybus_json::Value;

use crate::domain::activity::{MAX_RULES, MAX_TEXT, RefusedPublish};
use crate::domain::refusal::Refusal;
use crate::domain::time::Millis;
use crate::ops::Caller;

/// The entry; `root` is the message, if it could be read.
pub(super) fn of(caller: &Caller, root: Option<Value<'_>>, refusal: &Refusal, at: Millis) -> RefusedPublish {
    let text = |value: Option<Value<'_>>| {
        value
            .and_then(Value::as_str)
            .map(|text| text.chars().take(MAX_TEXT).collect::<String>())
    };
    let member = |name| root.and_then(|root| root.get(name));
    let within = |name, inner| member(name).and_then(|value| value.get(inner));
    RefusedPublish {
        at,
        workspace: caller.workspace.id.clone(),
        producer: caller.connection.id.clone(),
        kind: refusal.kind,
        rules: refusal.rules().take(MAX_RULES).map(str::to_owned).collect(),
        message_id: text(member("message_id")),
        message_type: text(member("message_type")),
        correlation_id: text(member("correlation_id")),
        system_id: text(within("originating_system", "system_id")),
        story_id: text(within("payload", "story_id")),
    }
}
