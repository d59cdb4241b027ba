//! How many receives may wait at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Uri};

/// The receives that wait.
pub(super) struct Polls {
    waiting: Mutex<Waiting>,
    in_all: usize,
    of_consumer: usize,
}

#[derive(Default)]
struct Waiting {
    all: usize,
    by_consumer: HashMap<String, usize>,
}

/// One receive that waits; its place is free again when this is dropped.
pub(super) struct Poll {
    polls: Arc<Polls>,
    consumer: String,
}

impl Polls {
    pub(super) fn new(in_all: usize, of_consumer: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            in_all,
            of_consumer,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.waiting().all
    }

    /// A place for one more, if there is one.
    pub(super) fn enter(self: &Arc<Self>, consumer: &str) -> Option<Poll> {
        let mut waiting = self.waiting();
        let of_consumer = waiting.by_consumer.get(consumer).copied().unwrap_or(0);
        if waiting.all >= self.in_all || of_consumer >= self.of_consumer {
            return None;
        }
        waiting.all += 1;
        waiting.by_consumer.insert(consumer.to_owned(), of_consumer + 1);
        Some(Poll {
            polls: self.clone(),
            consumer: consumer.to_owned(),
        })
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut waiting = self.polls.waiting();
        waiting.all -= 1;
        match waiting.by_consumer.get_mut(&self.consumer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                waiting.by_consumer.remove(&self.consumer);
            }
        }
    }
}

/// Whose receive this is, if it is one that may wait.
pub(super) fn waits_for<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    if method != Method::GET {
        return None;
    }
    let (tenant, rest) = uri
        .path()
        .strip_prefix("/v1/tenants/")?
        .split_once("/consumers/")?;
    let consumer = rest.strip_suffix("/messages")?;
    if tenant.contains('/') || consumer.contains('/') {
        return None;
    }
    // `wait=0` is the default; what else it may be is the bus's to judge.
    let waits = uri
        .query()?
        .split('&')
        .any(|pair| pair.starts_with("wait=") && pair != "wait=0");
    waits.then_some(consumer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let polls = Arc::new(Polls::new(3, 2));
        let one = polls.enter("c1").unwrap();
        let two = polls.enter("c1").unwrap();
        assert!(polls.enter("c1").is_none(), "two of a consumer");
        let three = polls.enter("c2").unwrap();
        assert!(polls.enter("c3").is_none(), "three in all");
        drop(two);
        drop(polls.enter("c1").unwrap());
        drop((one, three));
        assert_eq!(polls.count(), 0);
        assert!(polls.waiting().by_consumer.is_empty());
    }

    #[test]
    fn only_receives_that_wait_count() {
        let of = |method: Method, uri: &str| waits_for(&method, &uri.parse().unwrap()).map(str::to_owned);
        assert_eq!(
            of(Method::GET, "/v1/tenants/w1/consumers/c1/messages?max=1&wait=20").as_deref(),
            Some("c1")
        );
        for uri in [
            "/v1/tenants/w1/consumers/c1/messages",
            "/v1/tenants/w1/consumers/c1/messages?wait=0",
            "/v1/tenants/w1/consumers/c1/messages?await=5",
            "/v1/tenants/w1/consumers/c1/skills?wait=5",
            "/v1/tenants/w1/x/consumers/c1/messages?wait=5",
            "/v1/tenants/w1/consumers/c1/x/messages?wait=5",
        ] {
            assert_eq!(of(Method::GET, uri), None, "{uri}");
        }
        assert_eq!(
            of(Method::POST, "/v1/tenants/w1/consumers/c1/messages?wait=5"),
            None
        );
    }
}
