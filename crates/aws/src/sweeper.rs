//! What is looked after every few minutes: jobs whose message was lost, resources that were left half made, and those that somebody
//! has deleted by hand.

use std::sync::Arc;
use std::time::Duration;

use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Clock, Connections as _, Random, StoreError, Workspaces as _};
use storybus_protocol::id::{ConnectionId, JobId, WorkspaceId};

use crate::Aws;
use crate::connections::DynamoConnections;
use crate::jobs::DynamoJobs;
use crate::mender::Mender;
use crate::pending::{ABANDONED_AFTER, Doing, Pending, Whose};
use crate::registry::Token;
use crate::workspaces::DynamoWorkspaces;

/// A job that is at work is written more often than this.
const SILENT_FOR: Duration = Duration::from_secs(3 * 60);
/// A job that was not written for so long does not get on, however often its message is sent.
const STUCK_FOR: Duration = Duration::from_secs(20 * 60);
/// What was begun so long ago has nobody any more who works at it.
const LEFT_FOR: Duration = Duration::from_secs(15 * 60);

/// Looks after what nobody works at any more. Two at once do no harm.
#[derive(Clone)]
pub struct Sweeper {
    aws: Aws,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    jobs: DynamoJobs,
    workspaces: DynamoWorkspaces,
    connections: DynamoConnections,
    mender: Mender,
}

/// What a sweep came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Jobs whose message was sent again.
    pub sent_again: Vec<JobId>,
    /// Those of them that have not got on for 20 minutes.
    pub stuck: Vec<JobId>,
    /// How many half made, changed or removed things were brought to an end.
    pub settled: usize,
    /// How many were not, and are tried again by the next sweep.
    pub unsettled: usize,
    /// Workspaces whose topic, or whose archive's subscription, had been deleted and was made anew.
    pub topics_anew: Vec<WorkspaceId>,
    /// Consumers of whose queues or subscription something had been deleted and was made anew.
    pub consumers_anew: Vec<ConnectionId>,
}

impl Aws {
    /// The sweeper.
    #[must_use]
    pub fn sweeper(&self, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Sweeper {
        let workspaces = self.workspaces(clock.clone(), random.clone());
        let connections = self.connections(clock.clone(), random.clone());
        Sweeper {
            aws: self.clone(),
            jobs: self.jobs(clock.clone(), random.clone()),
            mender: Mender {
                aws: self.clone(),
                clock: clock.clone(),
                workspaces: workspaces.clone(),
                connections: connections.clone(),
            },
            workspaces,
            connections,
            clock,
            random,
        }
    }
}

impl Sweeper {
    /// Sends the message of every unfinished job again that was not written for some minutes, finishes or takes back what was
    /// begun more than 15 minutes ago, and makes anew what was deleted by hand. One that fails does not keep the others.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let now = self.clock.now();
        for unfinished in self.jobs.all_unfinished().await? {
            let (id, silent) = (unfinished.job.id.clone(), unfinished.written_at.until(now));
            if silent >= STUCK_FOR {
                swept.stuck.push(id.clone());
            }
            if silent >= SILENT_FOR {
                match self.jobs.wake_again(&unfinished.job).await {
                    Ok(()) => swept.sent_again.push(id),
                    Err(error) => {
                        tracing::warn!(job = %id, %error, "a job's message could not be sent again")
                    }
                }
            }
        }
        for pending in self.aws.pending().await? {
            // nothing can be published to a topic that is being made anew, and two who make it do no harm
            let left_for = match (&pending.whose, pending.doing) {
                (Whose::Workspace(_), Doing::Changing) => ABANDONED_AFTER,
                _ => LEFT_FOR,
            };
            if pending.at.until(now) < left_for {
                continue;
            }
            match self.settle(&pending).await {
                Ok(()) => swept.settled += 1,
                Err(error) => {
                    swept.unsettled += 1;
                    tracing::warn!(?pending, %error, "what was left half done could not be settled");
                }
            }
        }
        match self.mender.look().await {
            Ok(mended) => {
                swept.unsettled += mended.failed;
                (swept.topics_anew, swept.consumers_anew) = (mended.topics, mended.consumers);
            }
            Err(error) => {
                swept.unsettled += 1;
                tracing::error!(%error, "nobody could look for what was deleted by hand");
            }
        }
        Ok(swept)
    }

    async fn settle(&self, pending: &Pending) -> Result<(), RegistryError> {
        let doing = match pending.doing {
            // it is not in the registry, and once the note is ours it cannot come there
            Doing::Making => Doing::Removing,
            other => other,
        };
        let token = Token::new(&*self.random);
        let Some(mine) = pending.take(&self.aws, doing, token).await? else {
            return Ok(());
        };
        let is_registered = match &mine.whose {
            Whose::Workspace(id) => self.workspaces.get(id).await?.is_some(),
            Whose::Consumer(_, id) => self.connections.get(id).await?.is_some(),
        };
        match (doing, is_registered) {
            (Doing::Changing, _) => self.mender.restore(&mine).await,
            (_, false) => Ok(self.aws.remove_pending(&mine).await?),
            // never seen: a note to remove what the registry has is no reason to remove it
            (_, true) => {
                tracing::error!(pending = ?mine, "a note of something removed that is there");
                Ok(mine.clear(&self.aws).await.map(drop)?)
            }
        }
    }
}
