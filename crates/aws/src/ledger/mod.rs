//! Records and stories.
//!
//! RECORD, CLAIM, REMOVE, GIVE BACK and MARK of an event are one conditional write of one item; where a story takes part, they are
//! one transaction. Each decides by the items that its conditions failed on, so that our own repetition never looks like a rival.

mod record;
pub(crate) mod story;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::types::{Get, TransactGetItem};
use storybus_core::domain::record::{RecordKey, RecordState, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, Reading, Recorded, Removal, Supersession, Written,
};
use storybus_core::ports::{Ledger, StoreError};

use crate::Aws;
use crate::item::{Item, unreadable};
use crate::keys;
use crate::writes::{Action, Check, Committed, client_token, of_reasons};

/// [`Ledger`] on DynamoDB.
#[derive(Clone)]
pub struct DynamoLedger {
    aws: Aws,
    /// How many stories have begun in the millisecond in which the last one did.
    begun: Arc<Mutex<(Millis, u32)>>,
}

impl Aws {
    /// Records and stories.
    #[must_use]
    pub fn ledger(&self) -> DynamoLedger {
        DynamoLedger {
            aws: self.clone(),
            begun: Arc::default(),
        }
    }
}

impl DynamoLedger {
    fn table(&self) -> &str {
        &self.aws.config.table
    }

    async fn write_one(&self, action: Action) -> Result<Committed, StoreError> {
        self.aws.write_one(self.table(), action).await
    }

    /// One transaction. The parts name it: its kind and every token in it, which are never used twice.
    async fn write_together(&self, parts: &[&[u8]], actions: Vec<Action>) -> Result<Committed, StoreError> {
        let token = client_token(self.table(), parts);
        self.aws.write_together(self.table(), token, actions).await
    }

    /// An item as it stands now.
    async fn get(&self, key: Item) -> Result<Option<Item>, StoreError> {
        self.aws
            .caller
            .read(|| async {
                let request = self
                    .aws
                    .dynamodb
                    .get_item()
                    .table_name(self.table())
                    .set_key(Some(key.clone()))
                    .consistent_read(true);
                Ok(request.send().await?.item)
            })
            .await
    }

