//! What came of it, held against what was asked for.

use std::collections::BTreeSet;

use storybus_core::domain::job::{Job, JobState, Work};
use storybus_protocol::id::MessageId;

use super::scene::{Ask, Scene};
use super::theatre::Theatre;
use crate::executor::run;
use crate::explore::witness::{Breach, Promise};
use crate::suite::world::number;

/// How many messages a step of these scenes delivers at most.
const STEP: u64 = 2;

fn breach(promise: Promise, seen: impl Into<String>) -> Result<(), Breach> {
    Err((promise, seen.into()))
}

/// What the job bears as its mark.
fn mark(job: &Job) -> String {
    format!("{}:{}", job.kind(), job.id)
}

impl Theatre {
    /// Holds the queue, the dead letters and the jobs against the promises.
    pub(super) fn check(&mut self) -> Result<(), Breach> {
        let jobs: Vec<Job> = (0..self.jobs.len()).filter_map(|job| self.job(job)).collect();
        if jobs.len() != self.jobs.len() {
            return breach(Promise::Over, "a job is gone");
        }
        for (place, job) in jobs.iter().enumerate() {
            self.check_end(place, job)?;
        }
        if self.deleted {
            return Ok(());
        }
        let dead = run(self.world.dead_letters(&self.queue));
        if let Some(held) = dead.iter().find(|letter| letter.taken_by.is_some()) {
            return breach(
                Promise::Removed,
                format!("still held: {}", number(held.message_id)),
            );
        }
        let lying: BTreeSet<u64> = self
            .places
            .iter()
            .filter(|(_, place)| dead.iter().any(|letter| letter.position == *place))
            .map(|(n, _)| *n)
            .collect();
        self.drain();
        for (ask, job) in self.scene.jobs.clone().iter().zip(&jobs) {
            self.check_job(ask, job)?;
        }
        self.check_letters(&jobs, &lying)
    }

    /// Whether it ended as it should.
    fn check_end(&self, place: usize, job: &Job) -> Result<(), Breach> {
        let cancelled = self.cancelled.contains(&place);
        let right = match job.state {
            JobState::Queued | JobState::Running => false,
            JobState::Done => job.error.is_none(),
            JobState::Cancelled => cancelled && job.error.is_none(),
            JobState::Failed => self.deleted && job.error.is_some(),
        };
        if !right || job.finished_at.is_none() || job.started_at.is_none() {
            return breach(Promise::Over, format!("job {place}: {job:?}"));
        }
        if !job.unremoved.is_empty() {
            return breach(
                Promise::Removed,
                format!("job {place} has unremoved ones: {job:?}"),
            );
        }
        Ok(())
    }

    /// What one job delivered, and what it says of it.
    fn check_job(&self, ask: &Ask, job: &Job) -> Result<(), Breach> {
        let mark = mark(job);
        let of_job = self.seen.iter().filter(|s| s.mark.as_ref() == Some(&mark));
        let delivered: Vec<u64> = of_job.map(|s| s.message).collect();
        let once: BTreeSet<u64> = delivered.iter().copied().collect();
        if once.len() != delivered.len() {
            return breach(
                Promise::Delivered,
                format!("{mark} doubled something: {delivered:?}"),
            );
        }
        for group in 0..2 {
            // one that died again came into the queue again, behind the others
            let first_time = |n: &&u64| Scene::group(**n) == group && !self.rejected.contains(n);
            if !delivered.iter().filter(first_time).is_sorted() {
                return breach(Promise::Ordered, format!("{mark}: {delivered:?}"));
            }
        }
        let moved = delivered.len() as u64;
        let told = format!("{mark} put in {delivered:?} and says {job:?}");
        match (ask, &job.work) {
            (Ask::Replay { from, to, even }, Work::Replay { .. }) => {
                let looked_at = || (*from..*to).filter(|n| *n <= self.scene.messages);
                let wanted: BTreeSet<u64> = looked_at().filter(|n| !even || n.is_multiple_of(2)).collect();
                if job.state == JobState::Done {
                    if once != wanted {
                        return breach(Promise::Delivered, told);
                    }
                    if (job.moved, job.scanned) != (moved, looked_at().count() as u64) {
                        return breach(Promise::Told, told);
                    }
                }
                // cancelled: a step that was not written down may have delivered and is not counted
                if !once.is_subset(&wanted) || !(job.moved..=job.moved + STEP).contains(&moved) {
                    return breach(Promise::Told, told);
                }
            }
            (_, Work::Redrive { message_ids }) => {
                if (job.moved, job.scanned) != (moved, moved) {
                    return breach(Promise::Told, told);
                }
                let unmet: Vec<MessageId> = message_ids
                    .iter()
                    .flatten()
                    .filter(|id| !once.contains(&number(**id)))
                    .copied()
                    .collect();
                if job.unmet != unmet {
                    return breach(Promise::Told, told);
                }
                let chosen = |n: u64| match ask {
                    Ask::Chosen(ids) => ids.contains(&n),
                    _ => true,
                };
                if let Some(n) = once.iter().find(|n| !chosen(**n)) {
                    return breach(Promise::Delivered, format!("{n} was not wanted: {told}"));
                }
            }
            (_, Work::Replay { .. }) => return breach(Promise::Told, told),
        }
        Ok(())
    }

    /// Each dead letter lies where it lay, or was delivered once.
    fn check_letters(&self, jobs: &[Job], lying: &BTreeSet<u64>) -> Result<(), Breach> {
        let redrives: Vec<(&Ask, &Job)> = self
            .scene
            .jobs
            .iter()
            .zip(jobs)
            .filter(|(ask, _)| !matches!(ask, Ask::Replay { .. }))
            .collect();
        for (n, _) in &self.places {
            let by: Vec<String> = redrives
                .iter()
                .map(|(_, job)| mark(job))
                .filter(|mark| {
                    self.seen
                        .iter()
                        .any(|s| s.message == *n && s.mark.as_ref() == Some(mark))
                })
                .collect();
            let here = lying.contains(n);
            // one that died again may be redriven again, by another
            let again = self.rejected.contains(n);
            if here != by.is_empty() || (by.len() > 1 && !again) {
                return breach(
                    Promise::Removed,
                    format!("{n} lies there: {here}; delivered by {by:?}"),
                );
            }
            let wanted = redrives.iter().any(|(ask, job)| {
                job.state == JobState::Done
                    && match ask {
                        Ask::Chosen(ids) => ids.contains(n),
                        _ => true,
                    }
            });
            // what another job held and gave back was passed over
            let contested = redrives.iter().any(|(_, job)| job.state == JobState::Cancelled);
            if here && wanted && !contested {
                return breach(Promise::Delivered, format!("{n} was skipped"));
            }
        }
        Ok(())
    }
}
