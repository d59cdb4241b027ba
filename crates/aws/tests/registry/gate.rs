//! A client whose calls are counted, and stopped at the one that the test names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use tokio::sync::Notify;

/// What happens at the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The service refuses it.
    Refused,
    /// The process dies before it is sent.
    DiesBefore,
    /// The process dies before it has the answer.
    DiesAfter,
}

#[derive(Debug)]
struct State {
    calls: AtomicUsize,
    at: usize,
    fate: Fate,
    died: Notify,
}

/// The client. What dies never comes back.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    inner: SharedHttpClient,
    state: Arc<State>,
}

impl Gate {
    /// Stops at call `at`, counted from 0.
    pub(crate) fn new(at: usize, fate: Fate) -> Self {
        Self {
            inner: aws_smithy_http_client::Builder::new().build_http(),
            state: Arc::new(State {
                calls: AtomicUsize::new(0),
                at,
                fate,
                died: Notify::new(),
            }),
        }
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> usize {
        self.state.calls.load(Ordering::SeqCst)
    }

    /// Comes back when the process has died.
    pub(crate) async fn died(&self) {
        self.state.died.notified().await;
    }
}

impl HttpClient for Gate {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(Connector {
            inner: self.inner.http_connector(settings, components),
            state: self.state.clone(),
        })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    state: Arc<State>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let call = self.state.calls.fetch_add(1, Ordering::SeqCst);
        if call != self.state.at {
            return self.inner.call(request);
        }
        let state = self.state.clone();
        match state.fate {
            Fate::Refused => {
                let body = r#"{"__type":"AccessDeniedException","message":"on purpose"}"#;
                let status = StatusCode::try_from(403).unwrap();
                HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
            }
            Fate::DiesBefore => HttpConnectorFuture::new(async move {
                state.died.notify_one();
                std::future::pending().await
            }),
            Fate::DiesAfter => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    drop(sent.await);
                    state.died.notify_one();
                    std::future::pending().await
                })
            }
        }
    }
}
