//! One queue: the rules of an SQS FIFO queue as plain code.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use storybus_core::domain::dead_letter::{Cause, DeadLetter};
use storybus_core::domain::delivery::{Delivery, QueueCounts, Settled};
use storybus_core::domain::message::{Attributes, Publication};
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::{QueueTrace, Trace, TraceState};
use storybus_core::ports::queue_control::Redelivery;
use storybus_core::ports::queues::{MAX_VISIBILITY, RECEIVE_ATTEMPT_LIFETIME, RETENTION, Receive};
use storybus_protocol::id::{ConnectionId, CorrelationId, JobId, MessageId};

use super::position;

#[derive(Clone)]
struct Entry {
    message_id: MessageId,
    group: CorrelationId,
    body: Bytes,
    attributes: Attributes,
    enqueued_at: Millis,
    receive_count: u32,
    hold: Option<Hold>,
    /// `replay:<job>` or `redrive:<job>`.
    redelivery: Option<String>,
}

/// A receive that has not ended.
#[derive(Clone)]
struct Hold {
    handle: String,
    received_at: Millis,
    until: Millis,
}

/// How a message left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Acknowledged,
    Rejected,
}

/// A message that left the queue.
#[derive(Clone)]
struct Left {
    exit: Exit,
    until: Millis,
    at: Millis,
    number: u64,
    entry: Entry,
}

/// A receive that can be repeated.
#[derive(Clone)]
struct Attempt {
    at: Millis,
    handles: Vec<String>,
}

#[derive(Clone, Default)]
pub(super) struct Queue {
    /// By number, which is their order.
    entries: BTreeMap<u64, Entry>,
    /// By the numbers that they had in the queue.
    dead: BTreeMap<u64, DeadLetter>,
    /// What left by a handle, until its visibility would have ended.
    exits: BTreeMap<String, Left>,
    attempts: BTreeMap<String, Attempt>,
    /// The last position that was taken from each job.
    delivered: BTreeMap<JobId, u64>,
    purged_at: Option<Millis>,
}

impl Queue {
    pub(super) fn push(&mut self, number: u64, publication: &Publication, now: Millis) {
        let entry = Entry {
            message_id: publication.message_id,
            group: publication.correlation_id,
            body: publication.body.clone(),
            attributes: publication.attributes.clone(),
            enqueued_at: now,
            receive_count: 0,
            hold: None,
            redelivery: None,
        };
        self.entries.insert(number, entry);
    }

    /// Whether a job's position is behind all that it has delivered; it counts as delivered from then on.
    pub(super) fn is_new(&mut self, job: &JobId, position: Option<u64>) -> bool {
        let last = self.delivered.get(job).copied();
        let new = position > last;
        if let (true, Some(position)) = (new, position) {
            self.delivered.insert(job.clone(), position);
        }
        new
    }

    /// Takes a message that a job delivers.
    pub(super) fn push_again(&mut self, number: u64, message: &Redelivery, mark: &str, now: Millis) {
        let entry = Entry {
            message_id: message.message_id,
            group: message.correlation_id,
            body: message.body.clone(),
            attributes: message.attributes.clone(),
            enqueued_at: now,
            receive_count: 0,
            hold: None,
            redelivery: Some(mark.to_owned()),
        };
        self.entries.insert(number, entry);
    }

    /// Deletes everything but the dead letters; how many messages that were.
    pub(super) fn purge(&mut self, now: Millis) -> u64 {
        self.tidy(now);
        let purged = self.entries.len() as u64;
        self.entries.clear();
        self.attempts.clear();
        self.purged_at = Some(now);
        purged
    }

