//! Publication.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::Token;
use storybus_core::domain::time::Millis;
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{StoreError, Topic};

use crate::error::Failure;
use crate::ledger::RECORDED;
use crate::queues::{Arrival, enqueue};
use crate::rows::{self, Rows as _};
use crate::store::Inner;
use crate::writer::Tx;

/// How long a message id is not published again.
pub(crate) const DEDUPLICATION: Duration = Duration::from_secs(300);

/// [`Topic`] on SQLite: the message and its place in every queue are one transaction, which also checks the claim.
#[derive(Clone)]
pub struct SqliteTopic {
    inner: Arc<Inner>,
}

impl SqliteTopic {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl Topic for SqliteTopic {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        let publication = publication.clone();
        // What has not begun by then never does. What has begun ends: a transaction waits for nobody.
        let latest = self.inner.clock().now().plus(timeout);
        let published = self
            .inner
            .writer()
            .call(move |tx| publish(tx, &publication, latest))
            .await;
        match published {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) => Err(PublishError::Refused {
                reason: reason.to_owned(),
                retryable: false,
            }),
            Err(StoreError::Unavailable { reason }) => Err(PublishError::Refused {
                reason,
                retryable: true,
            }),
            Err(error @ StoreError::QueueGone { .. }) => Err(PublishError::Refused {
                reason: error.to_string(),
                retryable: true,
            }),
            Err(StoreError::Internal { reason }) => Err(PublishError::Refused {
                reason,
                retryable: false,
            }),
            Err(StoreError::Unknown { reason }) => Err(PublishError::Unknown { reason }),
        }
    }
}

/// Publishes, or says why not.
fn publish(
    tx: &mut Tx<'_>,
    publication: &Publication,
    latest: Millis,
) -> Result<Result<(), &'static str>, Failure> {
    let now = tx.now();
    let Some(routes) = tx.registry().routes(&publication.workspace) else {
        return Ok(Err("no such workspace"));
    };
    let workspace = tx.number(&publication.workspace)?;
    let record = tx.find(
        "SELECT id, state, attempt, expires_at, topic_at FROM record WHERE workspace = ?1 AND message_id = ?2",
        (workspace, publication.message_id.as_bytes()),
        |row| {
            Ok(Right {
                record: row.get(0)?,
                state: row.get(1)?,
                attempt: Token(row.get(2)?),
                expires_at: rows::millis(row, 3)?,
                topic_at: row.get::<_, Option<i64>>(4)?.map(Millis),
            })
        },
    )?;
    let claim = &publication.claim;
    let Some(right) = record.filter(|right| {
        right.state == RECORDED
            && right.attempt == claim.attempt
            && now < right.expires_at
            && now < claim.until
    }) else {
        return Ok(Err("the claim is lost or over"));
    };
    if now > latest {
        return Ok(Err("the publication came too late"));
    }
    if right.topic_at.is_some_and(|at| now < at.plus(DEDUPLICATION)) {
        return Ok(Ok(()));
    }
    let message = insert(tx, workspace, publication)?;
    for route in routes
        .iter()
        .filter(|route| route.filter.matches(&publication.attributes))
    {
        let arrival = Arrival {
            position: message,
            message,
            message_id: publication.message_id,
            group: &publication.correlation_id,
            redelivery: None,
        };
        enqueue(tx, route.queue, arrival)?;
    }
    tx.execute(
        "UPDATE record SET topic_at = ?2 WHERE id = ?1",
        [right.record, now.0],
    )?;
    Ok(Ok(()))
}

/// What a record says of the right to publish its message.
struct Right {
    record: i64,
    state: i64,
    attempt: Token,
    expires_at: Millis,
    topic_at: Option<Millis>,
}

fn insert(tx: &mut Tx<'_>, workspace: i64, publication: &Publication) -> Result<i64, Failure> {
    let (attributes, about) = (&publication.attributes, &publication.about);
    let seq = tx.next_position()?;
    tx.execute(
        "INSERT INTO message (seq, workspace, message_id, published_at, story, message_type, family, topic, correlation_id,
                              producer, system_id, som_version, body, story_id, sequence_number)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        (
            seq,
            workspace,
            publication.message_id.as_bytes(),
            tx.now().0,
            about.story,
            &attributes.message_type,
            &attributes.family,
            &attributes.topic,
            &attributes.correlation_id,
            attributes.producer_id.as_str(),
            &attributes.system_id,
            &attributes.som_version,
            publication.body.as_ref(),
            &about.story_id,
            &about.sequence_number,
        ),
    )?;
    Ok(seq)
}
