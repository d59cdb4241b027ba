//! Up to when the archive is whole.
//!
//! A message waits in the archive's queue before the function `archive` stores it: for milliseconds, or for an hour when that
//! function is down. Its place in the archive is the time at which it came into the queue. A reader that went past that place
//! in the meantime would never see it. So nothing is read of times at which something may be missing yet: a reader sees what is
//! older than the **watermark**, and waits there.
//!
//! What is in the queue is found without looking at messages:
//!
//! - *The queue is empty* (visible, in flight and delayed): whatever came into it is archived. Counts of a FIFO queue are exact by
//!   the developer guide (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-resources-required-process-messages.html>)
//!   and lag by up to a minute by the API's reference, so they are believed for what is older than
//!   [`archive_settle`](crate::Config::archive_settle), which also covers clocks that differ.
//! - *Else, step by step*, for queues that are never empty: CloudWatch measured the age of the oldest message in each minute. That
//!   measure leaves out what was received three times
//!   (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html>), so an hour of failures would look like health.
//!   But a third receive comes two visibility timeouts after the first. So a minute tells of messages *younger* than that only, and
//!   the watermark moves on by it only if it is as near already: no time between what was known and what it tells is left out.
//! - *Else nothing new is known*, and what was known before holds: a watermark never goes back. It is kept in the table, so that
//!   every process goes on from there.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_cloudwatch::types::{Dimension, Statistic};
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_types::DateTime;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Clock, StoreError};
use tokio::sync::Mutex;

use crate::clients::Aws;
use crate::item::{Attributes as _, n, unreadable};
use crate::keys;

/// How long what was looked up is not looked up again, at most: a step of a job looks several times a second.
const CACHED: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// How many minutes CloudWatch tells in one answer.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricStatistics.html>
const MINUTES: u32 = 1_440;
/// The attribute of the watermark that is kept.
const UNTIL: &str = "until";

/// The oldest message of a queue, of those that the measure counts, was at most this old at any instant of the minute that begins then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Age {
    minute: Millis,
    age: Duration,
}

/// Everything that came into the queue before this time has left it, if it was empty when looked at.
fn by_count(looked_at: Millis, settle: Duration) -> Millis {
    Millis(looked_at.minus(settle).0.saturating_add(1))
}

/// The same from what was known, minute by minute.
fn by_age(known: Millis, ages: &mut [Age], visibility: Duration, settle: Duration) -> Millis {
    // younger than this, at every instant of the minute, none was received a third time
    let told = (visibility * 2).saturating_sub(MINUTE);
    ages.sort_by_key(|it| it.minute);
    ages.iter().fold(known, |known, it| {
        let (from, to) = (
            it.minute.plus(MINUTE).minus(told),
            it.minute.minus(it.age).minus(settle),
        );
        if from < to && from <= known {
            known.max(to)
        } else {
            known
        }
    })
}

#[derive(Default)]
struct Known {
    until: Option<Millis>,
    looked_at: Option<Millis>,
    kept: Option<Millis>,
}

impl Known {
    /// Whether that is enough for now.
    fn answers(&self, wanted: Millis, now: Millis, settle: Duration) -> bool {
        self.until.is_some_and(|until| until >= wanted)
            || self
                .looked_at
                .is_some_and(|at| at.until(now) < CACHED.min(settle))
    }
}

/// What the queue says of itself.
struct Queue {
    empty: bool,
    visibility: Duration,
}

/// The watermark, as far as this process knows it.
pub(super) struct Watermark {
    aws: Aws,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

impl Watermark {
    pub(super) fn new(aws: Aws, clock: Arc<dyn Clock>) -> Self {
        Self {
            aws,
            clock,
            known: Mutex::default(),
        }
    }

