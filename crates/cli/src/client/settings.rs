//! Which bus a command talks to, and as whom. The same flags and variables in every command.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::profiles::{Profile, Profiles};
use crate::private_file;
use crate::serve::credentials::{self, Client};

/// Where `storybus serve` puts the credentials by itself, in the directory in which it was started.
const USUAL_FILE: &str = "storybus-data/credentials.json";

/// That a secret's file is open to others is said once.
static WARNED: std::sync::Once = std::sync::Once::new();

/// Which bus, and as whom.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Bus")]
pub(crate) struct BusArgs {
    /// The bus's base URL, such as http://127.0.0.1:8787/v1/
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "URL",
        env = "STORYBUS_URL"
    )]
    pub url: Option<String>,
    /// The client id
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "ID",
        env = "STORYBUS_CLIENT_ID"
    )]
    pub client_id: Option<String>,
    /// A file that holds the client secret and nothing else; or set STORYBUS_CLIENT_SECRET. A secret is never a flag's value:
    /// other users of the machine could see it
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub client_secret_file: Option<PathBuf>,
    /// A credentials file as `storybus serve` writes it; the other settings go before it. As a flag it goes before STORYBUS_URL and
    /// STORYBUS_CLIENT_ID, so that half of one bus is never mixed with half of another
    /// [default: storybus-data/credentials.json, when it is there and neither URL nor client is given]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        env = "STORYBUS_CREDENTIALS"
    )]
    pub credentials_file: Option<PathBuf>,
    /// The settings of this name in the file of profiles. It goes before the variables, and flags go before it
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "NAME",
        env = "STORYBUS_PROFILE"
    )]
    pub profile: Option<String>,
    /// The file of profiles [default: storybus/config.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        env = "STORYBUS_CONFIG"
    )]
    pub config: Option<PathBuf>,
}

/// What a client needs to know.
pub(crate) struct Settings {
    /// The base URL, with a slash at its end.
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    /// Whether the secret stands in a file, which may be changed.
    pub(crate) of_file: bool,
    /// The workspace that the profile or the credentials file is about.
    pub(crate) workspace: Option<String>,
}

/// The value of a variable that is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// A setting as a flag gave it: with a profile, the variables do not count.
pub(crate) fn of_flag(value: Option<String>, name: &str) -> Option<String> {
    value.filter(|v| variable(name).as_ref() != Some(v))
}

/// Whom a command acts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Producer,
    Consumer,
    Operator,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Operator => "operator",
        }
    }
}

impl BusArgs {
    /// Gathers the settings; `secret` is the value of `STORYBUS_CLIENT_SECRET`.
    pub(crate) fn settings(&self, who: Who, secret: Option<String>) -> Result<Settings> {
        let of_flag = |value: &Option<String>, name| of_flag(value.clone(), name);
        let (flag_id, flag_credentials) = (
            of_flag(&self.client_id, "STORYBUS_CLIENT_ID"),
            self.credentials_file
                .clone()
                .filter(|f| std::env::var_os("STORYBUS_CREDENTIALS").as_deref() != Some(f.as_os_str())),
        );
        let Some(name) = &self.profile else {
            if flag_credentials.is_none() {
                return self.gathered(who, secret, "--client-id");
            }
            // A file that was asked for says it all: half of it is never mixed with half of the environment.
            let args = Self {
                url: of_flag(&self.url, "STORYBUS_URL"),
                client_id: flag_id,
                ..self.clone()
            };
            return args.gathered(who, secret, "--client-id");
        };
        let mut profile = Profiles::read(self.config.as_deref())?.named(name)?;
        if flag_credentials.is_some() {
            // The file says all that the profile would.
            profile = Profile {
                workspace: profile.workspace,
                ..Profile::default()
            };
        }
        // A secret stays with its client, as in a credentials file.
        let other = flag_id.is_some() && flag_id != profile.client_id;
        let of_profile = profile.client_secret_file.filter(|_| !other);
        let secret = secret.filter(|_| of_profile.is_none() && profile.credentials_file.is_none());
        let args = Self {
            url: of_flag(&self.url, "STORYBUS_URL").or(profile.url),
            client_id: flag_id.or(profile.client_id),
            client_secret_file: self.client_secret_file.clone().or(of_profile),
            credentials_file: flag_credentials.or(profile.credentials_file),
            profile: None,
            config: None,
        };
        let mut settings = args
            .gathered(who, secret, "--client-id or the profile")
            .with_context(|| format!("profile {name}"))?;
        settings.workspace = profile.workspace.or(settings.workspace);
        Ok(settings)
    }

