//! The functions, each from its ports to its handler.

use std::sync::Arc;

use async_trait::async_trait;
use aws_lambda_events::event::cloudwatch_logs::LogsEvent;
use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::Error;
use serde_json::value::RawValue;
use storybus_api::Api;
use storybus_aws::activity::{LogEvent, LogEvents, Noted};
use storybus_aws::{Archiver, Arrived, Aws, CachedConnections, DynamoActivity, Mover};
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Clock, StoreError};
use storybus_core::{Bus, Ports};

use crate::http::Front;
use crate::invocation::Invocation;
use crate::jobs::{JobRunner, Onward};
use crate::logs;
use crate::metrics::Meter;
use crate::panics::caught;
use crate::ports::Stopwatch;
use crate::queue::{Batch, BatchAnswer};
use crate::runtime::{Deployment, Handler};
use crate::setup::Setup;
use crate::wiring;

fn front(deployment: &Deployment, ports: Ports) -> Front {
    let bus = Bus::new(ports, deployment.settings.bus());
    Front::new(Api::new(bus), Arc::clone(&deployment.meter))
}

/// Publishes, and answers every path that no other function has.
#[must_use]
pub fn publish(deployment: &Deployment) -> Front {
    front(deployment, wiring::publish(deployment))
}

/// The pull API.
#[must_use]
pub fn pull(deployment: &Deployment) -> Front {
    front(deployment, wiring::pull(deployment))
}

/// Tokens and keys.
#[must_use]
pub fn token(deployment: &Deployment) -> Front {
    front(deployment, wiring::token(deployment))
}

/// The operator API.
#[must_use]
pub fn admin(deployment: &Deployment) -> Front {
    front(deployment, wiring::admin(deployment))
}

/// Replays.
#[must_use]
pub fn replay(deployment: &Deployment) -> QueueHandler<JobRunner> {
    jobs(deployment, wiring::replay(deployment))
}

/// Redrives.
#[must_use]
pub fn redrive(deployment: &Deployment) -> QueueHandler<JobRunner> {
    jobs(deployment, wiring::redrive(deployment))
}

fn jobs(deployment: &Deployment, ports: Ports) -> QueueHandler<JobRunner> {
    let bus = Bus::new(ports, deployment.settings.bus());
    let onward = Arc::new(ToQueue(deployment.aws.clone()));
    let runner = JobRunner::new(bus, onward, Arc::clone(&deployment.meter));
    queue(deployment, runner)
}

fn queue<W: Worker>(deployment: &Deployment, worker: W) -> QueueHandler<W> {
    QueueHandler::new(
        worker,
        Arc::clone(&deployment.clock),
        Arc::clone(&deployment.meter),
    )
}

/// Writes what was published into the archive.
#[must_use]
pub fn archive(deployment: &Deployment) -> QueueHandler<Archiver> {
    queue(deployment, deployment.aws.archiver())
}

/// Moves dead letters from their queue into the table.
#[must_use]
pub fn dead_letters(deployment: &Deployment) -> QueueHandler<DeadLetters> {
    let (aws, clock) = (&deployment.aws, &deployment.clock);
    let connections = Arc::new(aws.connections(clock.clone(), deployment.random.clone()));
    let cached = CachedConnections::new(connections, clock.clone(), deployment.settings.grants_cached);
    let worker = DeadLetters {
        mover: aws.mover(Arc::new(cached), clock.clone()),
        meter: Arc::clone(&deployment.meter),
    };
    queue(deployment, worker)
}

/// Keeps what the publish function's log says of refused messages.
#[must_use]
pub fn activity(deployment: &Deployment) -> Activity {
    Activity {
        store: deployment.aws.activity(deployment.clock.clone()),
        clock: Arc::clone(&deployment.clock),
        meter: Arc::clone(&deployment.meter),
    }
}

/// Makes and removes what belongs to the stack, and sweeps.
#[must_use]
pub fn setup(deployment: &Deployment) -> Setup {
    Setup::new(deployment)
}

/// A job's next message by its queue. A message that came twice sends the same one twice, which is one.
struct ToQueue(Aws);

#[async_trait]
impl Onward for ToQueue {
    async fn send(&self, job: &Job) -> Result<(), StoreError> {
        let deduplication = format!("{}.{}", job.id, job.steps);
        self.0.send_job(job.kind(), &job.id, &deduplication).await
    }
}

