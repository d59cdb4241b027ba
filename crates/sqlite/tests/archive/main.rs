//! The archive as this engine keeps it: in rows, in blocks, and on the way from the one to the other.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
#[path = "../engine/mod.rs"]
mod engine;

mod damage;
mod full;
mod keeping;
mod killed;
mod migration;
mod model;
mod place;
