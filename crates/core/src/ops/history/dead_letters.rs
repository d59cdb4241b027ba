//! A look at the dead letters of a consumer.

use crate::bus::Bus;
use crate::domain::archived::Position;
use crate::domain::dead_letter::DeadLetter;
use crate::domain::delivery::QueueKey;
use crate::domain::refusal::Refusal;
use crate::ops::admin::not_a_place;
use crate::ops::refused_by_store;
use crate::ports::dead_letters::DeadLetterLimits;

/// Bytes of bodies in one page, unless one dead letter alone has more.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Some dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterPage {
    /// In the order of their arrival in the queue.
    pub letters: Vec<DeadLetter>,
    /// Give it back as `after` to read on; `None` when there is no more.
    pub next: Option<String>,
}

impl Bus {
    /// Looks at up to `max` dead letters of a consumer, behind the place `after`, without taking them.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 consumer.not_found`; `400 request.invalid` at `/after`.
    pub async fn dead_letter_list(
        &self,
        tenant: &str,
        consumer: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<DeadLetterPage, Refusal> {
        let connection = self.consumer_get(tenant, consumer).await?;
        let after = after.map(|text| Position(text.to_owned()));
        if after
            .as_ref()
            .is_some_and(|p| !self.ports.dead_letters.is_position(p))
        {
            return Err(not_a_place());
        }
        let queue = QueueKey {
            workspace: connection.workspace.ok_or_else(Refusal::internal)?,
            consumer: connection.id,
        };
        let limits = DeadLetterLimits {
            letters: max,
            bytes: PAGE_BYTES,
        };
        let listed = self.ports.dead_letters.list(&queue, after.as_ref(), limits).await;
        let (letters, more) = listed.map_err(|e| refused_by_store("dead_letter_list", &e))?;
        let next = letters
            .last()
            .filter(|_| more)
            .map(|letter| letter.position.0.clone());
        Ok(DeadLetterPage { letters, next })
    }
}
