//! The guarantees, looked for in the answers, on the wire, in the queue and in the table.

use std::collections::HashMap;

use storybus_aws::Arrived;
use storybus_core::domain::record::{RecordKey, RecordState, StoryKey, story_digest};
use storybus_core::domain::time::Millis;
use storybus_core::ports::Ledger;
use storybus_tests::{Passed, Stack, now};

use crate::trial::{Outcome, Sent};

/// What the consumer has got: message ids in lower case, in the queue's order.
pub(crate) struct Delivered(HashMap<String, Vec<(usize, i64)>>);

impl Delivered {
    pub(crate) fn of(drained: &[Arrived]) -> Self {
        let mut all: HashMap<String, Vec<(usize, i64)>> = HashMap::new();
        for (place, message) in drained.iter().enumerate() {
            let id = message.message_id().unwrap().to_string();
            all.entry(id).or_default().push((place, message.sent_at.0));
        }
        Self(all)
    }

    fn of_message(&self, id: &str) -> &[(usize, i64)] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Everything that is wrong with a trial.
pub(crate) async fn faults(stack: &Stack, outcome: &Outcome, delivered: &Delivered) -> Vec<String> {
    let mut wrong = Vec::new();
    let window = i64::try_from(stack.window.as_millis()).unwrap();
    for sent in &outcome.sent {
        answered(stack, outcome, sent, delivered, &mut wrong);
    }
    for message in &outcome.messages {
        let copies = delivered.of_message(&message.id).len();
        if copies > 1 {
            wrong.push(format!("{} was delivered {copies} times", message.id));
        }
        let passed = stack.journal.of(&format!("{}.{}", stack.workspace, message.id));
        together(&passed, window, &mut wrong);
    }
    in_order(outcome, delivered, &mut wrong);
    for (message, last) in outcome.messages.iter().zip(&outcome.last) {
        let there = !delivered.of_message(&message.id).is_empty();
        let newest = message
            .sequence
            .is_none_or(|n| Some(&n) == outcome.trial.scene.snapshots.iter().max());
        let expected = match (last.status(), last.rule()) {
            (200 | 202, _) => Some(RecordState::Published),
            (409, "message.superseded") if !newest => Some(RecordState::Superseded),
            (409, rule) if !newest && rule.starts_with("sequence_number.") => None,
            other => {
                wrong.push(format!("{} ended with {other:?}", message.id));
                continue;
            }
        };
        let key = RecordKey {
            workspace: stack.workspace.clone(),
            message_id: message.id.parse().unwrap(),
        };
        let reading = stack.aws.ledger().read(&key, None, Millis(now())).await.unwrap();
        let state = reading.record.map(|record| record.state);
        if state != expected {
            wrong.push(format!(
                "{} ended with {} {} and its record is {state:?}",
                message.id,
                last.status(),
                last.rule()
            ));
        }
        if expected.is_none() && there {
            wrong.push(format!("{} was refused and is in the queue", message.id));
        }
    }
    if let Some(newest) = outcome.messages.iter().max_by_key(|message| message.sequence)
        && newest.sequence.is_some()
    {
        let number = u32::from_str_radix(&newest.id[..8], 16).unwrap();
        let story = StoryKey {
            workspace: stack.workspace.clone(),
            digest: story_digest(&format!("story {number}")),
        };
        let key = RecordKey {
            workspace: stack.workspace.clone(),
            message_id: newest.id.parse().unwrap(),
        };
        let reading = stack
            .aws
            .ledger()
            .read(&key, Some(&story), Millis(now()))
            .await
            .unwrap();
        let head = reading.story.map(|story| story.head);
        if head != Some(key.message_id) {
            wrong.push(format!("the story's head is {head:?}, not its newest snapshot"));
        }
    }
    // a claim of the last moment has its window, and what follows it its own
    if outcome.stuck > 2 * window + 3_000 {
        wrong.push(format!("not settled for {} ms", outcome.stuck));
    }
    wrong
}

/// A and the answer 202: what was said to be published is in the queue, and was then.
fn answered(stack: &Stack, outcome: &Outcome, sent: &Sent, delivered: &Delivered, wrong: &mut Vec<String>) {
    let passed = stack.journal.of(&format!("{}.{}", stack.workspace, sent.id));
    match sent.status() {
        200 => {
            let there = delivered.of_message(&sent.id);
            let before = passed.iter().any(|p| p.at.0 <= sent.until);
            if there.is_empty() || !before || there.iter().all(|(_, at)| *at > sent.until) {
                wrong.push(format!("A: 200 for {} which was not published by then", sent.id));
            }
        }
        202 => {
            if !passed.iter().any(|p| p.invocation == sent.invocation) {
                wrong.push(format!("202 for {} which it did not publish", sent.id));
            }
        }
        // what a function that could not reach the table says, and what a clean one never does
        500 if sent.invocation == outcome.sent[0].invocation => {}
        0 | 409 | 503 => {}
        other => wrong.push(format!("{} was answered {other} {}", sent.id, sent.rule())),
    }
}

/// B and E: two attempts never publish within one window.
fn together(passed: &[Passed], window: i64, wrong: &mut Vec<String>) {
    for pair in passed.windows(2) {
        let apart = pair[1].at.0 - pair[0].at.0;
        if pair[0].invocation != pair[1].invocation && apart < window / 2 {
            wrong.push(format!("B: two attempts published within {apart} ms: {pair:?}"));
        }
    }
}

/// C: no snapshot behind a newer one.
fn in_order(outcome: &Outcome, delivered: &Delivered, wrong: &mut Vec<String>) {
    let mut places: Vec<(usize, u64)> = outcome
        .messages
        .iter()
        .filter_map(|message| Some((message.sequence?, delivered.of_message(&message.id))))
        .flat_map(|(sequence, copies)| copies.iter().map(move |(place, _)| (*place, sequence)))
        .collect();
    places.sort_unstable();
    if !places.is_sorted_by_key(|(_, sequence)| *sequence) {
        wrong.push(format!("C: the consumer got {places:?}"));
    }
}
