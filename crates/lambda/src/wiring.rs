//! Which ports each function has: what it has no business with is [`Absent`].
//!
//! [`PORTS`] says it as a table, which the wiring is tested against. What a function may therefore do on AWS,
//! [`policies`](crate::policies) says.

use std::sync::{Arc, OnceLock};

use storybus_aws::{CachedConnections, CachedWorkspaces};
use storybus_core::Ports;
use storybus_core::ports::Connections;

use crate::metrics::timed;
use crate::ports::{Absent, InlineHasher};
use crate::runtime::Deployment;

/// Each function and its ports, in the order of the core's.
pub const PORTS: &[(&str, &[&str])] = &[
    (
        "publish",
        &[
            "ledger",
            "topic",
            "activity",
            "workspaces",
            "connections",
            "rates",
            "keys",
        ],
    ),
    ("pull", &["queues", "workspaces", "connections", "keys"]),
    ("token", &["connections", "rates", "hasher", "keys"]),
    (
        "admin",
        &[
            "ledger",
            "queues",
            "queue_control",
            "dead_letters",
            "archive",
            "stories",
            "jobs",
            "activity",
            "workspaces",
            "connections",
            "audit",
            "hasher",
            "keys",
        ],
    ),
    ("replay", &["queue_control", "archive", "jobs", "connections"]),
    (
        "redrive",
        &["queue_control", "dead_letters", "jobs", "connections"],
    ),
];

/// One for all places, by which a place that has it is known.
fn absent() -> Arc<Absent> {
    static ABSENT: OnceLock<Arc<Absent>> = OnceLock::new();
    Arc::clone(ABSENT.get_or_init(Arc::default))
}

/// The ports of a function without any but time and randomness.
#[must_use]
pub fn none(deployment: &Deployment) -> Ports {
    Ports {
        clock: Arc::clone(&deployment.clock),
        random: Arc::clone(&deployment.random),
        ledger: absent(),
        topic: absent(),
        queues: absent(),
        queue_control: absent(),
        dead_letters: absent(),
        archive: absent(),
        stories: absent(),
        jobs: absent(),
        activity: absent(),
        workspaces: absent(),
        connections: absent(),
        audit: absent(),
        rates: absent(),
        hasher: absent(),
        keys: absent(),
    }
}

/// The names of the ports that are there, in the order of the core's.
#[must_use]
pub fn present(ports: &Ports) -> Vec<&'static str> {
    let absent = absent();
    let absent: *const () = Arc::as_ptr(&absent).cast();
    let all: [(&'static str, *const ()); 15] = [
        ("ledger", Arc::as_ptr(&ports.ledger).cast()),
        ("topic", Arc::as_ptr(&ports.topic).cast()),
        ("queues", Arc::as_ptr(&ports.queues).cast()),
        ("queue_control", Arc::as_ptr(&ports.queue_control).cast()),
        ("dead_letters", Arc::as_ptr(&ports.dead_letters).cast()),
        ("archive", Arc::as_ptr(&ports.archive).cast()),
        ("stories", Arc::as_ptr(&ports.stories).cast()),
        ("jobs", Arc::as_ptr(&ports.jobs).cast()),
        ("activity", Arc::as_ptr(&ports.activity).cast()),
        ("workspaces", Arc::as_ptr(&ports.workspaces).cast()),
        ("connections", Arc::as_ptr(&ports.connections).cast()),
        ("audit", Arc::as_ptr(&ports.audit).cast()),
        ("rates", Arc::as_ptr(&ports.rates).cast()),
        ("hasher", Arc::as_ptr(&ports.hasher).cast()),
        ("keys", Arc::as_ptr(&ports.keys).cast()),
    ];
    let there = all.into_iter().filter(|(_, port)| !std::ptr::eq(*port, absent));
    there.map(|(name, _)| name).collect()
}

/// The registry for those who only look: grants from a cache.
fn looking(deployment: &Deployment, ports: Ports) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    let fresh_for = deployment.settings.grants_cached;
    let workspaces = Arc::new(aws.workspaces(clock.clone(), random.clone()));
    let connections = Arc::new(aws.connections(clock.clone(), random.clone()));
    Ports {
        workspaces: Arc::new(CachedWorkspaces::new(workspaces, clock.clone(), fresh_for)),
        connections: Arc::new(CachedConnections::new(connections, clock.clone(), fresh_for)),
        keys: Arc::new(aws.public_keys()),
        ..ports
    }
}

/// Publishing: records, stories and topics, measured. A refusal is a line of the log.
#[must_use]
pub fn publish(deployment: &Deployment) -> Ports {
    let aws = &deployment.aws;
    let (ledger, topic) = timed(Arc::new(aws.ledger()), Arc::new(aws.topic()), &deployment.meter);
    Ports {
        ledger: Arc::new(ledger),
        topic: Arc::new(topic),
        rates: Arc::new(aws.rates()),
        activity: Arc::new(aws.activity(deployment.clock.clone())),
        ..looking(deployment, none(deployment))
    }
}

