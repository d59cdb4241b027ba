//! New ids and secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use storybus_protocol::id::ConnectionKind;

use crate::bus::Bus;
use crate::domain::refusal::Refusal;

/// Characters behind an id's first letter: 103 bits.
const ID_LEN: usize = 20;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// Random bytes of a secret.
const SECRET_LEN: usize = 32;

/// The first letter of a kind's ids.
pub(super) fn prefix(kind: ConnectionKind) -> char {
    match kind {
        ConnectionKind::Producer => 'p',
        ConnectionKind::Consumer => 'c',
        ConnectionKind::Operator => 'o',
    }
}

impl Bus {
    /// An id that was never used, of `[a-z0-9]`: clients differ in how they encode anything else.
    pub(crate) fn fresh_id<T: std::str::FromStr>(&self, prefix: char) -> Result<T, Refusal> {
        // the largest multiple of 36 that fits a byte: what is beyond is drawn again, so that no character is likelier
        const FAIR: u8 = 252;
        let mut id = String::with_capacity(1 + ID_LEN);
        id.push(prefix);
        let mut bytes = [0; ID_LEN];
        while id.len() < 1 + ID_LEN {
            self.ports.random.fill(&mut bytes);
            let fair = bytes
                .iter()
                .filter(|b| **b < FAIR)
                .map(|b| char::from(ALPHABET[usize::from(b % 36)]));
            id.extend(fair.take(1 + ID_LEN - id.len()));
        }
        id.parse().map_err(|_| Refusal::internal())
    }

    /// A new secret, of `[A-Za-z0-9_-]`.
    pub(super) fn fresh_secret(&self) -> String {
        let mut bytes = [0; SECRET_LEN];
        self.ports.random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }
}
