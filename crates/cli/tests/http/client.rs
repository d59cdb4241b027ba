//! A client that writes any bytes and reads what comes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The first rule of a refusal in the bus's format.
    pub(crate) fn rule(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        assert_eq!(body["accepted"], false, "{self:?}");
        assert!(self.head.contains("cache-control: no-store"), "{self:?}");
        body["violations"][0]["rule"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            read: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends and does not care whether anybody listens.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// The next answer; `None` when the connection ends first.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(PATIENCE, self.next())
            .await
            .expect("an answer or the end of the connection")
    }

    async fn next(&mut self) -> Option<Answer> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
                let status = head[9..12].parse().unwrap();
                let length = head
                    .lines()
                    .filter_map(|l| l.split_once(": "))
                    .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                    .map_or(0, |(_, v)| v.parse::<usize>().unwrap());
                let whole = end + 4 + if status == 100 { 0 } else { length };
                if self.read.len() >= whole {
                    let body = String::from_utf8_lossy(&self.read[end + 4..whole]).into_owned();
                    self.read.drain(..whole);
                    return Some(Answer { status, head, body });
                }
            }
            let mut chunk = vec![0; 64 * 1024];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.read.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// Whether the connection has ended, or ends soon, without another answer.
    pub(crate) async fn is_closed(&mut self) -> bool {
        timeout(PATIENCE, self.next())
            .await
            .is_ok_and(|answer| answer.is_none())
    }

    pub(crate) async fn get(&mut self, path: &str) -> Option<Answer> {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        self.answer().await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &[u8]) -> Option<Answer> {
        self.send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        ))
        .await;
        self.send(body).await;
        self.answer().await
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
