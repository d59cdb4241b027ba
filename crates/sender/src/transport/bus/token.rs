//! Access tokens: one for all attempts, fetched by one request at a time, replaced before it expires.
//!
//! - A fetch runs in a task of its own. Whoever needs its result waits for it; a waiter that goes away takes nothing with it.
//! - A token that is near its end is still given out while the next one is fetched, and until the end should that fail.
//! - A refused token is forgotten by whoever met the refusal, and only that one: of a hundred attempts that are refused
//!   with the same token, the first makes the next attempt fetch a new one, and the others find it there.
//! - While the bus asks to wait with log-ins, nothing asks for a token.
//! - Where a client's id and secret are kept in a file, it is read again when the bus refuses them, and before every further log-in until
//!   the bus takes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::{BusConfig, BusConfigError, hidden, seconds};
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::transport::http::{Http, Reply, within};
use crate::transport::{Secret, SecretSource, text};

/// The scope that every client of a bus asks for; what it may do depends on its kind.
const FORM: &str = "grant_type=client_credentials&scope=sombus%2Fpublish";
/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;
/// The longest token that fits into a header of the bus.
const MAX_TOKEN: usize = 8 * 1024;
/// How long a token is taken to hold when the answer does not say it.
const UNTOLD: f64 = 300.0;
/// No token is kept for longer.
const LONGEST: f64 = 86_400.0;
/// A token is replaced this long before its end, or a tenth of its life if that is less.
const EARLY: Duration = Duration::from_secs(300);
/// After an early replacement failed, the next try.
const REST: Duration = Duration::from_secs(5);
/// The longest time in which no token is asked for because the bus said so.
const MAX_COOLING: Duration = Duration::from_secs(30);

/// A token.
pub(super) struct Token {
    /// Counts the tokens of this process.
    number: u64,
    text: Secret,
    header: HeaderValue,
    replace_at: Duration,
    ends_at: Duration,
}

impl Token {
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    pub(super) fn text(&self) -> &str {
        self.text.expose()
    }
}

/// Why there is none.
#[derive(Debug, Clone)]
pub(super) struct NoToken {
    status: Option<u16>,
    rule: Option<String>,
    detail: String,
    about: About,
    retry_after: Option<Duration>,
}

impl NoToken {
    pub(super) fn answer(self) -> Answer {
        Answer {
            outcome: Outcome::TokenError,
            status: self.status,
            rule: self.rule,
            detail: Some(text::clean(&self.detail)),
            retry: match self.about {
                About::Moment => Retry::Backoff,
                About::Message | About::Sender => Retry::No,
            },
            retry_after: self.retry_after,
            about: self.about,
            left: Left::Nothing,
        }
    }

    fn passing(detail: impl Into<String>) -> Self {
        Self {
            status: None,
            rule: None,
            detail: detail.into(),
            about: About::Moment,
            retry_after: None,
        }
    }
}

type Fetched = Result<Arc<Token>, NoToken>;
type Fetch = Shared<BoxFuture<'static, Fetched>>;

/// The cache.
pub(super) struct Tokens(Arc<Inner>);

struct Inner {
    http: Http,
    url: Url,
    source: Option<Arc<dyn SecretSource>>,
    state: Mutex<State>,
}

/// As whom a token is asked for.
struct LogIn {
    client_id: String,
    secret: Secret,
    basic: HeaderValue,
}

impl LogIn {
    fn new(client_id: &str, secret: &Secret) -> Result<Self, BusConfigError> {
        let (id, text) = (client_id, secret.expose());
        for (part, name) in [(id, "id"), (text, "secret")] {
            if part.is_empty() || part.chars().any(char::is_control) {
                return Err(BusConfigError::Credentials(name));
            }
        }
        // Both parts form-encoded first (RFC 6749 §2.3.1).
        let pair = format!("{}:{}", text::percent_encoded(id), text::percent_encoded(text));
        let basic = hidden(&format!("Basic {}", STANDARD.encode(pair)));
        Ok(Self {
            client_id: id.to_owned(),
            secret: secret.clone(),
            basic: basic.ok_or(BusConfigError::Credentials("secret"))?,
        })
    }
}

struct State {
    log_in: Arc<LogIn>,
    /// The bus refused the last log-in.
    refused: bool,
    current: Option<Arc<Token>>,
    /// The fetch that is under way, by its number.
    fetching: Option<(u64, Fetch)>,
    /// The number of the last fetch.
    last: u64,
    /// Until when nothing is asked for, and what was said.
    cooling: Option<(Duration, NoToken)>,
    /// Until when no token is replaced early.
    resting: Duration,
}

/// What a caller gets at once.
enum Found {
    Token(Arc<Token>),
    Cooling(NoToken),
    Fetch(u64, Fetch),
}

