//! The jobs.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::job::Job;
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::jobs::JOB_RETENTION;
use storybus_core::ports::ledger::Written;
use storybus_core::ports::{Clock, Jobs, Random, StoreError};
use storybus_protocol::id::{JobId, WorkspaceId};

use crate::call::Failed;
use crate::item::{Attributes as _, Item, json, key, n, s};
use crate::query::Range;
use crate::registry::Token;
use crate::writes::{Action, Check, Committed};
use crate::{Aws, audit, keys};

/// [`Jobs`] on DynamoDB, each with a message in the queue that drives its kind.
///
/// A job is made by its transaction; the message that gets it going is sent after that. If it cannot be sent, the job waits for the
/// sweeper, which sends it again.
#[derive(Clone)]
pub struct DynamoJobs {
    aws: Aws,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// A job that is not over, and when it was written last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unfinished {
    pub(crate) job: Job,
    pub(crate) written_at: Millis,
}

impl Aws {
    /// The jobs.
    #[must_use]
    pub fn jobs(&self, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> DynamoJobs {
        DynamoJobs {
            aws: self.clone(),
            clock,
            random,
        }
    }

    /// Sends the message that makes a function of this kind, `replay` or `redrive`, work at a job. Of two with one deduplication
    /// id within five minutes the second is dropped.
    ///
    /// # Errors
    ///
    /// As SQS says. When it is unknown whether it was sent, it may be sent again.
    pub async fn send_job(&self, kind: &str, job: &JobId, deduplication: &str) -> Result<(), StoreError> {
        let url = self.config.queue_url(&self.config.job_queue_name(kind));
        let body = serde_json::json!({ "job_id": job }).to_string();
        self.caller
            .write(async || {
                let send = self.sqs.send_message().queue_url(&url).message_body(&body);
                let send = send
                    .message_group_id(job.as_str())
                    .message_deduplication_id(deduplication);
                send.send().await.map(|_| ()).map_err(Failed::from)
            })
            .await
    }
}

fn read(item: &Item) -> Result<Job, StoreError> {
    item.need_json("doc")
}

/// When it is gone, if it is over.
fn kept_until(job: &Job) -> Option<Millis> {
    job.is_over()
        .then(|| job.finished_at.unwrap_or(job.created_at).plus(JOB_RETENTION))
}

impl DynamoJobs {
    fn is_kept(&self, job: &Job) -> bool {
        kept_until(job).is_none_or(|until| self.clock.now() < until)
    }

    fn item(&self, job: &Job, token: &Token) -> Result<Item, StoreError> {
        let mut item = expiring(keys::job(job.id.as_str()), job);
        item.insert("doc".to_owned(), json(job)?);
        item.insert("version".to_owned(), n(job.version));
        item.insert("token".to_owned(), s(&token.0));
        item.insert("written_at".to_owned(), n(self.clock.now().0));
        Ok(item)
    }

    /// The jobs of these places in a list, in its order, but for those that are gone.
    async fn of_places(&self, places: &[Item]) -> Result<Vec<Item>, StoreError> {
        let ids = places.iter().map(|place| place.need_text("job"));
        let ids: Vec<&str> = ids.collect::<Result<_, _>>()?;
        self.aws.items(ids.into_iter().map(keys::job).collect()).await
    }

    /// Gets a job going, or has it look whether it shall end.
    async fn wake(&self, job: &Job) {
        let deduplication = Token::new(&*self.random).0;
        if let Err(error) = self.aws.send_job(job.kind(), &job.id, &deduplication).await {
            tracing::warn!(job = %job.id, %error, "the message that gets a job going is left to the sweeper");
        }
    }

    /// Sends a job's message again.
    pub(crate) async fn wake_again(&self, job: &Job) -> Result<(), StoreError> {
        let deduplication = Token::new(&*self.random).0;
        self.aws.send_job(job.kind(), &job.id, &deduplication).await
    }

    /// All jobs that are not over, the oldest first.
    pub(crate) async fn all_unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        let places = self.aws.range(Range::of(keys::UNFINISHED)).await?;
        let mut all = Vec::new();
        for item in self.of_places(&places).await? {
            let job = read(&item)?;
            if !job.is_over() {
                let written_at = Millis(item.need_number("written_at")?);
                all.push(Unfinished { job, written_at });
            }
        }
        Ok(all)
    }
}

