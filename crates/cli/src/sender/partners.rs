//! REST partners beside the bus: a file that names each and says how it is spoken to.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use storybus_sender::message::Target;
use storybus_sender::ports::SystemClock;
use storybus_sender::transport::{RestConfig, RestTransport};

use super::settings::BUS;
use crate::exit::{self, Failure};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    partners: BTreeMap<String, RestConfig>,
}

/// The partners of a file, each with its way.
pub(super) fn read(path: &Path, clock: SystemClock) -> Result<Vec<(Target, RestTransport)>, Failure> {
    let partners = std::fs::read_to_string(path)
        .map_err(anyhow::Error::from)
        .and_then(|text| parse(&text, clock));
    partners
        .with_context(|| format!("the partners of {}", path.display()))
        .map_err(|error| Failure::new(exit::UNUSABLE, error))
}

fn parse(text: &str, clock: SystemClock) -> Result<Vec<(Target, RestTransport)>> {
    let file: File = toml::from_str(text).map_err(|error| {
        // The parser's whole report quotes the line, which may hold a secret.
        let line = error
            .span()
            .map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        match line {
            Some(line) => anyhow!("line {line}: {}", error.message()),
            None => anyhow!("{}", error.message()),
        }
    })?;
    if file.partners.is_empty() {
        bail!("it names none: give each a table [partners.NAME] with its url");
    }
    let with_way = |(name, config): (String, RestConfig)| {
        if name == BUS {
            bail!("{BUS} is the bus itself: give the partner another name");
        }
        let target = Target::new(name.as_str()).with_context(|| format!("[partners.{name}]"))?;
        let way =
            RestTransport::new(config, Arc::new(clock)).with_context(|| format!("[partners.{name}]"))?;
        Ok((target, way))
    };
    file.partners.into_iter().map(with_way).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        match parse(text, SystemClock) {
            Ok(partners) => format!("{} partners", partners.len()),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_file_names_partners() {
        let partners = parse(
            "[partners.acme]\nurl = 'https://acme.example/orders'\nmemory = '48h'\n[partners.acme.headers]\nX-Team = 'news'\n[partners.b]\nurl = 'http://127.0.0.1:1/'\n",
            SystemClock,
        )
        .unwrap();
        let names: Vec<&str> = partners.iter().map(|(target, _)| target.as_str()).collect();
        assert_eq!(names, ["acme", "b"]);
    }

    #[test]
    fn what_is_wrong_is_told_without_the_secret_beside_it() {
        let text = "[partners.acme]\nurl = 'https://acme.example/'\n[partners.acme.headers]\nAuthorization = 'hunter2' x\n";
        let told = wrong(text);
        assert!(told.contains("line 4") && !told.contains("hunter2"), "{told}");
        for (text, word) in [
            ("", "names none"),
            ("[partners.bus]\nurl = 'http://h/'", "the bus itself"),
            ("[partners.'a b']\nurl = 'http://h/'", "without spaces"),
            ("[partners.a]\nurl = 'ftp://h/'", "[partners.a]: url: "),
            ("[partners.a]\nurl = 'http://h/'\nmemry = '1h'", "memry"),
            ("[a]\nurl = 'http://h/'", "unknown field"),
        ] {
            let told = wrong(text);
            assert!(told.contains(word), "{text}: {told}");
        }
    }
}