impl Worker for Archiver {
    async fn work(&self, messages: Vec<Arrived>, _: Millis) -> Vec<String> {
        self.archive(&messages).await
    }
}

/// The mover, and what counts the messages that it drops.
pub struct DeadLetters {
    mover: Mover,
    meter: Arc<Meter>,
}

impl Worker for DeadLetters {
    async fn work(&self, messages: Vec<Arrived>, _: Millis) -> Vec<String> {
        let moved = self.mover.accept(&messages).await;
        if moved.foreign > 0 {
            self.meter.count("MessagesForeign", moved.foreign);
        }
        moved.again
    }
}

/// The handler of the log's lines.
pub struct Activity {
    store: DynamoActivity,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

impl Handler for Activity {
    type Answer = ();

    async fn handle(&self, event: &RawValue, invocation: &Invocation) -> Result<(), Error> {
        invocation.begin(None);
        let lines = refusals(event)?;
        let done = caught(self.store.store(&lines)).await;
        self.meter.count("Refusals", lines.len());
        self.meter.finish(
            self.clock.now(),
            &[],
            &[("request_id", invocation.request_id.as_str().into())],
        );
        if let Ok(Err(error)) = &done {
            tracing::error!(%error, "refusals were not stored");
        }
        logs::end();
        // An error makes Lambda call again with the same lines, twice at most.
        Ok(done.map_err(|_| "the function broke off")??)
    }
}

/// The refusals that CloudWatch hands on.
///
/// # Errors
///
/// This is no event of a log.
pub fn refusals(event: &RawValue) -> Result<Vec<Noted>, Error> {
    let event: LogsEvent = serde_json::from_str(event.get()).map_err(|_| "this is no event of a log")?;
    let data = event.aws_logs.data;
    let lines = data.log_events.into_iter().map(|event| LogEvent {
        id: event.id,
        message: event.message,
    });
    let events = LogEvents {
        message_type: data.message_type,
        log_events: lines.collect(),
    };
    Ok(events.refusals())
}

/// Works at the messages of a queue.
pub trait Worker {
    /// Works at them in their order; the ids of those that failed. It can do any of them again.
    fn work(&self, messages: Vec<Arrived>, deadline: Millis) -> impl Future<Output = Vec<String>> + Send;
}

/// The handler of a queue.
pub struct QueueHandler<W> {
    worker: W,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

impl<W: Worker> QueueHandler<W> {
    /// A handler.
    #[must_use]
    pub fn new(worker: W, clock: Arc<dyn Clock>, meter: Arc<Meter>) -> Self {
        Self { worker, clock, meter }
    }
}

impl<W: Worker + Sync> Handler for QueueHandler<W> {
    type Answer = BatchAnswer;

    async fn handle(&self, event: &RawValue, invocation: &Invocation) -> Result<BatchAnswer, Error> {
        let watch = Stopwatch::start();
        invocation.begin(None);
        let event: SqsEvent = serde_json::from_str(event.get()).map_err(|error| {
            tracing::error!(
                line = error.line(),
                column = error.column(),
                "this is no event of a queue"
            );
            "this is no event of a queue"
        })?;
        let mut batch = Batch::from(event);
        let messages = std::mem::take(&mut batch.messages);
        let failed = match caught(self.worker.work(messages, invocation.deadline)).await {
            Ok(failed) => failed,
            Err(_) => {
                self.meter.count("Panics", 1);
                batch.ids().collect()
            }
        };
        let answer = batch.answer(failed);
        self.meter.count("Messages", batch.len());
        self.meter
            .count("MessagesFailed", answer.batch_item_failures.len());
        self.meter.time("Duration", watch.millis());
        let ids = [
            ("request_id", Some(invocation.request_id.as_str())),
            ("trace_id", invocation.trace_id.as_deref()),
        ];
        let told: Vec<_> = ids
            .into_iter()
            .filter_map(|(name, id)| Some((name, id?.into())))
            .collect();
        self.meter.finish(self.clock.now(), &[], &told);
        logs::end();
        Ok(answer)
    }
}

impl Worker for JobRunner {
    async fn work(&self, messages: Vec<Arrived>, deadline: Millis) -> Vec<String> {
        let mut failed = Vec::new();
        for message in messages {
            if let Err(error) = self.go_on(&message.body, deadline).await {
                tracing::error!(%error, sqs_message_id = message.sqs_message_id, "a job waits for its message to come back");
                failed.push(message.sqs_message_id);
            }
        }
        failed
    }
}