impl Tokens {
    pub(super) fn new(http: Http, url: Url, config: &BusConfig) -> Result<Self, BusConfigError> {
        let log_in = LogIn::new(&config.client_id, &config.client_secret)?;
        Ok(Self(Arc::new(Inner {
            http,
            url,
            source: config.source.clone(),
            state: Mutex::new(State {
                log_in: Arc::new(log_in),
                refused: false,
                current: None,
                fetching: None,
                last: 0,
                cooling: None,
                resting: Duration::ZERO,
            }),
        })))
    }

    /// The secret that is used now.
    pub(super) fn secret(&self) -> Secret {
        self.0.state().log_in.secret.clone()
    }

    /// A token to send with. `time` is what a fetch may take; the caller bounds its own wait.
    pub(super) async fn current(&self, time: Duration) -> Fetched {
        match self.find(time) {
            Found::Token(token) => Ok(token),
            Found::Cooling(no_token) => Err(no_token),
            Found::Fetch(number, fetch) => {
                let fetched = fetch.await;
                // The task takes itself out; one that was cut off by the end of its runtime could not.
                self.0.forget_fetch(number);
                fetched
            }
        }
    }

    /// The bus does not take this token any more.
    pub(super) fn refused(&self, token: &Token) {
        let mut state = self.0.state();
        if state
            .current
            .as_ref()
            .is_some_and(|held| held.number == token.number)
        {
            state.current = None;
        }
    }

    fn find(&self, time: Duration) -> Found {
        let mut state = self.0.state();
        let now = self.0.http.clock().elapsed();
        let cooling = state.cooling.as_ref().filter(|(until, _)| now < *until);
        let cooling = cooling.map(|(until, no_token)| NoToken {
            retry_after: Some(until.saturating_sub(now)),
            ..no_token.clone()
        });
        if let Some(token) = state.current.clone().filter(|token| now < token.ends_at) {
            let early = now >= token.replace_at && now >= state.resting;
            if early && cooling.is_none() && state.fetching.is_none() {
                drop(self.begin(&mut state, time));
            }
            return Found::Token(token);
        }
        if let Some((number, fetch)) = &state.fetching {
            return Found::Fetch(*number, fetch.clone());
        }
        match cooling {
            Some(no_token) => Found::Cooling(no_token),
            None => {
                let (number, fetch) = self.begin(&mut state, time);
                Found::Fetch(number, fetch)
            }
        }
    }

    /// Starts a fetch.
    fn begin(&self, state: &mut State, time: Duration) -> (u64, Fetch) {
        state.last += 1;
        let number = state.last;
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move { inner.fetch_and_keep(number, time).await });
        let fetch = task
            .map(|ended| {
                ended.unwrap_or_else(|_| Err(NoToken::passing("fetching an access token was cut off")))
            })
            .boxed()
            .shared();
        state.fetching = Some((number, fetch.clone()));
        (number, fetch)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_fetch(&self, number: u64) {
        let mut state = self.state();
        state.fetching = state.fetching.take().filter(|(running, _)| *running != number);
    }

    async fn fetch_and_keep(&self, number: u64, time: Duration) -> Fetched {
        let fetch = self.fetch(number);
        let fetched = within(self.http.clock(), time, fetch).await;
        let fetched = fetched.unwrap_or_else(|| {
            Err(NoToken::passing(format!(
                "no access token within {}",
                seconds(time)
            )))
        });
        let mut state = self.state();
        let now = self.http.clock().elapsed();
        match &fetched {
            Ok(token) => {
                state.current = Some(Arc::clone(token));
                state.cooling = None;
            }
            Err(no_token) => {
                state.resting = now + REST;
                state.cooling = no_token
                    .retry_after
                    .map(|wait| (now + wait.min(MAX_COOLING), no_token.clone()));
            }
        }
        state.fetching = state.fetching.take().filter(|(running, _)| *running != number);
        fetched
    }

    async fn fetch(&self, number: u64) -> Fetched {
        let (known, refused) = {
            let state = self.state();
            (Arc::clone(&state.log_in), state.refused)
        };
        // Somebody may have mended it since; if the source cannot be read, what is known may be right again.
        let log_in = match refused.then(|| self.read_again(&known)) {
            Some(Ok(Some(mended))) => mended,
            _ => known,
        };
        let mut fetched = self.fetch_as(number, &log_in).await;
        let mut told = String::new();
        if is_refused(&fetched) {
            match self.read_again(&log_in) {
                Ok(Some(mended)) => fetched = self.fetch_as(number, &mended).await,
                Ok(None) => {}
                Err(why) => told = format!("; {why}"),
            }
        }
        let refused = is_refused(&fetched);
        self.state().refused = refused;
        fetched.map_err(|no_token| match (refused, &self.source) {
            (false, _) => no_token,
            (true, Some(_)) => NoToken {
                detail: format!(
                    "{}; id and secret are read again before each try, so it is enough to mend them where they are kept{told}",
                    no_token.detail
                ),
                ..no_token
            },
            (true, None) => NoToken {
                detail: format!(
                    "{}; this program has read its secret once: start it again with the right one",
                    no_token.detail
                ),
                ..no_token
            },
        })
    }

