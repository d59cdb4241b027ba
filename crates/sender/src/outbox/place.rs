//! Where an outbox lies, and connections of our own to it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _};

use super::conn::Conn;
use super::error::{OutboxError, Trouble};

/// How long a write waits for a transaction of somebody else's on SQLite.
const BUSY: Duration = Duration::from_secs(10);

/// Where an outbox lies.
#[derive(Clone)]
pub(crate) enum Place {
    Sqlite(Box<SqliteConnectOptions>),
    Postgres(Box<PgConnectOptions>),
}

/// With the user and without the password: this is what a log gets.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(options) => write!(f, "sqlite:{}", options.get_filename().display()),
            Self::Postgres(options) => write!(
                f,
                "postgres://{}@{}:{}/{}",
                options.get_username(),
                options.get_host(),
                options.get_port(),
                options.get_database().unwrap_or_default()
            ),
        }
    }
}

/// Whether the user and the password of a URL end at its only `@`. Else a part of the password would be taken for the host, and be shown.
fn is_encoded(rest: &str) -> bool {
    let mut parts = rest.split('@');
    let (user, host, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let user = user.trim_start_matches('/');
    more.is_none() && !rest.contains('#') && (host.is_none() || !user.contains(['/', '?']))
}

impl Place {
    /// `postgres://…`, `sqlite:PATH`, or a path. No error repeats the address: it may hold a password.
    pub(crate) fn parse(address: &str) -> Result<Self, OutboxError> {
        let bad = |reason: &str| OutboxError::Address {
            reason: reason.to_owned(),
        };
        let (scheme, rest) = match address.split_once(':') {
            // One letter is a drive, and a name with a slash before the colon is a path.
            Some((scheme, rest)) if scheme.len() > 1 && !scheme.contains(['/', '\\', '.']) => (scheme, rest),
            _ => ("sqlite", address),
        };
        match scheme {
            "postgres" | "postgresql" => {
                if !is_encoded(rest) {
                    return Err(bad(
                        "it has a second @, or a /, ? or # before the @: percent-encode the password (@ is %40, / is %2F, ? is %3F, # is %23)",
                    ));
                }
                let options = PgConnectOptions::from_str(address)
                    .map_err(|_| bad("it cannot be read as the URL of a PostgreSQL database"))?;
                Ok(Self::Postgres(Box::new(
                    options.application_name("storybus").disable_statement_logging(),
                )))
            }
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() || path.contains(":memory:") {
                    return Err(bad("an outbox on SQLite needs a file"));
                }
                Ok(Self::Sqlite(Box::new(
                    SqliteConnectOptions::new()
                        .filename(path)
                        .create_if_missing(true)
                        .synchronous(SqliteSynchronous::Full)
                        .busy_timeout(BUSY)
                        .optimize_on_close(false, None)
                        .disable_statement_logging(),
                )))
            }
            _ => Err(bad("it is neither on SQLite nor on PostgreSQL")),
        }
    }

    pub(crate) async fn connect(&self) -> Result<Own, OutboxError> {
        let unreachable = |error: sqlx::Error| OutboxError::Unreachable(Trouble::from(error));
        Ok(match self {
            Self::Sqlite(options) => Own::Sqlite(
                SqliteConnection::connect_with(options)
                    .await
                    .map_err(unreachable)?,
            ),
            Self::Postgres(options) => {
                Own::Postgres(PgConnection::connect_with(options).await.map_err(unreachable)?)
            }
        })
    }
}

/// A connection of our own. Whoever fails on it, or is dropped half-way, drops it: that rolls back.
#[derive(Debug)]
pub(crate) enum Own {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Own {
    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(conn) => conn.into(),
            Self::Postgres(conn) => conn.into(),
        }
    }

    /// Ends it in good order.
    pub(crate) async fn close(self) {
        // Nothing depends on how a connection ends.
        let _ = match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
        };
    }
}
