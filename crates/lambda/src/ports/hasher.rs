//! Slow salted hashes of client secrets: argon2id, in the request itself.
//!
//! A function works on one request at a time, so there is nobody else to hold up, and how many hash at once is how many instances
//! the function may have. The parameters are those of the embedded bus, and stand in every hash.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use storybus_core::ports::secret_hasher::Busy;
use storybus_core::ports::{Random, SecretHasher};

/// The parameters that OWASP names first among those of equal strength.
/// <https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id>
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Longer secrets are none of ours: they are wrong without a hash of their megabytes.
const LONGEST_SECRET: usize = 1024;

/// Argon2id.
pub struct InlineHasher {
    random: Arc<dyn Random>,
    argon2: Argon2<'static>,
}

impl InlineHasher {
    /// A hasher that takes its salts from `random`.
    #[must_use]
    pub fn new(random: Arc<dyn Random>) -> Self {
        // The parameters are constants; should the crate ever refuse them, its own default is the same strength.
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
        Self {
            random,
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
        }
    }
}

#[async_trait]
impl SecretHasher for InlineHasher {
    async fn hash(&self, secret: &str) -> Result<String, Busy> {
        let mut salt = [0; 16];
        self.random.fill(&mut salt);
        let hash = self.argon2.hash_password_with_salt(secret.as_bytes(), &salt);
        hash.map(|h| h.to_string()).map_err(|error| {
            tracing::error!(%error, "hashing a secret failed");
            Busy
        })
    }

    async fn verify(&self, secret: &str, hash: &str) -> Result<bool, Busy> {
        let fits = secret.len() <= LONGEST_SECRET;
        let secret = secret
            .as_bytes()
            .get(..LONGEST_SECRET)
            .unwrap_or(secret.as_bytes());
        Ok(match PasswordHash::new(hash) {
            Ok(hash) => self.argon2.verify_password(secret, &hash).is_ok() && fits,
            Err(error) => {
                tracing::error!(%error, "a stored hash of a secret cannot be read");
                false
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::OsRandom;
    use super::*;

    #[tokio::test]
    async fn a_secret_holds_against_its_own_hash_alone() {
        let hasher = InlineHasher::new(Arc::new(OsRandom));
        let hash = hasher.hash("correct horse").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_eq!(hasher.verify("correct horse", &hash).await, Ok(true));
        assert_eq!(hasher.verify("correct horses", &hash).await, Ok(false));
        assert_eq!(hasher.verify("correct horse", "no hash").await, Ok(false));
        let long = "x".repeat(LONGEST_SECRET + 1);
        let of_long = hasher.hash(&long[1..]).await.unwrap();
        assert_eq!(hasher.verify(&long, &of_long).await, Ok(false));
        assert_eq!(hasher.verify(&long[1..], &of_long).await, Ok(true));
    }
}
