//! Profiles: which bus and as whom, under a name, in a file that holds no secret.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::private_file;

/// The file, below the user's directory for configuration.
const FILE: &str = "storybus/config.toml";

/// One bus, and as whom to talk to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// The bus's base URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// The client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    /// A file with the client's secret and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// The workspace that is meant when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    /// A credentials file as `storybus serve` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credentials_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// All profiles, and the file they are in.
#[derive(Debug)]
pub(crate) struct Profiles {
    pub(crate) file: PathBuf,
    pub(crate) by_name: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads them from the file that was named, or else from the usual one, which need not be there.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self> {
        let home = env::var_os("HOME").map(PathBuf::from);
        let file = match named {
            Some(file) => file.to_owned(),
            None => usual_file(env::var_os("XDG_CONFIG_HOME"), home.as_deref())
                .context("where are the profiles? Give --config FILE: there is no home directory")?,
        };
        let content = private_file::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let by_name = match content {
            Some(content) => parse(&file, &content, home.as_deref())?,
            None if named.is_some() => bail!("there is no {}", file.display()),
            None => BTreeMap::new(),
        };
        Ok(Self { file, by_name })
    }

    /// The profile of this name.
    pub(crate) fn named(&self, name: &str) -> Result<Profile> {
        self.by_name.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            let known = match known.as_slice() {
                [] => "it has none".to_owned(),
                known => format!("it has {}", known.join(", ")),
            };
            anyhow!("there is no profile {name:?} in {}; {known}", self.file.display())
        })
    }
}

fn usual_file(config_home: Option<OsString>, home: Option<&Path>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path is to be ignored.
    let folder = config_home
        .map(PathBuf::from)
        .filter(|f| f.is_absolute())
        .or_else(|| home.map(|h| h.join(".config")));
    folder.map(|f| f.join(FILE))
}

fn parse(file: &Path, content: &[u8], home: Option<&Path>) -> Result<BTreeMap<String, Profile>> {
    let text = std::str::from_utf8(content).with_context(|| format!("{} is not UTF-8", file.display()))?;
    let parsed: File = toml::from_str(text).map_err(|e| {
        // Never the line itself: it may hold a secret that somebody put there.
        let line = e
            .span()
            .and_then(|s| text.get(..s.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        let what = e.message();
        let hint = if what.contains("unknown field `client_secret`") {
            ". A secret is never in this file: put it into one of its own, mode 600, and name that as client_secret_file"
        } else {
            ""
        };
        anyhow!("{} line {line}: {what}{hint}", file.display())
    })?;
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    let placed = |path: Option<PathBuf>| {
        path.map(|path| match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => folder.join(path),
        })
    };
    let mut profiles = parsed.profiles;
    for profile in profiles.values_mut() {
        profile.client_secret_file = placed(profile.client_secret_file.take());
        profile.credentials_file = placed(profile.credentials_file.take());
    }
    Ok(profiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<BTreeMap<String, Profile>> {
        parse(
            Path::new("/etc/x/config.toml"),
            text.as_bytes(),
            Some(Path::new("/home/me")),
        )
    }

    #[test]
    fn files_lie_beside_the_profiles_or_at_home() {
        let profiles = parsed(
            "[profiles.a]\nurl = 'http://h'\nclient_secret_file = 'a.secret'\n[profiles.b]\ncredentials_file = '~/b.json'\n[profiles.c]\ncredentials_file = '/c.json'",
        )
        .unwrap();
        let path = |p: &Option<PathBuf>| p.as_ref().unwrap().display().to_string();
        assert_eq!(path(&profiles["a"].client_secret_file), "/etc/x/a.secret");
        assert_eq!(path(&profiles["b"].credentials_file), "/home/me/b.json");
        assert_eq!(path(&profiles["c"].credentials_file), "/c.json");
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_shown() {
        let error = parsed("[profiles.a]\nurl = 'http://h'\nclient_secret = 'geheim'\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 3") && error.contains("client_secret_file") && !error.contains("geheim"),
            "{error}"
        );
        assert!(
            parsed("[profiles]\nx = ")
                .unwrap_err()
                .to_string()
                .contains("line 2")
        );
        assert!(parsed("").unwrap().is_empty());
    }

    #[test]
    fn the_usual_place_is_that_of_the_xdg_specification() {
        let home = Some(Path::new("/home/me"));
        let place = |config: Option<&str>, home| usual_file(config.map(OsString::from), home);
        assert_eq!(
            place(Some("/cfg"), home),
            Some(PathBuf::from("/cfg/storybus/config.toml"))
        );
        for config in [None, Some("relative"), Some("")] {
            assert_eq!(
                place(config, home),
                Some(PathBuf::from("/home/me/.config/storybus/config.toml"))
            );
        }
        assert_eq!(place(None, None), None);
    }
}
