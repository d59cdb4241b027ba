//! The server against clients that behave and clients that do not, with limits short enough to be met in a test. A
//! backend of the test's own stands behind it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that meets the unexpected ends there"
)]

mod backend;
mod client;
mod hostile;
mod limits;
mod stop;
mod well_behaved;