    /// What it knows of a message.
    pub(super) fn trace(
        &mut self,
        consumer: &ConnectionId,
        message_id: MessageId,
        now: Millis,
    ) -> QueueTrace {
        self.tidy(now);
        let mut found = BTreeMap::new();
        for left in self.exits.values() {
            if left.exit == Exit::Acknowledged && left.entry.message_id == message_id {
                let trace = left.entry.trace(TraceState::Acknowledged, left.at);
                found.insert(left.number, trace);
            }
        }
        for (number, letter) in self.dead.iter().filter(|(_, l)| l.message_id == message_id) {
            let trace = Trace {
                state: TraceState::DeadLettered(letter.cause.clone()),
                receive_count: letter.receive_count,
                redelivery: letter.redelivery.clone(),
                at: Some(letter.dead_at),
            };
            found.insert(*number, trace);
        }
        for (number, entry) in self.entries.iter().filter(|(_, e)| e.message_id == message_id) {
            let trace = match &entry.hold {
                Some(hold) => entry.trace(TraceState::InFlight, hold.received_at),
                None => entry.trace(TraceState::Waiting, entry.enqueued_at),
            };
            found.insert(*number, trace);
        }
        QueueTrace {
            consumer: consumer.clone(),
            deliveries: found.into_values().collect(),
            purged_at: self.purged_at,
        }
    }

    /// Lets go of everything whose time has passed.
    fn tidy(&mut self, now: Millis) {
        self.entries
            .retain(|_, entry| now < entry.enqueued_at.plus(RETENTION));
        self.dead
            .retain(|_, letter| letter.taken_by.is_some() || now < letter.dead_at.plus(RETENTION));
        self.exits.retain(|_, left| now < left.until);
        self.attempts
            .retain(|_, attempt| now < attempt.at.plus(RECEIVE_ATTEMPT_LIFETIME));
        for entry in self.entries.values_mut() {
            entry.hold.take_if(|hold| hold.until <= now);
        }
    }

    pub(super) fn receive(
        &mut self,
        receive: &Receive,
        now: Millis,
        mut handle: impl FnMut() -> String,
    ) -> Vec<Delivery> {
        self.tidy(now);
        if let Some(again) = receive
            .attempt
            .as_ref()
            .and_then(|id| self.repeat(id, receive, now))
        {
            return again;
        }
        let mut received = Vec::new();
        for number in self.next_numbers() {
            if received.len() == receive.max {
                break;
            }
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            if entry.receive_count >= receive.max_receives {
                self.bury(number, Cause::MaxReceives, now);
                continue;
            }
            entry.receive_count += 1;
            let hold = Hold {
                handle: handle(),
                received_at: now,
                until: now.plus(receive.visibility),
            };
            received.push(entry.deliver(&hold));
            entry.hold = Some(hold);
        }
        if let Some(id) = receive.attempt.as_ref().filter(|_| !received.is_empty()) {
            let handles = received
                .iter()
                .map(|delivery| delivery.receipt_handle.clone())
                .collect();
            self.attempts.insert(id.clone(), Attempt { at: now, handles });
        }
        received
    }

    /// What may come out, in order: groups with nothing hidden, oldest first, each with all of its messages.
    fn next_numbers(&self) -> Vec<u64> {
        let blocked: BTreeSet<CorrelationId> = self
            .entries
            .values()
            .filter(|entry| entry.hold.is_some())
            .map(|entry| entry.group)
            .collect();
        let mut groups: Vec<CorrelationId> = Vec::new();
        for entry in self.entries.values() {
            if !blocked.contains(&entry.group) && !groups.contains(&entry.group) {
                groups.push(entry.group);
            }
        }
        let of_group = |group| self.entries.iter().filter(move |(_, entry)| entry.group == group);
        groups
            .into_iter()
            .flat_map(of_group)
            .map(|(number, _)| *number)
            .collect()
    }

    /// The same messages once more, if all of them are still where that receive left them.
    fn repeat(&mut self, id: &str, receive: &Receive, now: Millis) -> Option<Vec<Delivery>> {
        let attempt = self.attempts.get(id)?;
        let numbers: Option<Vec<u64>> = attempt.handles.iter().map(|handle| self.held(handle)).collect();
        let Some(numbers) = numbers else {
            self.attempts.remove(id);
            return None;
        };
        let mut again = Vec::new();
        for number in numbers {
            let entry = self.entries.get_mut(&number)?;
            let hold = entry.hold.as_mut()?;
            hold.until = now
                .plus(receive.visibility)
                .min(hold.received_at.plus(MAX_VISIBILITY));
            let hold = hold.clone();
            again.push(entry.deliver(&hold));
        }
        Some(again)
    }

