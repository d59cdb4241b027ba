//! Signing keys that everybody knows.

use async_trait::async_trait;
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::{SigningKeys, StoreError};

/// Keys given by the test, the same for ever.
#[derive(Debug, Clone)]
pub struct FixedKeys(pub Vec<SigningKey>);

/// What stands before the 32 bytes of an Ed25519 private key in PKCS #8 v1 (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// RFC 8032, section 7.1, test 1.
const PRIVATE: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
    0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];
const PUBLIC: [u8; 32] = [
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e,
    0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
];

impl FixedKeys {
    /// The first example key of RFC 8032, under this name.
    #[must_use]
    pub fn example(kid: &str) -> SigningKey {
        let private = [&PKCS8_HEAD[..], &PRIVATE].concat();
        SigningKey {
            kid: kid.to_owned(),
            private: Some(private),
            public: PUBLIC,
        }
    }
}

impl Default for FixedKeys {
    /// One example key.
    fn default() -> Self {
        Self(vec![Self::example("test-1")])
    }
}

#[async_trait]
impl SigningKeys for FixedKeys {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        Ok(self.0.clone())
    }
}
