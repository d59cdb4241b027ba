//! One HTTP request and its answer, within bounds: no redirect is followed, nothing is repeated, no more is read than allowed.

use std::error::Error;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use http::HeaderMap;
use reqwest::Url;

use super::{retry_after, text};
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::ports::Clock;

/// How requests are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// How long a connection may take to be there.
    pub(super) connect_timeout: Duration,
    /// The most connections that are kept open without a request.
    pub(super) idle_connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_connections: 64,
        }
    }
}

/// Shorter than a server keeps a connection without requests (a bus 75 s, many proxies 60 s or less): a request on a connection
/// that is being closed fails without a word of what became of it.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// A client of one partner.
#[derive(Clone)]
pub(super) struct Http {
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) retry_after: Option<Duration>,
    /// Its beginning, when it was longer than allowed.
    pub(super) body: Vec<u8>,
}

/// No answer, or none that is whole.
#[derive(Debug, Clone)]
pub(super) struct NoReply {
    pub(super) left: Left,
    pub(super) detail: String,
}

impl NoReply {
    pub(super) fn answer(self) -> Answer {
        Answer {
            outcome: Outcome::NetworkError,
            status: None,
            rule: None,
            detail: Some(self.detail),
            retry: Retry::Backoff,
            retry_after: None,
            about: About::Moment,
            left: self.left,
        }
    }
}

impl Http {
    /// A client for this host. Proxies are taken from the environment as usual (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
    /// `NO_PROXY`), but never for this machine itself.
    pub(super) fn new(url: &Url, options: Options, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        let mut builder = reqwest::Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!("storybus/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(options.idle_connections)
            .pool_idle_timeout(IDLE_TIME);
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        Ok(Self {
            client: builder.build()?,
            clock,
        })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Sends the request and reads its answer, at most `most` bytes of the body.
    pub(super) async fn exchange(&self, request: reqwest::Request, most: usize) -> Result<Reply, NoReply> {
        let response = self.client.execute(request).await;
        let mut response = response.map_err(|error| unreached(&error))?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while body.len() < most {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk[..chunk.len().min(most - body.len())]),
                Ok(None) => break,
                Err(_) => {
                    return Err(NoReply {
                        left: Left::Maybe,
                        detail: format!(
                            "the answer broke off: its head came (status {status}), its end did not"
                        ),
                    });
                }
            }
        }
        // Dropping what is left of the answer closes the connection.
        Ok(Reply {
            status,
            retry_after: retry_after::wait(response.headers(), self.clock.since_epoch()),
            headers: response.headers().clone(),
            body,
        })
    }

    /// A request to build on.
    pub(super) fn request(&self, method: http::Method, url: Url) -> reqwest::RequestBuilder {
        self.client.request(method, url)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// Why there is no answer, in words, and whether anything was sent.
fn unreached(error: &reqwest::Error) -> NoReply {
    let mut root: &(dyn Error + 'static) = error;
    let mut refused = false;
    while let Some(source) = root.source() {
        root = source;
        refused |= root
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == ErrorKind::ConnectionRefused);
    }
    let (left, detail) = if error.is_builder() {
        (Left::Nothing, format!("the request cannot be made: {root}"))
    } else if error.is_dns() {
        (Left::Nothing, format!("the host name cannot be resolved: {root}"))
    } else if error.is_connect() && refused {
        (
            Left::Nothing,
            "the connection was refused: is it running there?".to_owned(),
        )
    } else if error.is_connect() && error.is_timeout() {
        (
            Left::Nothing,
            "no connection: the host does not answer".to_owned(),
        )
    } else if error.is_connect() && root.to_string().contains("InvalidContentType") {
        (
            Left::Nothing,
            "no connection: what answers there speaks no TLS; is it http:// instead of https://?".to_owned(),
        )
    } else if error.is_connect() {
        (Left::Nothing, format!("no connection: {root}"))
    } else {
        (
            Left::Maybe,
            format!("the connection ended before an answer came: {root}"),
        )
    };
    NoReply {
        left,
        detail: text::clean(&detail),
    }
}

/// Whether the message itself may have left, for an attempt that is cut off by its time.
#[derive(Debug, Default)]
pub(super) struct Sending(AtomicBool);

impl Sending {
    pub(super) fn begins(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The work's result, or `None` when the time is up first. What has come meanwhile is taken: after a process was stopped,
/// answer and time may both be there.
pub(super) async fn within<T>(clock: &dyn Clock, time: Duration, work: impl Future<Output = T>) -> Option<T> {
    let work = std::pin::pin!(work);
    match select(work, clock.sleep(time)).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(((), _)) => None,
    }
}

/// For people: a span.
pub(super) fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}
