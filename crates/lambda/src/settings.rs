//! What a function is told by its environment.
//!
//! | variable | what | default |
//! |---|---|---|
//! | `STORYBUS_PREFIX` | the first part of every name: the stack's name | |
//! | `STORYBUS_ACCOUNT` | the account, twelve digits | |
//! | `AWS_REGION` | the region; Lambda sets it | |
//! | `STORYBUS_PARTITION` | `aws`, `aws-cn`, `aws-us-gov` | by the region |
//! | `STORYBUS_TABLE` | the table of the bus | |
//! | `STORYBUS_ARCHIVE_TABLE` | the table of the archive | |
//! | `STORYBUS_ARCHIVE_DAYS` | how long the archive keeps a message, 1–3650 | |
//! | `STORYBUS_ARCHIVE_SETTLE_SECONDS` | how long after a publication it is certainly in the archive's queue, 1–300 | 60 |
//! | `STORYBUS_SIGNING_KEYS` | name or ARN of the secret with the keys that sign tokens | |
//! | `STORYBUS_ISSUER` | who signs the tokens: `iss` | |
//! | `STORYBUS_AUDIENCE` | whom they are for: `aud` | the issuer |
//! | `STORYBUS_QUEUE_ENDPOINT` | what queue URLs begin with | by the region |
//! | `STORYBUS_ALARM_TOPIC` | ARN of the SNS topic that a consumer's alarms tell | none |
//! | `STORYBUS_GRANTS_SECONDS` | how long publishing and pulling go by grants that they have read, 0–60 | 60 |
//! | `STORYBUS_IN_FLIGHT_SECONDS` | the window of the publish protocol, 3–60; for tests alone, the template does not set it | 30 |
//! | `STORYBUS_LOG` | `error`, `warn`, `info`, `debug` | `info` |
//!
//! An empty one counts as missing: a template cannot leave a variable out.

use std::time::Duration;

use storybus_aws::Config;
use storybus_core::Settings as BusSettings;
use tracing::level_filters::LevelFilter;

/// A variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It is not there.
    #[error("the environment variable {0} is missing")]
    Missing(&'static str),
    /// It is there and cannot be used.
    #[error("the environment variable {variable} is wrong: it must be {must}")]
    Wrong {
        /// Which.
        variable: &'static str,
        /// What it must be.
        must: &'static str,
    },
}

/// What a function is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The names of the deployment.
    pub config: Config,
    /// `iss` of the access tokens.
    pub issuer: String,
    /// `aud` of the access tokens.
    pub audience: String,
    /// How long grants are remembered.
    pub grants_cached: Duration,
    /// How long an attempt to publish holds its claim: 30 s, but for tests.
    pub window: Duration,
    /// What is logged.
    pub log: LevelFilter,
}

