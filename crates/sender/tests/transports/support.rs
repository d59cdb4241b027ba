//! A server that does as it is told, and clocks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use storybus_sender::answer::Answer;
use storybus_sender::ports::{Clock, Random, SystemClock};
use storybus_sender::transport::{Attempt, BusConfig, BusTransport, Outgoing, Secret, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A `message_id`, and an envelope that has it.
pub(crate) const ID: &str = "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07";
pub(crate) const ENVELOPE: &str = r#"{"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07", "correlation_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b08"}"#;
/// The secret of the tests' client.
pub(crate) const SECRET: &str = "correct-horse-battery-staple";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    /// A whole answer; the connection stays.
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// The end of the connection.
    Cut,
    /// Nothing, for as long as the client waits.
    Hang,
    /// These bytes, then that one again and again: without a pause, or with one.
    Forever(Vec<u8>, Vec<u8>, Duration),
    /// Another reaction, when this is notified.
    After(Arc<tokio::sync::Notify>, Box<Reaction>),
}

pub(crate) fn answer(status: u16, body: &str) -> Reaction {
    Reaction::Answer {
        status,
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

pub(crate) fn answer_with(status: u16, headers: &[(&str, &str)], body: &str) -> Reaction {
    Reaction::Answer {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.as_bytes().to_vec(),
    }
}

/// `202` as a bus answers it to [`ENVELOPE`].
pub(crate) fn accepted() -> Reaction {
    answer(
        202,
        &format!(
            r#"{{"accepted":true,"message_id":"{ID}","message_type":"story.context","family":"story-context"}}"#
        ),
    )
}

/// A refusal as a bus answers it.
pub(crate) fn refusal(rule: &str) -> String {
    format!(
        r#"{{"accepted":false,"violations":[{{"source":"policy","rule":"{rule}","message":"said so"}}]}}"#
    )
}

/// A token that tells its number.
pub(crate) fn token(number: usize, life: u64) -> Reaction {
    answer(
        200,
        &format!(
            r#"{{"access_token":"token-number-{number}","token_type":"Bearer","expires_in":{life},"scope":"sombus/publish"}}"#
        ),
    )
}

type React = Arc<dyn Fn(&Seen) -> Reaction + Send + Sync>;

/// A server on loopback. It ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(react: impl Fn(&Seen) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (react, log): (React, _) = (Arc::new(react), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&react), Arc::clone(&log)));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests came to a path that ends so.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.seen().iter().filter(|s| s.target.ends_with(path)).count()
    }
}

async fn serve(mut stream: TcpStream, react: React, log: Arc<Mutex<Vec<Seen>>>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read(&mut stream, &mut buffer).await {
        let reaction = {
            // Under the lock, so that the n-th reaction belongs to the n-th request.
            let mut log = log.lock().unwrap();
            log.push(seen.clone());
            react(&seen)
        };
        if !play(&mut stream, reaction).await {
            break;
        }
    }
}

/// Whether the connection goes on.
async fn play(stream: &mut TcpStream, reaction: Reaction) -> bool {
    match reaction {
        Reaction::Answer {
            status,
            headers,
            body,
        } => {
            let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            let bytes = [head.as_bytes(), b"\r\n", &body].concat();
            stream.write_all(&bytes).await.is_ok()
        }
        Reaction::Raw(bytes) => {
            drop(stream.write_all(&bytes).await);
            drop(stream.shutdown().await);
            false
        }
        Reaction::Cut => false,
        Reaction::Hang => {
            // Until the client has had enough.
            while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
            false
        }
        Reaction::Forever(head, again, pause) => {
            let mut sent = stream.write_all(&head).await;
            while sent.is_ok() {
                if pause.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    SystemClock.sleep(pause).await;
                }
                sent = stream.write_all(&again).await;
            }
            false
        }
        Reaction::After(notify, then) => {
            notify.notified().await;
            Box::pin(play(stream, *then)).await
        }
    }
}

/// The next request; `None` at the connection's end.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |l| l.parse().unwrap());
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    Some(Seen {
        method,
        target,
        headers,
        body: buffer.drain(..length).collect(),
    })
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 16 * 1024];
    let n = stream.read(&mut chunk).await.ok()?;
    buffer.extend_from_slice(&chunk[..n]);
    (n > 0).then_some(())
}

/// A bus that gives out tokens of an hour, and reacts to messages by the script; when it is over, by its last line.
pub(crate) async fn bus(script: Vec<Reaction>) -> Server {
    let (tokens, messages) = (AtomicU64::new(0), AtomicU64::new(0));
    Server::start(move |seen| {
        if seen.target.ends_with("/oauth/token") {
            let number = tokens.fetch_add(1, Ordering::Relaxed) + 1;
            return token(usize::try_from(number).unwrap(), 3_600);
        }
        let n = usize::try_from(messages.fetch_add(1, Ordering::Relaxed)).unwrap();
        script[n.min(script.len() - 1)].clone()
    })
    .await
}

/// Waits until it is so, for half a minute at most.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let end = SystemClock.elapsed() + Duration::from_secs(30);
    while !is_so() {
        assert!(SystemClock.elapsed() < end, "it did not come about");
        tokio::task::yield_now().await;
    }
}

/// The real clock, which the test can put forward. It sleeps in real time.
#[derive(Debug, Default)]
pub(crate) struct Ahead(AtomicU64);

impl Ahead {
    pub(crate) fn forward(&self, span: Duration) {
        let millis = u64::try_from(span.as_millis()).unwrap();
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for Ahead {
    fn elapsed(&self) -> Duration {
        SystemClock.elapsed() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn since_epoch(&self) -> Duration {
        SystemClock.since_epoch() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span).await;
    }
}

/// A clock that stands at a moment, and whose sleeps are noted and over at once.
#[derive(Debug, Default)]
pub(crate) struct Still {
    pub(crate) at: Duration,
    pub(crate) slept: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Clock for Still {
    fn elapsed(&self) -> Duration {
        self.at
    }

    fn since_epoch(&self) -> Duration {
        self.at
    }

    async fn sleep(&self, span: Duration) {
        self.slept.lock().unwrap().push(span);
    }
}

/// The largest numbers that there are: every pause is its ceiling.
#[derive(Debug)]
pub(crate) struct Ones;

impl Random for Ones {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0xff);
    }
}

pub(crate) fn transport(server: &Server) -> BusTransport {
    transport_by(server, Arc::new(SystemClock))
}

pub(crate) fn transport_by(server: &Server, clock: Arc<dyn Clock>) -> BusTransport {
    BusTransport::new(config(server), clock).unwrap()
}

pub(crate) fn config(server: &Server) -> BusConfig {
    BusConfig::new(server.url("/v1/"), "p1", Secret::new(SECRET))
}

pub(crate) fn outgoing() -> Outgoing<'static> {
    Outgoing {
        key: ID,
        body: ENVELOPE.as_bytes(),
        content_type: None,
    }
}

/// Ample time: a test that needs a time-out has its own.
pub(crate) const AMPLE: Attempt = Attempt {
    timeout: Duration::from_secs(30),
    new_credentials: false,
};

pub(crate) fn hasty(millis: u64) -> Attempt {
    Attempt {
        timeout: Duration::from_millis(millis),
        ..AMPLE
    }
}

/// One attempt to send [`ENVELOPE`].
pub(crate) async fn attempt(transport: &dyn Transport) -> Answer {
    transport.attempt(outgoing(), AMPLE).await
}
