//! The queues of all consumers, and waiting at them.

use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::connection::Role;
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::time::Millis;
use storybus_core::ports::queues::Receive;
use storybus_core::ports::{Queues, StoreError};

use super::Memory;
use super::queue::Queue;

impl Memory {
    /// Receives what is there; and when something hidden comes back. `None`: there is no such queue, or its consumer is
    /// disabled.
    fn receive_now(
        &self,
        key: &QueueKey,
        receive: &Receive,
        now: Millis,
    ) -> Option<(Vec<Delivery>, Option<Millis>)> {
        let mut state = self.lock();
        let first = state.number();
        state.next += 10;
        state.queues.get(key)?;
        let connection = state.connections.get(&key.consumer)?;
        if connection.disabled {
            return None;
        }
        if let Role::Consumer(consumer) = &connection.role
            && consumer.paused
        {
            return Some((Vec::new(), None));
        }
        let queue = state.queues.get_mut(key)?;
        let mut number = first;
        let received = queue.receive(receive, now, || {
            number += 1;
            format!("{}.{number}", key.consumer)
        });
        let next = queue.next_visible(now);
        Some((received, next))
    }

    /// A receive of an attempt begins: it is the newest now, and those that wait shall see that.
    fn begin_attempt(&self, key: &QueueKey, receive: &Receive) -> Option<((QueueKey, String), u64)> {
        let attempt = (key.clone(), receive.attempt.clone()?);
        let number = {
            let mut waiting = self.waiting();
            let number = waiting.attempts.entry(attempt.clone()).or_default();
            *number += 1;
            *number
        };
        self.changed();
        Some((attempt, number))
    }

    fn settle(
        &self,
        key: &QueueKey,
        handles: &[String],
        settle: impl Fn(&mut Queue, &str, Millis) -> Settled,
    ) -> Vec<Settled> {
        let now = self.clock.now();
        let settled = {
            let mut state = self.lock();
            match state.queues.get_mut(key) {
                Some(queue) => handles.iter().map(|handle| settle(queue, handle, now)).collect(),
                None => vec![Settled::Invalid; handles.len()],
            }
        };
        self.changed();
        settled
    }
}

#[async_trait]
impl Queues for Memory {
    async fn receive(&self, queue: &QueueKey, receive: &Receive) -> Result<Vec<Delivery>, StoreError> {
        let deadline = self.clock.now().plus(receive.wait);
        let mine = self.begin_attempt(queue, receive);
        loop {
            let seen = self.changes();
            let now = self.clock.now();
            let Some((received, next)) = self.receive_now(queue, receive, now) else {
                return Ok(Vec::new());
            };
            if mine.is_some() && !received.is_empty() {
                // a newer one of the attempt, which looked before, shall have them too
                self.changed();
            }
            if !received.is_empty() || now >= deadline {
                return Ok(received);
            }
            let until = next.map_or(deadline, |at| at.min(deadline));
            let sleep = self.clock.sleep(now.until(until));
            futures::future::select(self.changed_since(seen), sleep).await;
            if let Some((attempt, number)) = &mine
                && self.waiting().attempts.get(attempt) != Some(number)
            {
                return Ok(Vec::new());
            }
        }
    }

    async fn acknowledge(&self, queue: &QueueKey, handles: &[String]) -> Result<Vec<Settled>, StoreError> {
        Ok(self.settle(queue, handles, Queue::acknowledge))
    }

    async fn release(
        &self,
        queue: &QueueKey,
        handles: &[String],
        delay: Duration,
    ) -> Result<Vec<Settled>, StoreError> {
        Ok(self.settle(queue, handles, |queue, handle, now| {
            queue.release(handle, delay, now)
        }))
    }

    async fn reject(
        &self,
        queue: &QueueKey,
        handles: &[String],
        reason: &str,
    ) -> Result<Vec<Settled>, StoreError> {
        Ok(self.settle(queue, handles, |queue, handle, now| {
            queue.reject(handle, reason, now)
        }))
    }

    async fn counts(&self, queue: &QueueKey) -> Result<QueueCounts, StoreError> {
        let now = self.clock.now();
        Ok(self
            .lock()
            .queues
            .get_mut(queue)
            .map(|q| q.counts(now))
            .unwrap_or_default())
    }
}
