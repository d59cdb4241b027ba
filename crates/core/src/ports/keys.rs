//! The keys that sign access tokens.

use async_trait::async_trait;

use super::StoreError;

/// An Ed25519 key (RFC 8032), for `EdDSA` signatures (RFC 8037).
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// Its name in tokens and in the JWKS.
    pub kid: String,
    /// The private key, PKCS #8 v1 or v2 in DER; absent for a key that is only kept so that its tokens can be checked.
    pub private: Option<Vec<u8>>,
    /// The public key: 32 bytes.
    pub public: [u8; 32],
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // the private part never reaches a log
        f.debug_struct("SigningKey")
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

/// Where the keys are kept.
#[async_trait]
pub trait SigningKeys: Send + Sync {
    /// All live keys; the first that has a private part signs.
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError>;
}
