//! Which outbox, which bus, and how often an attempt is repeated: the same flags in every verb of the sender.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use storybus_sender::call::Limits;
use storybus_sender::message::Target;
use storybus_sender::outbox::{EnqueueError, Migrated, OperatorError, Outbox, OutboxError};
use storybus_sender::ports::SystemClock;
use storybus_sender::transport::{BusConfig, BusTransport, Secret, SecretSource};

use crate::client::settings::{BusArgs, Who, variable};
use crate::exit::{self, Failure};
use crate::operator::flags::quoted;
use crate::operator::out;

/// The target that is the bus.
pub(super) const BUS: &str = "bus";
/// The variable of the outbox's address.
const OUTBOX: &str = "STORYBUS_OUTBOX";
/// The outbox when nobody names one.
const FILE: &str = "storybus-outbox.db";

/// Which outbox.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Outbox")]
pub(crate) struct OutboxArgs {
    /// The outbox: a file of SQLite (a path, or sqlite:PATH), or postgres://USER@HOST/DATABASE. The password of a database
    /// belongs into PGPASSWORD, into ~/.pgpass (or PGPASSFILE), or with the whole address into STORYBUS_OUTBOX: on the command line other
    /// users of the machine could see it. The default is a file in the current directory
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = OUTBOX,
        hide_env_values = true,
        default_value = FILE
    )]
    pub(super) outbox: String,
}

/// What a verb does with an outbox that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Makes a file of SQLite with the table in it. On PostgreSQL somebody else does: a sender's role need not be allowed to.
    Made,
    /// Says so.
    Told,
}

impl OutboxArgs {
    /// The flag for a command that is to go on from this one, unless that command finds the outbox by itself.
    pub(super) fn carried(&self) -> String {
        let found = self.outbox == FILE || variable(OUTBOX).as_ref() == Some(&self.outbox);
        if found || holds_password(&self.outbox) {
            return String::new();
        }
        format!(" --outbox {}", quoted(&self.outbox))
    }

    /// The outbox, which has to be there.
    pub(super) async fn open(&self) -> Result<Outbox, Failure> {
        let outbox = self.place()?;
        self.prepare(&outbox, Missing::Told).await?;
        Ok(outbox)
    }

    /// Looks whether the outbox is there, and on SQLite brings its table up to date where it may be made. Whether it was made now.
    pub(super) async fn prepare(&self, outbox: &Outbox, missing: Missing) -> Result<bool, Failure> {
        let Some(file) = outbox.file() else {
            return Ok(false);
        };
        match missing {
            Missing::Told if !file.exists() => Err(Failure::unusable(format_args!(
                "there is no outbox at {}: give the right one with --outbox or {OUTBOX}; `storybus send` and `storybus outbox migrate` make a new one",
                file.display()
            ))),
            Missing::Told => Ok(false),
            Missing::Made => Ok(self.migrate(outbox).await? == Migrated::Made),
        }
    }

    /// Where the outbox is, whether or not there is one.
    pub(super) fn place(&self) -> Result<Outbox, Failure> {
        let by_flag = variable(OUTBOX).as_ref() != Some(&self.outbox);
        if by_flag && holds_password(&self.outbox) {
            out::note(
                "other users of this machine can see the password on the command line: put it into PGPASSWORD, ~/.pgpass or STORYBUS_OUTBOX",
            );
        }
        Outbox::open(&self.outbox).map_err(|error| Failure::new(exit::UNUSABLE, error))
    }

    /// Makes the table, or brings it up to date; on SQLite the file too.
    pub(super) async fn migrate(&self, outbox: &Outbox) -> Result<Migrated, Failure> {
        if let Some(file) = outbox.file() {
            // What is to be published is nobody else's yet. SQLite gives the files beside it the same mode.
            let new = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(file);
            if let Err(error) = new
                && error.kind() != ErrorKind::AlreadyExists
            {
                return Err(Failure::unusable(format_args!(
                    "the outbox {} cannot be made: {error}; choose another place with --outbox",
                    file.display()
                )));
            }
        }
        outbox.migrate().await.map_err(|error| failed(outbox, &error))
    }
}

/// Whether an address has a password in it.
fn holds_password(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| {
        user.split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    }) || rest.contains("password=")
}

/// What is wrong with an outbox, and what to do.
pub(super) fn failed(outbox: &Outbox, error: &OutboxError) -> Failure {
    let at = outbox.address();
    let (code, advice) = match error {
        OutboxError::Absent => (
            exit::UNUSABLE,
            ". `storybus outbox migrate` makes it; where no program may do so, `storybus outbox schema` prints the SQL",
        ),
        OutboxError::Unreachable(trouble) if outbox.file().is_some() && !trouble.is_conflict() => (
            exit::UNUSABLE,
            ". Look whether that is a file of SQLite that this user may read and write, in a directory where files may be made, and whether its disk has room",
        ),
        OutboxError::Unreachable(_) => (
            exit::FAILED,
            ". Look whether it runs there, and whether user and password are right; what was enqueued is kept",
        ),
        OutboxError::Forbidden(_) if outbox.file().is_some() => (
            exit::UNUSABLE,
            ". This user has to be allowed to write the file, and to make files beside it",
        ),
        OutboxError::Forbidden(_) => (
            exit::UNUSABLE,
            ". To make the table a role needs CREATE on the schema: run `storybus outbox migrate` as its owner, or give them the SQL of `storybus outbox schema --postgres`. \
             A relay's role needs: GRANT SELECT, UPDATE, DELETE ON sender_log; one that enqueues: GRANT SELECT, INSERT ON sender_log and USAGE ON SEQUENCE sender_log_id",
        ),
        OutboxError::Database(_) => (
            exit::FAILED,
            ". Look after the database, then do the same again: nothing is sent twice for it",
        ),
        OutboxError::Stuck { .. } => (exit::FAILED, ""),
        OutboxError::Address { .. } | OutboxError::Newer { .. } | OutboxError::Encoding { .. } => {
            (exit::UNUSABLE, "")
        }
    };
    Failure::new(code, anyhow!("{at}: {error}{advice}"))
}

