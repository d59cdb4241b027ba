//! The credentials file: what a start hands to the one who started it.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::private_file;

/// One client. The secret is there only when it is handed out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its id.
    pub client_id: String,
    /// Its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The system that a producer speaks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_id: Option<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the secret never reaches a log
        f.debug_struct("Client")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The same without its secret.
    #[must_use]
    pub fn shut(&self) -> Self {
        Self {
            client_secret: None,
            ..self.clone()
        }
    }
}

/// The clients that a start makes: an operator, and for a demo a workspace with a producer and a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// Runs the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Client>,
    /// The demo's workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The demo's producer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<Client>,
    /// The demo's consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Client>,
}

impl Clients {
    fn each(&self) -> [&Option<Client>; 3] {
        [&self.operator, &self.producer, &self.consumer]
    }

    fn each_mut(&mut self) -> [&mut Option<Client>; 3] {
        [&mut self.operator, &mut self.producer, &mut self.consumer]
    }

    /// Whether there is a secret among them.
    #[must_use]
    pub fn holds_secrets(&self) -> bool {
        self.each()
            .into_iter()
            .flatten()
            .any(|c| c.client_secret.is_some())
    }

    /// The same without secrets.
    #[must_use]
    pub fn shut(&self) -> Self {
        let mut shut = self.clone();
        for client in shut.each_mut().into_iter().flatten() {
            client.client_secret = None;
        }
        shut
    }

    /// Whether `before` has a secret of one of these clients that is not among these.
    fn lacks_secrets_of(&self, before: &Self) -> bool {
        let mut with = self.clone();
        with.keep_secrets_of(before);
        with != *self
    }

    /// Takes over secrets that are known from before, of the same clients.
    fn keep_secrets_of(&mut self, before: &Self) {
        for (client, known) in self.each_mut().into_iter().zip(before.each()) {
            let (Some(client), Some(known)) = (client, known) else {
                continue;
            };
            if client.client_secret.is_none() && client.client_id == known.client_id {
                client.client_secret.clone_from(&known.client_secret);
            }
        }
    }
}

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// Where the bus is, with the slash at its end.
    pub base_url: String,
    /// Who may use it.
    #[serde(flatten)]
    pub clients: Clients,
}

/// Where the credentials go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// To a file that was asked for. It holds secrets only on the start that made them.
    Given(PathBuf),
    /// To the data directory. The file there keeps what it has: nobody was asked to copy it in time.
    Own(PathBuf),
}

impl Handover {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::Own(path) => path,
        }
    }

    /// Writes the file. Returns what is in it now.
    pub fn write(&self, base_url: &str, clients: &Clients) -> Result<Credentials> {
        let mut credentials = Credentials {
            base_url: base_url.to_owned(),
            clients: clients.clone(),
        };
        let before = read(self.path()).unwrap_or_default();
        if let Some(before) = &before {
            match self {
                Self::Own(_) => credentials.clients.keep_secrets_of(&before.clients),
                Self::Given(path) if clients.lacks_secrets_of(&before.clients) => tracing::warn!(
                    file = %path.display(),
                    "the credentials file held secrets that are handed out only once; it is written without them now. New ones: POST \u{2026}/secrets as an operator, or --new-operator"
                ),
                Self::Given(_) => {}
            }
        }
        if before.as_ref() != Some(&credentials) {
            let mut content = serde_json::to_vec_pretty(&credentials)?;
            content.push(b'\n');
            private_file::write(self.path(), &content)
                .with_context(|| format!("cannot write the credentials to {}", self.path().display()))?;
        }
        Ok(credentials)
    }
}

/// Reads a credentials file; `None` when there is none.
pub fn read(path: &Path) -> Result<Option<Credentials>> {
    let content = private_file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some(content) = content else { return Ok(None) };
    if content.is_empty() {
        anyhow::bail!("{} is empty", path.display());
    }
    let parsed = serde_json::from_slice(&content).map_err(|e| {
        // Only where it goes wrong: the file holds secrets.
        anyhow::anyhow!(
            "{} is not a credentials file (line {}, column {})",
            path.display(),
            e.line(),
            e.column()
        )
    })?;
    Ok(Some(parsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: &str, secret: Option<&str>) -> Option<Client> {
        Some(Client {
            client_id: id.to_owned(),
            client_secret: secret.map(str::to_owned),
            system_id: None,
        })
    }

    #[test]
    fn a_given_file_has_secrets_once_and_the_own_one_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let first = Clients {
            operator: client("o1", Some("s")),
            ..Clients::default()
        };
        let path = folder.path().join("f.json");
        let given = Handover::Given(path.clone());
        given.write("http://h/v1/", &first).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path)
                .unwrap()
                .split_whitespace()
                .collect::<String>(),
            r#"{"base_url":"http://h/v1/","operator":{"client_id":"o1","client_secret":"s"}}"#
        );
        given.write("http://h/v1/", &first.shut()).unwrap();
        assert!(!read(&path).unwrap().unwrap().clients.holds_secrets());
        let own = Handover::Own(folder.path().join("own.json"));
        own.write("http://h/v1/", &first).unwrap();
        let later = Clients {
            operator: client("o1", None),
            producer: client("p1", Some("t")),
            ..Clients::default()
        };
        own.write("http://h:2/v1/", &later).unwrap();
        let kept = read(own.path()).unwrap().unwrap();
        assert_eq!(
            (kept.base_url.as_str(), &kept.clients.operator),
            ("http://h:2/v1/", &client("o1", Some("s")))
        );
        assert_eq!(kept.clients.producer, client("p1", Some("t")));
        own.write(
            "http://h/v1/",
            &Clients {
                operator: client("o2", None),
                ..Clients::default()
            },
        )
        .unwrap();
        assert!(
            !read(own.path()).unwrap().unwrap().clients.holds_secrets(),
            "another operator's secret is not kept"
        );
    }

    #[test]
    fn a_broken_file_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.json");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("f.json is empty"));
        std::fs::write(&path, r#"{"base_url":"x","operator":{"client_secret":"hush"}"#).unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("f.json") && !error.contains("hush"), "{error}");
    }
}