/// An item that goes when the job goes.
fn expiring(mut item: Item, job: &Job) -> Item {
    if let Some(until) = kept_until(job) {
        item.insert("expires_at".to_owned(), crate::item::expiry(until));
    }
    item
}

fn place(partition: String, job: &Job) -> Item {
    let mut item = key(partition, keys::job_place(job.created_at, Some(&job.id)));
    item.insert("job".to_owned(), s(job.id.as_str()));
    item.insert("workspace".to_owned(), s(job.workspace.as_str()));
    item
}

fn unfinished_key(job: &Job) -> Item {
    key(keys::UNFINISHED, keys::job_place(job.created_at, Some(&job.id)))
}

#[async_trait]
impl Jobs for DynamoJobs {
    async fn create(&self, job: &Job, audit: &AuditEntry) -> Result<Written, StoreError> {
        let token = Token::new(&*self.random);
        let mut actions = vec![
            Action::put(self.item(job, &token)?).when("attribute_not_exists(pk)"),
            Action::put(expiring(place(keys::jobs_of(&job.workspace), job), job)),
            audit::write(audit)?,
        ];
        if !job.is_over() {
            actions.push(Action::put(place(keys::UNFINISHED.to_owned(), job)));
        }
        let table = &self.aws.config.table;
        match self.aws.write_together(table, token.0.clone(), actions).await? {
            Committed::Done => {}
            Committed::Refused { .. } => return Ok(Written::Lost),
        }
        if !job.is_over() {
            self.wake(job).await;
        }
        Ok(Written::Done)
    }

    async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let item = self.aws.item(keys::job(id.as_str())).await?;
        let job = item.as_ref().map(read).transpose()?;
        Ok(job.filter(|job| self.is_kept(job)))
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<(Millis, &JobId)>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let mut before = after.map(|(at, id)| keys::job_place(at, Some(id)));
        let mut all = Vec::new();
        // what is over and gone has its place for some days still
        while all.len() < limit {
            let wanted = limit - all.len();
            let range = Range::of(keys::jobs_of(workspace)).backwards(before);
            let places = self.aws.range(range.limit(wanted)).await?;
            for item in self.of_places(&places).await? {
                let job = read(&item)?;
                if self.is_kept(&job) {
                    all.push(job);
                }
            }
            if places.len() < wanted {
                break;
            }
            let last = places.last().map(|place| place.need_text("sk")).transpose()?;
            before = last.map(str::to_owned);
        }
        Ok(all)
    }

    async fn update(&self, job: &Job, audit: Option<&AuditEntry>) -> Result<Written, StoreError> {
        let Some(before) = job.version.checked_sub(1) else {
            return Ok(Written::Lost);
        };
        let token = Token::new(&*self.random);
        let put = Action::put(self.item(job, &token)?)
            .when("version = :before")
            .value(":before", n(before));
        let table = &self.aws.config.table;
        let committed = if audit.is_none() && !job.is_over() {
            self.aws.write_one(table, put).await?
        } else {
            let mut actions = vec![put];
            if let Some(audit) = audit {
                actions.push(audit::write(audit)?);
            }
            if job.is_over() {
                let place = place(keys::jobs_of(&job.workspace), job);
                actions.push(Action::put(expiring(place, job)));
                actions.push(Action::delete(unfinished_key(job)));
            }
            self.aws.write_together(table, token.0.clone(), actions).await?
        };
        match committed {
            Committed::Done => {}
            // the try before this one wrote it
            Committed::Refused { checks, .. }
                if checks
                    .first()
                    .and_then(Check::item)
                    .and_then(|item| item.text("token"))
                    == Some(token.0.as_str()) => {}
            Committed::Refused { .. } => return Ok(Written::Lost),
        }
        // a write of the runner has no entry; one of an operator is a wish that the job shall see soon
        if audit.is_some() && !job.is_over() {
            self.wake(job).await;
        }
        Ok(Written::Done)
    }

    async fn unfinished(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<JobId>, StoreError> {
        let places = self.aws.range(Range::of(keys::UNFINISHED)).await?;
        places
            .iter()
            .filter(|place| workspace.is_none_or(|w| place.text("workspace") == Some(w.as_str())))
            .map(|place| place.need_parsed("job"))
            .collect()
    }
}
