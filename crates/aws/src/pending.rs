//! What is half made, half changed or half gone on AWS.
//!
//! A topic, a queue and a subscription cannot be made in the transaction that writes the registry. So whoever begins writes a note
//! first, and the transaction that ends it takes the note away: as long as it stands, nobody else makes, changes or removes the
//! resources of that id, and if its writer dies, the sweeper finds it. A note is one item per id, so it also locks.

use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_protocol::id::{ConnectionId, WorkspaceId};

use crate::Aws;
use crate::item::{Attributes as _, Item, n, s, unreadable};
use crate::keys;
use crate::query::Range;
use crate::registry::Token;
use crate::writes::{Action, Committed};

/// Whoever changes a consumer and has not come to an end after so long has died: functions live half a minute.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_secs(120);

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Made: not in the registry yet. Left alone, it is removed.
    Making,
    /// Changed, or made anew after it was deleted by hand: left alone, it gets what the registry has.
    Changing,
    /// Removed: not in the registry any more. Left alone, the removal is finished.
    Removing,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Changing => "changing",
            Self::Removing => "removing",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Making, Self::Changing, Self::Removing]
            .into_iter()
            .find(|doing| doing.name() == name)
    }
}

/// Whose resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A workspace's topic.
    Workspace(WorkspaceId),
    /// A consumer's queues, subscription and alarms.
    Consumer(WorkspaceId, ConnectionId),
}

impl Whose {
    fn id(&self) -> &str {
        match self {
            Self::Workspace(id) => id.as_str(),
            Self::Consumer(_, id) => id.as_str(),
        }
    }

    fn workspace(&self) -> &WorkspaceId {
        match self {
            Self::Workspace(id) | Self::Consumer(id, _) => id,
        }
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) whose: Whose,
    pub(crate) doing: Doing,
    /// Names whoever works at it: who finds another name has lost it.
    pub(crate) token: Token,
    pub(crate) at: Millis,
}

impl Pending {
    fn key(&self) -> Item {
        keys::pending(self.whose.id())
    }

    fn item(&self) -> Item {
        let mut item = self.key();
        item.insert("doing".to_owned(), s(self.doing.name()));
        item.insert("token".to_owned(), s(&self.token.0));
        item.insert("at".to_owned(), n(self.at.0));
        item.insert("workspace".to_owned(), s(self.whose.workspace().as_str()));
        if let Whose::Consumer(_, id) = &self.whose {
            item.insert("consumer".to_owned(), s(id.as_str()));
        }
        item
    }

    fn read(item: &Item) -> Result<Self, StoreError> {
        let workspace = item.need_parsed("workspace")?;
        let consumer = item.text("consumer").map(str::parse).transpose();
        Ok(Self {
            whose: match consumer.map_err(|_| unreadable("consumer"))? {
                Some(id) => Whose::Consumer(workspace, id),
                None => Whose::Workspace(workspace),
            },
            doing: Doing::parse(item.need_text("doing")?).ok_or_else(|| unreadable("doing"))?,
            token: Token(item.need_text("token")?.to_owned()),
            at: Millis(item.need_number("at")?),
        })
    }

    /// Writes the note if nobody else has one, or who had one for a change has died.
    pub(crate) fn begin(&self) -> Action {
        Action::put(self.item())
            .when("attribute_not_exists(pk) OR (#doing = :changing AND #at <= :abandoned)")
            .value(":changing", s(Doing::Changing.name()))
            .value(":abandoned", n(self.at.minus(ABANDONED_AFTER).0))
    }

    /// Writes the note, whoever has one.
    pub(crate) fn insist(&self) -> Action {
        Action::put(self.item())
    }

    /// Takes the note away if it is ours still.
    pub(crate) fn end(&self) -> Action {
        Action::delete(self.key())
            .when("#token = :token")
            .value(":token", s(&self.token.0))
    }

    /// Takes the note away, if it is ours still; says whether it was. A repetition whose first try did it finds none either, so
    /// `false` means: look whether it is as it should be.
    pub(crate) async fn clear(&self, aws: &Aws) -> Result<bool, StoreError> {
        let ended = aws.write_one(&aws.config.table, self.end()).await?;
        Ok(ended == Committed::Done)
    }

    /// Makes another's note ours, in order to do this; `None` when it was not as it was read.
    pub(crate) async fn take(
        &self,
        aws: &Aws,
        doing: Doing,
        token: Token,
    ) -> Result<Option<Self>, StoreError> {
        let mine = Self {
            doing,
            token,
            ..self.clone()
        };
        let action = Action::put(mine.item())
            .when("#token = :theirs OR #token = :mine")
            .value(":theirs", s(&self.token.0))
            .value(":mine", s(&mine.token.0));
        Ok(match aws.write_one(&aws.config.table, action).await? {
            Committed::Done => Some(mine),
            Committed::Refused { .. } => None,
        })
    }
}

impl Aws {
    /// All notes.
    pub(crate) async fn pending(&self) -> Result<Vec<Pending>, StoreError> {
        let items = self.range(Range::of(keys::PENDING)).await?;
        items.iter().map(Pending::read).collect()
    }

    /// Removes the resources of a note, and then the note.
    pub(crate) async fn remove_pending(&self, pending: &Pending) -> Result<(), StoreError> {
        match &pending.whose {
            Whose::Workspace(id) => self.remove_topic(id).await?,
            Whose::Consumer(workspace, id) => self.remove_consumer(workspace, id).await?,
        }
        pending.clear(self).await.map(drop)
    }
}
