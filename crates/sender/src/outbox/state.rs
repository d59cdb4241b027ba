//! What became of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of a message. Delivered and refused are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for its turn, or for its next attempt.
    Pending,
    /// The partner has it.
    Delivered,
    /// A final no: the partner's to this message, or an operator's.
    Refused,
    /// Given up on, and kept until an operator resends or drops it. It holds its order group.
    Parked,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Delivered, Self::Refused, Self::Parked];

    /// As in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::Parked => "parked",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether it stays so.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Delivered | Self::Refused => true,
            Self::Pending | Self::Parked => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
