//! Replays and redrives in a function.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use storybus_core::domain::job::{Job, JobState};
use storybus_core::ops::admin::Actor;
use storybus_core::ops::jobs::ReplayMembers;
use storybus_core::ports::{Clock, StoreError};
use storybus_lambda::jobs::{JobFailed, JobRunner, Onward};
use storybus_lambda::{Handler, QueueHandler};
use storybus_testkit::clock::START;

use crate::world::World;

/// Remembers after how many steps a job went on.
#[derive(Default)]
struct Kept {
    steps: Mutex<Vec<u64>>,
    fails: bool,
}

#[async_trait]
impl Onward for Kept {
    async fn send(&self, job: &Job) -> Result<(), StoreError> {
        if self.fails {
            return Err(StoreError::Unavailable {
                reason: "on purpose".to_owned(),
            });
        }
        self.steps.lock().unwrap().push(job.steps);
        Ok(())
    }
}

/// A replay of so many messages: a step takes at most 100.
async fn replay(world: &World, messages: usize) -> Job {
    const EVENT: &str = include_str!("../../../../events/http/publish.json");
    for n in 0..messages {
        let text = EVENT.replace(
            "0199b3d0-5555-7000-8000-000000000005",
            &format!("0199b3d0-5555-7000-8000-{n:012}"),
        );
        assert_eq!(world.answer(&text).await.status_code, 202);
    }
    world.clock.advance(Duration::from_secs(1));
    let members = ReplayMembers {
        from: Some(START.to_rfc3339()),
        to: Some(Clock::now(&world.clock).to_rfc3339()),
        ..ReplayMembers::default()
    };
    let actor = Actor::operator(&"o-demo".parse().unwrap());
    world
        .bus
        .replay_start(&actor, "w-demo", "c-demo", &members)
        .await
        .unwrap()
}

fn runner(world: &World, onward: &Arc<Kept>) -> JobRunner {
    JobRunner::new(
        world.bus.clone(),
        Arc::clone(onward) as Arc<dyn Onward>,
        Arc::clone(&world.meter),
    )
}

fn message(job: &Job) -> String {
    format!(r#"{{"job_id":"{}"}}"#, job.id)
}

async fn state(world: &World, job: &Job) -> Job {
    world.bus.ports().jobs.get(&job.id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_job_is_worked_at_until_it_is_over() {
    let world = World::new().await;
    let (job, onward) = (replay(&world, 2).await, Arc::new(Kept::default()));
    let deadline = Clock::now(&world.clock).plus(Duration::from_secs(60));
    runner(&world, &onward)
        .go_on(&message(&job), deadline)
        .await
        .unwrap();
    let job = state(&world, &job).await;
    assert_eq!((job.state, job.moved), (JobState::Done, 2));
    assert!(onward.steps.lock().unwrap().is_empty());
    // again: it is over
    runner(&world, &onward)
        .go_on(&message(&job), deadline)
        .await
        .unwrap();
}

#[tokio::test]
async fn when_the_time_is_over_it_sends_itself_on() {
    let world = World::new().await;
    let (job, onward) = (replay(&world, 250).await, Arc::new(Kept::default()));
    for _ in 0..20 {
        if state(&world, &job).await.is_over() {
            break;
        }
        // less than what has to be left: one step each time
        let deadline = Clock::now(&world.clock).plus(Duration::from_secs(5));
        runner(&world, &onward)
            .go_on(&message(&job), deadline)
            .await
            .unwrap();
    }
    assert_eq!(state(&world, &job).await.state, JobState::Done);
    let steps = onward.steps.lock().unwrap().clone();
    assert!(!steps.is_empty() && steps.is_sorted_by(|a, b| a < b), "{steps:?}");
}

#[tokio::test]
async fn when_it_cannot_send_its_message_comes_back() {
    let world = World::new().await;
    let job = replay(&world, 150).await;
    let onward = Arc::new(Kept {
        fails: true,
        ..Kept::default()
    });
    let deadline = Clock::now(&world.clock).plus(Duration::from_secs(5));
    let failed = runner(&world, &onward).go_on(&message(&job), deadline).await;
    assert!(matches!(failed, Err(JobFailed::Store(_))), "{failed:?}");
}

#[tokio::test]
async fn a_message_of_no_job_comes_back_and_one_of_a_job_that_is_gone_does_not() {
    for (text, back) in [
        (
            include_str!("../../../../events/queues/replay-unreadable.json"),
            1,
        ),
        (include_str!("../../../../events/queues/replay.json"), 0),
        (include_str!("../../../../events/queues/redrive.json"), 0),
    ] {
        let world = World::new().await;
        let runner = runner(&world, &Arc::default());
        let handler = QueueHandler::new(runner, Arc::new(world.clock.clone()), Arc::clone(&world.meter));
        let event = RawValue::from_string(text.to_owned()).unwrap();
        let answer = handler.handle(&event, &world.invocation()).await.unwrap();
        assert_eq!(answer.batch_item_failures.len(), back, "{text}");
    }
}