impl Settings {
    /// From the process's environment.
    ///
    /// # Errors
    ///
    /// The first variable that is missing or wrong.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// From what `variable` says.
    ///
    /// # Errors
    ///
    /// The first variable that is missing or wrong.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let env = Env(variable);
        let region = env.needed("AWS_REGION", "a region such as eu-central-1", |v| {
            token(v, 32, b"-")
        })?;
        let partition = env.optional("STORYBUS_PARTITION", "a partition such as aws or aws-cn", |v| {
            token(v, 32, b"-")
        })?;
        let endpoint = env.optional(
            "STORYBUS_QUEUE_ENDPOINT",
            "a URL without a slash at its end",
            |v| v.contains("://") && !v.ends_with('/'),
        )?;
        let days = env.number(
            "STORYBUS_ARCHIVE_DAYS",
            None,
            "a whole number of days, 1 to 3650",
            1,
            3650,
        )?;
        let settle = env.number(
            "STORYBUS_ARCHIVE_SETTLE_SECONDS",
            Some(storybus_aws::ARCHIVE_SETTLE.as_secs()),
            "a whole number of seconds, 1 to 300",
            1,
            300,
        )?;
        let grants = env.number(
            "STORYBUS_GRANTS_SECONDS",
            Some(60),
            "a whole number of seconds, 0 to 60",
            0,
            60,
        )?;
        let window = env.number(
            "STORYBUS_IN_FLIGHT_SECONDS",
            Some(30),
            "a whole number of seconds, 3 to 60",
            3,
            60,
        )?;
        let partition = partition.unwrap_or_else(|| partition_of(&region).to_owned());
        let queue_endpoint = endpoint.unwrap_or_else(|| {
            let suffix = if partition == "aws-cn" { ".cn" } else { "" };
            format!("https://sqs.{region}.amazonaws.com{suffix}")
        });
        let issuer = env.needed("STORYBUS_ISSUER", "the URL of the bus", |_| true)?;
        let audience = env.optional("STORYBUS_AUDIENCE", "a name", |_| true)?;
        Ok(Self {
            grants_cached: Duration::from_secs(grants),
            config: Config {
                prefix: env.needed("STORYBUS_PREFIX", "1 to 40 of letters, digits and -", |v| {
                    token(v, 40, b"-")
                })?,
                account: env.needed("STORYBUS_ACCOUNT", "twelve digits", |v| {
                    v.len() == 12 && v.bytes().all(|b| b.is_ascii_digit())
                })?,
                table: env.needed("STORYBUS_TABLE", "a table's name", |v| token(v, 255, b"-_."))?,
                archive_table: env.needed("STORYBUS_ARCHIVE_TABLE", "a table's name", |v| {
                    token(v, 255, b"-_.")
                })?,
                archive_retention: Duration::from_secs(days * 24 * 3600),
                archive_settle: Duration::from_secs(settle),
                signing_keys: env.needed("STORYBUS_SIGNING_KEYS", "a secret's name or ARN", |_| true)?,
                alarm_topic: env.optional("STORYBUS_ALARM_TOPIC", "an SNS topic's ARN", |v| {
                    v.starts_with("arn:")
                })?,
                partition,
                region,
                queue_endpoint,
            },
            audience: audience.unwrap_or_else(|| issuer.clone()),
            issuer,
            window: Duration::from_secs(window),
            log: match env.get("STORYBUS_LOG").as_deref() {
                None | Some("info") => LevelFilter::INFO,
                Some("error") => LevelFilter::ERROR,
                Some("warn") => LevelFilter::WARN,
                Some("debug") => LevelFilter::DEBUG,
                Some(_) => {
                    return Err(SettingsError::Wrong {
                        variable: "STORYBUS_LOG",
                        must: "error, warn, info or debug",
                    });
                }
            },
        })
    }

    /// The times of the publish protocol, the same in every deployment: a window of 30 s, in which a publish function ends
    /// after 15 s and each of its publications within 5 s. Tests shorten the window, and all that is within it.
    #[must_use]
    pub fn bus(&self) -> BusSettings {
        BusSettings {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            ..BusSettings::with_window(self.window)
        }
    }
}

struct Env<F>(F);

impl<F: Fn(&str) -> Option<String>> Env<F> {
    fn get(&self, variable: &str) -> Option<String> {
        (self.0)(variable).filter(|value| !value.is_empty())
    }

    fn optional(
        &self,
        variable: &'static str,
        must: &'static str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, SettingsError> {
        match self.get(variable) {
            Some(value) if !fits(&value) => Err(SettingsError::Wrong { variable, must }),
            value => Ok(value),
        }
    }

    fn needed(
        &self,
        variable: &'static str,
        must: &'static str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, SettingsError> {
        self.optional(variable, must, fits)?
            .ok_or(SettingsError::Missing(variable))
    }

    fn number(
        &self,
        variable: &'static str,
        default: Option<u64>,
        must: &'static str,
        least: u64,
        most: u64,
    ) -> Result<u64, SettingsError> {
        match self.get(variable) {
            None => default.ok_or(SettingsError::Missing(variable)),
            Some(value) => {
                let number = value.parse().ok().filter(|n| (least..=most).contains(n));
                number.ok_or(SettingsError::Wrong { variable, must })
            }
        }
    }
}

