//! The memory of answers that wait to be taken by their clients.
//!
//! A receive's answer may have 2.4 MB, and a client that asks and never reads makes the bus keep it. So large answers
//! share a budget. One that does not fit closes the connections whose clients have taken nothing for longest: they lose
//! nothing, since what they were given comes again, by the same `attempt` or when its visibility ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::watch::Watch;

/// How long a client must have taken nothing before it is closed for another's sake.
const STALLED: Duration = Duration::from_secs(1);

/// The memory that large answers share.
pub(super) struct AnswerRoom {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    bytes: usize,
    next: u64,
    shares: HashMap<u64, (usize, Arc<Watch>)>,
}

impl Taken {
    fn give_back(&mut self, number: u64) -> Option<Arc<Watch>> {
        let (bytes, watch) = self.shares.remove(&number)?;
        self.bytes -= bytes;
        Some(watch)
    }

    /// The share of the connection that has been stalled longest.
    fn most_stalled(&self) -> Option<u64> {
        let now = Instant::now();
        let stalled = self.shares.iter().filter_map(|(number, (_, watch))| {
            let since = watch.stalled_since()?;
            (now >= since + STALLED).then_some((since, *number))
        });
        stalled.min().map(|(_, number)| number)
    }
}

/// An answer's share, until it is dropped.
pub(super) struct Share {
    room: Arc<AnswerRoom>,
    number: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        // Gone already when its connection was closed for another's sake.
        drop(self.room.taken().give_back(self.number));
    }
}

impl AnswerRoom {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: Mutex::default(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A share for an answer to the client of `watch`; `close` closes connections that have to give way. `None` when there
    /// is no room and nobody is stalled.
    pub(super) fn take(
        self: &Arc<Self>,
        bytes: usize,
        watch: &Arc<Watch>,
        mut close: impl FnMut(&Arc<Watch>),
    ) -> Option<Share> {
        let mut taken = self.taken();
        while taken.bytes.saturating_add(bytes) > self.limit {
            let number = taken.most_stalled()?;
            if let Some(stalled) = taken.give_back(number) {
                close(&stalled);
            }
        }
        taken.next += 1;
        taken.bytes += bytes;
        let number = taken.next;
        taken.shares.insert(number, (bytes, watch.clone()));
        Some(Share {
            room: self.clone(),
            number,
        })
    }
}

/// An answer that keeps something until the last of it is written.
struct Keeping<K> {
    answer: Bytes,
    _kept: K,
}

impl<K> AsRef<[u8]> for Keeping<K> {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

/// The same answer, which keeps `kept` until the last of it is written.
pub(super) fn keeping<K: Send + 'static>(answer: Bytes, kept: K) -> Bytes {
    Bytes::from_owner(Keeping { answer, _kept: kept })
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::*;

    fn answering() -> Arc<Watch> {
        let watch = Arc::new(Watch::new(Limits::default()));
        watch.answer();
        watch
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_been_stalled_longest_gives_way() {
        let room = Arc::new(AnswerRoom::new(100));
        let take = |bytes, watch: &Arc<Watch>| {
            let mut closed = Vec::new();
            let share = room.take(bytes, watch, |watch| closed.push(watch.clone()));
            (share, closed)
        };
        let (first, second, reader) = (answering(), answering(), answering());
        let _one = take(40, &first).0.unwrap();
        tokio::time::advance(STALLED / 2).await;
        second.answer();
        let _two = take(40, &second).0.unwrap();
        let (none, closed) = take(40, &reader);
        assert!(none.is_none() && closed.is_empty(), "nobody is stalled yet");
        tokio::time::advance(STALLED).await;
        let (three, closed) = take(40, &reader);
        assert!(three.is_some() && closed.len() == 1 && Arc::ptr_eq(&closed[0], &first));
        drop(three);
        assert_eq!(room.taken().bytes, 40);
        second.took();
        assert!(take(61, &reader).0.is_none(), "it reads");
        drop((_one, _two));
        let left = room.taken();
        assert_eq!((left.bytes, left.shares.len()), (0, 0));
        drop(left);
        assert!(take(101, &reader).0.is_none());
    }

    #[test]
    fn what_is_kept_is_kept_until_the_answer_is_written() {
        let kept = Arc::new(());
        let mut answer = keeping(Bytes::from("12345678"), kept.clone());
        let part = answer.split_to(4);
        drop(answer);
        assert_eq!((Arc::strong_count(&kept), &part[..]), (2, &b"1234"[..]));
        drop(part);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
