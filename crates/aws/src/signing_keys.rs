//! The keys that sign access tokens.
//!
//! The private ones are in one secret of Secrets Manager, which only the function that signs may read; the public ones are in an item
//! of the bus's table, for all others. A new key's public part is written first: when the first token with its `kid` comes, whoever
//! does not know it yet finds it there. A key that signs no more stays until its last token has expired.

use async_trait::async_trait;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use storybus_core::domain::time::Millis;
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::{SigningKeys, StoreError};

use crate::Aws;
use crate::call::Failed;
use crate::item::{Attributes, Item, json, s};
use crate::keys;
use crate::writes::{Action, Check, Committed};

/// How long a key is kept that was replaced: a token holds for an hour, and a function may sign with the key it has in memory for
/// some minutes more.
const KEPT: Duration = Duration::from_secs(2 * 3600);

/// Every function signs with a new key this long after it was made: whoever signs reads the keys again when they are 60 s old, and
/// clocks differ.
const SETTLED: Duration = Duration::from_secs(90);

/// The key that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signs {
    /// Its name.
    pub kid: String,
    /// When it replaced one that is still kept. Absent when it is the only one.
    pub since: Option<Millis>,
}

impl Signs {
    /// How long until no function signs with a key before it.
    #[must_use]
    pub fn settles_in(&self, now: Millis) -> Duration {
        // no more than the whole of it, though another's clock is ahead
        self.since
            .map_or(Duration::ZERO, |at| now.until(at.plus(SETTLED)).min(SETTLED))
    }
}

/// The public keys in the bus's table.
#[derive(Clone)]
pub struct DynamoKeys {
    aws: Aws,
}

/// The keys with their private parts, in Secrets Manager.
#[derive(Clone)]
pub struct SecretKeys {
    aws: Aws,
}

impl Aws {
    /// The keys, to check tokens.
    #[must_use]
    pub fn public_keys(&self) -> DynamoKeys {
        DynamoKeys { aws: self.clone() }
    }

    /// The keys, to sign tokens.
    #[must_use]
    pub fn secret_keys(&self) -> SecretKeys {
        SecretKeys { aws: self.clone() }
    }
}

/// What the secret holds, and the item without private parts.
#[derive(Default, Serialize, Deserialize)]
struct Keys {
    #[serde(default)]
    keys: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    kid: String,
    /// PKCS #8 in DER, base64. Absent for a key that signs no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private: Option<String>,
    /// 32 bytes, base64url as in a JWK.
    public: String,
    /// When it was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired_at: Option<Millis>,
}

impl Entry {
    fn generate() -> Result<Self, StoreError> {
        let not_made = |_| internal("no signing key could be made");
        let pair = Ed25519KeyPair::generate().map_err(not_made)?;
        let private = pair.to_pkcs8v1().map_err(not_made)?;
        let public = URL_SAFE_NO_PAD.encode(pair.public_key());
        Ok(Self {
            kid: thumbprint(&public),
            private: Some(STANDARD.encode(private.as_ref())),
            public,
            retired_at: None,
        })
    }

    fn read(&self) -> Result<SigningKey, StoreError> {
        let wrong = |what: &str| internal(&format!("key {}: {what}", self.kid));
        let public = URL_SAFE_NO_PAD.decode(&self.public);
        let public: [u8; 32] = public
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| wrong("its public part is not 32 bytes in base64url"))?;
        let private = match &self.private {
            None => None,
            Some(text) => {
                let der = STANDARD
                    .decode(text)
                    .map_err(|_| wrong("its private part is not base64"))?;
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
                    .map_err(|_| wrong("its private part is not an Ed25519 key"))?;
                if pair.public_key().as_ref() != public {
                    return Err(wrong("its two parts do not belong together"));
                }
                Some(der)
            }
        };
        Ok(SigningKey {
            kid: self.kid.clone(),
            private,
            public,
        })
    }

    fn without_private(&self) -> Self {
        Self {
            private: None,
            ..self.clone()
        }
    }

    /// It signs no more, from now on if not before.
    fn retired(&self, now: Millis) -> Self {
        Self {
            retired_at: self.retired_at.or(Some(now)),
            ..self.without_private()
        }
    }

    /// Whether a token that it signed may still hold.
    fn is_needed(&self, now: Millis) -> bool {
        self.retired_at.is_none_or(|at| now < at.plus(KEPT))
    }
}

