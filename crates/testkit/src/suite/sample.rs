//! Values that the suites write: valid ones, each different from the last.

use bytes::Bytes;
use storybus_core::domain::connection::{Connection, Consumer, Producer, Role, Secret, Workspace};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::filter::{Filter, TypePattern};
use storybus_core::domain::job::{Job, JobState, Work};
use storybus_core::domain::message::{About, Attributes};
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::AuditEntry;
use storybus_json::Document;
use storybus_protocol::id::{ConnectionId, CorrelationId, MessageId, WorkspaceId};
use storybus_som::story::StoryState;

/// What a story's snapshot with this sequence number leaves behind: an asset, a reviewed assertion, some members.
#[must_use]
pub fn story_state(sequence_number: u64) -> StoryState {
    let payload = format!(
        r#"{{"story_id":"s","slug":"S","headline":"é","story_type":"ACTIVE","sequence_number":{sequence_number},
        "updated_at":"2026-09-11T16:41:00Z","assets":[{{"asset_id":"a{sequence_number}","asset_type":"VIDEO"}}],
        "assertions":[{{"assertion_id":"x","review":{{"state":"CONFIRMED"}}}}]}}"#
    );
    let document = Document::parse(payload.as_bytes()).unwrap();
    StoryState::first(document.root(), "0199a1c4-0000-7000-8000-000000000911")
}

/// The message id number `n`.
#[must_use]
pub fn message_id(n: u64) -> MessageId {
    let mut bytes = *b"message \0\0\0\0\0\0\0\0";
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    MessageId::from_bytes(bytes)
}

/// The correlation id number `n`.
#[must_use]
pub fn correlation_id(n: u64) -> CorrelationId {
    let mut bytes = *b"together\0\0\0\0\0\0\0\0";
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    CorrelationId::from_bytes(bytes)
}

/// A workspace.
#[must_use]
pub fn workspace(id: &str, now: Millis) -> Workspace {
    Workspace {
        id: id.parse().unwrap(),
        name: format!("Workspace {id}"),
        strict_message_types: false,
        created_at: now,
        version: 1,
    }
}

fn connection(id: &str, workspace: Option<&WorkspaceId>, role: Role, now: Millis) -> Connection {
    Connection {
        id: id.parse().unwrap(),
        workspace: workspace.cloned(),
        name: format!("Connection {id}"),
        disabled: false,
        created_at: now,
        secrets: vec![Secret {
            id: format!("s{id}").parse().unwrap(),
            hash: "$argon2id$example".to_owned(),
            created_at: now,
        }],
        role,
        version: 1,
    }
}

/// A producer that speaks for these systems.
#[must_use]
pub fn producer(id: &str, workspace: &WorkspaceId, system_ids: &[&str], now: Millis) -> Connection {
    let role = Role::Producer(Producer {
        system_ids: system_ids.iter().map(|&s| s.to_owned()).collect(),
        message_types: vec![TypePattern::Any],
        role_arn: None,
        rate: None,
    });
    connection(id, Some(workspace), role, now)
}

/// A consumer with this filter.
#[must_use]
pub fn consumer(id: &str, workspace: &WorkspaceId, filter: Filter, now: Millis) -> Connection {
    let role = Role::Consumer(Consumer {
        filter,
        max_receives: 5,
        visibility_seconds: 60,
        reader_role_arn: None,
        paused: false,
    });
    connection(id, Some(workspace), role, now)
}

/// An operator.
#[must_use]
pub fn operator(id: &str, now: Millis) -> Connection {
    connection(id, None, Role::Operator, now)
}

/// An audit entry.
#[must_use]
pub fn audit(action: &str, subject: &[&str], now: Millis) -> AuditEntry {
    AuditEntry {
        at: now,
        actor: "o1".to_owned(),
        action: action.to_owned(),
        subject: subject.iter().map(|&s| s.to_owned()).collect(),
        details: serde_json::json!({ "name": "Näme", "n": 1 }),
    }
}

/// A message to send, with what filters look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its id.
    pub message_id: MessageId,
    /// Its order group.
    pub correlation_id: CorrelationId,
    /// Its bytes.
    pub body: Bytes,
    /// What travels beside them.
    pub attributes: Attributes,
    /// What it is about, as its body says: [`Letter::saying`].
    pub about: About,
}