    fn held(&self, handle: &str) -> Option<u64> {
        let holds = |entry: &Entry| entry.hold.as_ref().is_some_and(|hold| hold.handle == handle);
        self.entries
            .iter()
            .find(|(_, entry)| holds(entry))
            .map(|(number, _)| *number)
    }

    /// Moves a message to the dead letters.
    fn bury(&mut self, number: u64, cause: Cause, now: Millis) {
        if let Some(entry) = self.entries.remove(&number) {
            let letter = DeadLetter {
                position: position(number),
                message_id: entry.message_id,
                body: entry.body,
                attributes: entry.attributes,
                receive_count: entry.receive_count,
                enqueued_at: entry.enqueued_at,
                dead_at: now,
                cause,
                redelivery: entry.redelivery,
                taken_by: None,
            };
            self.dead.insert(number, letter);
        }
    }

    pub(super) fn acknowledge(&mut self, handle: &str, now: Millis) -> Settled {
        self.leave(handle, Exit::Acknowledged, now, |queue, number| {
            queue.entries.remove(&number);
        })
    }

    pub(super) fn reject(&mut self, handle: &str, reason: &str, now: Millis) -> Settled {
        self.leave(handle, Exit::Rejected, now, |queue, number| {
            queue.bury(number, Cause::Rejected(reason.to_owned()), now);
        })
    }

    fn leave(&mut self, handle: &str, exit: Exit, now: Millis, go: impl FnOnce(&mut Self, u64)) -> Settled {
        self.tidy(now);
        if self.exits.get(handle).is_some_and(|left| left.exit == exit) {
            return Settled::Done;
        }
        let Some(number) = self.held(handle) else {
            return Settled::Invalid;
        };
        if let Some(entry) = self.entries.get(&number) {
            let left = Left {
                exit,
                until: entry.hold.as_ref().map_or(now, |hold| hold.until),
                at: now,
                number,
                entry: entry.clone(),
            };
            self.exits.insert(handle.to_owned(), left);
        }
        go(self, number);
        Settled::Done
    }

    pub(super) fn release(&mut self, handle: &str, delay: std::time::Duration, now: Millis) -> Settled {
        self.tidy(now);
        let Some(number) = self.held(handle) else {
            return Settled::Invalid;
        };
        self.attempts
            .retain(|_, attempt| !attempt.handles.iter().any(|h| h == handle));
        if let Some(hold) = self
            .entries
            .get_mut(&number)
            .and_then(|entry| entry.hold.as_mut())
        {
            hold.until = now.plus(delay).min(hold.received_at.plus(MAX_VISIBILITY));
        }
        self.tidy(now);
        Settled::Done
    }

    pub(super) fn counts(&mut self, now: Millis) -> QueueCounts {
        self.tidy(now);
        let count = |hidden| {
            self.entries
                .values()
                .filter(|entry| entry.hold.is_some() == hidden)
                .count() as u64
        };
        QueueCounts {
            visible: count(false),
            in_flight: count(true),
            dead_lettered: self.dead.len() as u64,
            oldest_at: self.entries.values().map(|entry| entry.enqueued_at).min(),
        }
    }

    /// When the next hidden message comes back.
    pub(super) fn next_visible(&self, now: Millis) -> Option<Millis> {
        self.entries
            .values()
            .filter_map(|e| e.hold.as_ref())
            .map(|hold| hold.until)
            .filter(|at| *at > now)
            .min()
    }

    /// The dead letters that are kept.
    pub(super) fn dead_letters(&mut self, now: Millis) -> &mut BTreeMap<u64, DeadLetter> {
        self.tidy(now);
        &mut self.dead
    }
}

impl Entry {
    fn deliver(&self, hold: &Hold) -> Delivery {
        Delivery {
            receipt_handle: hold.handle.clone(),
            message_id: self.message_id,
            body: self.body.clone(),
            attributes: self.attributes.clone(),
            receive_count: self.receive_count,
            enqueued_at: self.enqueued_at,
            redelivery: self.redelivery.clone(),
        }
    }

    fn trace(&self, state: TraceState, at: Millis) -> Trace {
        Trace {
            state,
            receive_count: self.receive_count,
            redelivery: self.redelivery.clone(),
            at: Some(at),
        }
    }
}
