//! What happened, as the operator API shows it: never a payload.

use serde::Serialize;
use storybus_core::domain::archived::Head;
use storybus_core::domain::dead_letter::Cause;
use storybus_core::ops::history::{Activity, ConsumerWay, MessageWay, StoryTimeline, WayState, WayStop};
use storybus_core::ports::stories::NamedStory;
use storybus_protocol::answer::MessageState;
use storybus_protocol::id::{ConnectionId, MessageId};

use super::status;

/// What published messages are answered with.
const ACCEPTED: u16 = 202;

/// A publish that was accepted or refused.
#[derive(Serialize)]
pub(crate) struct ActivityShown<'a> {
    time: String,
    status: u16,
    producer_id: &'a ConnectionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    story_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<&'a [String]>,
}

impl<'a> From<&'a Activity> for ActivityShown<'a> {
    fn from(activity: &'a Activity) -> Self {
        match activity {
            Activity::Published(head) => Self {
                time: head.published_at.to_rfc3339(),
                status: ACCEPTED,
                producer_id: &head.attributes.producer_id,
                message_id: Some(head.message_id.to_string()),
                message_type: Some(&head.attributes.message_type),
                story_id: head.about.story_id.as_deref(),
                correlation_id: Some(&head.attributes.correlation_id),
                system_id: Some(&head.attributes.system_id),
                rule: None,
                rules: None,
            },
            Activity::Refused(refused) => Self {
                time: refused.at.to_rfc3339(),
                status: status(refused.kind).as_u16(),
                producer_id: &refused.producer,
                message_id: refused.message_id.clone(),
                message_type: refused.message_type.as_deref(),
                story_id: refused.story_id.as_deref(),
                correlation_id: refused.correlation_id.as_deref(),
                system_id: refused.system_id.as_deref(),
                rule: refused.rules.first().map(String::as_str),
                rules: (refused.rules.len() > 1).then_some(&refused.rules),
            },
        }
    }
}

/// A story.
#[derive(Serialize)]
pub(crate) struct StoryShown<'a> {
    story_id: Option<&'a str>,
    head: MessageId,
    sequence_number: Option<&'a str>,
    updated_at: Option<&'a str>,
    story_type: Option<&'a str>,
    correlation_id: &'a str,
    begun_at: Option<String>,
}

impl<'a> From<&'a NamedStory> for StoryShown<'a> {
    fn from(named: &'a NamedStory) -> Self {
        let state = &named.story.state;
        Self {
            story_id: named.story_id.as_deref(),
            head: named.story.head,
            sequence_number: state.sequence_number(),
            updated_at: state.updated_at(),
            story_type: state.story_type(),
            correlation_id: state.correlation_id(),
            begun_at: named.begun_at.map(|at| at.to_rfc3339()),
        }
    }
}

/// A story with its timeline.
#[derive(Serialize)]
pub(crate) struct TimelineShown<'a> {
    #[serde(flatten)]
    story: KnownStory<'a>,
    messages: Vec<Told<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KnownStory<'a> {
    /// The ledger knows it.
    Kept(StoryShown<'a>),
    /// Only messages about it are known.
    Told { story_id: &'a str },
}

impl<'a> TimelineShown<'a> {
    /// `story_id` is the one that was asked for.
    pub(crate) fn of(story_id: &'a str, timeline: &'a StoryTimeline) -> Self {
        Self {
            story: match &timeline.story {
                Some(named) => KnownStory::Kept(StoryShown {
                    story_id: Some(story_id),
                    ..StoryShown::from(named)
                }),
                None => KnownStory::Told { story_id },
            },
            messages: timeline.messages.entries.iter().map(Told::from).collect(),
            next: timeline.messages.next.as_deref(),
        }
    }
}

/// A message of a timeline.
#[derive(Serialize)]
struct Told<'a> {
    message_id: MessageId,
    message_type: &'a str,
    published_at: String,
    producer_id: &'a ConnectionId,
    system_id: &'a str,
    correlation_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    story_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<&'a str>,
}

impl<'a> From<&'a Head> for Told<'a> {
    fn from(head: &'a Head) -> Self {
        Self {
            message_id: head.message_id,
            message_type: &head.attributes.message_type,
            published_at: head.published_at.to_rfc3339(),
            producer_id: &head.attributes.producer_id,
            system_id: &head.attributes.system_id,
            correlation_id: &head.attributes.correlation_id,
            story_id: head.about.story_id.as_deref(),
            sequence_number: head.about.sequence_number.as_deref(),
        }
    }
}

/// A message's whole way.
#[derive(Serialize)]
pub(crate) struct WayShown<'a> {
    message_id: MessageId,
    state: MessageState,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
    archived: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    story_id: Option<&'a str>,
    producer_id: &'a ConnectionId,
    consumers: Vec<WayToConsumer<'a>>,
}

impl<'a> From<&'a MessageWay> for WayShown<'a> {
    fn from(way: &'a MessageWay) -> Self {
        let head = way.archived.as_ref();
        Self {
            message_id: way.message_id,
            state: way.state,
            recorded_at: way.recorded_at.map(|at| at.to_rfc3339()),
            published_at: way.published_at.map(|at| at.to_rfc3339()),
            archived: head.is_some(),
            message_type: head.map(|h| h.attributes.message_type.as_str()),
            correlation_id: head.map(|h| h.attributes.correlation_id.as_str()),
            story_id: head.and_then(|h| h.about.story_id.as_deref()),
            producer_id: &way.producer,
            consumers: way.consumers.iter().map(WayToConsumer::from).collect(),
        }
    }
}

/// The way to one consumer.
#[derive(Serialize)]
struct WayToConsumer<'a> {
    client_id: &'a ConnectionId,
    name: &'a str,
    deliveries: Vec<Stop<'a>>,
}

impl<'a> From<&'a ConsumerWay> for WayToConsumer<'a> {
    fn from(way: &'a ConsumerWay) -> Self {
        Self {
            client_id: &way.consumer,
            name: &way.name,
            deliveries: way.deliveries.iter().map(Stop::from).collect(),
        }
    }
}

/// One delivery.
#[derive(Serialize)]
struct Stop<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receive_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivery: Option<&'a str>,
}

impl<'a> From<&'a WayStop> for Stop<'a> {
    fn from(stop: &'a WayStop) -> Self {
        let (state, reason) = match &stop.state {
            WayState::Waiting => ("waiting", None),
            WayState::InFlight => ("in_flight", None),
            WayState::Delivered => ("delivered", None),
            WayState::Acknowledged => ("acknowledged", None),
            WayState::Gone => ("gone", None),
            WayState::NotRouted => ("not_routed", None),
            WayState::DeadLettered(cause) => (
                "dead_lettered",
                Some(reason(cause, stop.receive_count.unwrap_or_default()).1),
            ),
        };
        Self {
            state,
            receive_count: stop.receive_count,
            at: stop.at.map(|at| at.to_rfc3339()),
            reason,
            redelivery: stop.redelivery.as_deref(),
        }
    }
}

/// A cause of death: its name, and in words.
pub(crate) fn reason(cause: &Cause, receives: u32) -> (&'static str, String) {
    match cause {
        Cause::MaxReceives => (
            "max_receives",
            match receives {
                1 => "received once and never acknowledged".to_owned(),
                n => format!("received {n} times and never acknowledged"),
            },
        ),
        Cause::Rejected(reason) => ("rejected", reason.clone()),
    }
}