impl Letter {
    /// The same about a story; the body it had is a member of its payload.
    #[must_use]
    pub fn about(self, story_id: &str) -> Self {
        let before = String::from_utf8(self.body.to_vec()).unwrap();
        let body = serde_json::json!({ "payload": { "story_id": story_id, "text": before } });
        self.saying(body.to_string())
    }

    /// A snapshot of a story.
    #[must_use]
    pub fn snapshot(mut self, story_id: &str, sequence_number: u64) -> Self {
        "story.context".clone_into(&mut self.attributes.message_type);
        self.attributes.family = Some("story-context".to_owned());
        let body =
            serde_json::json!({ "payload": { "story_id": story_id, "sequence_number": sequence_number } });
        self.saying(body.to_string())
    }

    /// The same with this body, and about what that says: an engine may read it there.
    #[must_use]
    pub fn saying(self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let document = Document::parse(&body).unwrap();
        let snapshot = self.attributes.family.as_deref() == Some("story-context");
        let payload = document.root().get("payload");
        let about = payload.map(|payload| About::of(payload, snapshot));
        let about = about.unwrap_or_default();
        drop(document);
        Self { body, about, ..self }
    }

    /// The same of another type.
    #[must_use]
    pub fn of_type(mut self, message_type: &str) -> Self {
        message_type.clone_into(&mut self.attributes.message_type);
        self.attributes.family = None;
        self
    }

    /// The same with a body of so many bytes, different from any other's. One about a story still says so, and may be larger.
    #[must_use]
    pub fn of_size(self, size: usize) -> Self {
        let Some(story_id) = &self.about.story_id else {
            let body = Bytes::from(self.noise(size));
            return Self { body, ..self };
        };
        let story_id = serde_json::to_string(story_id).unwrap();
        let number = self.about.sequence_number.as_deref().unwrap_or("0");
        let begin = format!(r#"{{"payload":{{"story_id":{story_id},"sequence_number":{number},"text":""#);
        let noise = self.noise(size.saturating_sub(begin.len() + 3));
        let body = [begin.as_bytes(), noise.as_slice(), br#""}}"#].concat();
        self.saying(body)
    }

    /// Characters of a text, no two parts of which are alike, nor any other message's.
    fn noise(&self, size: usize) -> Vec<u8> {
        let seed = self.message_id.as_bytes()[12..]
            .iter()
            .fold(7_u32, |seed, b| seed.wrapping_mul(31).wrapping_add(u32::from(*b)));
        let mut state = seed | 1;
        let mut next = || {
            // xorshift
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            match b' ' + u8::try_from(state % 95).unwrap() {
                b'"' | b'\\' => b'.',
                other => other,
            }
        };
        (0..size).map(|_| next()).collect()
    }

    /// Message `n` of order group `group`.
    #[must_use]
    pub fn new(n: u64, group: u64) -> Self {
        let correlation_id = correlation_id(group);
        let producer: ConnectionId = "p1".parse().unwrap();
        Self {
            message_id: message_id(n),
            correlation_id,
            body: Bytes::from(format!("{{\"message_id\":\"{}\", \"n\": {n} }}", message_id(n))),
            attributes: Attributes {
                message_type: "telling.started".to_owned(),
                family: Some("telling-event".to_owned()),
                topic: "som.telling".to_owned(),
                correlation_id: correlation_id.to_string(),
                producer_id: producer,
                system_id: "ncs-1".to_owned(),
                som_version: "1.0.0".to_owned(),
            },
            about: About::default(),
        }
    }
}

/// A redrive of everything into a queue, just made.
#[must_use]
pub fn job(id: &str, queue: &QueueKey, now: Millis) -> Job {
    Job {
        id: id.parse().unwrap(),
        workspace: queue.workspace.clone(),
        consumer: queue.consumer.clone(),
        work: Work::Redrive { message_ids: None },
        created_by: "o1".to_owned(),
        created_at: now,
        started_at: None,
        finished_at: None,
        state: JobState::Queued,
        error: None,
        cancel_requested: false,
        scanned: 0,
        moved: 0,
        total: None,
        position: None,
        position_at: None,
        steps: 0,
        unremoved: Vec::new(),
        exhausted: false,
        unmet: Vec::new(),
        version: 1,
    }
}

/// Texts that no engine gives as a position.
pub const FOREIGN_POSITIONS: &[&str] = &[
    "",
    " ",
    "x",
    "-1",
    "+1",
    "1 ",
    "01",
    "1~2",
    "é",
    "1; DROP TABLE message",
    "99999999999999999999999999",
];
