//! Batches of queues.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;
use serde_json::value::RawValue;
use storybus_aws::Arrived;
use storybus_core::domain::time::Millis;
use storybus_lambda::{Handler, QueueHandler, Worker};

use crate::files;
use crate::world::World;

macro_rules! event {
    ($name:literal) => {
        include_str!(concat!("../../../../events/queues/", $name, ".json"))
    };
}

/// Fails at some messages, by their place in the batch, and remembers what it got.
#[derive(Default)]
struct Script {
    fails: Vec<usize>,
    panics: bool,
    got: Arc<Mutex<Vec<Arrived>>>,
}

impl Worker for Script {
    async fn work(&self, messages: Vec<Arrived>, _: Millis) -> Vec<String> {
        assert!(!self.panics, "broken on purpose");
        let failed = self.fails.iter().map(|at| messages[*at].sqs_message_id.clone());
        let failed = failed.collect();
        *self.got.lock().unwrap() = messages;
        failed
    }
}

async fn work(text: &str, script: Script) -> (serde_json::Value, serde_json::Value) {
    let world = World::new().await;
    let handler = QueueHandler::new(script, Arc::new(world.clock.clone()), Arc::clone(&world.meter));
    let event = RawValue::from_string(text.to_owned()).unwrap();
    let answer = handler.handle(&event, &world.invocation()).await.unwrap();
    (serde_json::to_value(answer).unwrap(), world.line())
}

fn items(numbers: &[u32]) -> serde_json::Value {
    let item = |n: &u32| json!({"itemIdentifier": format!("0199b3d0-{n:04}-4000-8000-000000000000")});
    json!({"batchItemFailures": numbers.iter().map(item).collect::<Vec<_>>()})
}

#[tokio::test]
async fn messages_arrive_whole() {
    let script = Script::default();
    let got = Arc::clone(&script.got);
    let (answer, line) = work(event!("archive"), script).await;
    assert_eq!(answer, items(&[]));
    assert_eq!(
        (line["Messages"].as_f64(), line["MessagesFailed"].as_f64()),
        (Some(3.0), Some(0.0))
    );
    let got = got.lock().unwrap();
    let first = &got[0];
    assert_eq!(first.group, "w-demo.0199b3d0-0000-7000-8000-00000000feed");
    assert_eq!(first.workspace(), "w-demo");
    assert_eq!(first.sent_at, Millis(1_791_182_000_123));
    assert_eq!(first.receive_count, 1);
    assert_eq!(first.attributes["message_type"], "story.context");
    assert!(first.message_id().is_ok() && first.source_queue.is_none());
}

#[tokio::test]
async fn the_first_failure_of_a_group_and_everything_after_it_comes_back() {
    for (fails, back) in [
        (vec![0], vec![1, 2, 3]),
        (vec![1], vec![2, 3]),
        (vec![2], vec![3]),
    ] {
        let script = Script {
            fails,
            ..Script::default()
        };
        let (answer, line) = work(event!("archive"), script).await;
        assert_eq!(answer, items(&back));
        assert_eq!(
            line["MessagesFailed"].as_f64(),
            Some(f64::from(u32::try_from(back.len()).unwrap()))
        );
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_comes_back_and_holds_its_group() {
    let (answer, _) = work(event!("archive-unreadable"), Script::default()).await;
    assert_eq!(answer, items(&[2, 3]));
}

#[tokio::test]
async fn a_panic_fails_the_batch_and_not_the_process() {
    let script = Script {
        panics: true,
        ..Script::default()
    };
    let (answer, line) = work(event!("archive"), script).await;
    assert_eq!(answer, items(&[1, 2, 3]));
    assert_eq!(line["Panics"].as_f64(), Some(1.0));
}

#[tokio::test]
async fn dead_letters_name_the_queue_that_they_come_from() {
    let script = Script::default();
    let got = Arc::clone(&script.got);
    work(event!("dead-letters"), script).await;
    let got = got.lock().unwrap();
    assert_eq!(
        got[0].source_queue.as_deref(),
        Some("arn:aws:sqs:eu-central-1:123456789012:bus-c-demo.fifo")
    );
    assert!(got[0].message_id().is_ok());
}

#[tokio::test]
async fn what_is_no_batch_fails_the_invocation() {
    let world = World::new().await;
    let handler = QueueHandler::new(
        Script::default(),
        Arc::new(world.clock.clone()),
        Arc::clone(&world.meter),
    );
    for text in ["null", "{}", r#"{"Records":{}}"#] {
        let event = RawValue::from_string(text.to_owned()).unwrap();
        assert!(
            handler.handle(&event, &world.invocation()).await.is_err(),
            "{text}"
        );
    }
}

#[test]
fn no_event_is_left_out() {
    let named = [
        "archive",
        "archive-unreadable",
        "dead-letters",
        "redrive",
        "replay",
        "replay-unreadable",
    ];
    let named: BTreeSet<String> = named.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files("queues"), named);
}
