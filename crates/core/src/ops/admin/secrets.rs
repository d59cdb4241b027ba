//! Client secrets: shown once, kept as a slow hash, two at most.

use std::fmt;

use storybus_protocol::id::{ConnectionKind, SecretId};
use storybus_protocol::rule;

use super::Actor;
use super::connections::Write;
use crate::bus::Bus;
use crate::domain::connection::{Connection, MAX_SECRETS, Secret};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;

/// Which connection: as a path of the operator API names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPath<'a> {
    /// What it must be.
    pub kind: ConnectionKind,
    /// Its workspace; `None` for operators.
    pub tenant: Option<&'a str>,
    /// Its id.
    pub id: &'a str,
}

/// A secret that was made now: the only time it is seen.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSecret {
    /// Its id, which is not secret.
    pub id: SecretId,
    /// The secret itself, of `[A-Za-z0-9_-]`.
    pub secret: String,
    /// When it was made.
    pub created_at: Millis,
}

impl fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the secret never reaches a log
        f.debug_struct("NewSecret")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A connection that was made now, with its first secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The connection.
    pub connection: Connection,
    /// Its first secret.
    pub secret: NewSecret,
}

fn secret_limit() -> Refusal {
    Refusal::policy(
        RefusalKind::Conflict,
        rule::SECRET_LIMIT,
        "two secrets are live already; delete the one that is no longer used, then make a new one",
    )
}

fn secret_not_found() -> Refusal {
    Refusal::policy(
        RefusalKind::NotFound,
        rule::SECRET_NOT_FOUND,
        "this connection has no such secret",
    )
}

impl Bus {
    /// A new secret: as it is kept, and as it is shown once.
    pub(super) async fn secret_make(&self) -> Result<(Secret, NewSecret), Refusal> {
        let secret = self.fresh_secret();
        let hash = self.ports.hasher.hash(&secret).await.map_err(|busy| {
            tracing::warn!(%busy, "no secret made");
            let mut refusal = Refusal::unavailable();
            if let Some(first) = refusal.violations.first_mut() {
                "too many secrets are being checked at once; nothing was written: send the same request again later"
                    .clone_into(&mut first.message);
            }
            refusal
        })?;
        let (id, created_at): (SecretId, _) = (self.fresh_id('s')?, self.ports.clock.now());
        Ok((
            Secret {
                id: id.clone(),
                hash,
                created_at,
            },
            NewSecret {
                id,
                secret,
                created_at,
            },
        ))
    }

    /// Makes a second secret (or a first, when all were deleted).
    ///
    /// # Errors
    ///
    /// `404 <kind>.not_found`, `409 secret.limit` when two are live.
    pub async fn secret_create(
        &self,
        actor: &Actor,
        path: &ConnectionPath<'_>,
    ) -> Result<NewSecret, Refusal> {
        // before the slow hash is made
        if self.connection_find(path).await?.secrets.len() >= MAX_SECRETS {
            return Err(secret_limit());
        }
        let (secret, new) = self.secret_make().await?;
        let write = Write {
            action: "secret.create".to_owned(),
            part: Some(new.id.to_string()),
            details: serde_json::json!({}),
        };
        self.connection_change(actor, path, &write, |connection| {
            if connection.secrets.len() >= MAX_SECRETS {
                return Err(secret_limit());
            }
            connection.secrets.push(secret.clone());
            Ok(())
        })
        .await?;
        Ok(new)
    }

    /// The live secrets, oldest first; never what they are.
    ///
    /// # Errors
    ///
    /// `404 <kind>.not_found`.
    pub async fn secret_list(&self, path: &ConnectionPath<'_>) -> Result<Vec<Secret>, Refusal> {
        Ok(self.connection_find(path).await?.secrets)
    }

    /// Deletes one: no new token for it from now on. The last one can be deleted too, which keeps a client out until an
    /// operator makes a new one; but not that of the last operator that can log in.
    ///
    /// # Errors
    ///
    /// `404 <kind>.not_found`, `404 secret.not_found`; `400 request.invalid` for the last operator's last secret.
    pub async fn secret_delete(
        &self,
        actor: &Actor,
        path: &ConnectionPath<'_>,
        secret: &str,
    ) -> Result<(), Refusal> {
        let secrets = self.connection_find(path).await?.secrets;
        let id = secrets
            .iter()
            .map(|s| &s.id)
            .find(|id| id.as_str() == secret)
            .ok_or_else(secret_not_found)?;
        let write = Write {
            action: "secret.delete".to_owned(),
            part: Some(id.to_string()),
            details: serde_json::json!({}),
        };
        self.connection_change(actor, path, &write, |connection| {
            connection.secrets.retain(|s| s.id != *id);
            Ok(())
        })
        .await?;
        Ok(())
    }
}
