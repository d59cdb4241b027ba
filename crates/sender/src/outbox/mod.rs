//! The outbox: the table `sender_log` in the producer's own database.
//!
//! A producer calls [`enqueue`] with its own connection, inside the transaction of its own business write. An [`Outbox`] is the other
//! side: it makes the table, hands messages to [relays](crate::relay), and is what operators look into.
//!
//! States are drawn in [`State`]: a message is pending until it is delivered, refused or parked; what is parked goes back to pending when an
//! operator resends it, or is refused when one drops it; delivered and refused are final. Every write of a state takes the relays' lock and
//! names the claim it belongs to, so that whoever lost its lease changes nothing.
//!
//! A program in any language can enqueue too, by a plain `INSERT`: the comments in `migrations/` say how.

mod conn;
mod enqueue;
mod entry;
mod error;
mod lock;
mod migrate;
#[cfg(test)]
mod model;
mod operator;
mod place;
#[cfg(test)]
mod plans;
mod state;
pub(crate) mod step;
pub(crate) mod write;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

pub use conn::Conn;
pub use enqueue::{Enqueued, enqueue};
pub use entry::{Confirmed, Count, Entry, Filter, LastAnswer, Stats};
pub use error::{EnqueueError, OperatorError, OutboxError, Trouble};
pub use migrate::{Database, Migrated, schema};
pub(crate) use place::Own;
pub use state::State;

use crate::message::{Key, Message, Target};
use place::Place;

/// How long a bus remembers a key: what may have arrived longer ago is resent only with an operator's confirmation, and nothing that is final is
/// purged earlier.
pub const MEMORY: Duration = Duration::from_secs(7 * 24 * 3600);

/// No lease ends further ahead than this, and no pause of a relay's either, unless its policy has longer ones. What is due later was written before the
/// database's clock was set back, and counts as due.
pub(crate) const FAR: Duration = Duration::from_secs(3600);

/// An outbox, from the relays' and the operators' side. Clones are the same outbox.
///
/// It holds one connection to the database for everything but relaying; a relay holds another. Connections are made when they are needed, and made
/// anew after a failure.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    place: Place,
    desk: Mutex<Option<Own>>,
    woken: Notify,
    offset: AtomicI64,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outbox").field(&self.0.place).finish()
    }
}

/// Runs a piece of work on the desk's connection, and keeps that only if it went well.
macro_rules! at_desk {
    ($self:expr, $conn:ident => $work:expr) => {{
        let mut desk = $self.0.desk.lock().await;
        let mut own = match desk.take() {
            Some(own) => own,
            None => $self.0.place.connect().await?,
        };
        let $conn = own.conn();
        let result = $work.await;
        if result.is_ok() {
            *desk = Some(own);
        }
        result
    }};
}

impl Outbox {
    /// An outbox at `postgres://USER@HOST/DATABASE`, at `sqlite:PATH`, or at a bare path, which is one on SQLite. Nothing is opened yet.
    pub fn open(address: &str) -> Result<Self, OutboxError> {
        Ok(Self(Arc::new(Inner {
            place: Place::parse(address)?,
            desk: Mutex::new(None),
            woken: Notify::new(),
            offset: AtomicI64::new(0),
        })))
    }

