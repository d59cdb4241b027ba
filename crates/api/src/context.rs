//! What a front gives beside the request, and what it gets beside the response.

use std::borrow::Cow;

use bytes::Bytes;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::ConnectionId;

/// A body as far as the front has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// All of it, at most [`MAX_BODY`](crate::MAX_BODY) bytes; empty when there was none.
    Complete(Bytes),
    /// There was more than [`MAX_BODY`](crate::MAX_BODY) bytes; what was read is of no use.
    TooLarge,
    /// It is not what the client sent: what stands before the front replaced bytes that are no UTF-8.
    Altered,
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self::Complete(Bytes::new())
    }
}

/// What the front knows beside the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The peer's address, for the limit on failed log-ins: without a port, and not one that the client can choose.
    pub source: String,
    /// When a publish must have been answered. A receive is bounded by its own `wait`, at most 20 s, alone.
    pub deadline: Millis,
    /// Whether AWS says who signed the request.
    pub iam: Iam,
}

/// Who signed a request with AWS credentials (SigV4), as the gateway that checked it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Iam {
    /// Nobody checks signatures here: there is no route for signed requests.
    #[default]
    Unchecked,
    /// It is not signed.
    Unsigned,
    /// The ARN of who signed it, such as `arn:aws:sts::123456789012:assumed-role/newsroom/session`.
    Signed(String),
}

/// What became of a request, for the front's logs and metrics. Everything here is bounded and safe to log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The route's template below `/v1`, such as `/tenants/{tenant}/messages`; `None` when the path is none of ours. One
    /// template may serve several methods.
    pub route: Option<&'static str>,
    /// The rule of a refusal, the first one if there are several; on the token route the error code of RFC 6749.
    pub rule: Option<Cow<'static, str>>,
    /// Who called, once the credentials have held; also of a request that is then refused with 403.
    pub connection: Option<ConnectionId>,
    /// On the token route: the client that could not log in, if it was named by a well-formed id. Anybody can name any.
    pub tried: Option<ConnectionId>,
    /// The message that was published, refused or asked for, if it had a well-formed id.
    pub message_id: Option<String>,
    /// How many messages a receive has handed out.
    pub delivered: usize,
}
