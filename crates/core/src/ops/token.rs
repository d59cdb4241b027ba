//! TOKEN: OAuth 2.0 client credentials (RFC 6749 §4.4) into a signed access token (RFC 9068), and back.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};

use crate::bus::Bus;
use crate::domain::connection::{Connection, Rate};
use crate::domain::time::Millis;
use crate::ports::StoreError;
use crate::ports::keys::SigningKey;

/// How long an access token holds, in seconds.
pub const TOKEN_LIFETIME: i64 = 3600;
/// The scope of producers.
pub const SCOPE_PUBLISH: &str = "sombus/publish";
/// The scope of consumers.
pub const SCOPE_CONSUME: &str = "sombus/consume";
/// The scope of operators.
pub const SCOPE_ADMIN: &str = "sombus/admin";

/// How many failed log-ins of one client from one address are checked: ten, then one a second.
const FAILURES_OF_CLIENT: Rate = Rate {
    per_second: 1,
    burst: 10,
};
/// How many failed log-ins from one address are checked, whatever the client, unless the client has logged in from there
/// before: an address that tries many ids must not keep the hasher from those who are known.
const FAILURES_OF_SOURCE: Rate = Rate {
    per_second: 2,
    burst: 50,
};
/// Keys are read again after this long.
const KEYS_REFRESH: Duration = Duration::from_secs(300);
/// By whoever signs, after this long: a key that was replaced signs no more soon after.
const KEYS_REFRESH_SIGNING: Duration = Duration::from_secs(60);
/// And on an unknown `kid` at once, whenever they were read last; but for unknown ones not more often than this, whoever makes them up.
const KEYS_REFRESH_UNKNOWN: Duration = Duration::from_secs(10);
/// How many checked tokens are remembered.
const REMEMBERED_TOKENS: usize = 10_000;
/// How many (address, client) pairs that have logged in are remembered.
const REMEMBERED_CLIENTS: usize = 10_000;

/// A token request, credentials already taken out of the HTTP form.
#[derive(Clone)]
pub struct TokenRequest {
    /// As sent.
    pub client_id: String,
    /// As sent.
    pub client_secret: String,
    /// As sent, if it was.
    pub scope: Option<String>,
    /// Where the request came from, for the limit on failed log-ins.
    pub source: String,
}

/// A token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TokenAnswer {
    /// The JWT.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: &'static str,
    /// Seconds.
    pub expires_in: i64,
    /// What was granted.
    pub scope: &'static str,
}

/// No token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The client is unknown, disabled, or the secret is wrong: which, is not told.
    InvalidClient,
    /// An unknown scope, or one that this client can never have.
    InvalidScope,
    /// Too many failed log-ins, or too many log-ins at once: seconds after which to try again.
    SlowDown(u64),
    /// A store cannot be reached.
    Unavailable,
    /// Our own fault.
    Internal,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Issuer.
    pub iss: String,
    /// The client.
    pub sub: ConnectionId,
    /// The client.
    pub client_id: ConnectionId,
    /// Audience.
    pub aud: String,
    /// End, in epoch seconds.
    pub exp: i64,
    /// Beginning, in epoch seconds.
    pub iat: i64,
    /// The token's own id.
    pub jti: String,
    /// What was granted.
    pub scope: String,
    /// What the client is.
    pub kind: ConnectionKind,
    /// Its workspace, but for operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<WorkspaceId>,
}

/// What is remembered between requests: keys, checked tokens, known clients.
#[derive(Default)]
pub struct TokenCache {
    keys: Mutex<Option<LoadedKeys>>,
    /// By the SHA-256 of the token: a token itself is a secret. What a token says never changes; whether its client may
    /// still do it is asked of the registry each time.
    /// It holds only while its key is among the live ones.
    checked: Mutex<HashMap<[u8; 32], Checked>>,
    /// (address, client) pairs that have logged in.
    known: Mutex<HashSet<(String, String)>>,
    /// The hash of no secret, so that an unknown client takes as long as a known one.
    decoy: Mutex<Option<String>>,
}

/// A token that was checked.
#[derive(Clone)]
struct Checked {
    kid: String,
    claims: Arc<Claims>,
}

#[derive(Clone)]
struct LoadedKeys {
    at: Millis,
    /// When they were last read for the sake of an unknown `kid`.
    sought: Option<Millis>,
    keys: Arc<Vec<SigningKey>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is cached is whole after every statement, so a panic elsewhere has not broken it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The scope of a kind.
fn own_scope(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::Producer => SCOPE_PUBLISH,
        ConnectionKind::Consumer => SCOPE_CONSUME,
        ConnectionKind::Operator => SCOPE_ADMIN,
    }
}