    /// Where it lies, for people: without the password.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{:?}", self.0.place)
    }

    /// The file of an outbox on SQLite.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.0.place {
            Place::Sqlite(options) => Some(options.get_filename()),
            Place::Postgres(_) => None,
        }
    }

    /// Makes the table, or brings it up to date. Does nothing where it is; several programs may call it at the same moment. On SQLite it makes the file too, and
    /// sets it to write-ahead logging when it makes the table.
    pub async fn migrate(&self) -> Result<Migrated, OutboxError> {
        at_desk!(self, conn => migrate::migrate(conn))
    }

    /// Looks whether a relay can work here: the table is there, and this program may read and write it. Changes nothing.
    pub async fn probe(&self) -> Result<(), OutboxError> {
        at_desk!(self, conn => operator::probe(conn))
    }

    /// Enqueues in a transaction of its own, for callers that have no business write to go with it. Wakes the relays of this process.
    pub async fn enqueue(&self, message: &Message) -> Result<Enqueued, EnqueueError> {
        let enqueued = at_desk!(self, conn => enqueue(conn, message))?;
        self.wake();
        Ok(enqueued)
    }

    /// Enqueues all of them in one transaction, in their order, or none. An error comes with the place of the message that it is about.
    pub async fn enqueue_together(
        &self,
        messages: &[Message],
    ) -> Result<Vec<Enqueued>, (usize, EnqueueError)> {
        let mut desk = self.0.desk.lock().await;
        let mut own = match desk.take() {
            Some(own) => own,
            None => self.0.place.connect().await.map_err(|error| (0, error.into()))?,
        };
        // A connection on which this fails is dropped, and with it what it has written.
        let enqueued = enqueue::together(own.conn(), messages).await?;
        *desk = Some(own);
        drop(desk);
        self.wake();
        Ok(enqueued)
    }

    /// Lets the relays of this process look at once, instead of at their next poll: call it after a commit.
    pub fn wake(&self) {
        self.0.woken.notify_one();
    }

    /// At most `limit` (1–1,000) messages, oldest first unless the filter says otherwise. The last one's number continues the list.
    pub async fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Entry>, OutboxError> {
        at_desk!(self, conn => operator::list(conn, filter, limit, self.offset()))
    }

    /// One message.
    pub async fn show(&self, target: &Target, key: &Key) -> Result<Entry, OperatorError> {
        at_desk!(self, conn => operator::show(conn, target, key, self.offset()))
    }

    /// One message's exact bytes.
    pub async fn payload(&self, target: &Target, key: &Key) -> Result<Vec<u8>, OperatorError> {
        at_desk!(self, conn => operator::payload(conn, target, key))
    }

    /// Makes a parked message pending again: due at once, before all later ones of its group, with all its rounds before it and the same bytes and key.
    /// One that is pending and that no relay is sending is made due at once, and goes on in its round.
    ///
    /// What may have arrived longer ago than the partner remembers is resent only with the confirmation: it may be taken a second time.
    pub async fn resend(
        &self,
        target: &Target,
        key: &Key,
        confirmed: Option<Confirmed>,
    ) -> Result<(), OperatorError> {
        at_desk!(self, conn => operator::resend(conn, target, key, confirmed, self.offset()))?;
        self.wake();
        Ok(())
    }

    /// Refuses a message in the operator's name: a parked one, or a pending one that no relay is sending. Its key stays known, and its group goes on.
    pub async fn drop(&self, target: &Target, key: &Key) -> Result<(), OperatorError> {
        at_desk!(self, conn => operator::drop(conn, target, key, self.offset()))?;
        self.wake();
        Ok(())
    }

    /// How the outbox stands. It counts every row, so ask every few seconds rather than for every message.
    pub async fn stats(&self) -> Result<Stats, OutboxError> {
        at_desk!(self, conn => operator::stats(conn, self.offset()))
    }

    /// Deletes what has been delivered or refused for longer than `older`, and at least for [`MEMORY`]: until then a key that comes again is recognised.
    /// It goes in short transactions. How many were deleted.
    pub async fn purge(&self, older: Duration) -> Result<u64, OutboxError> {
        let older = older.max(MEMORY);
        let mut purged = 0;
        for state in [State::Delivered, State::Refused] {
            loop {
                let now = at_desk!(self, conn => operator::purge(conn, state, older, self.offset()))?;
                purged += now;
                if now < operator::purged_at_once() {
                    break;
                }
            }
        }
        Ok(purged)
    }

    /// Ends the connection in good order.
    pub async fn close(&self) {
        if let Some(own) = self.0.desk.lock().await.take() {
            own.close().await;
        }
    }

    /// Moves the outbox's time forward, for tests: what it reads from the database's clock is so much later.
    #[doc(hidden)]
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.offset.fetch_add(by, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn offset(&self) -> i64 {
        self.0.offset.load(Ordering::SeqCst)
    }

    /// Comes back when somebody has woken the relays.
    pub(crate) async fn woken(&self) {
        self.0.woken.notified().await;
    }

    /// A connection for a relay.
    pub(crate) async fn connect(&self) -> Result<Own, OutboxError> {
        let mut own = self.0.place.connect().await?;
        migrate::suits(&mut own.conn()).await?;
        Ok(own)
    }
}
