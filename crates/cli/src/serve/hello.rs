//! What is printed for a newcomer: where the bus is, and what to try next.

use std::fmt::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Random;

use super::credentials::Credentials;
use super::first_start::DEMO_SYSTEM;

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A person at a terminal, who may see secrets.
    Terminal,
    /// A file or a service manager's log, which may not hold secrets.
    Log,
}

/// A version 4 UUID.
fn uuid(random: &dyn Random) -> String {
    let mut b = [0; 16];
    random.fill(&mut b);
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let hex: String = b.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// A message to try the bus with: the first snapshot of a story of its own.
fn sample(random: &dyn Random, now: Millis) -> String {
    let story = uuid(random);
    format!(
        r#"{{"som_version":"1.0.0","message_id":"{}","correlation_id":"{}","message_type":"story.context","timestamp":"{}","originating_system":{{"system_id":"{DEMO_SYSTEM}","system_type":"ncs"}},"topic":"som.story.context","payload":{{"story_id":"hello-{}","slug":"HELLO","headline":"Hello, newsroom","story_type":"PLANNED","sequence_number":1,"updated_at":"{}"}}}}"#,
        uuid(random),
        uuid(random),
        now.to_rfc3339(),
        &story[..8],
        now.to_rfc3339(),
    )
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b))
    {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// This program as it was called, if that was by a path; else by its name.
pub(super) fn program() -> String {
    let called = std::env::args_os()
        .next()
        .map(std::path::PathBuf::from)
        .unwrap_or_default();
    if called.components().count() > 1 {
        quoted(&called)
    } else {
        "storybus".to_owned()
    }
}

/// What `serve --demo` prints; `program` is how to call this one.
pub(super) fn demo(
    program: &str,
    credentials: &Credentials,
    file: &Path,
    reader: Reader,
    random: &dyn Random,
    now: Millis,
) -> String {
    let (url, file) = (&credentials.base_url, quoted(file));
    let clients = &credentials.clients;
    let mut text = format!("storybus is at {url}\n");
    let _ = writeln!(text, "Credentials: {file} (only you can read it)");
    let shown = |client: &Option<super::credentials::Client>| {
        let client = client.as_ref()?;
        let secret = client
            .client_secret
            .as_deref()
            .filter(|_| reader == Reader::Terminal)?;
        Some((client.client_id.clone(), secret.to_owned()))
    };
    for (name, client) in [
        ("operator", &clients.operator),
        ("producer", &clients.producer),
        ("consumer", &clients.consumer),
    ] {
        match (shown(client), client) {
            (Some((id, secret)), _) => {
                let _ = writeln!(text, "  {name}  {id}  secret {secret}");
            }
            (None, Some(client)) => {
                let _ = writeln!(text, "  {name}  {}", client.client_id);
            }
            (None, None) => {}
        }
    }
    if let Some(tenant) = &clients.tenant {
        let _ = writeln!(
            text,
            "  workspace {tenant}; the producer speaks for the system_id {DEMO_SYSTEM}"
        );
    }
    let message = sample(random, now);
    let _ = write!(
        text,
        "\nPublish a message and pull it, in another terminal in this directory:\n\n\
         cat > hello.json <<'END'\n{message}\nEND\n\
         {program} publish --credentials-file {file} hello.json\n\
         {program} pull --credentials-file {file} --follow\n"
    );
    let basic = match shown(&clients.producer) {
        Some((id, secret)) => format!(
            "-H 'Authorization: Basic {}'",
            STANDARD.encode(format!("{id}:{secret}"))
        ),
        None => "-u \"$CLIENT_ID:$CLIENT_SECRET\"".to_owned(),
    };
    let _ = write!(
        text,
        "\nThe same publish with curl{}:\n\n\
         TOKEN=$(curl -s {basic} -d grant_type=client_credentials {url}oauth/token | sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\n\
         curl -i -H \"Authorization: Bearer $TOKEN\" --data-binary @hello.json {url}jwt/messages\n\n\
         Ctrl-C stops the bus; what it has accepted is kept.\n",
        if shown(&clients.producer).is_some() {
            ""
        } else {
            " (the producer's id and secret are in the credentials file)"
        },
    );
    text
}

/// What `serve` prints without `--demo`, on a start that made secrets.
pub(super) fn first(credentials: &Credentials, file: &Path) -> String {
    format!(
        "storybus is at {}\nThe first operator's credentials are in {} (only you can read it); keep them safe.\n",
        credentials.base_url,
        quoted(file)
    )
}

#[cfg(test)]
mod tests {
    use super::super::credentials::{Client, Clients};
    use super::*;
    use crate::ports::OsRandom;

    fn credentials() -> Credentials {
        let client = |id: &str| {
            Some(Client {
                client_id: id.to_owned(),
                client_secret: Some(format!("{id}-hush")),
                system_id: None,
            })
        };
        Credentials {
            base_url: "http://127.0.0.1:8787/v1/".to_owned(),
            clients: Clients {
                operator: client("o1"),
                tenant: Some("w1".to_owned()),
                producer: client("p1"),
                consumer: client("c1"),
            },
        }
    }

    #[test]
    fn a_terminal_shows_secrets_and_a_log_does_not() {
        let text = |reader| {
            demo(
                "storybus",
                &credentials(),
                Path::new("storybus-data/credentials.json"),
                reader,
                &OsRandom,
                Millis(1_800_000_000_000),
            )
        };
        let terminal = text(Reader::Terminal);
        for part in [
            "secret p1-hush",
            "storybus publish --credentials-file storybus-data/credentials.json hello.json",
            "w1",
        ] {
            assert!(terminal.contains(part), "{terminal}");
        }
        let log = text(Reader::Log);
        assert!(
            !log.contains("hush") && !log.contains("Basic ") && log.contains("p1"),
            "{log}"
        );
    }

    #[test]
    fn the_sample_is_json_and_new_each_time() {
        let sample =
            |now| serde_json::from_str::<serde_json::Value>(&sample(&OsRandom, Millis(now))).unwrap();
        let (one, two) = (sample(0), sample(0));
        assert_ne!(one["message_id"], two["message_id"]);
        assert_ne!(one["payload"]["story_id"], two["payload"]["story_id"]);
        assert_eq!(one["message_id"].as_str().unwrap().len(), 36);
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("a/b.json")), "a/b.json");
        assert_eq!(quoted(Path::new("it's here")), r"'it'\''s here'");
    }
}