    /// `by` is what a client id that is not the file's was given by, unless by the variable.
    fn gathered(&self, who: Who, secret: Option<String>, by: &str) -> Result<Settings> {
        let nothing = self.credentials_file.is_none() && self.url.is_none() && self.client_id.is_none();
        let usual = PathBuf::from(USUAL_FILE);
        let file = match &self.credentials_file {
            None if nothing => credentials::read(&usual)?,
            None => None,
            Some(path) => Some(credentials::read(path)?.with_context(|| {
                format!(
                    "there is no {}; give the path of the credentials file that `storybus serve` has written, or --url and --client-id",
                    path.display()
                )
            })?),
        };
        let known: Option<Client> = file.as_ref().and_then(|f| match who {
            Who::Producer => f.clients.producer.clone(),
            Who::Consumer => f.clients.consumer.clone(),
            Who::Operator => f.clients.operator.clone(),
        });
        let Some(url) = self
            .url
            .clone()
            .or_else(|| file.as_ref().map(|f| f.base_url.clone()))
        else {
            bail!("which bus? Give --url, STORYBUS_URL, --credentials-file or STORYBUS_CREDENTIALS");
        };
        let Some(client_id) = self
            .client_id
            .clone()
            .or_else(|| known.as_ref().map(|k| k.client_id.clone()))
        else {
            let name = who.name();
            bail!(
                "as whom? Give the {name}'s --client-id, STORYBUS_CLIENT_ID, or a --credentials-file that has the {name}"
            );
        };
        let secret = match &self.client_secret_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                if private_file::is_open(path) {
                    // Once: a relay reads it again. Nobody is left to tell when stderr is gone.
                    WARNED.call_once(|| {
                        let _ = writeln!(
                            io::stderr(),
                            "other users can read the secret in {0}: chmod 600 {0}",
                            path.display()
                        );
                    });
                }
                Some(text.trim().to_owned())
            }
            None => secret.filter(|s| !s.is_empty()),
        };
        let of_file = self.client_secret_file.is_some() || secret.is_none();
        // The file's secret belongs to the file's client alone.
        let files = known
            .filter(|k| k.client_id == client_id)
            .and_then(|k| k.client_secret);
        let Some(client_secret) = secret.or(files) else {
            let from = if self.client_id.is_none() {
                "the credentials file"
            } else if variable("STORYBUS_CLIENT_ID").as_ref() == Some(&client_id) {
                "STORYBUS_CLIENT_ID"
            } else {
                by
            };
            bail!(
                "the secret of {client_id} is missing (the client id is from {from}): set STORYBUS_CLIENT_SECRET or give --client-secret-file. A credentials file that was asked for holds secrets only from the start that made them"
            );
        };
        Ok(Settings {
            url: base_url(&url)?,
            client_id,
            client_secret,
            of_file,
            workspace: file.and_then(|f| f.clients.tenant),
        })
    }
}