/// RFC 7638 (members in the order of RFC 8037, appendix A.3): a name that follows from the key alone.
fn thumbprint(public: &str) -> String {
    let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{public}"}}"#);
    URL_SAFE_NO_PAD.encode(Sha256::digest(jwk.as_bytes()))
}

fn internal(reason: &str) -> StoreError {
    StoreError::Internal {
        reason: reason.to_owned(),
    }
}

/// The one that signs.
fn signing(keys: &Keys) -> Result<&Entry, StoreError> {
    let signs = keys.keys.iter().find(|key| key.private.is_some());
    signs.ok_or_else(|| internal("the secret holds no key that can sign"))
}

fn read_all(keys: &Keys) -> Result<Vec<SigningKey>, StoreError> {
    keys.keys.iter().map(Entry::read).collect()
}

#[async_trait]
impl SigningKeys for DynamoKeys {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        let (keys, _) = self.stored().await?;
        if keys.keys.is_empty() {
            return Err(internal("there are no public keys"));
        }
        read_all(&keys)
    }
}

impl DynamoKeys {
    /// The keys, and the version of their item if it is there.
    async fn stored(&self) -> Result<(Keys, Option<String>), StoreError> {
        let item = self
            .aws
            .caller
            .read(|| async {
                let request = self
                    .aws
                    .dynamodb
                    .get_item()
                    .table_name(&self.aws.config.table)
                    .set_key(Some(keys::public_keys()))
                    .consistent_read(true);
                Ok(request.send().await?.item)
            })
            .await?;
        Ok(match item {
            None => (Keys::default(), None),
            Some(item) => (
                item.need_json("keys")?,
                Some(item.need_text("version")?.to_owned()),
            ),
        })
    }

    /// Writes them over the version that was read.
    async fn write(&self, keys: &Keys, version: &str, read: Option<&str>) -> Result<(), StoreError> {
        let mut item = keys::public_keys();
        item.insert("keys".to_owned(), json(keys)?);
        item.insert("version".to_owned(), s(version));
        let action = match read {
            None => Action::put(item).when("attribute_not_exists(pk)"),
            Some(read) => Action::put(item).when("#version = :read").value(":read", s(read)),
        };
        let version_of = |item: &Item| item.text("version").map(str::to_owned);
        match self.aws.write_one(&self.aws.config.table, action).await? {
            Committed::Done => Ok(()),
            Committed::Refused { checks, .. }
                if checks
                    .first()
                    .and_then(Check::item)
                    .and_then(version_of)
                    .as_deref()
                    == Some(version) =>
            {
                Ok(())
            }
            Committed::Refused { .. } => Err(StoreError::Unavailable {
                reason: "another is changing the keys".to_owned(),
            }),
        }
    }
}

#[async_trait]
impl SigningKeys for SecretKeys {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        let keys = read_all(&self.stored().await?)?;
        if keys.iter().all(|key| key.private.is_none()) {
            return Err(internal("the secret holds no key that can sign"));
        }
        Ok(keys)
    }
}

impl SecretKeys {
    /// Makes a first key if there is none that can sign, and sees to it that the public ones are known. Done again, it changes nothing.
    ///
    /// # Errors
    ///
    /// The secret or the table cannot be reached, or is not there. Called again, it goes on.
    pub async fn make_first(&self, now: Millis) -> Result<(), StoreError> {
        let keys = self.stored().await?;
        if keys.keys.iter().all(|key| key.private.is_none()) {
            return self.rotate(now).await.map(drop);
        }
        let table = self.aws.public_keys();
        let (mut public, version) = table.stored().await?;
        let missing: Vec<Entry> = keys
            .keys
            .iter()
            .filter(|key| public.keys.iter().all(|known| known.kid != key.kid))
            .map(Entry::without_private)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let new = missing[0].kid.clone();
        public.keys.splice(0..0, missing);
        table.write(&public, &new, version.as_deref()).await
    }

