//! From a request's head to its answer.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use storybus_api::{Body, MAX_BODY, Outcome};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::answer::{self, Own};
use super::answers::{AnswerRoom, keeping};
use super::body::{self, BodyRoom, Read, Unread};
use super::connections::Connections;
use super::limits::{FREE_ANSWER, Limits};
use super::log::RequestLog;
use super::receives::{Receives, receiver};
use super::tally::Tally;
use super::watch::Watch;
use super::{Backend, Broken};
use crate::metrics::{self, Metrics};

/// What all connections share.
pub(super) struct Shared {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) limits: Limits,
    pub(super) metrics: Arc<Metrics>,
    pub(super) connections: Arc<Connections>,
    pub(super) receives: Arc<Receives>,
    pub(super) room: BodyRoom,
    pub(super) answers: Arc<AnswerRoom>,
    pub(super) proxies: Vec<IpAddr>,
    pub(super) log: RequestLog,
    /// Held by every request that is being worked on, whether or not its client is still there.
    pub(super) working: Tally,
    /// Tells that nothing can be promised any more.
    pub(super) broken: mpsc::Sender<Broken>,
}

/// hyper's service: the requests of one connection.
pub(super) struct Conversation {
    pub(super) shared: Arc<Shared>,
    pub(super) watch: Arc<Watch>,
    pub(super) peer: SocketAddr,
}

impl hyper::service::Service<Request<Incoming>> for Conversation {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.watch.body();
        let (shared, watch, peer) = (self.shared.clone(), self.watch.clone(), self.peer);
        Box::pin(async move {
            let response = shared.answer(request, &watch, peer).await;
            watch.answer();
            Ok(response.map(Full::new))
        })
    }
}

/// How long a request took once all of it was there.
#[derive(Clone)]
struct Worked(Duration);