    /// Two items as they stand together at one instant.
    async fn get_both(&self, one: Item, other: Item) -> Result<[Option<Item>; 2], StoreError> {
        let gets = [one, other]
            .into_iter()
            .map(|key| {
                let get = Get::builder().table_name(self.table()).set_key(Some(key)).build();
                get.map(|get| TransactGetItem::builder().get(get).build())
                    .map_err(unreadable)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let found = self
            .aws
            .caller
            .read(|| async {
                let request = self
                    .aws
                    .dynamodb
                    .transact_get_items()
                    .set_transact_items(Some(gets.clone()));
                match request.send().await {
                    Ok(found) => Ok(found.responses.unwrap_or_default()),
                    Err(error) => Err(match error.as_service_error() {
                        Some(TransactGetItemsError::TransactionCanceledException(cancelled)) => {
                            of_reasons(cancelled.cancellation_reasons())
                        }
                        _ => error.into(),
                    }),
                }
            })
            .await?;
        let items = found.into_iter().map(|response| response.item);
        let items: Vec<Option<HashMap<_, _>>> = items.collect();
        items
            .try_into()
            .map_err(|_| unreadable("a transaction of two reads did not give two"))
    }

    /// Which of the stories begun in this millisecond one is: those that one process begins have an order even then.
    fn place(&self, begun_at: Millis) -> u32 {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun = if begun.0 == begun_at {
            (begun_at, (begun.1 + 1).min(keys::LAST_PLACE))
        } else {
            (begun_at, 0)
        };
        begun.1
    }
}

#[async_trait]
impl Ledger for DynamoLedger {
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError> {
        let Some(story) = story else {
            let item = self.get(keys::record(key)).await?;
            return Ok(Reading {
                record: record::live(item.as_ref(), now)?,
                ..Reading::default()
            });
        };
        let [record, story] = self.get_both(keys::record(key), keys::story(story)).await?;
        let record = record::live(record.as_ref(), now)?;
        let story = story.as_ref().map(story::read).transpose()?;
        let decided = record
            .as_ref()
            .is_some_and(|record| record.state != RecordState::Recorded);
        let head = match &story {
            // a message that is known published decides alone: one request for a duplicate
            Some(story) if story.head != key.message_id && !decided => {
                let head = RecordKey {
                    message_id: story.head,
                    ..key.clone()
                };
                let item = self.get(keys::record(&head)).await?;
                record::live(item.as_ref(), now)?
            }
            _ => None,
        };
        Ok(Reading { record, story, head })
    }

    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError> {
        let record = record::put(&new.key, &new.record, new.now);
        let committed = match &new.story {
            None => self.write_one(record).await?,
            Some(moved) => {
                let place = match moved.read {
                    Some(_) => 0,
                    None => self.place(new.now),
                };
                let mut actions = vec![record, story::moved(moved, new.key.message_id, new.now, place)?];
                // one item twice in a transaction is an error: the record itself is asked above
                if let Some((_, head)) = moved.read.filter(|(_, head)| *head != new.key.message_id) {
                    let head = RecordKey {
                        message_id: head,
                        ..new.key.clone()
                    };
                    actions.push(record::unblocked(&head, new.now, new.window));
                }
                let number = place.to_be_bytes();
                let parts: [&[u8]; 4] = [b"RECORD", &new.record.attempt.0, &moved.version.0, &number];
                self.write_together(&parts, actions).await?
            }
        };
        let Committed::Refused { checks, .. } = committed else {
            return Ok(Recorded::Done);
        };
        if let Some(known) = record::live(checks.first().and_then(Check::item), new.now)? {
            return Ok(if known.attempt == new.record.attempt {
                Recorded::Done
            } else {
                Recorded::Known(known)
            });
        }
        let own = new.story.as_ref().is_some_and(|moved| {
            let story = checks.get(1).and_then(Check::item);
            story.is_some_and(|item| story::is_version(item, moved.version))
        });
        Ok(if own { Recorded::Done } else { Recorded::StoryMoved })
    }

    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError> {
        let record = record::claim(claim);
        let committed = match &claim.story {
            None => self.write_one(record).await?,
            Some((story, version)) => {
                let parts: [&[u8]; 4] = [b"CLAIM", &claim.attempt.0, &claim.read.0, &version.0];
                let actions = vec![record, story::unchanged(story, *version)];
                self.write_together(&parts, actions).await?
            }
        };
        written(&committed, |record| {
            Ok(record::live(record, claim.now)?.is_some_and(|record| record.attempt == claim.attempt))
        })
    }

    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError> {
        let (story, read) = &supersession.story;
        let now = supersession.now.0.to_be_bytes();
        let name = keys::record_name(&supersession.key);
        let parts: [&[u8]; 6] = [
            b"SUPERSEDE",
            name.as_bytes(),
            &supersession.read.0,
            &read.0,
            &supersession.version.0,
            &now,
        ];
        let actions = vec![
            record::supersede(supersession),
            story::renew(story, *read, supersession.version),
        ];
        let committed = self.write_together(&parts, actions).await?;
        written(&committed, |record| {
            Ok(record::live(record, supersession.now)?.is_some_and(|record| {
                record.attempt == supersession.read && record.state == RecordState::Superseded
            }))
        })
    }

    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError> {
        let record = record::remove(removal);
        let committed = match &removal.story {
            None => self.write_one(record).await?,
            Some(back) => {
                let now = removal.now.0.to_be_bytes();
                let put_back = back.story.as_ref().map_or([0; 16], |story| story.version.0);
                let name = keys::record_name(&removal.key);
                let parts: [&[u8]; 6] = [
                    b"REMOVE",
                    name.as_bytes(),
                    &removal.attempt.0,
                    &back.version.0,
                    &put_back,
                    &now,
                ];
                self.write_together(&parts, vec![record, story::put_back(back)?])
                    .await?
            }
        };
        Ok(match committed {
            Committed::Done => Written::Done,
            // Nobody else removes what this attempt holds: an earlier try of ours did, and its answer was lost.
            Committed::Refused {
                checks,
                earlier: true,
            } if checks.first() == Some(&Check::Failed(None)) => Written::Done,
            Committed::Refused { .. } => Written::Lost,
        })
    }

    async fn give_back(&self, give_back: &GiveBack) -> Result<Written, StoreError> {
        let committed = self.write_one(record::give_back(give_back)).await?;
        written(&committed, |record| {
            let record = record::live(record, give_back.now)?;
            Ok(record.is_some_and(|record| record.attempt == give_back.new_attempt))
        })
    }

    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError> {
        // again it finds the same attempt, and does the same
        let committed = self.write_one(record::mark(marking)).await?;
        written(&committed, |_| Ok(false))
    }
}

/// Done, or lost; a failed condition is ours if the record that it failed on says so.
fn written(
    committed: &Committed,
    is_ours: impl FnOnce(Option<&Item>) -> Result<bool, StoreError>,
) -> Result<Written, StoreError> {
    let done = match committed {
        Committed::Done => true,
        Committed::Refused { checks, .. } => is_ours(checks.first().and_then(Check::item))?,
    };
    Ok(if done { Written::Done } else { Written::Lost })
}
