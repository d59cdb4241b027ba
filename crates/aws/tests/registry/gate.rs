//! A way to the emulator on which calls are counted, and stopped at the one that the test names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

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
    /// Host and port of the emulator.
    target: String,
}

/// The way. What dies is never answered.
#[derive(Debug)]
pub(crate) struct Gate {
    address: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gate {
    /// Stops at call `at`, counted from 0.
    pub(crate) async fn new(target: &str, at: usize, fate: Fate) -> Self {
        let state = Arc::new(State {
            calls: AtomicUsize::new(0),
            at,
            fate,
            died: Notify::new(),
            target: target.trim_start_matches("http://").to_owned(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn({
            let state = state.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, state.clone()));
                }
            }
        });
        Self { address, state, task }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
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

/// One call a connection.
async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let Some((head, body)) = request(&mut stream).await else {
        return;
    };
    let fate = (state.calls.fetch_add(1, Ordering::SeqCst) == state.at).then_some(state.fate);
    if fate == Some(Fate::Refused) {
        let body = r#"{"__type":"AccessDeniedException","message":"on purpose"}"#;
        let head = format!(
            "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.ok();
        return;
    }
    let mut answer = Vec::new();
    if fate != Some(Fate::DiesBefore) {
        let mut onward = TcpStream::connect(&state.target).await.unwrap();
        let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
        onward.write_all(head.as_bytes()).await.unwrap();
        onward.write_all(&body).await.unwrap();
        onward.read_to_end(&mut answer).await.ok();
    }
    if fate.is_some() {
        state.died.notify_one();
        return std::future::pending().await;
    }
    stream.write_all(&answer).await.ok();
}

/// The head and the body of a request.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, bytes[end..].to_vec()))
}