/// What is granted. Existing clients ask for `sombus/publish` whatever they are, so the kind decides; only what a client
/// can never have is refused.
fn granted_scope(kind: ConnectionKind, asked: Option<&str>) -> Result<&'static str, TokenRefusal> {
    for scope in asked.unwrap_or_default().split(' ').filter(|s| !s.is_empty()) {
        match scope {
            SCOPE_PUBLISH | SCOPE_CONSUME => {}
            SCOPE_ADMIN if kind == ConnectionKind::Operator => {}
            _ => return Err(TokenRefusal::InvalidScope),
        }
    }
    Ok(own_scope(kind))
}

impl From<StoreError> for TokenRefusal {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "store failed while a token was made");
        match error {
            StoreError::Unavailable { .. } | StoreError::QueueGone { .. } | StoreError::Unknown { .. } => {
                Self::Unavailable
            }
            StoreError::Internal { .. } => Self::Internal,
        }
    }
}

impl Bus {
    /// Makes an access token.
    ///
    /// # Errors
    ///
    /// See [`TokenRefusal`]. Failed attempts are limited per client and address; those over the limit are not checked.
    pub async fn token_issue(&self, request: &TokenRequest) -> Result<TokenAnswer, TokenRefusal> {
        let id: Option<ConnectionId> = request.client_id.parse().ok();
        // An ill-formed id is nobody's: all of them share one bucket, so that none is made for each.
        let name = id.as_ref().map_or("?", ConnectionId::as_str);
        let of_client = format!("login:{}:{name}", request.source);
        let of_source = format!("login:{}", request.source);
        self.failures_left(&of_client, FAILURES_OF_CLIENT).await?;
        let pair = (request.source.clone(), name.to_owned());
        if !locked(&self.tokens.known).contains(&pair) {
            self.failures_left(&of_source, FAILURES_OF_SOURCE).await?;
        }
        let connection = match &id {
            Some(id) => self.ports.connections.get(id).await?,
            None => None,
        };
        if !self
            .secret_holds(connection.as_ref(), &request.client_secret)
            .await?
        {
            let now = self.ports.clock.now();
            self.ports.rates.take(&of_client, FAILURES_OF_CLIENT, now).await?;
            self.ports.rates.take(&of_source, FAILURES_OF_SOURCE, now).await?;
            return Err(TokenRefusal::InvalidClient);
        }
        let connection = connection
            .filter(|c| !c.disabled)
            .ok_or(TokenRefusal::InvalidClient)?;
        {
            let mut known = locked(&self.tokens.known);
            if known.len() >= REMEMBERED_CLIENTS {
                known.clear();
            }
            known.insert(pair);
        }
        self.token_sign(
            &connection,
            granted_scope(connection.kind(), request.scope.as_deref())?,
        )
        .await
    }

    async fn failures_left(&self, bucket: &str, rate: Rate) -> Result<(), TokenRefusal> {
        let now = self.ports.clock.now();
        match self.ports.rates.peek(bucket, rate, now).await? {
            None => Ok(()),
            Some(at) => Err(TokenRefusal::SlowDown(now.retry_after(at))),
        }
    }

