//! A plain HTTP proxy in front of the emulator: counts what passes, and loses, delays or answers what it is told to.
#![expect(clippy::disallowed_methods, reason = "a delay on the wire is real time")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// It is delivered, and the connection closes before its answer.
    AnswerLost,
    /// The connection closes before it is delivered.
    RequestLost,
    /// It is delivered, and its answer comes so much later.
    Late(Duration),
    /// It is delivered, and answered so.
    DeliveredBut(u16, &'static str),
    /// It is not delivered, and answered so.
    Answered(u16, &'static str),
}

#[derive(Default)]
struct State {
    upstream: String,
    /// What happens to the next requests.
    plan: Mutex<VecDeque<Fault>>,
    /// And to those after them.
    then: Mutex<Option<Fault>>,
    seen: Mutex<Vec<String>>,
}

/// A proxy on a port of its own. It ends with this.
pub(crate) struct Proxy {
    address: String,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// One in front of this address.
    pub(crate) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            upstream: upstream.to_owned(),
            ..State::default()
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            listening,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What happens to the next requests, one each; nothing to those after them.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *locked(&self.state.plan) = faults.into_iter().collect();
        *locked(&self.state.then) = None;
    }

    /// What happens to every request, until it is told otherwise.
    pub(crate) fn always(&self, fault: Fault) {
        locked(&self.state.plan).clear();
        *locked(&self.state.then) = Some(fault);
    }

    /// What happens to the next request, before what is planned already.
    pub(crate) fn first(&self, fault: Fault) {
        locked(&self.state.plan).push_front(fault);
    }

    /// Refuses connections from now on, for good.
    pub(crate) async fn refuse(&self) {
        self.listening.abort();
        // the port is closed when the task is gone
        while !self.listening.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    /// What was asked since the last look, by name: `PutItem`, `Publish`.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.state.seen))
    }
}

async fn listen(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let state = Arc::clone(&state);
        // whatever goes wrong, the connection closes
        tokio::spawn(async move { pass(stream, &state).await });
    }
}

/// A message of HTTP/1.1: its head with the empty line behind it, and its body.
struct Message {
    head: String,
    body: Vec<u8>,
}

impl Message {
    /// Reads one; `None` when the connection ends before it does.
    async fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let mut message = Self {
            head: String::from_utf8(bytes[..end].to_vec()).ok()?,
            body: bytes[end..].to_vec(),
        };
        match message.header("content-length") {
            Some(length) => {
                let length: usize = length.parse().ok()?;
                while message.body.len() < length {
                    if stream.read_buf(&mut message.body).await.ok()? == 0 {
                        return None;
                    }
                }
            }
            // in chunks: whoever reads it asked for the connection to close behind it
            None if message.header("transfer-encoding").is_some() => {
                stream.read_to_end(&mut message.body).await.ok()?;
            }
            None => {}
        }
        Some(message)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The same, for a connection that carries nothing else: then each request has its fault alone, and a refusal is met by the next.
    fn closing(mut self) -> Self {
        let kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
        let lines: Vec<&str> = self.head.trim_end().lines().filter(kept).collect();
        self.head = format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"));
        self
    }

    async fn write(&self, stream: &mut TcpStream) -> Option<()> {
        stream.write_all(self.head.as_bytes()).await.ok()?;
        stream.write_all(&self.body).await.ok()?;
        stream.flush().await.ok()
    }

    /// The operation's name, as its protocol has it.
    fn name(&self) -> String {
        if let Some(target) = self.header("x-amz-target") {
            return target.rsplit('.').next().unwrap_or(target).to_owned();
        }
        let body = String::from_utf8_lossy(&self.body);
        let action = body.split('&').find_map(|pair| pair.strip_prefix("Action="));
        action.unwrap_or("?").to_owned()
    }
}

async fn pass(mut client: TcpStream, state: &State) -> Option<()> {
    let request = Message::read(&mut client).await?;
    let json = request.header("x-amz-target").is_some();
    let fault = {
        locked(&state.seen).push(request.name());
        let then = *locked(&state.then);
        locked(&state.plan).pop_front().or(then).unwrap_or(Fault::None)
    };
    match fault {
        Fault::RequestLost => return None,
        Fault::Answered(status, code) => return error(status, code, json).write(&mut client).await,
        _ => {}
    }
    let mut upstream = TcpStream::connect(state.upstream.trim_start_matches("http://"))
        .await
        .ok()?;
    request.closing().write(&mut upstream).await?;
    let answer = Message::read(&mut upstream).await?.closing();
    match fault {
        Fault::AnswerLost => None,
        Fault::DeliveredBut(status, code) => error(status, code, json).write(&mut client).await,
        Fault::Late(by) => {
            tokio::time::sleep(by).await;
            answer.write(&mut client).await
        }
        _ => answer.write(&mut client).await,
    }
}

/// An error of a service, in its protocol.
fn error(status: u16, code: &str, json: bool) -> Message {
    let (kind, text) = if json {
        (
            "application/x-amz-json-1.0",
            format!(r#"{{"__type":"com.amazonaws.tests#{code}","message":"by the proxy"}}"#),
        )
    } else {
        (
            "text/xml",
            format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>by the proxy</Message></Error></ErrorResponse>"
            ),
        )
    };
    Message {
        head: format!(
            "HTTP/1.1 {status} By The Proxy\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            text.len()
        ),
        body: text.into_bytes(),
    }
}
