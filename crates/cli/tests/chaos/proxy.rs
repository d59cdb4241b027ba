//! What lies between a producer and its bus: a proxy that loses answers, is slow, cuts connections and answers by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::http::{self, Raw};
use crate::pause;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// The bus gets it, and its answer arrives.
    Passed,
    /// The same, slowly.
    Slow,
    /// The bus gets it; the connection ends instead of an answer.
    AnswerDropped,
    /// The same, after a part of the answer.
    AnswerCut,
    /// The bus gets a part of it.
    RequestCut,
    /// The connection ends before anything was read.
    Slammed,
    /// The bus gets it, and nothing else happens until the sender has had enough.
    Silent,
    /// The bus gets it long after the sender has had enough, and has tried again.
    Late,
    /// The bus gets it twice, and the second answer arrives.
    Twice,
    /// The proxy answers by itself.
    OwnAnswer,
    /// There was no bus.
    NoBus,
    /// It waits, with or without having reached the bus, until it is let go.
    Held,
}

/// In a hundred requests. The rest passes.
const CHAOS: [(Fate, u64); 9] = [
    (Fate::Slow, 8),
    (Fate::AnswerDropped, 7),
    (Fate::AnswerCut, 5),
    (Fate::RequestCut, 5),
    (Fate::Slammed, 3),
    (Fate::Silent, 1),
    (Fate::Late, 3),
    (Fate::Twice, 3),
    (Fate::OwnAnswer, 12),
];

const HTML: &str = "<!DOCTYPE html><html><body><h1>Please stand by</h1></body></html>";
const THROTTLED: &str = r#"{"message":"Too Many Requests"}"#;

/// Status, headers and body of answers that no bus gave. None of them says anything about a message.
const OWN_ANSWERS: [(&str, &str, &str); 10] = [
    ("429 Too Many Requests", "retry-after: 1\r\n", THROTTLED),
    ("429 Too Many Requests", "", ""),
    ("429 Too Many Requests", "retry-after: soon\r\n", HTML),
    ("503 Service Unavailable", "retry-after: 0\r\n", HTML),
    (
        "503 Service Unavailable",
        "date: Wed, 09 Sep 2026 12:00:00 GMT\r\nretry-after: Wed, 09 Sep 2026 12:00:01 GMT\r\n",
        HTML,
    ),
    ("503 Service Unavailable", "", ""),
    ("502 Bad Gateway", "content-type: text/html\r\n", HTML),
    ("504 Gateway Timeout", "", "upstream request timeout"),
    ("408 Request Timeout", "connection: close\r\n", ""),
    // A log-in page says yes to everything.
    ("200 OK", "content-type: text/html\r\n", HTML),
];

/// How a proxy treats what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Fair,
    Chaos,
    /// Holds every request that publishes: each second one has reached the bus already.
    Hold,
}

struct Inner {
    bus: String,
    /// So long a sender waits for an answer.
    patience: Duration,
    mode: watch::Sender<Mode>,
    /// Whether what is held may go.
    let_go: watch::Sender<bool>,
    dice: Mutex<Dice>,
    tally: watch::Sender<BTreeMap<Fate, u64>>,
}

/// A proxy in front of a bus.
pub(crate) struct Proxy {
    address: String,
    inner: Arc<Inner>,
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    pub(crate) async fn start(bus: &str, patience: Duration, mode: Mode, dice: Dice) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let inner = Arc::new(Inner {
            bus: bus.to_owned(),
            patience,
            mode: watch::Sender::new(mode),
            let_go: watch::Sender::new(false),
            dice: Mutex::new(dice),
            tally: watch::Sender::default(),
        });
        let shared = Arc::clone(&inner);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // Either side may end at any moment: that is what it is for.
                    let _ = shared.serve(client).await;
                });
            }
        });
        Self {
            address,
            inner,
            accepting,
        }
    }

    /// What a sender is given as the URL of the bus.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.inner.mode.send_replace(mode);
    }

    /// Lets go what is held.
    pub(crate) fn let_go(&self) {
        self.inner.let_go.send_replace(true);
    }

    /// How often each fate came.
    pub(crate) fn tally(&self) -> BTreeMap<Fate, u64> {
        self.inner.tally.borrow().clone()
    }

    /// Comes back when the tally is so.
    pub(crate) async fn until(&self, what: impl Fn(&BTreeMap<Fate, u64>) -> bool) {
        let mut tally = self.inner.tally.subscribe();
        tokio::time::timeout(Duration::from_secs(30), tally.wait_for(|tally| what(tally)))
            .await
            .unwrap_or_else(|_| panic!("it did not come to that: {:?}", self.tally()))
            .expect("the proxy lives");
    }
}

impl Inner {
    fn count(&self, fate: Fate) {
        self.tally
            .send_modify(|tally| *tally.entry(fate).or_default() += 1);
    }

