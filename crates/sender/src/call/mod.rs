//! Several attempts after each other: when again, and when not. One call of a client.

mod limits;

pub use limits::Limits;
