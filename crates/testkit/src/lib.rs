//! The test kit: what the bus is proven with.
//!
//! - [`suite`]: one module a port, one function a behaviour; every engine's tests run all of them.
//! - [`memory`]: an engine in memory, the reference.
//! - [`explore`]: every small schedule of the publish protocol.
//! - [`faulty`]: ports that fail on purpose.
//! - [`FakeClock`], [`SeededRandom`] and the other small ports, so that a test is the same in every run and never waits.

pub mod clock;
pub mod executor;
pub mod explore;
pub mod faulty;
mod hasher;
mod keys;
pub mod memory;
mod ports;
mod random;
mod rates;
pub mod suite;

pub use clock::FakeClock;
pub use hasher::PlainHasher;
pub use keys::FixedKeys;
pub use memory::Memory;
pub use ports::ports;
pub use random::SeededRandom;
pub use rates::{FreeRates, MemoryRates};