    fn dice<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        draw(&mut self.dice.lock().expect("nobody panics in here"))
    }

    fn fate(&self) -> Fate {
        match *self.mode.borrow() {
            Mode::Fair => Fate::Passed,
            Mode::Hold => Fate::Held,
            Mode::Chaos => {
                let mut drawn = self.dice(|dice| dice.below(100));
                for (fate, share) in CHAOS {
                    if drawn < share {
                        return fate;
                    }
                    drawn -= share;
                }
                Fate::Passed
            }
        }
    }

    async fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_nodelay(true)?;
        let mut bus = None;
        loop {
            client.readable().await?;
            let mut fate = self.fate();
            if fate == Fate::Slammed {
                // What was not read is thrown away, and the sender is told so by a reset.
                self.count(fate);
                return Ok(());
            }
            let Some(request) = http::read(&mut client).await? else {
                return Ok(());
            };
            if fate == Fate::Held && !request.bytes.starts_with(b"POST /v1/jwt/messages") {
                fate = Fate::Passed;
            }
            match self.answer(fate, &request, &mut bus).await {
                Ok(Some((fate, answer))) => {
                    self.count(fate);
                    client.write_all(&answer).await?;
                    if fate == Fate::AnswerCut {
                        return Ok(());
                    }
                }
                Ok(None) => {
                    self.count(fate);
                    return Ok(());
                }
                Err(_) => {
                    self.count(Fate::NoBus);
                    bus = None;
                    if self.dice(|dice| dice.percent(50)) {
                        return Ok(());
                    }
                    client.write_all(&own_answer(OWN_ANSWERS[6])).await?;
                }
            }
        }
    }

    /// The answer to a request; `None` when the connection is to end without one.
    async fn answer(
        &self,
        fate: Fate,
        request: &Raw,
        bus: &mut Option<TcpStream>,
    ) -> std::io::Result<Option<(Fate, Vec<u8>)>> {
        let short = Duration::from_millis(200);
        match fate {
            Fate::Passed | Fate::Slammed | Fate::NoBus => {}
            Fate::Slow => {
                pause(self.dice(|dice| dice.span(short))).await;
                let answer = self.pass(request, bus).await?;
                pause(self.dice(|dice| dice.span(short))).await;
                return Ok(Some((fate, answer)));
            }
            Fate::AnswerDropped => {
                self.pass(request, bus).await?;
                return Ok(None);
            }
            Fate::AnswerCut => {
                let mut answer = self.pass(request, bus).await?;
                let kept = self.dice(|dice| dice.below(answer.len() as u64));
                answer.truncate(usize::try_from(kept).unwrap_or(0));
                return Ok(Some((fate, answer)));
            }
            Fate::RequestCut => {
                let kept = self.dice(|dice| dice.below(request.bytes.len() as u64));
                let mut bus = TcpStream::connect(&self.bus).await?;
                bus.write_all(&request.bytes[..usize::try_from(kept).unwrap_or(0)])
                    .await?;
                return Ok(None);
            }
            Fate::Silent => {
                self.pass(request, bus).await?;
                pause(self.patience * 2).await;
                return Ok(None);
            }
            Fate::Late => {
                pause(self.patience + self.dice(|dice| dice.span(self.patience))).await;
                self.pass(request, bus).await?;
                return Ok(None);
            }
            Fate::Twice => {
                self.pass(request, bus).await?;
            }
            Fate::OwnAnswer => {
                let answer = self.dice(|dice| dice.pick(&OWN_ANSWERS));
                return Ok(Some((fate, own_answer(answer))));
            }
            Fate::Held => {
                let earlier = self.tally.borrow().get(&Fate::Held).copied().unwrap_or(0);
                self.count(Fate::Held);
                let answered = if earlier % 2 == 0 {
                    Some(self.pass(request, bus).await?)
                } else {
                    None
                };
                // The sender of this lives as long as the proxy.
                let _ = self.let_go.subscribe().wait_for(|let_go| *let_go).await;
                let answer = match answered {
                    Some(answer) => answer,
                    None => self.pass(request, bus).await?,
                };
                return Ok(Some((Fate::Passed, answer)));
            }
        }
        Ok(Some((fate, self.pass(request, bus).await?)))
    }

    /// Hands the request to the bus. Its answer.
    async fn pass(&self, request: &Raw, bus: &mut Option<TcpStream>) -> std::io::Result<Vec<u8>> {
        let mut stream = match bus.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.bus).await?,
        };
        stream.set_nodelay(true)?;
        stream.write_all(&request.bytes).await?;
        let answer = http::read(&mut stream).await?;
        let answer = answer.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
        *bus = Some(stream);
        Ok(answer.bytes)
    }
}

fn own_answer((status, headers, body): (&str, &str, &str)) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
