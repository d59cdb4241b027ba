//! Many instances of the function at once, on one message and on one story.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use storybus_tests::{Answer, Function, Length, Plan, Stack, rest};

const LIMIT: Duration = Duration::from_secs(15);
const INSTANCES: usize = 6;

fn id(kind: u32, number: usize) -> String {
    format!("{kind:08x}-0000-4000-8000-{number:012x}")
}

fn snapshot(story: usize, sequence: usize) -> (String, String) {
    let payload = json!({
        "story_id": format!("story {story}"),
        "slug": "S",
        "headline": format!("headline {sequence}"),
        "story_type": "PLANNED",
        "sequence_number": sequence,
        "updated_at": "2026-09-11T16:41:00Z",
    });
    let message = id(3, story * 1000 + sequence);
    let body = Stack::envelope(&message, &id(4, story), "story.context", &payload);
    (message, body)
}

async fn publish(stack: &Stack, function: &Function, body: &str) -> Answer {
    let ended = function.invoke(stack.publish(body), LIMIT).await;
    Answer::of(&ended).unwrap_or_else(|| unreachable!("{ended:?}: {}", function.log()))
}

/// Sends a snapshot until it is settled.
async fn settle(stack: &Stack, function: &Function, body: &str) -> Answer {
    loop {
        let answer = publish(stack, function, body).await;
        let again = answer.status == 503 || answer.rule == "commit.contention";
        if !again {
            return answer;
        }
        rest(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_once() {
    let rounds = if Length::of_run() == Length::Short {
        20
    } else {
        300
    };
    let stack = Stack::start(Duration::from_secs(30)).await;
    let binary = env!("CARGO_BIN_EXE_fn-publish");
    let instances = join_all((0..INSTANCES).map(|_| stack.function(binary, Plan::default()))).await;
    let queue = stack.aws.config().queue_name(&stack.consumer);
    for round in 0..rounds {
        // one message by all: one publishes it
        let (message, body) = (
            id(1, round),
            Stack::envelope(&id(1, round), &id(2, round), "desk.note", &json!({})),
        );
        let answers = join_all(instances.iter().map(|function| publish(&stack, function, &body))).await;
        let accepted = answers.iter().filter(|answer| answer.status == 202).count();
        let others = |answer: &&Answer| {
            !matches!(
                (answer.status, answer.rule.as_str()),
                (200 | 202, _) | (503, "message.in_flight")
            )
        };
        assert_eq!((accepted, answers.iter().find(others)), (1, None), "{answers:?}");
        let passed = stack.journal.of(&format!("{}.{message}", stack.workspace));
        assert_eq!(passed.len(), 1, "{passed:?}");

        // one story by all, a snapshot each: in order, and the last of them in any case
        let snapshots: Vec<(String, String)> = (1..=INSTANCES)
            .map(|sequence| snapshot(round, sequence))
            .collect();
        let sent = instances.iter().zip(&snapshots);
        let answers = join_all(sent.map(|(function, (_, body))| settle(&stack, function, body))).await;
        assert_eq!(answers[INSTANCES - 1].status, 202, "{answers:?}");
        let arrived: Vec<String> = stack
            .drain(&queue)
            .await
            .into_iter()
            .map(|message| message.message_id().unwrap().to_string())
            .collect();
        let (notes, story): (Vec<String>, Vec<String>) = arrived.into_iter().partition(|id| *id == message);
        assert_eq!(notes.len(), 1);
        let accepted: Vec<String> = snapshots
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| answer.status == 202)
            .map(|((id, _), _)| id.clone())
            .collect();
        assert_eq!(story, accepted, "those accepted, in their order: {answers:?}");
        let refused = answers.iter().filter(|answer| answer.status != 202);
        for answer in refused {
            assert_eq!(
                (answer.status, answer.rule.as_str()),
                (409, "sequence_number.not_increasing")
            );
        }
    }
}