    /// Whether the secret is one of the connection's. Takes as long when there is no such connection.
    async fn secret_holds(
        &self,
        connection: Option<&Connection>,
        secret: &str,
    ) -> Result<bool, TokenRefusal> {
        let busy = |_| TokenRefusal::SlowDown(1);
        let hashes: Vec<&str> = connection
            .map(|c| c.secrets.iter().map(|s| s.hash.as_str()).collect())
            .unwrap_or_default();
        if hashes.is_empty() {
            let decoy = locked(&self.tokens.decoy).clone();
            let decoy = match decoy {
                Some(decoy) => decoy,
                None => {
                    let made = self.ports.hasher.hash("").await.map_err(busy)?;
                    locked(&self.tokens.decoy).insert(made).clone()
                }
            };
            self.ports.hasher.verify(secret, &decoy).await.map_err(busy)?;
            return Ok(false);
        }
        for hash in hashes {
            if self.ports.hasher.verify(secret, hash).await.map_err(busy)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn token_sign(
        &self,
        connection: &Connection,
        scope: &'static str,
    ) -> Result<TokenAnswer, TokenRefusal> {
        let keys = self.keys(None, KEYS_REFRESH_SIGNING).await?;
        let (key, private) = keys
            .iter()
            .find_map(|k| k.private.as_ref().map(|p| (k, p)))
            .ok_or(TokenRefusal::Internal)?;
        let now = self.ports.clock.now().0.div_euclid(1000);
        let mut jti = [0; 16];
        self.ports.random.fill(&mut jti);
        let claims = Claims {
            iss: self.settings.issuer.clone(),
            sub: connection.id.clone(),
            client_id: connection.id.clone(),
            aud: self.settings.audience.clone(),
            exp: now + TOKEN_LIFETIME,
            iat: now,
            jti: URL_SAFE_NO_PAD.encode(jti),
            scope: scope.to_owned(),
            kind: connection.kind(),
            tenant: connection.workspace.clone(),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(key.kid.clone());
        let access_token = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(private))
            .map_err(|error| {
                tracing::error!(%error, kid = key.kid, "token not signed");
                TokenRefusal::Internal
            })?;
        Ok(TokenAnswer {
            access_token,
            token_type: "Bearer",
            expires_in: TOKEN_LIFETIME,
            scope,
        })
    }

    /// What a token says, if it is one of ours and holds now.
    ///
    /// # Errors
    ///
    /// Only when the keys cannot be loaded.
    pub async fn token_check(&self, token: &str) -> Result<Option<Arc<Claims>>, StoreError> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let now = self.ports.clock.now().0.div_euclid(1000);
        let holds = |claims: &Claims| now < claims.exp;
        let known = locked(&self.tokens.checked).get(&digest).cloned();
        if let Some(Checked { kid, claims }) = known {
            let keys = self.keys(Some(&kid), KEYS_REFRESH).await?;
            let live = keys.iter().any(|key| key.kid == kid);
            return Ok(Some(claims).filter(|c| live && holds(c)));
        }
        let Some((kid, claims)) = self.token_verify(token).await? else {
            return Ok(None);
        };
        if !holds(&claims) {
            return Ok(None);
        }
        let claims = Arc::new(claims);
        let mut checked = locked(&self.tokens.checked);
        if checked.len() >= REMEMBERED_TOKENS {
            checked.retain(|_, c| holds(&c.claims));
            if checked.len() >= REMEMBERED_TOKENS {
                checked.clear();
            }
        }
        let kept = Checked {
            kid,
            claims: claims.clone(),
        };
        checked.insert(digest, kept);
        Ok(Some(claims))
    }

    /// The key that signed it, and what it says.
    async fn token_verify(&self, token: &str) -> Result<Option<(String, Claims)>, StoreError> {
        let Ok(header) = jsonwebtoken::decode_header(token) else {
            return Ok(None);
        };
        // RFC 9068 §4: the type tells an access token from any other JWT of the same issuer.
        let access_token = header.typ.as_deref().is_some_and(|t| {
            t.eq_ignore_ascii_case("at+jwt") || t.eq_ignore_ascii_case("application/at+jwt")
        });
        let Some(kid) = header
            .kid
            .filter(|_| access_token && header.alg == Algorithm::EdDSA)
        else {
            return Ok(None);
        };
        let keys = self.keys(Some(&kid), KEYS_REFRESH).await?;
        let Some(key) = keys.iter().find(|k| k.kid == kid) else {
            return Ok(None);
        };
        let Ok(decoding) = DecodingKey::from_ed_components(&URL_SAFE_NO_PAD.encode(key.public)) else {
            return Ok(None);
        };
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // The clock is a port: the caller compares.
        validation.validate_exp = false;
        Ok(jsonwebtoken::decode::<Claims>(token, &decoding, &validation)
            .ok()
            .map(|data| (kid, data.claims)))
    }

    /// The JWKS (RFC 7517): every live public key.
    ///
    /// # Errors
    ///
    /// When the keys cannot be loaded.
    pub async fn jwks(&self) -> Result<serde_json::Value, StoreError> {
        let keys = self.keys(None, KEYS_REFRESH).await?;
        let keys: Vec<serde_json::Value> = keys
            .iter()
            .map(|k| {
                serde_json::json!({
                    "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
                    "kid": k.kid, "x": URL_SAFE_NO_PAD.encode(k.public),
                })
            })
            .collect();
        Ok(serde_json::json!({ "keys": keys }))
    }

    /// The keys, loaded at first use, again when they are `refresh` old, and when one is wanted that is not among them.
    async fn keys(
        &self,
        wanted: Option<&str>,
        refresh: Duration,
    ) -> Result<Arc<Vec<SigningKey>>, StoreError> {
        let now = self.ports.clock.now();
        let loaded = locked(&self.tokens.keys).clone();
        let mut sought = None;
        if let Some(loaded) = loaded {
            let missing = wanted.is_some_and(|kid| !loaded.keys.iter().any(|k| k.kid == kid));
            // A key may be made right after the others were read, and the first token that it signs must not be refused.
            let seek = missing
                && loaded
                    .sought
                    .is_none_or(|at| now >= at.plus(KEYS_REFRESH_UNKNOWN));
            if now < loaded.at.plus(refresh) && !seek {
                return Ok(loaded.keys);
            }
            sought = if seek { Some(now) } else { loaded.sought };
        }
        let keys = Arc::new(self.ports.keys.load().await?);
        *locked(&self.tokens.keys) = Some(LoadedKeys {
            at: now,
            sought,
            keys: keys.clone(),
        });
        Ok(keys)
    }
}
