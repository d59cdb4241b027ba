//! What a relay works for: everything, or given messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::outbox::State;
use crate::outbox::step::Standing;

/// How many of the given messages are looked at in one step. The earliest first, so that the first of a line is always among them.
const WINDOW: usize = 256;

/// What became of a message that was to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Its number in the outbox.
    pub id: i64,
    /// What became of it.
    pub fate: Fate,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum Fate {
    /// The partner has it.
    Delivered,
    /// A final no.
    Refused,
    /// Kept for an operator.
    Parked,
    /// It is still pending: an earlier message of its group does not get through.
    Held {
        /// That message's key.
        by: String,
        /// Whether that one is parked, so that an operator has to resend or drop it; else a relay goes on trying.
        parked: bool,
    },
    /// It is still pending: the relay was stopped, or its partner refuses this sender.
    Untried,
    /// The outbox has no such message, or no longer.
    Unknown,
}

/// What a relay works for.
#[derive(Debug)]
pub(super) enum Goal {
    Everything,
    These(These),
}

/// Given messages.
#[derive(Debug)]
pub(super) struct These {
    left: BTreeSet<i64>,
    given: BTreeSet<i64>,
    fates: BTreeMap<i64, Fate>,
}

impl These {
    pub(super) fn new(ids: &[i64]) -> Self {
        Self {
            left: ids.iter().copied().collect(),
            given: ids.iter().copied().collect(),
            fates: BTreeMap::new(),
        }
    }

    pub(super) fn sent(&self, ids: &[i64]) -> Vec<Sent> {
        ids.iter()
            .map(|id| Sent {
                id: *id,
                fate: self.fates.get(id).cloned().unwrap_or(Fate::Untried),
            })
            .collect()
    }

    fn end(&mut self, id: i64, fate: Fate) {
        self.left.remove(&id);
        self.fates.insert(id, fate);
    }

    /// Ends a message that the database does not let be written.
    pub(super) fn give_up(&mut self, id: i64) {
        if self.left.contains(&id) {
            self.end(id, Fate::Untried);
        }
    }

    /// Learns from a step where the messages it asked for stand. What is under way at this relay is not held, whatever its line says.
    pub(super) fn learn(
        &mut self,
        asked: &[i64],
        standings: &[Standing],
        busy: &BTreeSet<i64>,
        paused: &BTreeSet<String>,
        patience: Duration,
    ) {
        let mut missing: BTreeSet<i64> = asked.iter().copied().collect();
        let patience = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        for standing in standings {
            let id = standing.id;
            missing.remove(&id);
            match standing.state {
                State::Delivered => self.end(id, Fate::Delivered),
                State::Refused => self.end(id, Fate::Refused),
                State::Parked => self.end(id, Fate::Parked),
                State::Pending => match &standing.holder {
                    Some(holder) if holder.state == State::Parked => self.end(
                        id,
                        Fate::Held {
                            by: holder.key.clone(),
                            parked: true,
                        },
                    ),
                    // It rests between its rounds, and is not one of those that are to be sent.
                    Some(holder)
                        if !holder.leased && holder.due_in > patience && !self.given.contains(&holder.id) =>
                    {
                        self.end(
                            id,
                            Fate::Held {
                                by: holder.key.clone(),
                                parked: false,
                            },
                        )
                    }
                    _ if paused.contains(&standing.target) && !busy.contains(&id) => {
                        self.end(id, Fate::Untried)
                    }
                    _ => {}
                },
            }
        }
        for id in missing {
            self.end(id, Fate::Unknown);
        }
    }
}

impl Goal {
    /// The messages to look at in the next step; `None`: all.
    pub(super) fn window(&self) -> Option<Vec<i64>> {
        match self {
            Self::Everything => None,
            Self::These(these) => Some(these.left.iter().take(WINDOW).copied().collect()),
        }
    }

    /// Whether the message was asked for.
    pub(super) fn wants(&self, id: i64) -> bool {
        match self {
            Self::Everything => true,
            Self::These(these) => these.given.contains(&id),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::These(these) => these.left.is_empty(),
        }
    }
}