fn token(value: &str, longest: usize, others: &[u8]) -> bool {
    value.len() <= longest
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || others.contains(&b))
}

fn partition_of(region: &str) -> &'static str {
    match region.split('-').take(2).collect::<Vec<_>>()[..] {
        ["cn", ..] => "aws-cn",
        ["us", "gov"] => "aws-us-gov",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn whole() -> HashMap<&'static str, &'static str> {
        HashMap::from([
            ("STORYBUS_PREFIX", "bus"),
            ("STORYBUS_ACCOUNT", "123456789012"),
            ("AWS_REGION", "eu-central-1"),
            ("STORYBUS_TABLE", "bus-table"),
            ("STORYBUS_ARCHIVE_TABLE", "bus-archive"),
            ("STORYBUS_ARCHIVE_DAYS", "30"),
            ("STORYBUS_SIGNING_KEYS", "bus-signing-keys"),
            ("STORYBUS_ISSUER", "https://bus.example/v1/"),
        ])
    }

    fn read(env: &HashMap<&'static str, &'static str>) -> Result<Settings, SettingsError> {
        Settings::read(|name| env.get(name).map(|v| (*v).to_owned()))
    }

    #[test]
    fn a_whole_environment() {
        let settings = read(&whole()).unwrap();
        assert_eq!(
            settings.config.queue_endpoint,
            "https://sqs.eu-central-1.amazonaws.com"
        );
        assert_eq!(settings.config.partition, "aws");
        assert_eq!(
            settings.config.archive_retention,
            Duration::from_secs(30 * 86_400)
        );
        assert_eq!(settings.config.alarm_topic, None);
        assert_eq!(settings.audience, settings.issuer);
        let bus = settings.bus();
        assert!(bus.publish_timeout <= Duration::from_secs(5) && bus.window == Duration::from_secs(30));
    }

    #[test]
    fn each_variable_that_is_missing_is_named() {
        for name in whole().into_keys() {
            for value in [None, Some("")] {
                let mut env = whole();
                env.remove(name);
                value.map(|v| env.insert(name, v));
                assert_eq!(read(&env), Err(SettingsError::Missing(name)));
            }
        }
    }

    #[test]
    fn each_variable_that_is_wrong_is_named() {
        for (name, value) in [
            ("STORYBUS_PREFIX", "bus.prod"),
            ("STORYBUS_PREFIX", "x-23456789-123456789-123456789-123456789-"),
            ("STORYBUS_ACCOUNT", "12345678901"),
            ("STORYBUS_ARCHIVE_DAYS", "0"),
            ("STORYBUS_ARCHIVE_DAYS", "a month"),
            ("STORYBUS_ARCHIVE_SETTLE_SECONDS", "-1"),
            ("STORYBUS_TABLE", "a table"),
            ("STORYBUS_QUEUE_ENDPOINT", "http://127.0.0.1:4566/"),
            ("STORYBUS_ALARM_TOPIC", "alarms"),
            ("STORYBUS_LOG", "loud"),
            ("STORYBUS_IN_FLIGHT_SECONDS", "1"),
            ("STORYBUS_GRANTS_SECONDS", "61"),
        ] {
            let mut env = whole();
            env.insert(name, value);
            let error = read(&env).unwrap_err();
            assert!(
                matches!(error, SettingsError::Wrong { variable, .. } if variable == name),
                "{name}={value}: {error}"
            );
        }
    }

    #[test]
    fn other_partitions() {
        for (region, partition, endpoint) in [
            ("cn-north-1", "aws-cn", "https://sqs.cn-north-1.amazonaws.com.cn"),
            (
                "us-gov-west-1",
                "aws-us-gov",
                "https://sqs.us-gov-west-1.amazonaws.com",
            ),
        ] {
            let mut env = whole();
            env.insert("AWS_REGION", region);
            let config = read(&env).unwrap().config;
            assert_eq!(
                (config.partition.as_str(), config.queue_endpoint.as_str()),
                (partition, endpoint)
            );
        }
    }
}
