//! One message's whole way: accepted, archived, and to each consumer.

use storybus_protocol::answer::MessageState;
use storybus_protocol::id::{ConnectionId, ConnectionKind, MessageId, WorkspaceId};
use storybus_protocol::rule;

use crate::bus::Bus;
use crate::domain::archived::Head;
use crate::domain::connection::{Connection, Role};
use crate::domain::dead_letter::Cause;
use crate::domain::record::{Record, RecordKey, RecordState};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;
use crate::domain::trace::{QueueTrace, Trace, TraceState};
use crate::ops::refused_by_store;
use crate::ports::queues::RETENTION;

/// How many consumers are read at a time.
const CONSUMERS: usize = 200;

/// Where a message has been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageWay {
    /// The message id.
    pub message_id: MessageId,
    /// What became of its publication.
    pub state: MessageState,
    /// When it was recorded, or claimed last; the record is kept for 7 days.
    pub recorded_at: Option<Millis>,
    /// When it was published.
    pub published_at: Option<Millis>,
    /// Its place in the archive; absent when it is not there (yet, or any more).
    pub archived: Option<Head>,
    /// Who sent it.
    pub producer: ConnectionId,
    /// To each consumer of the workspace.
    pub consumers: Vec<ConsumerWay>,
}

/// The way to one consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerWay {
    /// The consumer.
    pub consumer: ConnectionId,
    /// Its name.
    pub name: String,
    /// Each time it was put into the queue, as far as that is known.
    pub deliveries: Vec<WayStop>,
}

/// Where one delivery stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayStop {
    /// Where.
    pub state: WayState,
    /// How often it was received, if that is known.
    pub receive_count: Option<u32>,
    /// Since when, if that is known.
    pub at: Option<Millis>,
    /// `replay:<job>` or `redrive:<job>` for one that came that way.
    pub redelivery: Option<String>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WayState {
    /// In the queue.
    Waiting,
    /// Received and not settled, or nacked with a delay.
    InFlight,
    /// A dead letter.
    DeadLettered(Cause),
    /// It was put into the queue; the engine cannot tell what became of it since.
    Delivered,
    /// It has left the queue as messages do.
    Acknowledged,
    /// It has left the queue, and it cannot be told how: purged, or past the 14 days.
    Gone,
    /// The filter does not take it, or the consumer was made later.
    NotRouted,
}

impl Bus {
    /// A message's whole way.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 message.not_found`.
    pub async fn message_way(&self, tenant: &str, message_id: &str) -> Result<MessageWay, Refusal> {
        let unknown = || {
            Refusal::policy(
                RefusalKind::NotFound,
                rule::MESSAGE_NOT_FOUND,
                "the bus knows no such message in this workspace: it was never accepted, or longer ago than the archive reaches",
            )
        };
        let workspace = self.tenant_get(tenant).await?.id;
        let message_id: MessageId = message_id.parse().map_err(|_| unknown())?;
        let key = RecordKey {
            workspace: workspace.clone(),
            message_id,
        };
        let now = self.ports.clock.now();
        let refused = |e| refused_by_store("message_way", &e);
        let record = self
            .ports
            .ledger
            .read(&key, None, now)
            .await
            .map_err(refused)?
            .record;
        let mut heads = self
            .ports
            .archive
            .find(&workspace, message_id)
            .await
            .map_err(refused)?;
        let positions: Vec<_> = heads.iter().map(|head| head.position.clone()).collect();
        let traces = self
            .ports
            .queue_control
            .trace(&workspace, message_id, &positions)
            .await
            .map_err(refused)?;
        let head = (!heads.is_empty()).then(|| heads.swap_remove(0));
        let producer = match (&record, &head) {
            (Some(record), _) => record.producer.clone(),
            (None, Some(head)) => head.attributes.producer_id.clone(),
            (None, None) => return Err(unknown()),
        };
        let consumers = self.consumers_of(&workspace).await?;
        let sees_waiting = self.ports.queue_control.sees_waiting();
        Ok(MessageWay {
            message_id,
            state: state(record.as_ref(), head.as_ref()),
            recorded_at: record.as_ref().map(|r| r.recorded_at),
            published_at: head
                .as_ref()
                .map(|head| head.published_at)
                .or(record.and_then(|r| r.published_at)),
            consumers: consumers
                .into_iter()
                .map(|consumer| way_to(consumer, &traces, head.as_ref(), now, sees_waiting))
                .collect(),
            archived: head,
            producer,
        })
    }

