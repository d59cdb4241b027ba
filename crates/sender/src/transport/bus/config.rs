//! Which bus, and as whom.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use crate::transport::http::Options;
use crate::transport::{Secret, SecretSource};

/// Which bus, and as whom.
#[derive(Debug, Clone)]
pub struct BusConfig {
    /// The base URL, such as `https://bus.example/v1/`. Over `http` the secret can be read on the way: for this machine and for
    /// networks that are trusted.
    pub url: String,
    /// The producer's client id.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// Where both are read again when the bus refuses them; without it they stay as they are.
    pub source: Option<Arc<dyn SecretSource>>,
    /// How long a connection may take to be there: 5 s. What takes longer was surely not sent.
    pub connect_timeout: Duration,
    /// The most connections that are kept open without a request: 64.
    pub idle_connections: usize,
}

/// The settings cannot be those of a bus. No text of it holds the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusConfigError {
    /// Not a URL that can be sent to.
    #[error("the bus's URL is not one like https://bus.example/v1/ : {0}")]
    Url(String),
    /// Empty, or with characters that no client id has.
    #[error("the client {0} is empty, or has characters that none has")]
    Credentials(&'static str),
    /// The HTTP client cannot be made: a proxy in the environment that is no URL, or no certificates on this machine.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

impl BusConfig {
    /// With the usual limits.
    pub fn new(url: impl Into<String>, client_id: impl Into<String>, client_secret: Secret) -> Self {
        let options = Options::default();
        Self {
            url: url.into(),
            client_id: client_id.into(),
            client_secret,
            source: None,
            connect_timeout: options.connect_timeout,
            idle_connections: options.idle_connections,
        }
    }

    /// The base URL with a slash at its end.
    pub(super) fn base(&self) -> Result<Url, BusConfigError> {
        let wrong = |reason: &str| Err(BusConfigError::Url(reason.to_owned()));
        let mut url = Url::parse(self.url.trim()).map_err(|e| BusConfigError::Url(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("it begins with neither https:// nor http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(
                "it holds a user name or a password; the client id and its secret are settings of their own",
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("it has a query or a fragment");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(url: &str) -> Result<String, BusConfigError> {
        BusConfig::new(url, "p1", Secret::new("s"))
            .base()
            .map(String::from)
    }

    #[test]
    fn a_base_url_ends_with_a_slash() {
        for (given, base_url) in [
            ("https://bus.example/v1/", "https://bus.example/v1/"),
            (" https://bus.example/v1 ", "https://bus.example/v1/"),
            ("http://127.0.0.1:8787", "http://127.0.0.1:8787/"),
            ("https://BUS.example/stage/v1", "https://bus.example/stage/v1/"),
        ] {
            assert_eq!(base(given).as_deref(), Ok(base_url));
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_repeating_it() {
        for bad in [
            "",
            "bus.example/v1",
            "ftp://bus.example/",
            "https://p1:hunter2@bus.example/v1/",
            "https://bus.example/v1/?key=hunter2",
            "https://bus.example/#hunter2",
        ] {
            let error = base(bad).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
