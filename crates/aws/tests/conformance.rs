//! Every behaviour of every port, over AWS.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod engine;

use engine::AwsFactory;
use storybus_testkit::suite::exercise;

#[tokio::test]
async fn the_ledger_keeps_its_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::ledger").await);
}

#[tokio::test]
async fn the_stories_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::stories").await);
}

#[tokio::test]
async fn the_workspaces_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::workspaces").await);
}

#[tokio::test]
async fn the_connections_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::connections").await);
}

#[tokio::test]
async fn the_audit_keeps_its_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::audit").await);
}

#[tokio::test]
async fn the_jobs_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::jobs").await);
}

#[tokio::test]
async fn the_activity_keeps_its_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::activity").await);
}

#[tokio::test]
async fn the_queues_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::queues").await);
}

#[tokio::test]
async fn the_queues_keep_their_promises_to_operators_and_jobs() {
    println!("aws: {}", exercise(&AwsFactory, "suite::queue_control").await);
}

#[tokio::test]
async fn the_dead_letters_keep_their_promises() {
    println!("aws: {}", exercise(&AwsFactory, "suite::dead_letters").await);
}
