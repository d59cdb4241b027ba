//! HTTP/1.1 messages as bytes: what a proxy passes on, and a consumer's few calls.

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// So long a call of a test's own may take.
const SOON: Duration = Duration::from_secs(20);

/// A request or an answer, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
    /// Where the body begins.
    body: usize,
}

impl Raw {
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    fn status(&self) -> u16 {
        std::str::from_utf8(&self.bytes[9..12])
            .ok()
            .and_then(|status| status.parse().ok())
            .expect("a status")
    }
}

/// Reads one message. `None`: the other side has ended, before it or in the middle of it.
pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Option<Raw>> {
    let mut bytes = Vec::with_capacity(8 * 1024);
    let body = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..body]).to_ascii_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().expect("a length"));
    while bytes.len() < body + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Raw { bytes, body }))
}

/// A client of the bus itself, on a connection of its own.
pub(crate) struct Client {
    stream: TcpStream,
    token: String,
}

impl Client {
    /// One that has a token.
    pub(crate) async fn log_in(address: &str, id: &str, secret: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the bus listens");
        let mut client = Self {
            stream,
            token: String::new(),
        };
        let basic = STANDARD.encode(format!("{id}:{secret}"));
        let head =
            format!("authorization: Basic {basic}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
        let answer = client
            .ask("POST", "/v1/oauth/token", &head, b"grant_type=client_credentials")
            .await;
        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        answer["access_token"]
            .as_str()
            .expect("a token")
            .clone_into(&mut client.token);
        client
    }

    pub(crate) async fn get(&mut self, path: &str) -> Vec<u8> {
        let head = format!("authorization: Bearer {}\r\n", self.token);
        self.ask("GET", path, &head, b"").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &serde_json::Value) -> Vec<u8> {
        let head = format!("authorization: Bearer {}\r\n", self.token);
        self.ask("POST", path, &head, body.to_string().as_bytes()).await
    }

    /// The body of an answer, which must be 200.
    async fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: bus\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        let answer = tokio::time::timeout(SOON, async {
            self.stream.write_all(&[head.as_bytes(), body].concat()).await?;
            read(&mut self.stream).await
        })
        .await
        .expect("an answer in time")
        .expect("an answer")
        .expect("an answer, whole");
        let told = String::from_utf8_lossy(answer.body());
        assert_eq!(answer.status(), 200, "{method} {path}: {told}");
        answer.body().to_vec()
    }
}
