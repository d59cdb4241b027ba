//! The log of refusals, with what CloudWatch and the function behind it do.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use storybus_aws::DynamoActivity;
use storybus_aws::activity::{LogEvents, TARGET};
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::ports::{ActivityLog, StoreError};
use storybus_protocol::id::WorkspaceId;

/// The most lines that wait; what comes above is lost, as a log under a flood may lose some.
const MOST_WAITING: usize = 3_000;
/// How many lines are handed on at once.
const AT_ONCE: usize = 500;

/// A log whose lines are handed on when it is settled.
pub(crate) struct Followed {
    inner: DynamoActivity,
    waiting: Mutex<Vec<serde_json::Value>>,
    next: Mutex<u64>,
}

impl Followed {
    pub(crate) fn new(inner: DynamoActivity) -> Self {
        Self {
            inner,
            waiting: Mutex::default(),
            next: Mutex::default(),
        }
    }

    /// Hands all lines on, each twice, as CloudWatch may.
    pub(crate) async fn settle(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for events in waiting.chunks(AT_ONCE) {
            let payload = json!({ "messageType": "DATA_MESSAGE", "logEvents": events }).to_string();
            let noted = LogEvents::parse(payload.as_bytes()).unwrap().refusals();
            assert_eq!(noted.len(), events.len());
            self.inner.store(&noted).await.unwrap();
            if events.len() < AT_ONCE {
                self.inner.store(&noted).await.unwrap();
            }
        }
    }
}

#[async_trait]
impl ActivityLog for Followed {
    fn note(&self, refusal: RefusedPublish) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST_WAITING {
            return;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        let refused = serde_json::to_string(&refusal).unwrap();
        let line = json!({ "target": TARGET, "fields": { "message": "refused", "refused": refused } });
        waiting.push(json!({ "id": next.to_string(), "timestamp": 1, "message": line.to_string() }));
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        self.inner.list(workspace, before, limit).await
    }

    fn is_position(&self, position: &Position) -> bool {
        self.inner.is_position(position)
    }
}
