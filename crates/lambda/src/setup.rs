//! What happens beside requests: the stack is made, changed or deleted, and every five minutes somebody looks after what was left.
//!
//! CloudFormation waits for an answer at a URL of its own for as long as the template says, so there is one whatever happens, in time.
//! <https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html>

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use lambda_runtime::Error;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use storybus_aws::Aws;
use storybus_core::ports::{Clock, Random, StoreError};
use tokio::time::timeout;

use crate::invocation::Invocation;
use crate::logs;
use crate::metrics::Meter;
use crate::panics::caught;
use crate::runtime::{Deployment, Handler};

/// How much of the function's time is left for the answer.
const MARGIN: Duration = Duration::from_secs(15);

/// What CloudFormation asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Asked {
    request_type: RequestType,
    /// Whoever has it can answer: it is never logged.
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
    physical_resource_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum RequestType {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answered<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    physical_resource_id: &'a str,
    stack_id: &'a str,
    request_id: &'a str,
    logical_resource_id: &'a str,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Event {
    Asked(Box<Asked>),
    Sweep { sweep: bool },
}

/// The function `setup`.
pub struct Setup {
    aws: Aws,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    meter: Arc<Meter>,
}

impl Setup {
    /// Of this deployment.
    #[must_use]
    pub fn new(deployment: &Deployment) -> Self {
        Self {
            aws: deployment.aws.clone(),
            clock: Arc::clone(&deployment.clock),
            random: Arc::clone(&deployment.random),
            meter: Arc::clone(&deployment.meter),
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        let swept = self
            .aws
            .sweeper(Arc::clone(&self.clock), Arc::clone(&self.random))
            .sweep()
            .await?;
        for job in &swept.stuck {
            tracing::error!(job_id = %job, "a job does not get on");
        }
        self.meter.count("JobsStuck", swept.stuck.len());
        self.meter.count("JobsSentAgain", swept.sent_again.len());
        self.meter.count("PendingSettled", swept.settled);
        self.meter.count("PendingLeft", swept.unsettled);
        // each is an error in the log, which names it
        let anew = swept.topics_anew.len() + swept.consumers_anew.len();
        self.meter.count("MadeAnew", anew);
        // a stack that is brought up to date is asked nothing when nothing of its own resource has changed
        self.aws.make_seal(&*self.random).await?;
        // so that a replay has something to go on from when the archive's queue is never seen empty
        self.aws.archive(Arc::clone(&self.clock)).advance().await
    }

    async fn work(&self, asked: RequestType) -> Result<(), StoreError> {
        match asked {
            // Done again it changes nothing, so an update mends what a create has missed.
            RequestType::Create | RequestType::Update => {
                self.aws.secret_keys().make_first(self.clock.now()).await?;
                self.aws.make_seal(&*self.random).await
            }
            RequestType::Delete => self.aws.teardown().await,
        }
    }

    async fn asked(&self, asked: &Asked, time: Duration) -> Result<(), Error> {
        let done = timeout(time, caught(self.work(asked.request_type))).await;
        let reason = match done {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(error))) => Some(error.to_string()),
            Ok(Err(_)) => Some("the function broke off; its log says where".to_owned()),
            Err(_) => Some("it took too long; what was done stays done, and another try goes on".to_owned()),
        };
        if let Some(reason) = &reason {
            tracing::error!(request = ?asked.request_type, reason, "the stack's own resource failed");
        }
        let own = format!("{}-setup", self.aws.config().prefix);
        let answer = Answered {
            status: if reason.is_none() { "SUCCESS" } else { "FAILED" },
            reason,
            physical_resource_id: asked.physical_resource_id.as_deref().unwrap_or(&own),
            stack_id: &asked.stack_id,
            request_id: &asked.request_id,
            logical_resource_id: &asked.logical_resource_id,
        };
        put(&asked.response_url, serde_json::to_string(&answer)?).await
    }
}

/// Puts the answer where CloudFormation waits for it: a signed URL, which knows no content type.
async fn put(url: &str, body: String) -> Result<(), Error> {
    let connector = aws_smithy_http_client::Connector::builder()
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .build();
    let mut request = HttpRequest::new(body.into());
    request.set_method("PUT").map_err(|_| "no PUT")?;
    request
        .set_uri(url)
        .map_err(|_| "the URL of the answer cannot be read")?;
    request.headers_mut().insert("content-type", "");
    let answer = connector
        .call(request)
        .await
        .map_err(|_| "CloudFormation cannot be answered")?;
    if answer.status().is_success() {
        return Ok(());
    }
    Err(format!(
        "CloudFormation did not take the answer: {}",
        answer.status().as_u16()
    )
    .into())
}

impl Handler for Setup {
    type Answer = ();

    async fn handle(&self, event: &RawValue, invocation: &Invocation) -> Result<(), Error> {
        invocation.begin(None);
        let event: Event =
            serde_json::from_str(event.get()).map_err(|_| "this is no event of this function")?;
        let time = self.clock.now().until(invocation.deadline.minus(MARGIN));
        let done = match event {
            Event::Asked(asked) => self.asked(&asked, time).await,
            Event::Sweep { sweep: true } => self.sweep().await.map_err(Error::from),
            Event::Sweep { sweep: false } => Ok(()),
        };
        if let Err(error) = &done {
            tracing::error!(%error, "the function failed");
        }
        self.meter.finish(
            self.clock.now(),
            &[],
            &[("request_id", invocation.request_id.as_str().into())],
        );
        logs::end();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_known() {
        for (text, asked) in [
            (
                include_str!("../../../events/others/setup-create.json"),
                Some(RequestType::Create),
            ),
            (
                include_str!("../../../events/others/setup-update.json"),
                Some(RequestType::Update),
            ),
            (
                include_str!("../../../events/others/setup-delete.json"),
                Some(RequestType::Delete),
            ),
            (include_str!("../../../events/others/sweep.json"), None),
        ] {
            match serde_json::from_str::<Event>(text).unwrap() {
                Event::Asked(got) => assert_eq!(Some(got.request_type), asked),
                Event::Sweep { sweep } => assert!(sweep && asked.is_none()),
            }
        }
        assert!(serde_json::from_str::<Event>("{}").is_err());
    }
}