    /// Everything that was published before this time is in the archive. Who wants to know of an earlier time than is known
    /// costs nothing.
    pub(super) async fn until(&self, wanted: Millis) -> Result<Option<Millis>, StoreError> {
        let mut known = self.known.lock().await;
        let now = self.clock.now(); // before the look: what comes in meanwhile is later
        let settle = self.aws.config.archive_settle;
        if !known.answers(wanted, now, settle) {
            let queue = self.queue().await?;
            if queue.empty {
                known.until = known.until.max(Some(by_count(now, settle)));
            } else {
                known.kept = known.kept.max(self.kept().await?);
                known.until = known.until.max(known.kept);
                if let Some(until) = known.until {
                    let mut ages = self.ages(until, now).await;
                    known.until = Some(by_age(until, &mut ages, queue.visibility, settle));
                }
            }
            known.looked_at = Some(now);
            self.keep(&mut known).await;
        }
        Ok(known.until)
    }

    async fn queue(&self) -> Result<Queue, StoreError> {
        let counts = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let mut names = counts.to_vec();
        names.push(QueueAttributeName::VisibilityTimeout);
        let url = self.aws.config.queue_url(&self.aws.config.archive_queue_name());
        let call = || async {
            let request = self.aws.sqs.get_queue_attributes().queue_url(&url);
            Ok(request.set_attribute_names(Some(names.clone())).send().await?)
        };
        let answer = self.aws.caller.read(call).await?;
        // one that is not told is not zero
        let number = |name: &QueueAttributeName| {
            let told = answer
                .attributes()
                .and_then(|all| all.get(name)?.parse::<u64>().ok());
            told.ok_or_else(|| unreadable(format!("{name} of the archive's queue")))
        };
        let waiting = counts
            .iter()
            .try_fold(0, |sum, name| Ok::<_, StoreError>(sum + number(name)?))?;
        Ok(Queue {
            empty: waiting == 0,
            visibility: Duration::from_secs(number(&QueueAttributeName::VisibilityTimeout)?),
        })
    }

    /// What another process knew.
    async fn kept(&self) -> Result<Option<Millis>, StoreError> {
        let table = &self.aws.config.archive_table;
        let call = || async {
            let request = self
                .aws
                .dynamodb
                .get_item()
                .table_name(table)
                .consistent_read(true);
            Ok(request.set_key(Some(keys::watermark())).send().await?)
        };
        let item = self.aws.caller.read(call).await?.item;
        Ok(item.and_then(|item| item.number(UNTIL)).map(Millis))
    }

    /// Keeps what is known, at most once a minute: it is only where others go on from, so a failure does no harm.
    async fn keep(&self, known: &mut Known) {
        let Some(until) = known
            .until
            .filter(|until| known.kept.is_none_or(|kept| kept.until(*until) >= MINUTE))
        else {
            return;
        };
        let mut item = keys::watermark();
        item.insert(UNTIL.to_owned(), n(until.0));
        let call = || async {
            let request = self
                .aws
                .dynamodb
                .put_item()
                .table_name(&self.aws.config.archive_table);
            let request = request
                .set_item(Some(item.clone()))
                .condition_expression("attribute_not_exists(pk) OR #until < :until")
                .expression_attribute_names("#until", UNTIL)
                .expression_attribute_values(":until", n(until.0))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::None);
            match request.send().await {
                Err(error)
                    if error
                        .as_service_error()
                        .is_some_and(|e| e.is_conditional_check_failed_exception()) =>
                {
                    Ok(())
                }
                other => Ok(other.map(drop)?),
            }
        };
        match self.aws.caller.write(call).await {
            Ok(()) => known.kept = Some(until),
            Err(error) => tracing::warn!(%error, "how far the archive is whole was not kept"),
        }
    }

