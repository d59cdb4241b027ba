//! The outbox and the relay, on SQLite and on PostgreSQL alike.

mod support;

mod clock_set_back;
mod crash;
mod enqueue;
mod journal;
mod leases;
mod lines;
mod odd_rows;
mod operator;
mod relay;
mod rights;
mod scale;
mod send;
mod sender_refused;
mod stuck;
