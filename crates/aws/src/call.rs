//! Calls of AWS: what a failed one means, and when it may be made again.
//!
//! The SDK's own retries are off: an error of its last try says nothing of the ones before, and whether a write *surely* did not
//! happen decides what the bus may do next. [`Caller::write`] and [`Caller::read`] repeat instead, and remember: a write is
//! [`StoreError::Unknown`] as soon as one try of it may have arrived.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use storybus_core::ports::StoreError;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_millis(1_000);
/// How long one try may take: DynamoDB, SNS and SQS answer in milliseconds.
const TRY: Duration = Duration::from_millis(2_000);
/// How long an operation may take, its repetitions included: well under the publish limit of 10 s.
const OPERATION: Duration = Duration::from_millis(4_500);
/// The first pause before a repetition, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// The SDK's settings for every client: no retries of its own, and limits on time.
#[must_use]
pub(crate) fn retries_off() -> RetryConfig {
    RetryConfig::disabled()
}

/// The limits of one try.
#[must_use]
pub(crate) fn time_limits() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(TRY)
        .operation_timeout(TRY)
        .build()
}

/// The same for a try that may take this long.
pub(crate) fn within(time: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT.min(time))
        .operation_attempt_timeout(time)
        .operation_timeout(time)
        .build()
}

/// What a failed try came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The request never left: it could not be made, or nobody was connected to. Surely nothing happened.
    NotSent,
    /// The service has no room for it now. Surely nothing happened.
    Throttled,
    /// A rival was at work on the same item, or on the same transaction. Surely nothing happened.
    Conflict,
    /// The service said no: denied, not found, not valid. Surely nothing happened, and nothing else will.
    Refused,
    /// The answer did not come, could not be read, or was a failure of the service itself. It may have happened.
    Unknown,
}

/// A try that failed, for the log without what was sent.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// What it came to.
    pub(crate) outcome: Outcome,
    /// The service's code, when it answered.
    pub(crate) code: Option<String>,
    reason: String,
}

impl Failed {
    /// One of ours, which is none of the service's.
    pub(crate) fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            code: None,
            reason: reason.into(),
        }
    }

    /// Whether the service said that what was asked for is not there.
    pub(crate) fn is_absent(&self) -> bool {
        self.code.as_deref().is_some_and(|code| {
            matches!(
                code,
                "NotFound"
                    | "ResourceNotFound"
                    | "ResourceNotFoundException"
                    | "QueueDoesNotExist"
                    | "AWS.SimpleQueueService.NonExistentQueue"
                    | "com.amazonaws.sqs#QueueDoesNotExist"
            )
        })
    }
}

impl Failed {
    /// Whether SNS said that what is to be made is there with other attributes.
    pub(crate) fn says_it_exists(&self) -> bool {
        self.code.as_deref() == Some("InvalidParameter") && self.reason.contains("already exists")
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{code}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl<E> From<SdkError<E, HttpResponse>> for Failed
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        let (outcome, code) = match &error {
            SdkError::ConstructionFailure(_) => (Outcome::NotSent, None),
            SdkError::DispatchFailure(failure) => {
                let never_left = failure
                    .as_connector_error()
                    .is_some_and(|e| e.is_user() || never_connected(e));
                (
                    if never_left {
                        Outcome::NotSent
                    } else {
                        Outcome::Unknown
                    },
                    None,
                )
            }
            SdkError::ServiceError(answer) => {
                let code = answer.err().code().map(str::to_owned);
                (of_answer(code.as_deref(), answer.raw().status().as_u16()), code)
            }
            // A time-out, an answer that cannot be read, and whatever the SDK learns to say later.
            _ => (Outcome::Unknown, None),
        };
        let reason = match &error {
            SdkError::ServiceError(answer) => answer.err().message().unwrap_or_default().to_owned(),
            other => sources(other),
        };
        Self {
            outcome,
            code,
            reason,
        }
    }
}

/// Whether no connection was made: then nothing was sent on it.
fn never_connected(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(client) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return client.is_connect();
        }
        next = error.source();
    }
    false
}