/// Why a message cannot be enqueued.
pub(super) fn not_enqueued(outbox: &Outbox, name: &str, error: &EnqueueError) -> Failure {
    match error {
        EnqueueError::Outbox(error) => failed(outbox, error),
        EnqueueError::Invalid(_) | EnqueueError::KeyReused { .. } => {
            Failure::unusable(format_args!("{name}: {error}"))
        }
        EnqueueError::Conflict(_) => Failure::new(
            exit::FAILED,
            anyhow!("{name}: {error}. Do the same again: what is there already is not enqueued twice"),
        ),
    }
}

/// Why an operator's wish was not carried out.
pub(super) fn not_done(outbox: &Outbox, error: &OperatorError) -> Failure {
    match error {
        OperatorError::Outbox(error) => failed(outbox, error),
        OperatorError::NotFound { .. } => Failure::new(
            exit::REFUSED,
            anyhow!("{error}; storybus outbox list shows which there are"),
        ),
        OperatorError::MayRepeat { .. } | OperatorError::Final { .. } | OperatorError::UnderWay { .. } => {
            Failure::new(exit::REFUSED, anyhow!("{error}"))
        }
    }
}

/// How often an attempt is repeated, and how long it may take.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Attempts")]
pub(crate) struct CallArgs {
    /// How many attempts make a round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_attempts: u32,
    /// The longest pause after the first attempt; after each further one it is twice as long
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    base_delay_ms: u64,
    /// No pause between two attempts is longer, whoever asks for it
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    max_delay_ms: u64,
    /// How long one attempt may take
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
}

impl CallArgs {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            max_attempts: self.max_attempts,
            base_delay: Duration::from_millis(self.base_delay_ms),
            max_delay: Duration::from_millis(self.max_delay_ms),
            timeout: Duration::from_millis(self.timeout_ms),
        }
    }
}

/// A name as a target.
pub(super) fn target(name: &str) -> Result<Target, Failure> {
    Target::new(name).map_err(|error| Failure::new(exit::UNUSABLE, error))
}

/// The way to the bus.
pub(super) fn bus(args: &BusArgs, clock: SystemClock) -> Result<BusTransport, Failure> {
    let unusable = |error: anyhow::Error| Failure::new(exit::UNUSABLE, error);
    let settings = args
        .settings(Who::Producer, std::env::var("STORYBUS_CLIENT_SECRET").ok())
        .map_err(unusable)?;
    let mut config = BusConfig::new(
        settings.url.clone(),
        settings.client_id,
        Secret::new(settings.client_secret),
    );
    if settings.of_file {
        config.source = Some(Arc::new(Kept {
            args: args.clone(),
            url: settings.url,
        }));
    }
    BusTransport::new(config, Arc::new(clock)).map_err(|error| unusable(error.into()))
}

/// Files that hold the client's id and secret.
#[derive(Debug)]
struct Kept {
    args: BusArgs,
    /// The bus that they were read for.
    url: String,
}

impl SecretSource for Kept {
    fn read(&self) -> Result<(String, Secret), String> {
        let secret = std::env::var("STORYBUS_CLIENT_SECRET").ok();
        let settings = self
            .args
            .settings(Who::Producer, secret)
            .map_err(|error| format!("{error:#}"))?;
        // The secret of another bus is not this one's to see.
        if settings.url != self.url {
            return Err("the file names another bus by now: start this program again for that".to_owned());
        }
        Ok((settings.client_id, Secret::new(settings.client_secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_for_its_own_bus_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let write = |url: &str, secret: &str| {
            let text = format!(
                r#"{{"base_url":"{url}","producer":{{"client_id":"p1","client_secret":"{secret}"}}}}"#
            );
            std::fs::write(&path, text).unwrap();
        };
        let args = BusArgs {
            credentials_file: Some(path.clone()),
            ..BusArgs::default()
        };
        let kept = Kept {
            args,
            url: "http://h/v1/".to_owned(),
        };
        write("http://h/v1/", "hunter2");
        assert_eq!(kept.read(), Ok(("p1".to_owned(), Secret::new("hunter2"))));
        write("http://other/v1/", "hunter3");
        assert!(kept.read().unwrap_err().contains("another bus"));
        std::fs::remove_file(&path).unwrap();
        assert!(kept.read().unwrap_err().contains("c.json"));
    }

    #[test]
    fn a_password_in_an_address_is_noticed() {
        for with in [
            "postgres://u:hunter2@h/db",
            "postgresql://u:hunter2@h:5432/db?sslmode=require",
            "postgres://h/db?user=u&password=hunter2",
        ] {
            assert!(holds_password(with), "{with}");
        }
        for without in [
            "postgres://u@h/db",
            "postgres://u:@h/db",
            "postgres://h:5432/db",
            "outbox.db",
            "sqlite:a:b@c",
            "postgres:///db?host=/run/postgresql",
        ] {
            assert!(!holds_password(without), "{without}");
        }
    }
}
