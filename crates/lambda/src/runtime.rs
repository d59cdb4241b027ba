//! The life of a function: it starts, is told what it has to know, and answers events one after the other.

use std::process::ExitCode;
use std::sync::Arc;

use aws_config::{BehaviorVersion, Region};
use lambda_runtime::{Error, LambdaEvent, Runtime, service_fn};
use serde::Serialize;
use serde_json::value::RawValue;
use storybus_aws::Aws;
use storybus_core::ports::{Clock, Random};
use tracing::level_filters::LevelFilter;

use crate::invocation::Invocation;
use crate::logs::{self, Lines};
use crate::metrics::Meter;
use crate::ports::{OsRandom, WallClock};
use crate::settings::Settings;

/// What the ports of a function are made from.
pub struct Deployment {
    /// What it was told.
    pub settings: Settings,
    /// The clients.
    pub aws: Aws,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The function's numbers.
    pub meter: Arc<Meter>,
}

/// Answers events.
pub trait Handler {
    /// What it answers.
    type Answer: Serialize;

    /// Answers an event. An error is Lambda's to handle: it fails the invocation, and whoever invoked it decides what comes next.
    fn handle(
        &self,
        event: &RawValue,
        invocation: &Invocation,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// Runs a function until Lambda ends it. On one thread: it works on one request at a time.
pub fn run<H: Handler>(function: &'static str, wire: impl FnOnce(&Deployment) -> H) -> ExitCode {
    let lines = logs::stdout();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match (Settings::from_env(), runtime) {
        (Ok(settings), Ok(runtime)) => {
            logs::start(settings.log, Arc::clone(&lines));
            runtime.block_on(serve(function, settings, lines, wire))
        }
        (Err(error), _) => {
            logs::start(LevelFilter::INFO, lines);
            Err(error.into())
        }
        (_, Err(error)) => {
            logs::start(LevelFilter::INFO, lines);
            Err(error.into())
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(function, %error, "the function cannot start");
            ExitCode::FAILURE
        }
    }
}

async fn serve<H: Handler>(
    function: &'static str,
    settings: Settings,
    lines: Lines,
    wire: impl FnOnce(&Deployment) -> H,
) -> Result<(), Error> {
    let shared = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(settings.config.region.clone()))
        .load()
        .await;
    let deployment = Deployment {
        aws: Aws::new(&shared, settings.config.clone()),
        clock: Arc::new(WallClock::default()),
        random: Arc::new(OsRandom),
        meter: Meter::new(settings.config.prefix.clone(), function, lines),
        settings,
    };
    let handler = wire(&deployment);
    let handler = &handler;
    let service = service_fn(async |event: LambdaEvent<Box<RawValue>>| {
        let invocation = Invocation::from(&event.context);
        // on the heap: futures within futures become a type too deep for the compiler
        Box::pin(handler.handle(&event.payload, &invocation)).await
    });
    Runtime::new(service).run().await
}