fn of_answer(code: Option<&str>, status: u16) -> Outcome {
    match code {
        Some(
            "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "Throttling"
            | "Throttled"
            | "ThrottledException"
            | "ThrottlingException"
            | "ThrottlingError"
            | "KMSThrottling"
            | "KMSThrottlingException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "TooManyRequestsException"
            | "SlowDown",
        ) => Outcome::Throttled,
        Some("TransactionConflictException") => Outcome::Conflict,
        // an earlier try with this client token is still at work, and may succeed
        Some("TransactionInProgressException") => Outcome::Unknown,
        _ if status == 429 => Outcome::Throttled,
        // 408: the request did not come whole, or did and took too long
        _ if (400..500).contains(&status) && status != 408 => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

fn sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

/// Makes calls, again where that is safe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caller;

impl Caller {
    /// A call that changes nothing.
    pub(crate) async fn read<T, F>(self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failed>> + Send,
    {
        let failed = match self.attempts(|_| call()).await {
            Ok(value) => return Ok(value),
            Err((failed, _)) => failed,
        };
        Err(match failed.outcome {
            Outcome::Refused => internal(&failed),
            _ => unavailable(&failed),
        })
    }

    /// A call that changes something, and that finds its own traces when it is repeated: a conditional write that compares its
    /// token, a transaction with a client token, a send with a deduplication id, a deletion.
    pub(crate) async fn write<T, F>(self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failed>> + Send,
    {
        self.write_knowing(|_| call()).await
    }

    /// The same for a call that wants to know whether an earlier try of it may have arrived.
    pub(crate) async fn write_knowing<T, F>(self, call: impl Fn(bool) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failed>> + Send,
    {
        match self.attempts(call).await {
            Ok(value) => Ok(value),
            Err((failed, true)) => Err(StoreError::Unknown {
                reason: failed.to_string(),
            }),
            Err((failed, false)) => Err(match failed.outcome {
                Outcome::Refused => internal(&failed),
                _ => unavailable(&failed),
            }),
        }
    }

    /// Tries until it succeeds, is refused or the time is over; then the last failure, and whether any try may have arrived.
    async fn attempts<T, F>(self, call: impl Fn(bool) -> F) -> Result<T, (Failed, bool)>
    where
        F: Future<Output = Result<T, Failed>> + Send,
    {
        let (mut pause, mut spent, mut uncertain) = (FIRST_PAUSE, Duration::ZERO, false);
        loop {
            let (result, took) = crate::pace::timed(call(uncertain)).await;
            let failed = match result {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            uncertain |= failed.outcome == Outcome::Unknown;
            spent += took + pause;
            if failed.outcome == Outcome::Refused || spent + TRY > OPERATION {
                return Err((failed, uncertain));
            }
            crate::pace::rest(spread(pause, took)).await;
            pause *= 2;
        }
    }
}

/// A pause between half and the whole of `span`, so that rivals do not meet again. Nothing here needs good randomness: the
/// nanoseconds that the try took will do.
fn spread(span: Duration, took: Duration) -> Duration {
    span / 2 + span * (took.subsec_nanos() % 512) / 1024
}

fn unavailable(failed: &Failed) -> StoreError {
    StoreError::Unavailable {
        reason: failed.to_string(),
    }
}

/// Our own fault, or our operator's: a table that is not there, an action that the function's role may not do.
fn internal(failed: &Failed) -> StoreError {
    StoreError::Internal {
        reason: failed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_means() {
        assert_eq!(of_answer(Some("ThrottlingException"), 400), Outcome::Throttled);
        assert_eq!(
            of_answer(Some("TransactionConflictException"), 400),
            Outcome::Conflict
        );
        assert_eq!(of_answer(Some("AccessDeniedException"), 400), Outcome::Refused);
        assert_eq!(of_answer(Some("InternalServerError"), 500), Outcome::Unknown);
        assert_eq!(
            of_answer(Some("TransactionInProgressException"), 400),
            Outcome::Unknown
        );
        assert_eq!(
            of_answer(Some("IdempotentParameterMismatchException"), 400),
            Outcome::Refused
        );
        assert_eq!(of_answer(None, 503), Outcome::Unknown);
        assert_eq!(of_answer(None, 408), Outcome::Unknown);
        assert_eq!(of_answer(None, 404), Outcome::Refused);
        assert_eq!(of_answer(None, 429), Outcome::Throttled);
    }
}
