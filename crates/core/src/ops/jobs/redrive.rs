//! REDRIVE: dead letters back into the queue.

use std::collections::BTreeSet;

use serde::Serialize;
use storybus_protocol::Violation;
use storybus_protocol::id::MessageId;

use crate::bus::Bus;
use crate::domain::delivery::QueueKey;
use crate::domain::job::{Job, Work};
use crate::domain::refusal::Refusal;
use crate::ops::admin::{Actor, details, limits, refuse_faults};
use crate::ops::refused_by_store;

/// The most chosen messages of a redrive.
pub const MAX_MESSAGE_IDS: usize = 1000;

/// What an operator says of a redrive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RedriveMembers {
    /// The dead letters of these messages, 1–1,000; all when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_ids: Option<Vec<String>>,
}

impl RedriveMembers {
    /// Everything that is wrong with them.
    #[must_use]
    pub fn faults(&self) -> Vec<Violation> {
        let mut faults = Vec::new();
        if let Some(ids) = &self.message_ids {
            if ids.is_empty() {
                faults.push(limits::fault(
                    "/message_ids",
                    "is empty; leave it out to redrive all dead letters",
                ));
            }
            if ids.len() > MAX_MESSAGE_IDS {
                faults.push(limits::fault(
                    "/message_ids",
                    format!("must have at most {MAX_MESSAGE_IDS} entries"),
                ));
                return faults;
            }
            // one that stands twice is no fault: a message can be a dead letter more than once
            for (n, id) in ids.iter().enumerate() {
                if id.parse::<MessageId>().is_err() {
                    faults.push(limits::fault(
                        format!("/message_ids/{n}"),
                        "is not a message id: a UUID",
                    ));
                }
            }
        }
        faults
    }
}

impl Bus {
    /// Begins a redrive of a consumer's dead letters.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`, `404 consumer.not_found`, `429 rate.exceeded` when too many jobs are
    /// unfinished.
    pub async fn redrive_start(
        &self,
        actor: &Actor,
        tenant: &str,
        consumer: &str,
        members: &RedriveMembers,
    ) -> Result<Job, Refusal> {
        refuse_faults(members.faults())?;
        let consumer = self.consumer_get(tenant, consumer).await?;
        let chosen: Option<BTreeSet<MessageId>> = members
            .message_ids
            .as_ref()
            .map(|ids| ids.iter().filter_map(|id| id.parse().ok()).collect());
        let total = match &chosen {
            Some(chosen) => u64::try_from(chosen.len()).unwrap_or(u64::MAX),
            None => {
                let queue = QueueKey {
                    workspace: consumer.workspace.clone().ok_or_else(Refusal::internal)?,
                    consumer: consumer.id.clone(),
                };
                let counts = self.ports.queues.counts(&queue).await;
                counts
                    .map_err(|e| refused_by_store("redrive_start", &e))?
                    .dead_lettered
            }
        };
        let work = Work::Redrive {
            message_ids: chosen.map(|ids| ids.into_iter().collect()),
        };
        let now = self.ports.clock.now();
        self.job_start(actor, &consumer, work, Some(total), details(members), now)
            .await
    }
}