/// A base URL as its owner may write it: the slash at the end may be missing, and the `/v1` of a bare host.
fn base_url(text: &str) -> Result<String> {
    let uri: http::Uri = text
        .trim()
        .parse()
        .with_context(|| format!("{text} is not a URL"))?;
    let (Some("http" | "https"), Some(host)) = (uri.scheme_str(), uri.authority()) else {
        if !text.contains("://") && !text.starts_with('/') {
            bail!("{text} is not a URL; did you mean http://{text}?");
        }
        bail!("{text} is not a URL that begins with http:// or https://");
    };
    if host.as_str().contains('@') {
        bail!("a URL with a password in it would be seen by other users; give --client-id and a secret file");
    }
    let path = match uri.path().trim_end_matches('/') {
        "" => "/v1",
        path => path,
    };
    Ok(format!("{}://{host}{path}/", uri.scheme_str().unwrap_or("http")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> BusArgs {
        BusArgs::default()
    }

    #[test]
    fn urls_may_be_short() {
        assert_eq!(base_url("http://h:1").unwrap(), "http://h:1/v1/");
        assert_eq!(base_url("http://h/").unwrap(), "http://h/v1/");
        assert_eq!(base_url("https://h/v1").unwrap(), "https://h/v1/");
        assert_eq!(base_url("https://h/prod/v1/").unwrap(), "https://h/prod/v1/");
        assert!(base_url("h:1").unwrap_err().to_string().contains("http://h:1?"));
        for bad in ["h:1", "ftp://h/", "http://u:p@h/", "/v1", ""] {
            assert!(base_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_go_before_the_file_and_a_secret_stays_with_its_client() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        std::fs::write(
            &path,
            r#"{"base_url":"http://h/v1/","tenant":"w1","producer":{"client_id":"p1","client_secret":"s1","system_id":"x"},"consumer":{"client_id":"c1"}}"#,
        )
        .unwrap();
        let with_file = BusArgs {
            credentials_file: Some(path),
            ..args()
        };
        let s = with_file.settings(Who::Producer, None).unwrap();
        assert_eq!(
            (s.url.as_str(), s.client_id.as_str(), s.client_secret.as_str()),
            ("http://h/v1/", "p1", "s1")
        );
        let s = with_file.settings(Who::Producer, Some("s2".to_owned())).unwrap();
        assert_eq!(s.client_secret, "s2");
        let other = BusArgs {
            client_id: Some("p2".to_owned()),
            ..with_file.clone()
        };
        assert!(other.settings(Who::Producer, None).is_err());
        assert!(
            with_file.settings(Who::Consumer, None).is_err(),
            "the file has no secret for it"
        );
        let missing = other.settings(Who::Producer, None).err().unwrap().to_string();
        assert!(
            missing.contains("p2 is missing (the client id is from --client-id)"),
            "{missing}"
        );
        assert!(args().settings(Who::Producer, Some("s".to_owned())).is_err());
    }

    #[test]
    fn a_profile_is_a_whole_and_its_secret_stays_with_its_client() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(folder.path().join("secret"), "s1\n").unwrap();
        std::fs::write(
            &config,
            "[profiles.a]\nurl = 'http://h'\nclient_id = 'o1'\nclient_secret_file = 'secret'\nworkspace = 'w1'\n[profiles.b]\nurl = 'http://h'\nclient_id = 'o2'\n",
        )
        .unwrap();
        let with = |profile: &str| BusArgs {
            profile: Some(profile.to_owned()),
            config: Some(config.clone()),
            ..args()
        };
        let given = || Some("of the environment".to_owned());
        let s = with("a").settings(Who::Operator, given()).unwrap();
        assert_eq!(
            (s.url.as_str(), s.client_id.as_str(), s.client_secret.as_str()),
            ("http://h/v1/", "o1", "s1")
        );
        assert_eq!(s.workspace.as_deref(), Some("w1"));
        let s = with("b").settings(Who::Operator, given()).unwrap();
        assert_eq!(s.client_secret, "of the environment");
        let other = BusArgs {
            client_id: Some("o3".to_owned()),
            ..with("a")
        };
        assert!(other.settings(Who::Operator, None).is_err());
        let unknown = with("c").settings(Who::Operator, None).err().unwrap();
        assert!(unknown.to_string().contains("it has a, b"), "{unknown}");
    }
}
