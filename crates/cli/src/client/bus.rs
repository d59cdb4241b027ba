//! One request to a bus and its answer; tokens and retries.

use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Method, Request};
use serde::Deserialize;
use storybus_core::ports::Random;
use tokio::time::Instant;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use super::answer::{Answer, GaveUp, NoAnswer, Repeat};
use super::settings::Settings;
use crate::ports::OsRandom;

/// How long one request may take, beside the time it is asked to wait.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of an answer: ten messages of the largest size, and room.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;
/// The first pause before a retry, which doubles each time, and the longest.
const BASE_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A wish to stop that ends a pause.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    wished: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    pub(crate) fn wish(&self) {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    pub(crate) fn is_wished(&self) -> bool {
        *self.wished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless somebody wishes to stop.
    pub(crate) fn pause(&self, span: Duration) {
        let wished = self.wished.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.told.wait_timeout_while(wished, span, |wished| !*wished));
    }
}

/// A client of one bus.
pub(crate) struct BusClient {
    agent: ureq::Agent,
    settings: Settings,
    token: Option<String>,
    /// Whether a request beside those for tokens may have reached the bus.
    pub(crate) sent: bool,
    pub(crate) stop: Arc<Stop>,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

#[derive(Deserialize)]
struct TokenClaims {
    #[serde(default)]
    tenant: Option<String>,
}

impl BusClient {
    pub(crate) fn new(settings: Settings) -> Self {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .build();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A bearer token goes to the bus that was named, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("storybus/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .into();
        Self {
            agent,
            settings,
            token: None,
            sent: false,
            stop: Arc::default(),
        }
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.settings.client_id
    }

    fn send(&self, request: Request<Vec<u8>>, wait: Duration) -> Result<Answer, NoAnswer> {
        let network = |error: ureq::Error| unreached(&self.settings.url, &error);
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(Some(TIMEOUT + wait))
            .build();
        let mut response = self.agent.run(request).map_err(network)?;
        let retry_after = response.headers().get(http::header::RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.trim().parse().ok());
        let body = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER)
            .read_to_vec()
            .map_err(network)?;
        Ok(Answer {
            status: response.status().as_u16(),
            retry_after: retry_after.map(Duration::from_secs),
            body,
        })
    }

