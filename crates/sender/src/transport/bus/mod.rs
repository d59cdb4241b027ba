//! A bus as partner: `POST jwt/messages` with a token of its own.
//!
//! The key is the envelope's `message_id`, which the bus finds in the message itself; the header `Idempotency-Key` repeats it, so
//! that whatever stands between can see it too.

mod answers;
mod config;
mod token;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use reqwest::Url;

pub use config::{BusConfig, BusConfigError};

use self::token::{Token, Tokens};
use super::http::{Http, Options, Sending, seconds, within};
use super::{Attempt, Outgoing, Transport, verdict};
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::envelope::message_id_of;
use crate::ports::Clock;

/// How long a bus remembers a `message_id`, at least.
pub const MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How much of an answer is read. A refusal can list more; its first reason is enough.
const MAX_ANSWER: usize = 256 * 1024;
/// What every message for a bus is. The outbox may know it under another media type: a bus does not look at that, and a header of a row's
/// own could make something on the way refuse the request.
const MEDIA_TYPE: &str = "application/json";
/// The rule of a message whose key is not its `message_id`.
pub const KEY_MISMATCH: &str = "sender.key_mismatch";

/// A bus. It may be shared by as many attempts as one likes, and all of them share one token. Attempts are made in a Tokio runtime.
pub struct BusTransport {
    http: Http,
    messages: Url,
    tokens: Tokens,
}

impl BusTransport {
    /// A transport to this bus. Nothing is sent before the first attempt.
    pub fn new(config: BusConfig, clock: Arc<dyn Clock>) -> Result<Self, BusConfigError> {
        let base = config.base()?;
        let below = |path: &str| base.join(path).map_err(|e| BusConfigError::Url(e.to_string()));
        let options = Options {
            connect_timeout: config.connect_timeout,
            idle_connections: config.idle_connections,
        };
        let http = Http::new(&base, options, clock).map_err(|e| BusConfigError::Client(e.to_string()))?;
        let tokens = Tokens::new(http.clone(), below("oauth/token")?, &config)?;
        Ok(Self {
            http,
            messages: below("jwt/messages")?,
            tokens,
        })
    }

    async fn send(&self, message: Outgoing<'_>, how: Attempt, sending: &Sending) -> Answer {
        let id = message_id_of(message.body);
        // What the outbox knows under the one would be known to the bus under the other: neither would recognise a repetition.
        if let Some(id) = id.as_deref().filter(|id| !id.eq_ignore_ascii_case(message.key)) {
            return answers::key_mismatch(message.key, id);
        }
        let token = match self.tokens.current(how.timeout).await {
            Ok(token) => token,
            Err(no_token) => return no_token.answer(),
        };
        let request = match self.request(message, id.as_deref(), &token) {
            Ok(request) => request,
            Err(answer) => return answer,
        };
        sending.begins();
        let reply = match self.http.exchange(request, MAX_ANSWER).await {
            Ok(reply) => reply,
            Err(none) => return none.answer(),
        };
        if reply.status == 401 {
            self.tokens.refused(&token);
        }
        let verdict = verdict::read(reply.status, as_text(&reply.body), id.as_deref());
        // What answers there may not be a bus, and may send back what it was sent.
        let secret = self.tokens.secret();
        let secrets = [token.text(), secret.expose()];
        answers::answer(verdict, reply.status, reply.retry_after, &secrets)
    }

    fn request(
        &self,
        message: Outgoing<'_>,
        id: Option<&str>,
        token: &Token,
    ) -> Result<reqwest::Request, Answer> {
        let mut request = self
            .http
            .request(Method::POST, self.messages.clone())
            .header(AUTHORIZATION, token.header())
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .body(message.body.to_vec());
        if let Some(id) = id {
            request = request.header("idempotency-key", id);
        }
        request.build().map_err(|_| Answer {
            outcome: Outcome::Refused,
            status: None,
            rule: Some("request.invalid".to_owned()),
            detail: Some("the message's message_id cannot stand in a header; nothing was sent".to_owned()),
            retry: Retry::No,
            retry_after: None,
            about: About::Message,
            left: Left::Nothing,
        })
    }
}

#[async_trait]
impl Transport for BusTransport {
    async fn attempt(&self, message: Outgoing<'_>, how: Attempt) -> Answer {
        // That the last token was refused, the attempt that met it has told the cache already; if a new one has come
        // since, a burst of refusals need not fetch another for each.
        let sending = Sending::default();
        let work = self.send(message, how, &sending);
        match within(self.http.clock(), how.timeout, work).await {
            Some(answer) => answer,
            None if sending.has_begun() => answers::too_slow(how.timeout),
            None => answers::no_token_in_time(how.timeout),
        }
    }

    /// 7 days.
    fn memory(&self) -> Duration {
        MEMORY
    }
}

/// The answer, where it is text: a bus writes nothing else. One that was too long may end inside a character.
fn as_text(body: &[u8]) -> &[u8] {
    match str::from_utf8(body) {
        Ok(_) => body,
        Err(error) if error.error_len().is_none() => &body[..error.valid_up_to()],
        Err(_) => b"not UTF-8",
    }
}

/// A header that is not shown when headers are.
fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl std::fmt::Debug for BusTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusTransport")
            .field("messages", &self.messages.as_str())
            .finish_non_exhaustive()
    }
}