/// A task that ends with this value: a receive whose client has left.
struct Bound<T>(JoinHandle<T>);

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Shared {
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        watch: &Arc<Watch>,
        peer: SocketAddr,
    ) -> Response<Bytes> {
        let began = Instant::now();
        let (head, incoming) = request.into_parts();
        self.metrics.in_flight.inc();
        let _in_flight = Defer(|| {
            self.metrics.in_flight.dec();
        });
        let (method, source) = (head.method.clone(), self.source(&head, peer));
        let mut response = match head.uri.path() {
            _ if !names_its_host(&head) => {
                watch.leave_unread();
                own(answer::no_host(), is_token(&head))
            }
            "/healthz" => {
                watch.work(false);
                self.health(&head).await
            }
            "/metrics" => {
                watch.work(false);
                self.metrics_page(&head).await
            }
            _ => self.bus(head, incoming, source.clone(), watch).await,
        };
        response = self.within_room(response, watch);
        let outcome = response.extensions_mut().remove::<Outcome>().unwrap_or_default();
        // How fast its client sent the request is not the bus's doing.
        let took = response
            .extensions_mut()
            .remove()
            .map_or_else(|| began.elapsed(), |Worked(took)| took);
        let rule = outcome.rule.as_deref();
        self.metrics
            .answered(outcome.route, &method, response.status(), rule, took);
        self.log
            .request(&method, response.status(), &outcome, took, &source);
        response
    }

    /// A request for the bus itself.
    async fn bus(
        self: &Arc<Self>,
        head: Parts,
        incoming: Incoming,
        source: String,
        watch: &Watch,
    ) -> Response<Bytes> {
        let (mut closes, token) = (false, is_token(&head));
        let (body, share) = match body::read(incoming, &self.room, &self.limits).await {
            Ok(Read::Complete(body, share)) if body.len() <= MAX_BODY => (Body::Complete(body), share),
            // Read to its end, so the connection can go on.
            Ok(Read::Complete(..)) => (Body::TooLarge, None),
            Ok(Read::TooLarge) => {
                watch.leave_unread();
                closes = true;
                (Body::TooLarge, None)
            }
            Err(unread) => {
                watch.leave_unread();
                let refused = match unread {
                    Unread::Slow => answer::slow_body(),
                    Unread::Broken => answer::broken_body(),
                    Unread::NoRoom => answer::no_room_for_body(),
                };
                return own(refused, token);
            }
        };
        let began = Instant::now();
        let place = match receiver(&head.method, &head.uri).map(|consumer| self.receives.enter(consumer)) {
            Some(None) => return answer::too_many_receives().into_response(),
            place => place.flatten(),
        };
        let receives = place.is_some();
        watch.work(receives);
        let (this, held) = (self.clone(), (share, self.working.one()));
        let task = tokio::spawn(async move {
            let _held = held;
            let response = this.backend.handle(Request::from_parts(head, body), source).await;
            let response = this.durable(response, token).await;
            match place {
                Some(place) => response.map(|answer| keeping(answer, place)),
                None => response,
            }
        });
        // A publish that has begun goes on to its end when its client is gone: half of one would only be in the way of
        // the next. A receive ends.
        let done = if receives {
            let mut bound = Bound(task);
            (&mut bound.0).await
        } else {
            task.await
        };
        let mut response = done.unwrap_or_else(|error| self.panicked(&error, token));
        response.extensions_mut().insert(Worked(began.elapsed()));
        if closes {
            response
                .headers_mut()
                .insert(http::header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Holds an answer back until everything that it may tell of is on disk.
    async fn durable(&self, mut response: Response<Bytes>, token: bool) -> Response<Bytes> {
        match self.backend.durable().await {
            Ok(()) => response,
            Err(reason) => {
                let _ = self.broken.try_send(reason);
                let request = response.extensions_mut().remove::<Outcome>().unwrap_or_default();
                let failed = answer::unavailable();
                if token { failed.of_token() } else { failed }.into_response_to(request)
            }
        }
    }

    /// A large answer with its share of the memory, which it keeps until it is written; or why it cannot be given.
    fn within_room(&self, mut response: Response<Bytes>, watch: &Arc<Watch>) -> Response<Bytes> {
        let bytes = response.body().len();
        if bytes <= FREE_ANSWER {
            return response;
        }
        let share = self.answers.take(bytes, watch, |stalled| {
            self.connections.close(stalled);
            self.metrics.connections_evicted.inc();
        });
        match share {
            Some(share) => response.map(|answer| keeping(answer, share)),
            None => {
                let request = response.extensions_mut().remove::<Outcome>().unwrap_or_default();
                answer::no_room_for_answer().into_response_to(request)
            }
        }
    }

    fn panicked(&self, error: &JoinError, token: bool) -> Response<Bytes> {
        if error.is_panic() {
            // The panic hook has logged where.
            self.metrics.panics.inc();
        }
        own(answer::internal(), token)
    }

    async fn health(&self, head: &Parts) -> Response<Bytes> {
        if let Some(refused) = only_get(head) {
            return refused.into_response();
        }
        let healthy = self.backend.healthy().await;
        let (status, text) = match healthy {
            true => (StatusCode::OK, "{\"status\":\"ok\"}"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"unavailable\"}"),
        };
        beside("/healthz", status, "application/json", text)
    }

    async fn metrics_page(&self, head: &Parts) -> Response<Bytes> {
        if let Some(refused) = only_get(head) {
            return refused.into_response();
        }
        self.metrics
            .connections
            .set(i64::try_from(self.connections.count()).unwrap_or(i64::MAX));
        self.metrics
            .receives
            .set(i64::try_from(self.receives.count()).unwrap_or(i64::MAX));
        match self.metrics.render(&self.backend.queues().await) {
            Ok(text) => beside("/metrics", StatusCode::OK, metrics::CONTENT_TYPE, text),
            Err(_) => answer::internal().into_response(),
        }
    }

    /// Where the request came from, for the limit on failed log-ins. What a proxy of ours says of its client is believed,
    /// what anybody else says is not.
    fn source(&self, head: &Parts, peer: SocketAddr) -> String {
        let mut source = peer.ip().to_canonical();
        if self.proxies.contains(&source) {
            // Each proxy adds to the end; from there on the first that is not one of ours is the client.
            let forwarded = head
                .headers
                .get_all("x-forwarded-for")
                .iter()
                .filter_map(|v| v.to_str().ok());
            let hops: Vec<IpAddr> = forwarded
                .flat_map(|v| v.split(','))
                .filter_map(|hop| hop.trim().parse().ok())
                .collect();
            if let Some(client) = hops
                .iter()
                .map(IpAddr::to_canonical)
                .rev()
                .find(|hop| !self.proxies.contains(hop))
            {
                source = client;
            }
        }
        bucket(source)
    }
}

/// The name of an address among the limits: a household or a server has a whole /64 of IPv6.
fn bucket(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// Whether the request names its host as RFC 9112 wants it (section 3.2).
fn names_its_host(head: &Parts) -> bool {
    match head.headers.get_all(HOST).iter().count() {
        0 => head.version != Version::HTTP_11,
        1 => true,
        _ => false,
    }
}

/// Whether the answer has the form of the token route.
fn is_token(head: &Parts) -> bool {
    head.method == Method::POST && head.uri.path() == "/v1/oauth/token"
}

fn own(own: Own, token: bool) -> Response<Bytes> {
    if token { own.of_token() } else { own }.into_response()
}

fn only_get(head: &Parts) -> Option<Own> {
    (head.method != Method::GET && head.method != Method::HEAD).then(answer::only_get)
}

/// An answer beside `/v1`.
fn beside(
    route: &'static str,
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Outcome {
        route: Some(route),
        ..Outcome::default()
    });
    response
}

/// Does something at the end, also when the future is dropped.
struct Defer<F: FnMut()>(F);

impl<F: FnMut()> Drop for Defer<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_counted_by_what_its_owner_has() {
        let of = |text: &str| bucket(text.parse().unwrap());
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(of("2001:db8:1:2::9"), "2001:db8:1:2::/64");
    }
}