/// The pull API. What is rejected is looked for in the archive and becomes a dead letter.
#[must_use]
pub fn pull(deployment: &Deployment) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    let ports = looking(deployment, none(deployment));
    let archive = Arc::new(aws.archive(clock.clone()));
    let queues = aws.queues(ports.connections.clone(), archive, clock.clone(), random.clone());
    Ports {
        queues: Arc::new(queues),
        ..ports
    }
}

/// Tokens, by what the registry says now: whoever is shut out gets no more of them.
#[must_use]
pub fn token(deployment: &Deployment) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    Ports {
        connections: Arc::new(aws.connections(clock.clone(), random.clone())),
        rates: Arc::new(aws.rates()),
        hasher: Arc::new(InlineHasher::new(random.clone())),
        keys: Arc::new(aws.secret_keys()),
        ..none(deployment)
    }
}

/// The operator API. It reads what it has just written, so nothing of it comes from a cache.
#[must_use]
pub fn admin(deployment: &Deployment) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    let connections: Arc<dyn Connections> = Arc::new(aws.connections(clock.clone(), random.clone()));
    let archive = Arc::new(aws.archive(clock.clone()));
    Ports {
        ledger: Arc::new(aws.ledger()),
        queues: Arc::new(aws.queues(
            connections.clone(),
            archive.clone(),
            clock.clone(),
            random.clone(),
        )),
        queue_control: Arc::new(aws.queue_control(clock.clone())),
        dead_letters: Arc::new(aws.dead_letters(clock.clone())),
        archive,
        stories: Arc::new(aws.stories()),
        jobs: Arc::new(aws.jobs(clock.clone(), random.clone())),
        activity: Arc::new(aws.activity(clock.clone())),
        workspaces: Arc::new(aws.workspaces(clock.clone(), random.clone())),
        connections,
        audit: Arc::new(aws.audit()),
        hasher: Arc::new(InlineHasher::new(random.clone())),
        keys: Arc::new(aws.public_keys()),
        ..none(deployment)
    }
}

/// Replays.
#[must_use]
pub fn replay(deployment: &Deployment) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    Ports {
        queue_control: Arc::new(aws.queue_control(clock.clone())),
        archive: Arc::new(aws.archive(clock.clone())),
        jobs: Arc::new(aws.jobs(clock.clone(), random.clone())),
        connections: Arc::new(aws.connections(clock.clone(), random.clone())),
        ..none(deployment)
    }
}

/// Redrives.
#[must_use]
pub fn redrive(deployment: &Deployment) -> Ports {
    let (aws, clock, random) = (&deployment.aws, &deployment.clock, &deployment.random);
    Ports {
        queue_control: Arc::new(aws.queue_control(clock.clone())),
        dead_letters: Arc::new(aws.dead_letters(clock.clone())),
        jobs: Arc::new(aws.jobs(clock.clone(), random.clone())),
        connections: Arc::new(aws.connections(clock.clone(), random.clone())),
        ..none(deployment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Meter;
    use crate::ports::{OsRandom, WallClock};
    use crate::settings::Settings;

    fn deployment() -> Deployment {
        let settings = Settings::read(|name| {
            let value = match name {
                "AWS_REGION" => "eu-central-1",
                "STORYBUS_ACCOUNT" => "123456789012",
                "STORYBUS_ARCHIVE_DAYS" => "30",
                "STORYBUS_ISSUER" => "https://bus.example/v1/",
                "STORYBUS_PREFIX" | "STORYBUS_TABLE" | "STORYBUS_ARCHIVE_TABLE" | "STORYBUS_SIGNING_KEYS" => {
                    "bus"
                }
                _ => return None,
            };
            Some(value.to_owned())
        })
        .unwrap();
        let shared = aws_config::SdkConfig::builder()
            .behavior_version(aws_config::BehaviorVersion::latest())
            .region(aws_config::Region::new("eu-central-1"))
            .build();
        Deployment {
            aws: storybus_aws::Aws::new(&shared, settings.config.clone()),
            clock: Arc::new(WallClock::default()),
            random: Arc::new(OsRandom),
            meter: Meter::new("bus", "test", Arc::new(|_: &str| {})),
            settings,
        }
    }

    #[test]
    fn the_table_is_what_is_wired() {
        let deployment = deployment();
        assert_eq!(present(&none(&deployment)), [""; 0]);
        let wired = [
            ("publish", publish(&deployment)),
            ("pull", pull(&deployment)),
            ("token", token(&deployment)),
            ("admin", admin(&deployment)),
            ("replay", replay(&deployment)),
            ("redrive", redrive(&deployment)),
        ];
        let wired: Vec<(&str, Vec<&str>)> = wired
            .iter()
            .map(|(name, ports)| (*name, present(ports)))
            .collect();
        let told: Vec<(&str, Vec<&str>)> = PORTS
            .iter()
            .map(|(name, ports)| (*name, ports.to_vec()))
            .collect();
        assert_eq!(wired, told);
    }
}
