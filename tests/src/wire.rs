//! HTTP/1.1 as far as the runtime and the proxy need it: whole messages, one a connection unless both sides keep it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A message: its head with the empty line behind it, and its body.
pub(crate) struct Message {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one; `None` when the connection ends before it does.
    pub(crate) async fn read(stream: &mut TcpStream) -> Option<Self> {
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
        if let Some(length) = message.header("content-length") {
            let length: usize = length.parse().ok()?;
            while message.body.len() < length {
                if stream.read_buf(&mut message.body).await.ok()? == 0 {
                    return None;
                }
            }
        } else if message.header("transfer-encoding").is_some() {
            while !message.body.ends_with(b"0\r\n\r\n") {
                if stream.read_buf(&mut message.body).await.ok()? == 0 {
                    break;
                }
            }
        }
        Some(message)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Method and path of a request.
    pub(crate) fn asked(&self) -> (&str, &str) {
        let mut words = self.head.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    /// The same, for a connection that carries nothing else.
    pub(crate) fn closing(mut self) -> Self {
        let kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
        let lines: Vec<&str> = self.head.trim_end().lines().filter(kept).collect();
        self.head = format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"));
        self
    }

    /// An answer.
    pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        Self {
            head: format!(
                "HTTP/1.1 {status} By The Test\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            ),
            body,
        }
    }

    pub(crate) async fn write(&self, stream: &mut TcpStream) -> Option<()> {
        stream.write_all(self.head.as_bytes()).await.ok()?;
        stream.write_all(&self.body).await.ok()?;
        stream.flush().await.ok()
    }

    /// The name of a call of AWS, as its protocol has it.
    pub(crate) fn operation(&self) -> String {
        match self.header("x-amz-target") {
            Some(target) => target.rsplit('.').next().unwrap_or(target).to_owned(),
            None => self.field("Action").unwrap_or_else(|| "?".to_owned()),
        }
    }

    /// A field of a form, if nothing in it is encoded.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    }
}

/// Waits until the other side is gone.
pub(crate) async fn until_closed(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}
