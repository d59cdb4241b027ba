//! A hasher that hides nothing and costs nothing.

use async_trait::async_trait;
use storybus_core::ports::SecretHasher;
use storybus_core::ports::secret_hasher::Busy;

/// The "hash" is the secret behind a mark: for tests alone, where argon2id would only cost time.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainHasher;

const MARK: &str = "$plain$";

#[async_trait]
impl SecretHasher for PlainHasher {
    async fn hash(&self, secret: &str) -> Result<String, Busy> {
        Ok(format!("{MARK}{secret}"))
    }

    async fn verify(&self, secret: &str, hash: &str) -> Result<bool, Busy> {
        Ok(hash.strip_prefix(MARK) == Some(secret))
    }
}
