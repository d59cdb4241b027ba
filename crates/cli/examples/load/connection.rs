//! HTTP over a plain socket.

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use storybus_cli::serve::credentials::{Client, Credentials};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) read: Vec<u8>,
    filled: usize,
}

impl Connection {
    pub(crate) async fn open(credentials: &Credentials) -> Result<Self> {
        let host = credentials
            .base_url
            .trim_start_matches("http://")
            .split('/')
            .next()
            .unwrap_or_default();
        let stream = TcpStream::connect(host)
            .await
            .with_context(|| format!("cannot connect to {host}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: vec![0; 64 * 1024],
            filled: 0,
        })
    }

    /// Sends a request; the status and where the body is.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<(u16, std::ops::Range<usize>)> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        loop {
            let n = self.stream.read(&mut self.read[self.filled..]).await?;
            if n == 0 {
                bail!("the bus closed the connection");
            }
            self.filled += n;
            let Some(end) = self.read[..self.filled].windows(4).position(|w| w == b"\r\n\r\n") else {
                continue;
            };
            let head = std::str::from_utf8(&self.read[..end])?;
            let length: usize = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "))
                .unwrap_or("0")
                .parse()?;
            let (status, body) = (head[9..12].parse()?, end + 4..end + 4 + length);
            if self.read.len() < body.end {
                self.read.resize(body.end, 0);
            }
            while self.filled < body.end {
                let n = self.stream.read(&mut self.read[self.filled..]).await?;
                if n == 0 {
                    bail!("the bus closed the connection");
                }
                self.filled += n;
            }
            return Ok((status, body));
        }
    }

    pub(crate) async fn token(&mut self, client: Option<&Client>) -> Result<String> {
        let client = client.context("the credentials file is not one of a demo")?;
        let secret = client
            .client_secret
            .as_deref()
            .context("the credentials file has no secrets")?;
        let basic = STANDARD.encode(format!("{}:{secret}", client.client_id));
        let form = "grant_type=client_credentials";
        let request = format!(
            "POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\nauthorization: Basic {basic}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let (status, body) = self.ask(request.as_bytes()).await?;
        if status != 200 {
            bail!("no token: {status}");
        }
        let answer: serde_json::Value = serde_json::from_slice(&self.read[body])?;
        Ok(answer["access_token"].as_str().unwrap_or_default().to_owned())
    }
}