    /// What is kept at the source now, if that is something else.
    fn read_again(&self, known: &LogIn) -> Result<Option<Arc<LogIn>>, String> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let (client_id, secret) = source.read()?;
        if client_id == known.client_id && secret == known.secret {
            return Ok(None);
        }
        let log_in = LogIn::new(&client_id, &secret).map_err(|error| error.to_string())?;
        let log_in = Arc::new(log_in);
        self.state().log_in = Arc::clone(&log_in);
        Ok(Some(log_in))
    }

    async fn fetch_as(&self, number: u64, log_in: &LogIn) -> Fetched {
        // Its life is counted from before it was made, so that it ends here no later than there.
        let began = self.http.clock().elapsed();
        let request = self
            .http
            .request(Method::POST, self.url.clone())
            .header(AUTHORIZATION, log_in.basic.clone())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(FORM)
            .build()
            .map_err(|_| NoToken::passing("the request for an access token cannot be made"))?;
        let reply = self.http.exchange(request, MAX_ANSWER).await;
        let reply = reply.map_err(|none| NoToken::passing(format!("no access token: {}", none.detail)))?;
        match given(&reply) {
            Some((token, life)) => {
                let life = Duration::from_secs_f64(life);
                let header = hidden(&format!("Bearer {token}"));
                Ok(Arc::new(Token {
                    number,
                    header: header.ok_or_else(|| foreign(reply.status))?,
                    text: Secret::new(token),
                    replace_at: began + life.saturating_sub(EARLY.min(life / 10)),
                    ends_at: began + life,
                }))
            }
            None => Err(not_given(&reply, log_in)),
        }
    }
}

/// Whether the bus did not take this client's id and secret.
fn is_refused(fetched: &Fetched) -> bool {
    matches!(fetched, Err(no_token) if matches!(no_token.status, Some(400 | 401)))
}

fn not_given(reply: &Reply, log_in: &LogIn) -> NoToken {
    let error = oauth_error(&reply.body, log_in.secret.expose());
    let rule = error.clone().unwrap_or_else(|| format!("http.{}", reply.status));
    let said = error.map_or_else(String::new, |error| format!(" {error}"));
    let (status, id) = (reply.status, &log_in.client_id);
    let (about, detail) = match status {
        200..=299 => return foreign(status),
        429 => (
            About::Moment,
            format!(
                "no access token ({status}{said}): the bus makes log-ins wait, too many have failed lately or come at once"
            ),
        ),
        408 | 425 | 500..=599 => (About::Moment, format!("no access token ({status}{said})")),
        400 | 401 => (
            About::Sender,
            format!(
                "no access token ({status}{said}): the bus does not know the client {id}, its secret is wrong, or an operator has disabled it; check both"
            ),
        ),
        _ => (
            About::Sender,
            format!(
                "no access token ({status}{said}): is the base URL that of a bus, and what stands between?"
            ),
        ),
    };
    NoToken {
        status: Some(status),
        rule: Some(rule),
        detail,
        about,
        retry_after: reply.retry_after,
    }
}

/// A yes that is no token.
fn foreign(status: u16) -> NoToken {
    NoToken {
        status: Some(status),
        rule: Some(format!("http.{status}")),
        detail: format!(
            "no access token: the answer {status} holds none, so it is no bus's; check the base URL and what stands between"
        ),
        about: About::Moment,
        retry_after: None,
    }
}

#[derive(Deserialize)]
struct Given {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Value,
}

/// The token of a `200`, and how many seconds it holds.
fn given(reply: &Reply) -> Option<(String, f64)> {
    if reply.status != 200 || !text::is_object(&reply.body) {
        return None;
    }
    let given: Given = serde_json::from_slice(&reply.body).ok()?;
    let is_bearer = given
        .token_type
        .is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let can_be_sent = (1..=MAX_TOKEN).contains(&given.access_token.len())
        && given.access_token.bytes().all(|b| b.is_ascii_graphic());
    let told = match given.expires_in {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let life = told.filter(|life: &f64| life.is_finite()).unwrap_or(UNTOLD);
    (is_bearer && can_be_sent).then(|| (given.access_token, life.clamp(0.0, LONGEST)))
}

/// The error code of RFC 6749, where the answer has one.
fn oauth_error(body: &[u8], secret: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Failed {
        error: String,
    }
    let error = serde_json::from_slice::<Failed>(body).ok()?.error;
    let is_code =
        (1..=64).contains(&error.len()) && error.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    (is_code && !error.contains(secret)).then_some(error)
}
