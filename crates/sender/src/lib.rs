//! The idempotent sender: the producer's half of the promise.
//!
//! A producer writes a message into an **outbox**, a table of its own database, in the transaction of its own business write
//! ([`outbox`]). A **relay** takes it from there and sends it, the same bytes under the same key, until the partner has said yes
//! or no ([`relay`]). Whatever dies in between, the message is sent once as far as the partner can tell, after the earlier ones of
//! its order group, or it is kept where an operator finds it.
//!
//! - [`message`]: what is sent: target, key, order group, bytes. [`keys`]: keys that come from the domain.
//! - [`envelope`]: a SOM envelope, built.
//! - [`answer`]: what came of one attempt, in words that do not depend on the partner.
//! - [`transport`]: one attempt: to a bus, or to any REST partner.
//! - [`call`]: several attempts after each other: when again, and when not. One call of a client.
//! - [`outbox`]: the table: enqueue, claim, settle; list, show, resend, drop. On SQLite and PostgreSQL.
//! - [`relay`]: the worker over an outbox: rounds, leases, order, policy.
//! - [`ports`]: time and randomness.
//!
//! It shares the wire types with the bus (`storybus-protocol`) and nothing else.

pub mod answer;
pub mod call;
pub mod envelope;
pub mod keys;
pub mod message;
pub mod outbox;
pub mod ports;
pub mod relay;
pub mod transport;
