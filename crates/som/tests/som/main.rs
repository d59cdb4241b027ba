//! SOM 1.0 from outside the crate: messages in, rules and paths out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on stops where it stands"
)]

mod accepted;
mod hostile;
mod order;
mod payloads;
mod properties;
mod refused;
mod rules;
mod support;
mod tolerated;
