//! What a message must be before the bus looks into its memory: contract §2, stages 2 to 4.

use storybus_json::{Document, Value};
use storybus_protocol::id::{CorrelationId, MessageId};
use storybus_protocol::{Source, Violation, rule};
use storybus_som::{Checked, Family, Options};

use super::PublishRequest;
use crate::domain::connection::{Producer, Role};
use crate::domain::message::{About, Attributes, MAX_BODY, MAX_DEPTH, MAX_WITH_ATTRIBUTES};
use crate::domain::record::{ContentHash, RecordKey, StoryKey, story_digest};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::ops::Caller;

/// A message that passed every check that needs no memory.
pub(super) struct Message<'d> {
    pub(super) key: RecordKey,
    pub(super) correlation_id: CorrelationId,
    pub(super) content_hash: ContentHash,
    pub(super) attributes: Attributes,
    pub(super) about: About,
    /// As sent.
    pub(super) message_id: &'d str,
    /// What SOM itself let pass.
    pub(super) tolerated: Vec<Violation>,
    pub(super) snapshot: Option<Snapshot<'d>>,
    pub(super) body: bytes::Bytes,
}

/// A message that carries a story's state.
pub(super) struct Snapshot<'d> {
    pub(super) story: StoryKey,
    pub(super) story_id: &'d str,
    pub(super) payload: Value<'d>,
}

/// Stage 2, as far as it concerns the text alone.
pub(super) fn parse(body: &[u8]) -> Result<Document<'_>, Refusal> {
    if body.len() > MAX_BODY {
        return Err(too_large(format!(
            "the body has {} bytes; at most {MAX_BODY} are carried",
            body.len()
        )));
    }
    Document::parse(body).map_err(|e| {
        Refusal::of(
            RefusalKind::Invalid,
            vec![Violation::new(
                Source::Schema,
                rule::MESSAGE_NOT_JSON,
                format!("the body is not JSON in UTF-8: {} at byte {}", e.reason, e.offset),
            )],
        )
    })
}

fn too_large(message: String) -> Refusal {
    Refusal::policy(RefusalKind::TooLarge, rule::MESSAGE_TOO_LARGE, message)
}

/// The rest of stage 2, then stages 3 and 4.
pub(super) fn message<'d>(
    document: &'d Document<'_>,
    caller: &Caller,
    request: &PublishRequest,
) -> Result<Message<'d>, Refusal> {
    let Role::Producer(producer) = &caller.connection.role else {
        return Err(Refusal::policy(
            RefusalKind::Forbidden,
            rule::PRODUCER_NOT_REGISTERED,
            "not a producer",
        ));
    };
    let root = document.root();
    text(document, caller, request.body.len())?;
    let options = Options {
        strict_message_types: caller.workspace.strict_message_types,
    };
    let checked = storybus_som::validate(root, options).map_err(|v| Refusal::of(RefusalKind::Invalid, v))?;
    idempotency_key(request.idempotency_key.as_deref(), checked.message_id)?;
    grants(producer, &checked)?;
    assemble(root, caller, request, checked)
}

/// What the text says that cannot be carried, in the contract's order.
fn text(document: &Document<'_>, caller: &Caller, body_len: usize) -> Result<(), Refusal> {
    let root = document.root();
    let member = |name| root.get(name).and_then(Value::as_str);
    let system_id = root
        .get("originating_system")
        .and_then(|s| s.get("system_id"))
        .and_then(Value::as_str);
    let topic = member("topic");
    let message_type = member("message_type");
    // Nothing is checked yet: absent members weigh nothing, and the schema refuses the message anyway.
    let size = body_len
        + Attributes::size_of([
            ("message_type", message_type),
            ("family", message_type.and_then(Family::of).map(Family::name)),
            ("topic", topic),
            ("correlation_id", member("correlation_id")),
            ("producer_id", Some(caller.connection.id.as_str())),
            ("system_id", system_id),
            ("som_version", member("som_version")),
        ]);
    if size > MAX_WITH_ATTRIBUTES {
        return Err(too_large(format!(
            "the body and the attributes made from it have {size} bytes; at most {MAX_WITH_ATTRIBUTES} are carried"
        )));
    }
    if let Some(pointer) = document.duplicate_member() {
        return Err(Refusal::policy(
            RefusalKind::Invalid,
            rule::MESSAGE_DUPLICATE_MEMBER,
            "a member name is repeated within one object, so readers would not agree on its value",
        )
        .at(pointer));
    }
    let illegal = |c: char| !is_carried(c);
    if let Some(offset) = document.illegal_character() {
        return Err(illegal_character(format!(
            "the raw character at byte {offset} cannot be carried by a queue; escape it"
        )));
    }
    for (value, path) in [(topic, "/topic"), (system_id, "/originating_system/system_id")] {
        if value.is_some_and(|v| v.contains(illegal)) {
            return Err(illegal_character(
                "a character in this member cannot be carried as a message attribute, escaped or not"
                    .to_owned(),
            )
            .at(path));
        }
    }
    if document.depth() > MAX_DEPTH {
        return Err(Refusal::policy(
            RefusalKind::Invalid,
            rule::MESSAGE_TOO_DEEP,
            format!(
                "arrays and objects nest {} deep; at most {MAX_DEPTH} are carried",
                document.depth()
            ),
        ));
    }
    Ok(())
}

