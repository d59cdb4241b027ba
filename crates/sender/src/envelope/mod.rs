//! SOM envelopes: built, and read as far as the outbox needs it.
//!
//! A message is built once, and its bytes are what is kept and sent, every time. Building it again for a retry would give it another
//! `timestamp`, and so other content under the same id, which the bus refuses.

mod build;
mod date_time;
mod read;

pub use build::{Built, Cause, Draft, InvalidEnvelope};
pub(crate) use read::message_id_of;
pub use read::{MAX_BUS_MESSAGE, for_bus};