    async fn consumers_of(&self, workspace: &WorkspaceId) -> Result<Vec<Connection>, Refusal> {
        let mut consumers: Vec<Connection> = Vec::new();
        loop {
            let after = consumers.last().map(|c| c.id.clone());
            let more = self
                .ports
                .connections
                .list(
                    Some(workspace),
                    ConnectionKind::Consumer,
                    after.as_ref(),
                    CONSUMERS,
                )
                .await
                .map_err(|e| refused_by_store("message_way", &e))?;
            let full = more.len() == CONSUMERS;
            consumers.extend(more);
            if !full {
                return Ok(consumers);
            }
        }
    }
}

/// What became of the publication. What is in the archive was published, marked or not.
fn state(record: Option<&Record>, head: Option<&Head>) -> MessageState {
    match (record.map(|r| r.state), head) {
        (_, Some(_)) | (Some(RecordState::Published), None) => MessageState::Published,
        (Some(RecordState::Superseded), None) => MessageState::Superseded,
        (Some(RecordState::Recorded) | None, None) => MessageState::InFlight,
    }
}

fn way_to(
    consumer: Connection,
    traces: &[QueueTrace],
    head: Option<&Head>,
    now: Millis,
    sees_waiting: bool,
) -> ConsumerWay {
    let trace = traces.iter().find(|trace| trace.consumer == consumer.id);
    let mut deliveries: Vec<WayStop> = trace
        .into_iter()
        .flat_map(|trace| trace.deliveries.iter().map(seen))
        .collect();
    let purged_at = trace.and_then(|trace| trace.purged_at);
    if let Some(head) = head
        && let Some(state) = unseen(&consumer, &deliveries, head, purged_at, now)
    {
        let state = match state {
            WayState::Acknowledged if !sees_waiting => WayState::Delivered,
            state => state,
        };
        let stop = WayStop {
            state,
            receive_count: None,
            at: None,
            redelivery: None,
        };
        deliveries.insert(0, stop);
    }
    ConsumerWay {
        consumer: consumer.id,
        name: consumer.name,
        deliveries,
    }
}

fn seen(trace: &Trace) -> WayStop {
    WayStop {
        state: match &trace.state {
            TraceState::Waiting => WayState::Waiting,
            TraceState::InFlight => WayState::InFlight,
            TraceState::Acknowledged => WayState::Acknowledged,
            TraceState::DeadLettered(cause) => WayState::DeadLettered(cause.clone()),
        },
        receive_count: Some(trace.receive_count),
        at: trace.at,
        redelivery: trace.redelivery.clone(),
    }
}

/// What became of the first delivery when the queue does not know it any more. A queue keeps what was acknowledged only for a
/// moment, so what was routed to it and has left it was acknowledged, unless it may have left in another way.
fn unseen(
    consumer: &Connection,
    seen: &[WayStop],
    head: &Head,
    purged_at: Option<Millis>,
    now: Millis,
) -> Option<WayState> {
    let redriven = |stop: &WayStop| {
        stop.redelivery
            .as_ref()
            .is_none_or(|mark| mark.starts_with("redrive:"))
    };
    if seen.iter().any(redriven) {
        return None;
    }
    let Role::Consumer(role) = &consumer.role else {
        return None;
    };
    let routed = role.filter.matches(&head.attributes) && consumer.created_at <= head.published_at;
    if !routed {
        return seen.is_empty().then_some(WayState::NotRouted);
    }
    let purged = purged_at.is_some_and(|at| at >= head.published_at);
    Some(if purged || head.published_at.until(now) >= RETENTION {
        WayState::Gone
    } else {
        WayState::Acknowledged
    })
}
