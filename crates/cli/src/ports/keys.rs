//! The keys that sign access tokens, in a file of mode 600.
//!
//! The file holds several keys so that they can be rotated: the first one with a private part signs, the others are there
//! so that the tokens they signed hold until they expire. It is read anew at every load, so a rotation needs no restart.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::{SigningKeys, StoreError};

use crate::private_file;

/// The keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not one of ours any more.
    #[error("{} does not hold signing keys ({reason}); put the file back from a backup, or move it away: then new keys are made and every client gets a new token", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No key could be made.
    #[error("no signing key could be made")]
    NotMade,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct KeysFile {
    keys: Vec<KeyEntry>,
}

#[derive(Clone, Serialize, Deserialize)]
struct KeyEntry {
    kid: String,
    /// PKCS #8 in DER, base64. Absent for a key that signs no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private: Option<String>,
    /// 32 bytes, base64url as in a JWK.
    public: String,
}

impl KeyEntry {
    fn generate() -> Result<Self, KeysError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| KeysError::NotMade)?;
        let private = pair.to_pkcs8v1().map_err(|_| KeysError::NotMade)?;
        let public = URL_SAFE_NO_PAD.encode(pair.public_key());
        Ok(Self {
            kid: thumbprint(&public),
            private: Some(STANDARD.encode(private.as_ref())),
            public,
        })
    }

    fn read(&self) -> Result<SigningKey, String> {
        let wrong = |what: &str| format!("key {}: {what}", self.kid);
        let public = URL_SAFE_NO_PAD
            .decode(&self.public)
            .map_err(|_| wrong("its public part is not base64url"))?;
        let public: [u8; 32] = public
            .try_into()
            .map_err(|_| wrong("its public part is not 32 bytes"))?;
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
}

/// RFC 7638 (members in the order of RFC 8037, appendix A.3): a name that follows from the key alone.
fn thumbprint(public: &str) -> String {
    let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{public}"}}"#);
    URL_SAFE_NO_PAD.encode(Sha256::digest(jwk.as_bytes()))
}

/// The keys in a file.
#[derive(Debug, Clone)]
pub struct FileKeys {
    path: PathBuf,
}

impl FileKeys {
    /// The keys in this file, which is made with one new key when it is not there. Whoever calls this has the data
    /// directory for itself.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, KeysError> {
        let keys = Self { path: path.into() };
        if keys.entries()?.is_none() {
            keys.write(vec![KeyEntry::generate()?])?;
        }
        keys.read()?;
        Ok(keys)
    }

    /// Whether the keys in this file can be read and can sign; nothing is made.
    ///
    /// # Errors
    ///
    /// They cannot.
    pub fn check(path: impl Into<PathBuf>) -> Result<(), KeysError> {
        Self { path: path.into() }.read().map(drop)
    }

    /// Where they are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn io(&self, source: io::Error) -> KeysError {
        KeysError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn unreadable(&self, reason: impl ToString) -> KeysError {
        KeysError::Unreadable {
            path: self.path.clone(),
            reason: reason.to_string(),
        }
    }

    fn entries(&self) -> Result<Option<Vec<KeyEntry>>, KeysError> {
        let Some(content) = private_file::read(&self.path).map_err(|e| self.io(e))? else {
            return Ok(None);
        };
        // Only where the file goes wrong is told, never a part of it.
        let file: KeysFile = serde_json::from_slice(&content)
            .map_err(|e| self.unreadable(format_args!("line {}, column {}", e.line(), e.column())))?;
        Ok(Some(file.keys))
    }

    fn write(&self, keys: Vec<KeyEntry>) -> Result<(), KeysError> {
        let content = serde_json::to_vec_pretty(&KeysFile { keys }).map_err(|e| self.unreadable(e))?;
        private_file::write(&self.path, &content).map_err(|e| self.io(e))
    }

    fn read(&self) -> Result<Vec<SigningKey>, KeysError> {
        let entries = self
            .entries()?
            .ok_or_else(|| self.io(io::ErrorKind::NotFound.into()))?;
        let keys: Vec<SigningKey> = entries
            .iter()
            .map(KeyEntry::read)
            .collect::<Result<_, _>>()
            .map_err(|e| self.unreadable(e))?;
        if keys.iter().all(|k| k.private.is_none()) {
            return Err(self.unreadable("none of them can sign"));
        }
        Ok(keys)
    }
}

#[async_trait]
impl SigningKeys for FileKeys {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        // A file of a few hundred bytes, every five minutes: not worth a thread.
        self.read().map_err(|error| match error {
            KeysError::Io { .. } => StoreError::Unavailable {
                reason: error.to_string(),
            },
            KeysError::Unreadable { .. } | KeysError::NotMade => StoreError::Internal {
                reason: error.to_string(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn are_made_once_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let first = FileKeys::open(&path).unwrap().load().await.unwrap();
        let second = FileKeys::open(&path).unwrap().load().await.unwrap();
        assert_eq!(first.len(), 1);
        assert!(first == second && first[0].private.is_some());
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[tokio::test]
    async fn several_are_read_and_a_new_one_is_seen_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let keys = FileKeys::open(folder.path().join("keys.json")).unwrap();
        let mut old = keys.entries().unwrap().unwrap().remove(0);
        old.private = None;
        let new = KeyEntry::generate().unwrap();
        keys.write(vec![new.clone(), old.clone()]).unwrap();
        let loaded = keys.load().await.unwrap();
        assert_eq!(
            loaded.iter().map(|k| k.kid.clone()).collect::<Vec<_>>(),
            [new.kid, old.kid]
        );
        assert!(loaded[0].private.is_some() && loaded[1].private.is_none());
    }

    #[test]
    fn the_name_is_the_thumbprint() {
        // RFC 8037, appendix A.3
        assert_eq!(
            thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
    }

    #[test]
    fn a_broken_file_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        let pair = KeyEntry::generate().unwrap();
        let other = KeyEntry {
            public: KeyEntry::generate().unwrap().public,
            ..pair.clone()
        };
        let secret = pair.private.clone().unwrap();
        let json = |keys: Vec<KeyEntry>| serde_json::to_string(&KeysFile { keys }).unwrap();
        let no_private = json(vec![KeyEntry {
            private: None,
            ..pair
        }]);
        for content in [
            "",
            "{}",
            "{\"keys\":[]}",
            &json(vec![other]),
            &no_private,
            &format!("{{\"keys\":[{{\"private\":\"{secret}\"}}]}}"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = FileKeys::open(&path).unwrap_err().to_string();
            assert!(error.contains("keys.json") && !error.contains(&secret), "{error}");
        }
    }
}
