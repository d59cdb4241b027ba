//! What is printed for a newcomer: where the bus is, and what to try next.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use storybus_core::domain::time::Millis;
use storybus_core::ports::Random;

use super::credentials::{Client, Credentials};
use super::first_start::DEMO_SYSTEM;

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

/// This program as it was called, if that was by a path; else where it is.
pub(super) fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    if called.components().count() > 1 {
        return quoted(&called);
    }
    std::env::current_exe().map_or_else(|_| "storybus".to_owned(), |path| quoted(&path))
}

/// What `serve --demo` prints; `program` is how to call this one. No secret: they are in the file.
pub(super) fn demo(
    program: &str,
    credentials: &Credentials,
    file: &Path,
    random: &dyn Random,
    now: Millis,
) -> String {
    let (url, file) = (&credentials.base_url, quoted(file));
    let clients = &credentials.clients;
    let mut text = format!("storybus is at {url}\nCredentials: {file} (only you can read it)\n");
    for (name, client) in [
        ("operator", &clients.operator),
        ("producer", &clients.producer),
        ("consumer", &clients.consumer),
    ] {
        if let Some(client) = client {
            let _ = writeln!(text, "  {name}  {}", client.client_id);
        }
    }
    let tenant = clients.tenant.as_deref().unwrap_or_default();
    let _ = writeln!(
        text,
        "  workspace {tenant}; the producer speaks for the system_id {DEMO_SYSTEM}\n"
    );
    let ready = |client: &Option<Client>| client.as_ref().is_some_and(|c| c.client_secret.is_some());
    text += &if ready(&clients.producer) && ready(&clients.consumer) {
        first_steps(program, url, &file, &sample(random, now))
    } else {
        without_secrets(url, tenant)
    };
    text + "\nCtrl-C stops the bus; what it has accepted is kept.\n"
}

fn first_steps(program: &str, url: &str, file: &str, message: &str) -> String {
    format!(
        r#"Publish a message and pull it, in another terminal in this directory:

cat > hello.json <<'END'
{message}
END
{program} publish --credentials-file {file} hello.json
{program} pull --credentials-file {file} --follow

The same publish with curl:

field() {{ python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['producer']['$1'])" {file}; }}
TOKEN=$(curl -s -u "$(field client_id):$(field client_secret)" -d grant_type=client_credentials {url}oauth/token |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')
curl -i -H "Authorization: Bearer $TOKEN" --data-binary @hello.json {url}jwt/messages
"#
    )
}

fn without_secrets(url: &str, tenant: &str) -> String {
    format!(
        "The secrets of these clients were handed out on the first start; the bus itself has only hashes of them. To get new ones, as an operator:\n\n           POST {url}admin/tenants/{tenant}/producers/p\u{2026}/secrets\n           POST {url}admin/tenants/{tenant}/consumers/c\u{2026}/secrets\n\n         If the operators' secrets are lost, too: start the bus with --new-operator.\n"
    )
}

/// What `serve` prints without `--demo`, on a start that made secrets.
pub(super) fn first(credentials: &Credentials, file: &Path) -> String {
    format!(
        "storybus is at {}\nThe operator's credentials are in {} (only you can read it); keep them safe.\n",
        credentials.base_url,
        quoted(file)
    )
}

#[cfg(test)]
mod tests {
    use super::super::credentials::Clients;
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

    fn said(credentials: &Credentials) -> String {
        let file = Path::new("storybus-data/credentials.json");
        demo(
            "bin/storybus",
            credentials,
            file,
            &OsRandom,
            Millis(1_800_000_000_000),
        )
    }

    #[test]
    fn the_commands_work_as_they_stand_and_no_secret_is_shown() {
        let text = said(&credentials());
        for part in [
            "bin/storybus publish --credentials-file storybus-data/credentials.json hello.json",
            "  producer  p1\n",
            "w1",
            "['$1'])\" storybus-data/credentials.json; }",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("hush"), "{text}");
    }

    #[test]
    fn what_cannot_work_is_not_proposed() {
        let mut credentials = credentials();
        credentials.clients = credentials.clients.shut();
        let text = said(&credentials);
        assert!(
            text.contains("/admin/tenants/w1/producers/") && text.contains("--new-operator"),
            "{text}"
        );
        assert!(!text.contains("curl") && !text.contains("hello.json"), "{text}");
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
