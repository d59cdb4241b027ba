//! Writes of the registry: several items in one transaction, each with what it means when its condition does not hold.

use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Random, StoreError};

use crate::Aws;
use crate::item::Item;
use crate::keys::hex;
use crate::writes::{Action, Committed};

/// How many workspaces a deployment carries: each has a FIFO topic, of which an account has 1,000.
/// <https://docs.aws.amazon.com/general/latest/gr/sns.html>
pub const MAX_WORKSPACES: u32 = 1_000;
/// How many consumers a workspace carries: a FIFO topic has 100 subscriptions, one of which is the archive's.
/// <https://docs.aws.amazon.com/general/latest/gr/sns.html>
pub const MAX_CONSUMERS: u32 = 99;
/// The most actions of one transaction.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
pub(crate) const MOST_ACTIONS: usize = 100;

/// What a condition that failed on this item means.
type Meaning = Box<dyn Fn(Option<&Item>) -> RegistryError + Send + Sync>;

/// A transaction in the making. Of several conditions that fail, the one that was added first is told.
#[derive(Default)]
pub(crate) struct Plan {
    actions: Vec<Action>,
    meanings: Vec<Option<Meaning>>,
}

impl Plan {
    /// An action that always holds.
    pub(crate) fn add(&mut self, action: Action) {
        self.actions.push(action);
        self.meanings.push(None);
    }

    /// An action with a condition.
    pub(crate) fn add_or(
        &mut self,
        action: Action,
        meaning: impl Fn(Option<&Item>) -> RegistryError + Send + Sync + 'static,
    ) {
        self.actions.push(action);
        self.meanings.push(Some(Box::new(meaning)));
    }

    /// How many more fit.
    pub(crate) fn room(&self) -> usize {
        MOST_ACTIONS - self.actions.len().min(MOST_ACTIONS)
    }

    /// Does it. A repetition within the call is answered by DynamoDB as the first try was.
    pub(crate) async fn commit(self, aws: &Aws, token: &Token) -> Result<(), RegistryError> {
        let Self { actions, meanings } = self;
        match aws
            .write_together(&aws.config.table, token.0.clone(), actions)
            .await?
        {
            Committed::Done => Ok(()),
            Committed::Refused { checks, .. } => Err(checks
                .iter()
                .zip(&meanings)
                .find_map(|(check, meaning)| Some(meaning.as_ref()?(check.failed()?)))
                .unwrap_or_else(|| RegistryError::Store(internal("a condition failed that is none")))),
        }
    }
}

/// The name of one write, of 32 hexadecimal digits: no two are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) String);

impl Token {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self(hex(&bytes))
    }
}

/// What is not there was not found; what is there is another version.
pub(crate) fn absent_or_changed(found: Option<&Item>) -> RegistryError {
    match found {
        None => RegistryError::NotFound,
        Some(_) => RegistryError::Changed,
    }
}

/// Something that only a mistake of ours or a damaged table brings.
pub(crate) fn internal(reason: &str) -> StoreError {
    StoreError::Internal {
        reason: reason.to_owned(),
    }
}
