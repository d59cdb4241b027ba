//! PULL: a consumer reads its own queue.

use std::time::Duration;

use super::{Caller, refused_by_store};
use crate::bus::Bus;
use crate::domain::connection::{Consumer, Role};
use crate::domain::delivery::{Delivery, QueueKey, Settled};
use crate::domain::refusal::Refusal;
use crate::ports::StoreError;
use crate::ports::queues::{MAX_VISIBILITY, Receive};

/// The longest wait of a receive.
pub const MAX_WAIT: Duration = Duration::from_secs(20);
/// The most messages of a receive, and the most handles of a call.
pub const MAX_BATCH: usize = 10;
/// The longest reason of a reject, in characters.
pub const MAX_REASON: usize = 1000;

/// A receive as asked for; what is absent is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiveRequest {
    /// 1–10; 10.
    pub max: Option<u64>,
    /// 0–20 s; 0.
    pub wait_seconds: Option<u64>,
    /// 1–43,200 s; the connection's.
    pub visibility_seconds: Option<u64>,
    /// 1–128 of `[A-Za-z0-9_-]`.
    pub attempt: Option<String>,
}

fn within(
    value: Option<u64>,
    range: std::ops::RangeInclusive<u64>,
    default: u64,
    path: &str,
) -> Result<u64, Refusal> {
    match value {
        None => Ok(default),
        Some(v) if range.contains(&v) => Ok(v),
        Some(_) => Err(Refusal::request_invalid(
            path,
            format!("must be {} to {}", range.start(), range.end()),
        )),
    }
}

/// The parts of a caller that is a consumer.
fn consumer_of(caller: &Caller) -> Result<(QueueKey, &Consumer), Refusal> {
    match &caller.connection.role {
        Role::Consumer(consumer) => Ok((
            QueueKey {
                workspace: caller.workspace.id.clone(),
                consumer: caller.connection.id.clone(),
            },
            consumer,
        )),
        Role::Producer(_) | Role::Operator => Err(Refusal::internal()),
    }
}

impl Bus {
    /// Receives up to ten messages (contract §5); none while the consumer is paused, and none any more when it is disabled
    /// meanwhile: then a receive that waits ends at once.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` for a parameter out of its range; `503` when the queue cannot be reached.
    pub async fn receive(&self, caller: &Caller, request: &ReceiveRequest) -> Result<Vec<Delivery>, Refusal> {
        let (queue, consumer) = consumer_of(caller)?;
        let max = within(request.max, 1..=MAX_BATCH as u64, MAX_BATCH as u64, "/max")?;
        let wait = within(request.wait_seconds, 0..=MAX_WAIT.as_secs(), 0, "/wait")?;
        let default = u64::from(consumer.visibility_seconds);
        let visibility = within(
            request.visibility_seconds,
            1..=MAX_VISIBILITY.as_secs(),
            default,
            "/visibility",
        )?;
        if let Some(attempt) = &request.attempt {
            let fits = (1..=128).contains(&attempt.len())
                && attempt
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if !fits {
                return Err(Refusal::request_invalid(
                    "/attempt",
                    "must be 1 to 128 characters of A-Z a-z 0-9 _ -",
                ));
            }
        }
        if consumer.paused {
            // As long as an empty queue would: a client that polls must not spin.
            self.ports.clock.sleep(Duration::from_secs(wait)).await;
            return Ok(Vec::new());
        }
        let receive = Receive {
            max: usize::try_from(max).unwrap_or(MAX_BATCH),
            wait: Duration::from_secs(wait),
            visibility: Duration::from_secs(visibility),
            max_receives: consumer.max_receives,
            attempt: request.attempt.clone(),
        };
        self.ports
            .queues
            .receive(&queue, &receive)
            .await
            .map_err(|e| refused_by_store("receive", &e))
    }

    /// Acknowledges: an answer for each handle, in order.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` unless there are 1 to 10 handles; `503` when the queue cannot be reached.
    pub async fn acknowledge(&self, caller: &Caller, handles: &[String]) -> Result<Vec<Settled>, Refusal> {
        let (queue, _) = consumer_of(caller)?;
        check_handles(handles)?;
        settled(
            "acknowledge",
            self.ports.queues.acknowledge(&queue, handles).await,
        )
    }

    /// Gives messages back, to be visible again after a delay.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` unless there are 1 to 10 handles and a delay of 0 to 43,200 s.
    pub async fn release(
        &self,
        caller: &Caller,
        handles: &[String],
        delay_seconds: Option<u64>,
    ) -> Result<Vec<Settled>, Refusal> {
        let (queue, _) = consumer_of(caller)?;
        check_handles(handles)?;
        let delay = within(delay_seconds, 0..=MAX_VISIBILITY.as_secs(), 0, "/delay_seconds")?;
        settled(
            "release",
            self.ports
                .queues
                .release(&queue, handles, Duration::from_secs(delay))
                .await,
        )
    }

    /// Sends messages to the dead letters at once.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` unless there are 1 to 10 handles and a reason of 1 to 1,000 characters.
    pub async fn reject(
        &self,
        caller: &Caller,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, Refusal> {
        let (queue, _) = consumer_of(caller)?;
        check_handles(handles)?;
        if !(1..=MAX_REASON).contains(&reason.chars().count()) {
            return Err(Refusal::request_invalid(
                "/reason",
                "must be 1 to 1,000 characters",
            ));
        }
        settled("reject", self.ports.queues.reject(&queue, handles, reason).await)
    }
}

fn check_handles(handles: &[String]) -> Result<(), Refusal> {
    if (1..=MAX_BATCH).contains(&handles.len()) {
        return Ok(());
    }
    Err(Refusal::request_invalid(
        "/receipt_handles",
        "must be 1 to 10 receipt handles",
    ))
}

fn settled(
    operation: &'static str,
    result: Result<Vec<Settled>, StoreError>,
) -> Result<Vec<Settled>, Refusal> {
    result.map_err(|error| refused_by_store(operation, &error))
}