fn illegal_character(message: String) -> Refusal {
    Refusal::policy(RefusalKind::Invalid, rule::MESSAGE_ILLEGAL_CHARACTER, message)
}

/// The characters of SQS bodies and attributes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn is_carried(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Bare, or the quoted structured-field string of the Idempotency-Key draft.
fn idempotency_key(header: Option<&str>, message_id: &str) -> Result<(), Refusal> {
    let Some(header) = header else { return Ok(()) };
    let trimmed = header.trim();
    let key = trimmed
        .strip_prefix('"')
        .and_then(|k| k.strip_suffix('"'))
        .unwrap_or(trimmed);
    if key.eq_ignore_ascii_case(message_id) {
        return Ok(());
    }
    Err(Refusal::policy(
        RefusalKind::Invalid,
        rule::IDEMPOTENCY_KEY_MISMATCH,
        "the Idempotency-Key header is not the envelope's message_id; leave it out or make it the same",
    ))
}

fn grants(producer: &Producer, checked: &Checked<'_>) -> Result<(), Refusal> {
    let mut violations = Vec::new();
    if !producer.system_ids.iter().any(|s| s == checked.system_id) {
        violations.push(
            Violation::new(
                Source::Policy,
                rule::PRODUCER_SYSTEM_ID_NOT_ALLOWED,
                "this producer may not speak for that system_id; an operator can grant it",
            )
            .at("/originating_system/system_id"),
        );
    }
    if !producer
        .message_types
        .iter()
        .any(|p| p.matches(checked.message_type))
    {
        violations.push(
            Violation::new(
                Source::Policy,
                rule::PRODUCER_MESSAGE_TYPE_NOT_ALLOWED,
                "this producer may not publish that message_type; an operator can grant it",
            )
            .at("/message_type"),
        );
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Refusal::of(RefusalKind::Forbidden, violations))
    }
}

fn assemble<'d>(
    root: Value<'d>,
    caller: &Caller,
    request: &PublishRequest,
    checked: Checked<'d>,
) -> Result<Message<'d>, Refusal> {
    // The schema has asserted both as UUIDs.
    let message_id: MessageId = checked.message_id.parse().map_err(|_| Refusal::internal())?;
    let correlation_id: CorrelationId = checked.correlation_id.parse().map_err(|_| Refusal::internal())?;
    let workspace = caller.workspace.id.clone();
    let snapshot = match checked.family {
        Some(Family::StoryContext) => {
            let story_id = checked
                .payload
                .get("story_id")
                .and_then(Value::as_str)
                .ok_or_else(Refusal::internal)?;
            Some(Snapshot {
                story: StoryKey {
                    workspace: workspace.clone(),
                    digest: story_digest(story_id),
                },
                story_id,
                payload: checked.payload,
            })
        }
        _ => None,
    };
    Ok(Message {
        key: RecordKey {
            workspace,
            message_id,
        },
        correlation_id,
        content_hash: ContentHash(root.content_hash()),
        attributes: Attributes {
            message_type: checked.message_type.to_owned(),
            family: checked.family.map(|f| f.name().to_owned()),
            topic: checked.topic.to_owned(),
            correlation_id: checked.correlation_id.to_owned(),
            producer_id: caller.connection.id.clone(),
            system_id: checked.system_id.to_owned(),
            som_version: checked.som_version.to_owned(),
        },
        about: About::of(checked.payload, snapshot.is_some()),
        message_id: checked.message_id,
        tolerated: checked.tolerated,
        snapshot,
        body: request.body.clone(),
    })
}
