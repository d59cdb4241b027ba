//! Plays the function `archive`: what the topics have sent is archived before anybody looks there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::MessageSystemAttributeName as System;
use futures::future::join_all;
use storybus_aws::{Archiver, Arrived, Config, DynamoArchive};
use storybus_core::domain::archived::{Head, Part, Position, Selection, TimeRange};
use storybus_core::ports::archive::PartLimits;
use storybus_core::ports::{Archive, StoreError};
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

/// The way from the archive's queue into the table.
pub(crate) struct Filing {
    sqs: Client,
    url: String,
    archiver: Archiver,
    /// One at a time, as the queue is empty only when the last has stored what it took.
    busy: tokio::sync::Mutex<()>,
}

impl Filing {
    pub(crate) fn new(shared: &SdkConfig, config: &Config, archiver: Archiver) -> Self {
        Self {
            sqs: Client::new(shared),
            url: config.queue_url(&config.archive_queue_name()),
            archiver,
            busy: tokio::sync::Mutex::default(),
        }
    }

    /// Archives all that is there. What is a group's next comes when the one before is deleted: so until nothing comes.
    pub(crate) async fn all(&self) {
        let _busy = self.busy.lock().await;
        loop {
            let receive = self.sqs.receive_message().queue_url(&self.url);
            let receive = receive
                .max_number_of_messages(10)
                .message_system_attribute_names(System::All)
                .message_attribute_names("All");
            let messages = receive.send().await.unwrap().messages.unwrap_or_default();
            if messages.is_empty() {
                return;
            }
            let batch: Vec<Arrived> = messages
                .into_iter()
                .map(|m| Arrived::try_from(m).unwrap())
                .collect();
            assert_eq!(self.archiver.archive(&batch).await, Vec::<String>::new());
            join_all(batch.into_iter().map(async |message| {
                let delete = self.sqs.delete_message().queue_url(&self.url);
                let handle = message.receipt_handle.unwrap();
                delete.receipt_handle(handle).send().await.unwrap();
            }))
            .await;
        }
    }
}

/// The archive behind it.
pub(crate) struct Filed {
    pub(crate) archive: Arc<DynamoArchive>,
    pub(crate) filing: Arc<Filing>,
}

impl Filed {
    async fn archive(&self) -> &DynamoArchive {
        self.filing.all().await;
        &self.archive
    }
}

#[async_trait]
impl Archive for Filed {
    fn retention(&self) -> Duration {
        self.archive.retention()
    }

    async fn read(
        &self,
        workspace: &WorkspaceId,
        range: TimeRange,
        after: Option<&Position>,
        selection: &Selection,
        limits: PartLimits,
    ) -> Result<Part, StoreError> {
        let archive = self.archive().await;
        archive.read(workspace, range, after, selection, limits).await
    }

    async fn find(&self, workspace: &WorkspaceId, message_id: MessageId) -> Result<Vec<Head>, StoreError> {
        self.archive().await.find(workspace, message_id).await
    }

    async fn about(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let archive = self.archive().await;
        archive.about(workspace, story, correlation, after, limit).await
    }

    async fn latest(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        self.archive().await.latest(workspace, before, limit).await
    }

    fn is_position(&self, position: &Position) -> bool {
        self.archive.is_position(position)
    }
}
