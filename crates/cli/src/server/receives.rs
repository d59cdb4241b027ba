//! How many receives may be under way at once: those that wait, and those whose answer, up to 2.4 MB, is on its way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Uri};

/// The receives that are under way.
pub(super) struct Receives {
    under_way: Mutex<UnderWay>,
    in_all: usize,
    of_consumer: usize,
}

#[derive(Default)]
struct UnderWay {
    all: usize,
    by_consumer: HashMap<String, usize>,
}

/// One receive; its place is free again when this is dropped.
pub(super) struct Receive {
    receives: Arc<Receives>,
    consumer: String,
}

impl Receives {
    pub(super) fn new(in_all: usize, of_consumer: usize) -> Self {
        Self {
            under_way: Mutex::default(),
            in_all,
            of_consumer,
        }
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.under_way().all
    }

    /// A place for one more, if there is one.
    pub(super) fn enter(self: &Arc<Self>, consumer: &str) -> Option<Receive> {
        let mut now = self.under_way();
        let of_consumer = now.by_consumer.get(consumer).copied().unwrap_or(0);
        if now.all >= self.in_all || of_consumer >= self.of_consumer {
            return None;
        }
        now.all += 1;
        now.by_consumer.insert(consumer.to_owned(), of_consumer + 1);
        Some(Receive {
            receives: self.clone(),
            consumer: consumer.to_owned(),
        })
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        let mut now = self.receives.under_way();
        now.all -= 1;
        match now.by_consumer.get_mut(&self.consumer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                now.by_consumer.remove(&self.consumer);
            }
        }
    }
}

/// Whose receive this is, if it is one.
pub(super) fn receiver<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    if method != Method::GET {
        return None;
    }
    let (tenant, rest) = uri
        .path()
        .strip_prefix("/v1/tenants/")?
        .split_once("/consumers/")?;
    let consumer = rest.strip_suffix("/messages")?;
    (!tenant.contains('/') && !consumer.contains('/')).then_some(consumer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let receives = Arc::new(Receives::new(3, 2));
        let one = receives.enter("c1").unwrap();
        let two = receives.enter("c1").unwrap();
        assert!(receives.enter("c1").is_none(), "two of a consumer");
        let three = receives.enter("c2").unwrap();
        assert!(receives.enter("c3").is_none(), "three in all");
        drop(two);
        drop(receives.enter("c1").unwrap());
        drop((one, three));
        assert_eq!(receives.count(), 0);
        assert!(receives.under_way().by_consumer.is_empty());
    }

    #[test]
    fn only_receives_count() {
        let of = |method: Method, uri: &str| receiver(&method, &uri.parse().unwrap()).map(str::to_owned);
        for uri in [
            "/v1/tenants/w1/consumers/c1/messages?max=1&wait=20",
            "/v1/tenants/w1/consumers/c1/messages",
        ] {
            assert_eq!(of(Method::GET, uri).as_deref(), Some("c1"), "{uri}");
            assert_eq!(of(Method::POST, uri), None, "{uri}");
        }
        for uri in [
            "/v1/tenants/w1/messages/m1",
            "/v1/tenants/w1/consumers/c1/skills",
            "/v1/tenants/w1/x/consumers/c1/messages",
            "/v1/tenants/w1/consumers/c1/x/messages",
            "/consumers/c1/messages",
        ] {
            assert_eq!(of(Method::GET, uri), None, "{uri}");
        }
    }
}
