//! Every behaviour of every port, over AWS: one test a port, and one that nothing is left out.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod engine;

use std::collections::BTreeMap;

use engine::AwsFactory;
use storybus_testkit::suite::{Behaviour, Factory as _, Report, SUITES, exercise};

/// The ports, as the suites name them: one test each.
const PORTS: [&str; 12] = [
    "ledger",
    "stories",
    "topic",
    "queues",
    "queue_control",
    "dead_letters",
    "workspaces",
    "connections",
    "audit",
    "jobs",
    "activity",
    "archive",
];

/// What the names of a port's behaviours have in common.
fn part(port: &str) -> String {
    format!("suite::{port}::")
}

fn behaviours() -> impl Iterator<Item = &'static Behaviour> {
    SUITES.iter().copied().flatten()
}

/// Runs a port's behaviours; each of them holds or lacks an ability.
async fn keeps(port: &str) -> Report {
    let part = part(port);
    let report = exercise(&AwsFactory, &part).await;
    let all = behaviours().filter(|it| it.name.contains(&part)).count();
    assert!(!report.held.is_empty() && report.held.len() + report.skipped.len() == all);
    report
}

#[tokio::test]
async fn the_ledger_keeps_its_promises() {
    println!("aws: {}", keeps("ledger").await);
}

#[tokio::test]
async fn the_stories_keep_their_promises() {
    println!("aws: {}", keeps("stories").await);
}

#[tokio::test]
async fn the_topic_keeps_its_promises() {
    println!("aws: {}", keeps("topic").await);
}

#[tokio::test]
async fn the_queues_keep_their_promises() {
    println!("aws: {}", keeps("queues").await);
}

#[tokio::test]
async fn the_queues_keep_their_promises_to_operators_and_jobs() {
    println!("aws: {}", keeps("queue_control").await);
}

#[tokio::test]
async fn the_dead_letters_keep_their_promises() {
    println!("aws: {}", keeps("dead_letters").await);
}

#[tokio::test]
async fn the_workspaces_keep_their_promises() {
    println!("aws: {}", keeps("workspaces").await);
}

#[tokio::test]
async fn the_connections_keep_their_promises() {
    println!("aws: {}", keeps("connections").await);
}

#[tokio::test]
async fn the_audit_keeps_its_promises() {
    println!("aws: {}", keeps("audit").await);
}

#[tokio::test]
async fn the_jobs_keep_their_promises() {
    println!("aws: {}", keeps("jobs").await);
}

#[tokio::test]
async fn the_activity_keeps_its_promises() {
    println!("aws: {}", keeps("activity").await);
}

#[tokio::test]
async fn the_archive_keeps_its_promises() {
    println!("aws: {}", keeps("archive").await);
}

/// The tests above together are the whole list, and what they skip is what is known.
#[test]
fn nothing_is_left_out() {
    let lacks = AwsFactory.lacks();
    let (mut held, mut skipped) = (0, BTreeMap::new());
    for behaviour in behaviours() {
        let ports = PORTS.iter().filter(|port| behaviour.name.contains(&part(port)));
        assert_eq!(ports.count(), 1, "{}", behaviour.name);
        match behaviour.needs.iter().find(|need| lacks.contains(need)) {
            None => held += 1,
            Some(ability) => *skipped.entry(format!("{ability:?}")).or_insert(0) += 1,
        }
    }
    let skipped: Vec<(&str, usize)> = skipped
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    let known = [
        ("Arrivals", 1),
        ("Claims", 6),
        ("Compaction", 49),
        ("Forward", 1),
        ("Purges", 1),
        ("Reopen", 19),
        ("Time", 76),
        ("Traces", 6),
        ("Turns", 1),
    ];
    assert_eq!((held, skipped.as_slice()), (266, known.as_slice()));
}