    /// What CloudWatch measured since. Nothing, when it does not answer: then the reader waits.
    async fn ages(&self, since: Millis, now: Millis) -> Vec<Age> {
        let queue = Dimension::builder()
            .name("QueueName")
            .value(self.aws.config.archive_queue_name())
            .build();
        let client = self.aws.cloudwatch();
        let end = now.min(since.plus(MINUTE * MINUTES));
        let call = || async {
            let request = client
                .get_metric_statistics()
                .namespace("AWS/SQS")
                .metric_name("ApproximateAgeOfOldestMessage")
                .dimensions(queue.clone())
                .start_time(DateTime::from_secs(since.0.div_euclid(60_000) * 60))
                .end_time(DateTime::from_secs(end.0.div_euclid(60_000) * 60))
                .period(60)
                .statistics(Statistic::Maximum);
            Ok(request.send().await?)
        };
        if since.plus(MINUTE) > end {
            return Vec::new();
        }
        let points = match self.aws.caller.read(call).await {
            Ok(answer) => answer.datapoints.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "the age of the archive's queue is not known");
                Vec::new()
            }
        };
        let age = |point: &aws_sdk_cloudwatch::types::Datapoint| {
            let age = Duration::try_from_secs_f64(point.maximum()?).ok()?;
            let minute = Millis(point.timestamp()?.to_millis().ok()?);
            Some(Age { minute, age })
        };
        points.iter().filter_map(age).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_secs(10);
    const VISIBILITY: Duration = Duration::from_secs(180);
    /// A minute tells of what is younger than two timeouts at its end.
    const TOLD: i64 = 2 * 180_000 - 60_000;

    fn age(minute: i64, seconds: u64) -> Age {
        Age {
            minute: Millis(minute),
            age: Duration::from_secs(seconds),
        }
    }

    fn from(known: i64, ages: &[Age]) -> i64 {
        by_age(Millis(known), &mut ages.to_vec(), VISIBILITY, SETTLE).0
    }

    #[test]
    fn an_empty_queue_tells_of_all_but_the_last_moments() {
        assert_eq!(by_count(Millis(100_000), SETTLE), Millis(90_001));
        assert_eq!(by_count(Millis(100_000), Duration::ZERO), Millis(100_001));
    }

    #[test]
    fn minutes_lead_on_from_what_is_known() {
        assert_eq!(from(1_000_000, &[age(1_060_000, 3)]), 1_060_000 - 13_000);
        let ages: Vec<Age> = (0..30).rev().map(|n| age(1_020_000 + n * 60_000, 2)).collect();
        assert_eq!(
            from(1_000_000, &ages),
            1_020_000 + 29 * 60_000 - 12_000,
            "in whatever order they come"
        );
    }

    #[test]
    fn what_may_have_been_received_three_times_is_not_passed_over() {
        let minute = 5_000_000;
        let nearest = minute + 60_000 - TOLD;
        assert_eq!(from(nearest, &[age(minute, 0)]), minute - 10_000);
        assert_eq!(
            from(nearest - 1, &[age(minute, 0)]),
            nearest - 1,
            "an hour of failures, and an age that looks well"
        );
        let gap = [age(minute, 0), age(minute + TOLD + 60_000, 0)];
        assert_eq!(
            from(nearest, &gap),
            minute - 10_000,
            "minutes that were not measured"
        );
    }

    #[test]
    fn an_old_message_holds_it_and_it_never_goes_back() {
        assert_eq!(from(1_000_000, &[age(1_060_000, 100)]), 1_000_000);
        assert_eq!(from(1_000_000, &[age(1_060_000, 100_000)]), 1_000_000);
        let short = by_age(
            Millis(1_000_000),
            &mut [age(1_060_000, 0)],
            Duration::from_secs(30),
            SETTLE,
        );
        assert_eq!(
            short,
            Millis(1_000_000),
            "a timeout so short that minutes tell nothing"
        );
    }

    #[test]
    fn what_is_known_is_not_asked_again() {
        let known = Known {
            until: Some(Millis(5_000)),
            looked_at: Some(Millis(65_000)),
            kept: None,
        };
        assert!(known.answers(Millis(5_000), Millis(900_000), SETTLE));
        assert!(known.answers(Millis(70_000), Millis(65_999), SETTLE));
        assert!(!known.answers(Millis(70_000), Millis(66_000), SETTLE));
        assert!(!known.answers(Millis(70_000), Millis(65_000), Duration::ZERO));
        assert!(!Known::default().answers(Millis(0), Millis(0), SETTLE));
    }
}
