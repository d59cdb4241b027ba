//! The bus: its ports and its settings.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::record::Token;
use crate::ops::token::TokenCache;
use crate::ports::{
    ActivityLog, Archive, AuditLog, Clock, Connections, DeadLetters, Jobs, Ledger, QueueControl, Queues,
    Random, Rates, SecretHasher, SigningKeys, Stories, Topic, Workspaces,
};

/// What the bus runs on.
#[derive(Clone)]
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Records and stories.
    pub ledger: Arc<dyn Ledger>,
    /// Publication.
    pub topic: Arc<dyn Topic>,
    /// The consumers' queues.
    pub queues: Arc<dyn Queues>,
    /// The same in an operator's hands.
    pub queue_control: Arc<dyn QueueControl>,
    /// The consumers' dead letters.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// What was published.
    pub archive: Arc<dyn Archive>,
    /// The stories.
    pub stories: Arc<dyn Stories>,
    /// Replays and redrives.
    pub jobs: Arc<dyn Jobs>,
    /// What was refused.
    pub activity: Arc<dyn ActivityLog>,
    /// The registry of workspaces.
    pub workspaces: Arc<dyn Workspaces>,
    /// The registry of connections.
    pub connections: Arc<dyn Connections>,
    /// The audit.
    pub audit: Arc<dyn AuditLog>,
    /// Token buckets.
    pub rates: Arc<dyn Rates>,
    /// Hashes of secrets.
    pub hasher: Arc<dyn SecretHasher>,
    /// Keys of access tokens.
    pub keys: Arc<dyn SigningKeys>,
}

/// The times of the publish protocol, and who the bus says it is.
///
/// The order `publish_timeout < publish_limit < window` is what keeps a slow attempt from publishing after a retry took
/// over, at any window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long an attempt holds its claim: 30 s, but for tests.
    pub window: Duration,
    /// A publication must have ended this long after the record was written.
    pub publish_limit: Duration,
    /// How long one call of the topic may take.
    pub publish_timeout: Duration,
    /// How long a snapshot waits for another of its story before it is told to come again.
    pub contention_wait: Duration,
    /// `iss` of the access tokens.
    pub issuer: String,
    /// `aud` of the access tokens.
    pub audience: String,
}

impl Settings {
    /// The settings for a window. At 30 s: a publication ends within 10 s, each call of it within 5 s.
    #[must_use]
    pub fn with_window(window: Duration) -> Self {
        Self {
            window,
            publish_limit: window / 3,
            publish_timeout: window / 6,
            contention_wait: Duration::from_millis(1500).min(window / 3),
            issuer: "storybus".to_owned(),
            audience: "storybus".to_owned(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::with_window(Duration::from_secs(30))
    }
}

/// The bus. Cheap to clone; every operation is a method, in the module of [`ops`](crate::ops) that is named after it.
#[derive(Clone)]
pub struct Bus {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) tokens: Arc<TokenCache>,
}

impl Bus {
    /// A bus on these ports.
    #[must_use]
    pub fn new(ports: Ports, settings: Settings) -> Self {
        Self {
            ports,
            settings,
            tokens: Arc::default(),
        }
    }

    /// The same bus with ports changed: a fault switch wraps some of them for one request.
    #[must_use]
    pub fn with_ports(&self, change: impl FnOnce(&mut Ports)) -> Self {
        let mut bus = self.clone();
        change(&mut bus.ports);
        bus
    }

    /// What it runs on.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A token that was never used.
    pub(crate) fn fresh_token(&self) -> Token {
        let mut bytes = [0; 16];
        self.ports.random.fill(&mut bytes);
        Token(bytes)
    }
}
