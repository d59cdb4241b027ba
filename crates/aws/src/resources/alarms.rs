//! A consumer's alarms.

use std::time::Duration;

use aws_sdk_cloudwatch::types::{ComparisonOperator, Dimension, Statistic};
use storybus_core::ports::StoreError;
use storybus_protocol::id::ConnectionId;

use super::topic::gone_is_done;
use crate::Aws;
use crate::call::Failed;

/// A message that waits so long has a consumer that does not come, or a story that it cannot take.
const TOO_OLD: Duration = Duration::from_secs(3600);
/// Over how long a value is looked at.
const PERIOD: Duration = Duration::from_secs(300);

/// An alarm: its name, the queue, the metric, the value above which it tells, and what it says.
type Alarm = (String, String, &'static str, f64, String);

fn alarms(aws: &Aws, consumer: &ConnectionId, name: &str) -> [Alarm; 2] {
    let config = &aws.config;
    let [age, undelivered] = names(aws, consumer);
    [
        (
            age,
            config.queue_name(consumer),
            "ApproximateAgeOfOldestMessage",
            TOO_OLD.as_secs_f64(),
            format!("a message waits too long for the consumer {name}"),
        ),
        (
            undelivered,
            config.undelivered_name(consumer),
            "ApproximateNumberOfMessagesVisible",
            0.0,
            format!("the topic could not deliver to the queue of the consumer {name}"),
        ),
    ]
}

fn names(aws: &Aws, consumer: &ConnectionId) -> [String; 2] {
    let prefix = &aws.config.prefix;
    [
        format!("{prefix}-{consumer}-oldest-message"),
        format!("{prefix}-{consumer}-undelivered"),
    ]
}

/// Makes them; one of the same name is replaced.
pub(super) async fn make(aws: &Aws, consumer: &ConnectionId, name: &str) -> Result<(), StoreError> {
    let cloudwatch = aws.cloudwatch();
    for (alarm, queue, metric, above, says) in alarms(aws, consumer, name) {
        let dimension = Dimension::builder().name("QueueName").value(queue).build();
        aws.caller
            .write(|| async {
                let put = cloudwatch
                    .put_metric_alarm()
                    .alarm_name(&alarm)
                    .alarm_description(&says)
                    .namespace("AWS/SQS")
                    .metric_name(metric)
                    .dimensions(dimension.clone())
                    .statistic(Statistic::Maximum)
                    .period(i32::try_from(PERIOD.as_secs()).unwrap_or(i32::MAX))
                    .evaluation_periods(1)
                    .threshold(above)
                    .comparison_operator(ComparisonOperator::GreaterThanThreshold)
                    // an idle queue has no values
                    .treat_missing_data("notBreaching")
                    .set_alarm_actions(aws.config.alarm_topic.clone().map(|topic| vec![topic]));
                put.send().await.map(|_| ()).map_err(Failed::from)
            })
            .await?;
    }
    Ok(())
}

/// Removes them, each by itself: one that is not there keeps the others.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DeleteAlarms.html>
pub(super) async fn remove(aws: &Aws, consumer: &ConnectionId) -> Result<(), StoreError> {
    let cloudwatch = aws.cloudwatch();
    for alarm in names(aws, consumer) {
        aws.caller
            .write(|| async {
                match cloudwatch.delete_alarms().alarm_names(&alarm).send().await {
                    Ok(_) => Ok(()),
                    Err(error) => gone_is_done(Failed::from(error)),
                }
            })
            .await?;
    }
    Ok(())
}
