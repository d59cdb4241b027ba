//! Records and stories.
//!
//! Each method is one command of the writer: its conditions are checked and its rows written in one transaction, which
//! no other runs beside.

mod record;
mod story;

use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::record::{RecordKey, RecordState, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, Reading, Recorded, Removal, Supersession, Written,
};
use storybus_core::ports::{Ledger, StoreError};

use crate::error::Failure;
use crate::store::Inner;
use crate::writer::Tx;

pub(crate) use self::record::RECORDED;

/// [`Ledger`] on SQLite.
#[derive(Clone)]
pub struct SqliteLedger {
    inner: Arc<Inner>,
}

impl SqliteLedger {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    async fn write<C: Clone + Send + 'static>(
        &self,
        command: &C,
        mut run: impl FnMut(&mut Tx<'_>, &C) -> Result<Written, Failure> + Send + 'static,
    ) -> Result<Written, StoreError> {
        let command = command.clone();
        self.inner.writer().call(move |tx| run(tx, &command)).await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError> {
        let (key, story) = (key.clone(), story.cloned());
        self.inner
            .reader()
            .call(move |view| {
                let record = record::find(view, &key, now)?.map(|row| row.record);
                let story = story.map(|key| story::find(view, &key)).transpose()?.flatten();
                let head = match &story {
                    Some(found) if found.story.head != key.message_id => {
                        let head = RecordKey {
                            message_id: found.story.head,
                            ..key
                        };
                        record::find(view, &head, now)?.map(|row| row.record)
                    }
                    _ => None,
                };
                Ok(Reading {
                    record,
                    story: story.map(|found| found.story),
                    head,
                })
            })
            .await
    }

    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError> {
        // encoded here, not in the thread that all writes share
        let state = new
            .story
            .as_ref()
            .map(|moved| story::encode(&moved.state))
            .transpose();
        let state = state.map_err(|failure| StoreError::from(&failure))?;
        let new = new.clone();
        self.inner
            .writer()
            .call(move |tx| record(tx, &new, state.as_deref()))
            .await
    }

    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError> {
        self.write(claim, claim_record).await
    }

    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError> {
        self.write(supersession, supersede).await
    }

    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError> {
        self.write(removal, remove).await
    }

    async fn give_back(&self, give_back: &GiveBack) -> Result<Written, StoreError> {
        self.write(give_back, undo_claim).await
    }

    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError> {
        self.write(marking, mark).await
    }
}

fn record(tx: &mut Tx<'_>, new: &NewRecord, state: Option<&[u8]>) -> Result<Recorded, Failure> {
    let found = record::find_any(tx, &new.key)?;
    if let Some(known) = found.as_ref().filter(|row| row.is_live(new.now)) {
        return Ok(if known.record.attempt == new.record.attempt {
            Recorded::Done
        } else {
            Recorded::Known(known.record.clone())
        });
    }
    if let (Some(moved), Some(state)) = (&new.story, state) {
        let current = story::find_version(tx, &moved.key)?;
        if current.as_ref().map(|row| row.version) != moved.read.map(|(version, _)| version) {
            return Ok(Recorded::StoryMoved);
        }
        if let Some(current) = &current
            && current.head != new.key.message_id
        {
            let head = RecordKey {
                message_id: current.head,
                ..new.key.clone()
            };
            let head = record::find(tx, &head, new.now)?;
            if head.is_some_and(|row| row.record.in_flight(new.now, new.window)) {
                return Ok(Recorded::StoryMoved);
            }
        }
        let head = new.key.message_id;
        match current {
            Some(row) => {
                story::update(tx, row.id, Some(&moved.story_id), head, moved.version, state)?;
            }
            None => story::insert(tx, moved, head, new.now, state)?,
        }
    }
    let topic_at = found.as_ref().and_then(|expired| expired.topic_at);
    if let Some(expired) = found {
        record::delete(tx, expired.id)?;
    }
    record::insert(tx, &new.key, &new.record, topic_at)?;
    Ok(Recorded::Done)
}

fn claim_record(tx: &mut Tx<'_>, claim: &NewClaim) -> Result<Written, Failure> {
    let Some(row) = record::find(tx, &claim.key, claim.now)? else {
        return Ok(Written::Lost);
    };
    if row.record.attempt == claim.attempt {
        return Ok(Written::Done);
    }
    if !row.is_held_by(claim.read) || !story::all_are(tx, claim.story.iter())? {
        return Ok(Written::Lost);
    }
    tx.execute(
        "UPDATE record SET recorded_at = ?2, attempt = ?3, expires_at = ?4 WHERE id = ?1",
        (row.id, claim.now.0, claim.attempt.0, claim.expires_at.0),
    )?;
    Ok(Written::Done)
}

fn supersede(tx: &mut Tx<'_>, supersession: &Supersession) -> Result<Written, Failure> {
    let Some(row) = record::find(tx, &supersession.key, supersession.now)? else {
        return Ok(Written::Lost);
    };
    if row.record.attempt != supersession.read {
        return Ok(Written::Lost);
    }
    match row.record.state {
        RecordState::Superseded => Ok(Written::Done),
        RecordState::Published => Ok(Written::Lost),
        RecordState::Recorded => {
            let (story, version) = &supersession.story;
            let Some(story) = story::find_version(tx, story)?.filter(|row| row.version == *version) else {
                return Ok(Written::Lost);
            };
            tx.execute("UPDATE record SET state = 2 WHERE id = ?1", [row.id])?;
            story::renew(tx, story.id, supersession.version)?;
            Ok(Written::Done)
        }
    }
}

fn remove(tx: &mut Tx<'_>, removal: &Removal) -> Result<Written, Failure> {
    // the caller may have been paused since it looked at its clock
    let now = removal.now.max(tx.now());
    let Some(row) = record::find(tx, &removal.key, now)? else {
        return Ok(Written::Lost);
    };
    if row.record.attempt != removal.attempt || !row.record.in_flight(now, removal.window) {
        return Ok(Written::Lost);
    }
    if let Some(back) = &removal.story {
        let Some(current) = story::find_version(tx, &back.key)?.filter(|row| row.version == back.version)
        else {
            return Ok(Written::Lost);
        };
        match &back.story {
            Some(was) => {
                let state = story::encode(&was.state)?;
                story::update(tx, current.id, None, was.head, was.version, &state)?;
            }
            None => story::delete(tx, current.id)?,
        }
    }
    record::remove(tx, &row)?;
    Ok(Written::Done)
}

fn undo_claim(tx: &mut Tx<'_>, give_back: &GiveBack) -> Result<Written, Failure> {
    let Some(row) = record::find(tx, &give_back.key, give_back.now)? else {
        return Ok(Written::Lost);
    };
    if row.record.attempt == give_back.new_attempt {
        return Ok(Written::Done);
    }
    if !row.is_held_by(give_back.attempt) {
        return Ok(Written::Lost);
    }
    tx.execute(
        "UPDATE record SET recorded_at = ?2, attempt = ?3 WHERE id = ?1",
        (row.id, give_back.recorded_at.0, give_back.new_attempt.0),
    )?;
    Ok(Written::Done)
}

fn mark(tx: &mut Tx<'_>, marking: &Marking) -> Result<Written, Failure> {
    let Some(row) = record::find(tx, &marking.key, marking.now)? else {
        return Ok(Written::Lost);
    };
    if row.record.attempt != marking.attempt {
        return Ok(Written::Lost);
    }
    tx.execute(
        "UPDATE record SET state = 1, published_at = ?2, expires_at = ?3 WHERE id = ?1",
        (row.id, marking.now.0, marking.expires_at.0),
    )?;
    Ok(Written::Done)
}
