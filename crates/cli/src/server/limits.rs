//! What one client can take from the others, and for how long: every limit of the server in one place.

use std::time::Duration;

/// The server's limits. The defaults are documented at each; only the number of connections is a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once: 1,024. One more closes the one that is worth least: a client that has not sent a whole
    /// request yet, else the connection that has been idle longest. When all are at work it is answered `503`.
    pub connections: usize,
    /// Bytes of a request's line and headers: 16 KiB, else `431`. Their number: 100, by hyper's own limit.
    pub head_bytes: usize,
    /// How long a head may take to come once its first byte is there: 10 s, else `408`.
    pub head_time: Duration,
    /// Bytes of a body that are read: 262,144. More is too large unseen, and the connection closes. (A message has at most
    /// 240,000: a body in between is read and refused, and the connection goes on.)
    pub body_bytes: usize,
    /// How long a body may take to come: 30 s, else `408`, and the connection closes.
    pub body_time: Duration,
    /// Memory for all bodies that are being read, beyond the first 8 KiB of each: 32 MiB, else `503`.
    pub bodies_bytes: usize,
    /// Memory for all answers that wait to be taken by their clients, those of up to 16 KiB aside: 64 MiB. One more closes the
    /// connections whose clients have taken nothing for longest, and for at least a second; else it is `503`.
    pub answers_bytes: usize,
    /// How long a connection may be idle between two requests: 75 s.
    pub idle_time: Duration,
    /// How long a client may take nothing of an answer: 30 s.
    pub write_stall: Duration,
    /// How long a client may take for a whole answer: 120 s.
    pub write_time: Duration,
    /// How long a closing connection still reads what its client sends, so that the last answer arrives: 2 s.
    pub linger: Duration,
    /// Receives under way at once, waiting or with an answer that is not taken yet: 512. One more is `429`.
    pub receives: usize,
    /// The same of one consumer: 16. One more is `429`.
    pub receives_of_consumer: usize,
    /// How long running requests may take to end when the server stops: 10 s.
    pub stop_time: Duration,
}

/// How much of each body is read without asking whether there is memory for all.
pub(super) const FREE_BODY: usize = 8 * 1024;
/// Answers up to this size need no share of the memory for answers.
pub(super) const FREE_ANSWER: usize = 16 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            head_bytes: 16 * 1024,
            head_time: Duration::from_secs(10),
            body_bytes: 262_144,
            body_time: Duration::from_secs(30),
            bodies_bytes: 32 * 1024 * 1024,
            answers_bytes: 64 * 1024 * 1024,
            idle_time: Duration::from_secs(75),
            write_stall: Duration::from_secs(30),
            write_time: Duration::from_secs(120),
            linger: Duration::from_secs(2),
            receives: 512,
            receives_of_consumer: 16,
            stop_time: Duration::from_secs(10),
        }
    }
}
