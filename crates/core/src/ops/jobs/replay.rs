//! REPLAY: archived messages into one queue again.

use std::time::Duration;

use serde::Serialize;
use storybus_protocol::Violation;
use storybus_protocol::id::CorrelationId;

use crate::bus::Bus;
use crate::domain::job::{Job, Work};
use crate::domain::message::MAX_STORY_ID;
use crate::domain::refusal::Refusal;
use crate::domain::time::Millis;
use crate::ops::admin::{Actor, details, limits, refuse_faults};

/// The most entries of each list of a replay.
pub const MAX_SELECTED: usize = 100;

/// How much older than the archive a range may begin: `30 days ago` was a moment before the request came.
const GRACE: Duration = Duration::from_secs(60);

/// What an operator says of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReplayMembers {
    /// RFC 3339, inclusive; must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// RFC 3339, exclusive; must be given. In the future it means now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Exact types, `family.*` or `*`; empty or not given: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_types: Option<Vec<String>>,
    /// `payload.story_id`s; empty or not given: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story_ids: Option<Vec<String>>,
    /// Correlation ids; empty or not given: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_ids: Option<Vec<String>>,
}

impl ReplayMembers {
    /// Everything that is wrong with them, as far as no clock tells.
    #[must_use]
    pub fn faults(&self) -> Vec<Violation> {
        let mut faults = Vec::new();
        for (path, text) in [("/from", &self.from), ("/to", &self.to)] {
            match text {
                None => faults.push(limits::missing(path)),
                Some(text) if storybus_som::ceil_millis(text).is_none() => faults.push(limits::fault(
                    path,
                    "is not a time in RFC 3339, such as 2026-09-11T16:41:00Z",
                )),
                Some(_) => {}
            }
        }
        if let Some(types) = &self.message_types {
            limits::patterns(&mut faults, "/message_types", types, MAX_SELECTED);
        }
        if let Some(ids) = &self.story_ids {
            limits::list(
                &mut faults,
                "/story_ids",
                ids,
                MAX_SELECTED,
                |faults, path, id| {
                    if !(1..=MAX_STORY_ID).contains(&id.len()) {
                        faults.push(limits::fault(path, format!("must be 1 to {MAX_STORY_ID} bytes")));
                    }
                },
            );
        }
        if let Some(ids) = &self.correlation_ids {
            limits::list(
                &mut faults,
                "/correlation_ids",
                ids,
                MAX_SELECTED,
                |faults, path, id| {
                    if id.parse::<CorrelationId>().is_err() {
                        faults.push(limits::fault(path, "is not a correlation id: a UUID"));
                    }
                },
            );
        }
        faults
    }

    fn range(&self) -> Option<(Millis, Millis)> {
        let at = |text: &Option<String>| text.as_deref().and_then(storybus_som::ceil_millis).map(Millis);
        Some((at(&self.from)?, at(&self.to)?))
    }
}

impl Bus {
    /// Begins a replay of a time range to a consumer.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, also for a range that is upside down, begins in the future, or begins before the archive does;
    /// `404 tenant.not_found`, `404 consumer.not_found`, `429 rate.exceeded` when too many jobs are unfinished.
    pub async fn replay_start(
        &self,
        actor: &Actor,
        tenant: &str,
        consumer: &str,
        members: &ReplayMembers,
    ) -> Result<Job, Refusal> {
        refuse_faults(members.faults())?;
        let consumer = self.consumer_get(tenant, consumer).await?;
        let (from, to) = members.range().ok_or_else(Refusal::internal)?;
        let now = self.ports.clock.now();
        let retention = self.ports.archive.retention();
        if from >= to {
            return Err(Refusal::request_invalid("/from", "must be before `to`"));
        }
        if from > now {
            return Err(Refusal::request_invalid(
                "/from",
                format!(
                    "lies in the future: it is {} by the bus's clock",
                    now.to_rfc3339()
                ),
            ));
        }
        if from.until(now) > retention + GRACE {
            return Err(Refusal::request_invalid(
                "/from",
                format!(
                    "the archive reaches back {} days, to {}",
                    retention.as_secs() / 86_400,
                    now.minus(retention).to_rfc3339()
                ),
            ));
        }
        let work = Work::Replay {
            from,
            to: to.min(now),
            message_types: limits::parsed(members.message_types.as_deref().unwrap_or_default()),
            story_ids: members.story_ids.clone().unwrap_or_default(),
            correlation_ids: members
                .correlation_ids
                .iter()
                .flatten()
                .filter_map(|id| id.parse().ok())
                .collect(),
        };
        self.job_start(actor, &consumer, work, None, details(members), now)
            .await
    }
}