    /// Makes a new key that signs from now on; gives its `kid`. Those before it stay, to check the tokens that they signed, and go
    /// with a rotation after these have expired.
    ///
    /// Interrupted between its two writes, it leaves a public key that nobody signs with: the next rotation retires it.
    ///
    /// # Errors
    ///
    /// The secret or the table cannot be reached, or is not there, or another rotation is at work.
    pub async fn rotate(&self, now: Millis) -> Result<String, StoreError> {
        let secret = self.stored().await?;
        let table = self.aws.public_keys();
        let (public, version) = table.stored().await?;
        let new = Entry::generate()?;
        let old = |keys: &[Entry]| -> Vec<Entry> {
            let needed = keys.iter().filter(|key| key.is_needed(now));
            needed.map(|key| key.retired(now)).collect()
        };
        let mut secret = old(&secret.keys);
        // Also those that the secret does not know: of a rotation that was interrupted, or that is at work beside this one.
        let mut public = old(&public.keys);
        for key in &secret {
            match public.iter_mut().find(|known| known.kid == key.kid) {
                Some(known) => known.retired_at = known.retired_at.max(key.retired_at),
                None => public.push(key.clone()),
            }
        }
        public.insert(0, new.without_private());
        table
            .write(&Keys { keys: public }, &new.kid, version.as_deref())
            .await?;
        secret.insert(0, new.clone());
        self.write(&Keys { keys: secret }, &new.kid).await?;
        Ok(new.kid)
    }

    /// Which key signs.
    ///
    /// # Errors
    ///
    /// The secret cannot be reached, or holds no key that can sign.
    pub async fn signs(&self) -> Result<Signs, StoreError> {
        let keys = self.stored().await?;
        let signs = signing(&keys)?;
        // a rotation retires the key that signed before it, and none later
        let others = keys.keys.iter().filter(|key| key.kid != signs.kid);
        Ok(Signs {
            kid: signs.kid.clone(),
            since: others.filter_map(|key| key.retired_at).max(),
        })
    }

    /// Forgets every key but this one, which signs, whatever tokens of the others still hold: for when a key was seen by others. Says
    /// how many they were. Who checks tokens knows it within five minutes.
    ///
    /// A function may sign with the key before until this one has [settled](Signs::settles_in), and its tokens would be refused at once:
    /// it is for the caller to wait so long.
    ///
    /// # Errors
    ///
    /// As those of [`rotate`](Self::rotate). Not available also when another key signs by now.
    pub async fn drop_old(&self, kid: &str) -> Result<usize, StoreError> {
        let mut secret = self.stored().await?;
        let signs = signing(&secret)?.clone();
        if signs.kid != kid {
            return Err(StoreError::Unavailable {
                reason: "another has made a new key meanwhile".to_owned(),
            });
        }
        let table = self.aws.public_keys();
        let (public, version) = table.stored().await?;
        let old = public.keys.iter().filter(|key| key.kid != signs.kid).count();
        // It names this content alone: a repetition finds its own trace.
        let name = format!("{}-alone", signs.kid);
        if old > 0 {
            let alone = Keys {
                keys: vec![signs.without_private()],
            };
            table.write(&alone, &name, version.as_deref()).await?;
        }
        if secret.keys.len() > 1 {
            secret.keys.retain(|key| key.kid == signs.kid);
            self.write(&secret, &name).await?;
        }
        Ok(old)
    }

    async fn stored(&self) -> Result<Keys, StoreError> {
        let client = self.aws.secrets();
        let text = self
            .aws
            .caller
            .read(|| async {
                let request = client.get_secret_value().secret_id(&self.aws.config.signing_keys);
                match request.send().await.map_err(Failed::from) {
                    // an empty one is what the local stack has instead of none
                    Ok(found) => Ok(found.secret_string.filter(|text| !text.is_empty())),
                    // there is no secret, or it has no value yet: which, shows when it is written
                    Err(failed) if failed.is_absent() => Ok(None),
                    Err(failed) => Err(failed),
                }
            })
            .await?;
        let Some(text) = text else {
            return Ok(Keys::default());
        };
        // Only where it goes wrong is told, never a part of it.
        serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            internal(&format!("the secret holds no keys: line {line}, column {column}"))
        })
    }

    /// One version of the secret has one content: written again under its token, nothing happens.
    async fn write(&self, keys: &Keys, token: &str) -> Result<(), StoreError> {
        let client = self.aws.secrets();
        let text = serde_json::to_string(keys).map_err(|_| internal("keys cannot be written as JSON"))?;
        self.aws
            .caller
            .write(|| async {
                let request = client
                    .put_secret_value()
                    .secret_id(&self.aws.config.signing_keys)
                    .client_request_token(token)
                    .secret_string(&text);
                request.send().await.map(drop).map_err(Failed::from)
            })
            .await
    }
}