    /// The token, a new one if there is none.
    fn token(&mut self) -> Result<String, NoAnswer> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let Settings {
            url,
            client_id,
            client_secret,
            ..
        } = &self.settings;
        // Ids and secrets are of [A-Za-z0-9_-]: form-encoding them first (RFC 6749 §2.3.1) changes nothing.
        let basic = STANDARD.encode(format!("{client_id}:{client_secret}"));
        let request = Request::post(format!("{url}oauth/token"))
            .header("authorization", format!("Basic {basic}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(b"grant_type=client_credentials".to_vec())
            .map_err(|e| NoAnswer::Network(e.to_string()))?;
        let answer = self.send(request, Duration::ZERO)?;
        match answer.status {
            200 => {
                let token: Token = serde_json::from_slice(&answer.body).map_err(|_| {
                    NoAnswer::Network(format!("{url} does not answer like a bus; is the URL right?"))
                })?;
                Ok(self.token.insert(token.access_token).clone())
            }
            429 => Err(NoAnswer::Network(
                "no token (429): the bus makes log-ins wait, since too many have failed lately or too many come at once".to_owned(),
            )),
            408 | 500..=599 => Err(NoAnswer::Network(format!("no token: {}", answer.status))),
            400 | 401 => Err(NoAnswer::Login(format!(
                "the bus does not know {client_id}, its secret is wrong, or an operator has disabled it\n  to do: check the client id and where its secret comes from (--client-secret-file, STORYBUS_CLIENT_SECRET, profile or credentials file); an operator sees it in `storybus secrets list {client_id}`, and makes another with secrets create; without any operator: `storybus serve --new-operator`, or for a bus on AWS `storybus deploy-check STACK --new-operator`"
            ))),
            other => Err(NoAnswer::Login(format!(
                "{url} answers {other} to a token request; is the URL right?"
            ))),
        }
    }

    /// The workspace that the token is for.
    pub(crate) fn tenant(&mut self) -> Result<Option<String>, NoAnswer> {
        let token = self.token()?;
        let claims = token
            .split('.')
            .nth(1)
            .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        // Only to build a path with: the bus checks the token itself.
        Ok(claims
            .and_then(|c| serde_json::from_slice::<TokenClaims>(&c).ok())
            .and_then(|c| c.tenant))
    }

    /// One request; a token that does not hold any more is replaced once. `wait` is how long the bus is asked to wait.
    pub(crate) fn call(
        &mut self,
        method: &Method,
        path: &str,
        body: &[u8],
        wait: Duration,
    ) -> Result<Answer, NoAnswer> {
        let mut renewed = false;
        loop {
            let token = self.token()?;
            let request = Request::builder()
                .method(method)
                .uri(format!("{}{path}", self.settings.url))
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .body(body.to_vec())
                .map_err(|e| NoAnswer::Network(e.to_string()))?;
            let sent = self.send(request, wait);
            self.sent |= !matches!(sent, Err(NoAnswer::Unsent(_) | NoAnswer::Wrong(_)));
            let answer = sent?;
            if answer.status != 401 || renewed {
                return Ok(answer);
            }
            renewed = true;
            self.token = None;
        }
    }

    /// Repeats a request until its answer is final, or the patience is over. `told` hears of each pause.
    pub(crate) fn until_final(
        &mut self,
        patience: Duration,
        told: impl FnMut(&str, Duration),
        request: impl FnMut(&mut Self) -> Result<Answer, NoAnswer>,
    ) -> Result<Answer, GaveUp> {
        self.until(Repeat::Always, patience, told, request)
    }

    /// The same, for a request that may not bear repeating.
    pub(crate) fn until(
        &mut self,
        repeat: Repeat,
        patience: Duration,
        mut told: impl FnMut(&str, Duration),
        mut request: impl FnMut(&mut Self) -> Result<Answer, NoAnswer>,
    ) -> Result<Answer, GaveUp> {
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            if repeat == Repeat::IfUndone {
                self.sent = false;
            }
            let answer = request(self);
            if repeat == Repeat::IfUndone && self.sent {
                match &answer {
                    Ok(answer) if answer.may_have_acted() => return Err(GaveUp::Unknown(answer.reason())),
                    Err(NoAnswer::Network(reason)) => return Err(GaveUp::Unknown(reason.clone())),
                    Ok(_) | Err(_) => {}
                }
            }
            let (reason, retry_after) = match answer {
                Ok(answer) if answer.may_change() => (answer.reason(), answer.retry_after),
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Network(reason) | NoAnswer::Unsent(reason)) => (reason, None),
                Err(NoAnswer::Wrong(reason)) => return Err(GaveUp::Wrong(reason)),
                Err(NoAnswer::Login(reason)) => return Err(GaveUp::Login(reason)),
            };
            attempt += 1;
            let pause = retry_after.map_or_else(|| pause_before(attempt), |r| r.min(LONGEST_PAUSE));
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(GaveUp::TimeUp(reason));
            }
            // The last pause ends with the patience, and one more attempt.
            let pause = pause.min(left);
            told(&reason, pause);
            self.stop.pause(pause);
            if self.stop.is_wished() {
                return Err(GaveUp::Stopped);
            }
        }
    }
}

/// Why there is no answer, in words.
fn unreached(url: &str, error: &ureq::Error) -> NoAnswer {
    let text = error.to_string();
    let text = text.strip_prefix("io: ").unwrap_or(&text);
    let told = format!("{url} cannot be reached: {text}");
    match error {
        ureq::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused => {
            NoAnswer::Unsent(format!("{told}; is the bus running?"))
        }
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => NoAnswer::Unsent(told),
        _ if url.starts_with("https:")
            && (text.contains("InvalidContentType") || text.contains("corrupt message")) =>
        {
            NoAnswer::Wrong(format!("{url} does not speak TLS: is it http:// there?"))
        }
        _ => NoAnswer::Network(told),
    }
}

/// `min(cap, base·2^(n−1)) × (0.5 + 0.5·r)`.
fn pause_before(attempt: u32) -> Duration {
    let full = BASE_PAUSE
        .saturating_mul(1 << attempt.saturating_sub(1).min(16))
        .min(LONGEST_PAUSE);
    let mut random = [0];
    OsRandom.fill(&mut random);
    full.mul_f64(0.5 + 0.5 * f64::from(random[0]) / 256.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        for attempt in 1..40 {
            let full = Duration::from_millis(500)
                .saturating_mul(2_u32.saturating_pow(attempt - 1))
                .min(LONGEST_PAUSE);
            let pause = pause_before(attempt);
            assert!(pause >= full / 2 && pause <= full, "{attempt}: {pause:?}");
        }
    }
}
