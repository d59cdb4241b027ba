//! The outbox and the relay, on SQLite and on PostgreSQL alike.

mod support;

mod enqueue;
mod relay;
