//! What can go wrong with an outbox.

use crate::message::{Invalid, Key, PayloadHash, Target};

/// What the database said. Only its own words: statements, parameters and rows are left out, since they hold payloads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Trouble {
    code: Option<String>,
    text: String,
}

impl Trouble {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            code: None,
            text: text.into(),
        }
    }

    /// The database's own code for it: an `SQLSTATE`, or a result code of SQLite.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Another transaction came first: the same again may go through.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        // serialization_failure, deadlock_detected, lock_not_available; SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_BUSY_RECOVERY.
        matches!(
            self.code.as_deref(),
            Some("40001" | "40P01" | "55P03" | "5" | "517" | "261")
        )
    }

    /// It is about what was written, not about the database: others may be written.
    pub(crate) fn is_of_a_row(&self) -> bool {
        // data_exception, integrity_constraint_violation, program_limit_exceeded, raise_exception; SQLITE_TOOBIG, SQLITE_CONSTRAINT and
        // SQLITE_MISMATCH with their extensions.
        let code = self.code.as_deref().unwrap_or_default();
        match code.parse::<u32>() {
            Ok(small) if small < 10_000 => matches!(small & 0xff, 18..=20),
            _ => ["22", "23", "54", "P0"]
                .iter()
                .any(|class| code.starts_with(class)),
        }
    }

    /// It is not allowed.
    pub(crate) fn is_forbidden(&self) -> bool {
        // insufficient_privilege, read_only_sql_transaction; SQLITE_READONLY with its extensions, and SQLITE_PERM.
        let code = self.code.as_deref();
        matches!(code, Some("42501" | "25006" | "3"))
            || code
                .and_then(|code| code.parse::<u32>().ok())
                .is_some_and(|code| code < 10_000 && code & 0xff == 8)
    }

    /// There is no outbox in that database.
    pub(crate) fn is_absent(&self) -> bool {
        // undefined_table; SQLite has only its general code for it.
        self.code.as_deref() == Some("42P01")
            || (self.code.as_deref() == Some("1") && self.text.contains("no such table"))
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => Self {
                code: said.code().map(std::borrow::Cow::into_owned),
                text: said.message().to_owned(),
            },
            other => Self::new(other.to_string()),
        }
    }
}

/// An outbox could not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    /// The address names no outbox.
    #[error(
        "not the address of an outbox: {reason}; it is a path, sqlite:PATH, or postgres://USER@HOST/DATABASE"
    )]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// The database is not there, or does not let this program in.
    #[error("the outbox's database cannot be reached: {0}")]
    Unreachable(#[source] Trouble),
    /// The database has no table `sender_log`.
    #[error("there is no outbox in this database yet: its table is made by a migration")]
    Absent,
    /// The table is of a later version of this program.
    #[error(
        "the outbox was made by a later version ({found}) than this program knows ({known}): take a newer one"
    )]
    Newer {
        /// The table's version.
        found: i64,
        /// The latest known here.
        known: i64,
    },
    /// A database on PostgreSQL that cannot keep every text.
    #[error(
        "the database's encoding is {found}, and an outbox needs UTF8, or what partners answer could not be written down: put it into a database \
         that was made with ENCODING 'UTF8'"
    )]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// The database does not take what is to be written of one message; the others go on.
    #[error(
        "the database does not let a relay write what becomes of the message {key} for {target}: {trouble}; look for triggers and constraints that \
         are not the outbox's own"
    )]
    Stuck {
        /// Whom it is for.
        target: String,
        /// Its key.
        key: String,
        /// What the database said.
        #[source]
        trouble: Trouble,
    },
    /// This program may not do that there; nothing was changed.
    #[error("this program may not do that in the outbox's database: {0}")]
    Forbidden(#[source] Trouble),
    /// The database failed, or refused; nothing was changed.
    #[error("the outbox's database failed: {0}")]
    Database(#[source] Trouble),
}

impl From<Trouble> for OutboxError {
    fn from(trouble: Trouble) -> Self {
        if trouble.is_absent() {
            Self::Absent
        } else if trouble.is_forbidden() {
            Self::Forbidden(trouble)
        } else {
            Self::Database(trouble)
        }
    }
}

impl From<sqlx::Error> for OutboxError {
    fn from(error: sqlx::Error) -> Self {
        Trouble::from(error).into()
    }
}

/// A message was not enqueued. On PostgreSQL the caller's transaction has failed with it, but for [`EnqueueError::KeyReused`] and
/// [`EnqueueError::Invalid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    /// No outbox keeps such a message.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The key stands for other bytes already. The caller's fault: a key is derived from what the message says, and never given to another.
    #[error(
        "the key {key} of {target} is taken by other content: kept is SHA-256 {kept}, given was {given}; \
         the same content under it, or this content under a key of its own, is taken"
    )]
    KeyReused {
        /// Whom it is for.
        target: Target,
        /// The key.
        key: Key,
        /// The hash of what is kept.
        kept: PayloadHash,
        /// The hash of what was given.
        given: PayloadHash,
    },
    /// Another transaction came in between. Nobody's fault: roll back, and repeat the whole transaction.
    #[error("another transaction came in between ({0}): roll back and repeat the whole transaction")]
    Conflict(#[source] Trouble),
    /// No outbox, or a database that fails.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

impl From<sqlx::Error> for EnqueueError {
    fn from(error: sqlx::Error) -> Self {
        let trouble = Trouble::from(error);
        if trouble.is_conflict() {
            Self::Conflict(trouble)
        } else {
            Self::Outbox(trouble.into())
        }
    }
}

/// An operator's wish was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// No such key.
    #[error("the outbox has no message {key} for {target}")]
    NotFound {
        /// Whom it would be for.
        target: Target,
        /// The key.
        key: Key,
    },
    /// Only parked or pending messages are resent or dropped.
    #[error("the message {key} is {state}, and that cannot be changed any more")]
    Final {
        /// The key.
        key: Key,
        /// Its state.
        state: super::State,
    },
    /// A relay is sending it at this moment.
    #[error("a relay is sending the message {key} at this moment: try again when its attempt is over")]
    UnderWay {
        /// The key.
        key: Key,
    },
    /// The partner may have it, and may have forgotten that it does.
    #[error(
        "the message {key} may have arrived {days} days ago, and the partner remembers keys for {remembers} days: it may take the message \
         a second time, after newer ones; look there first, then drop it, or confirm the resend"
    )]
    MayRepeat {
        /// The key.
        key: Key,
        /// How long ago the first attempt was that may have arrived, in whole days.
        days: u64,
        /// How long the partner remembers, in whole days.
        remembers: u64,
    },
    /// No outbox, or a database that fails.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

impl From<sqlx::Error> for OperatorError {
    fn from(error: sqlx::Error) -> Self {
        Self::Outbox(error.into())
    }
}
