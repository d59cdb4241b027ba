//! Publication to every consumer: [`Topic`](storybus_core::ports::Topic).

use std::time::Duration;

use bytes::Bytes;
use storybus_core::domain::connection::{Consumer, Role};
use storybus_core::domain::filter::Filter;
use storybus_core::domain::message::MAX_BODY;
use storybus_core::domain::record::RECORD_LIFETIME;
use storybus_core::ports::ledger::{Marking, Recorded, Removal};
use storybus_core::ports::topic::PublishError;

use super::sample::{self, Letter};
use super::world::{WINDOW, World, numbers};

super::behaviours![
    a_message_reaches_every_consumer,
    a_message_without_consumers_is_confirmed,
    workspaces_are_apart,
    bytes_and_attributes_arrive_unchanged,
    the_largest_body_arrives,
    a_filter_takes_message_types,
    a_filter_takes_topic_prefixes,
    a_filter_takes_sources,
    every_list_of_a_filter_must_match,
    a_new_consumer_gets_everything_from_then_on,
    a_changed_filter_takes_the_next_message,
    a_deleted_consumer_gets_nothing,
    a_message_id_is_dropped_for_five_minutes needs Time,
    a_dropped_message_does_not_prolong_its_time needs Time,
    an_acknowledged_message_is_still_dropped,
    letter_case_does_not_tell_dropped_ids_apart,
    message_ids_are_dropped_per_workspace,
    dropping_survives_a_reopening needs Reopen,
    order_is_kept_per_correlation_id,
    letter_case_does_not_tell_order_groups_apart,
    queues_survive_a_reopening needs Reopen,
    a_claim_that_nobody_recorded_is_refused needs Claims,
    a_claim_that_was_taken_over_is_refused needs Claims,
    a_claim_that_was_taken_back_is_refused needs Claims,
    a_claim_that_is_over_is_refused needs Claims Time,
    a_claim_whose_record_expired_is_refused needs Claims Time,
];

fn filter(message_types: &[&str], topic_prefixes: &[&str], sources: &[&str]) -> Filter {
    let texts = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
    Filter {
        message_types: message_types.iter().map(|t| t.parse().unwrap()).collect(),
        topic_prefixes: texts(topic_prefixes),
        sources: texts(sources),
    }
}

/// A letter with what filters look at.
fn letter(n: u64, message_type: &str, topic: &str, system_id: &str) -> Letter {
    let mut letter = Letter::new(n, n);
    letter.attributes.message_type = message_type.to_owned();
    letter.attributes.family = None;
    letter.attributes.topic = topic.to_owned();
    letter.attributes.system_id = system_id.to_owned();
    letter
}

/// Sends the letters to a consumer with this filter, and says which it got.
async fn got(world: &World, filter: Filter, letters: &[Letter]) -> Vec<u64> {
    let workspace = world.workspace("w1").await;
    let queue = world.consumer("c1", &workspace, filter).await;
    for letter in letters {
        world.send(&workspace, letter).await;
    }
    let mut got = numbers(&world.drain(&queue).await);
    got.sort_unstable();
    got
}

/// Every consumer of the workspace gets a message of its own.
pub async fn a_message_reaches_every_consumer(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    assert_eq!(numbers(&world.drain(&one).await), [1]);
    assert_eq!(
        numbers(&world.drain(&two).await),
        [1],
        "not lessened by what the other acknowledged"
    );
}

/// A message that nobody wants is published all the same.
pub async fn a_message_without_consumers_is_confirmed(world: &mut World) {
    let workspace = world.workspace("w1").await;
    world.send(&workspace, &Letter::new(1, 1)).await;
}

/// A message stays in its workspace.
pub async fn workspaces_are_apart(world: &mut World) {
    let one = world.queue().await;
    let workspace = world.workspace("w2").await;
    let two = world.consumer("c2", &workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    assert!(world.drain(&two).await.is_empty());
    world.send_to(&two, 2, 1).await;
    assert_eq!(numbers(&world.drain(&one).await), [1]);
    assert_eq!(numbers(&world.drain(&two).await), [2]);
}

/// The producer's bytes and the attributes arrive as they were sent.
pub async fn bytes_and_attributes_arrive_unchanged(world: &mut World) {
    let queue = world.queue().await;
    let mut sent = Letter::new(1, 1);
    sent.body = Bytes::from("{ \"é\\u00e9\" :\t1.0e0,\r\n\"😀\": \"\u{FFFD}\u{7F}\" }");
    sent.attributes.topic = "som.tópico \"'&<>\\".to_owned();
    sent.attributes.correlation_id = sent.attributes.correlation_id.to_ascii_uppercase();
    let mut untyped = Letter::new(2, 2);
    untyped.attributes.family = None;
    world.send(&queue.workspace, &sent).await;
    world.send(&queue.workspace, &untyped).await;
    let received = world.drain(&queue).await;
    assert_eq!(numbers(&received), [1, 2]);
    for (delivery, letter) in received.iter().zip([sent, untyped]) {
        assert_eq!(delivery.body, letter.body);
        assert_eq!(delivery.attributes, letter.attributes);
        assert_eq!(delivery.redelivery, None);
    }
}

/// A body of the largest size arrives whole.
pub async fn the_largest_body_arrives(world: &mut World) {
    let queue = world.queue().await;
    let mut sent = Letter::new(1, 1);
    let body: Vec<u8> = (0..MAX_BODY)
        .map(|i| b'a' + u8::try_from(i * 7 % 26).unwrap())
        .collect();
    sent.body = Bytes::from(body);
    world.send(&queue.workspace, &sent).await;
    let received = world.drain(&queue).await;
    assert!(received.len() == 1 && received[0].body == sent.body);
}

/// A filter's types are exact, a family at any depth, or all.
pub async fn a_filter_takes_message_types(world: &mut World) {
    let letters = [
        letter(1, "story.context", "som.x", "s"),
        letter(2, "telling.started", "som.x", "s"),
        letter(3, "telling.a.b", "som.x", "s"),
        letter(4, "tellings.started", "som.x", "s"),
        letter(5, "story.contexts", "som.x", "s"),
        letter(6, "telling", "som.x", "s"),
    ];
    assert_eq!(
        got(world, filter(&["story.context", "telling.*"], &[], &[]), &letters).await,
        [1, 2, 3]
    );
    let all = world
        .consumer("c2", &"w1".parse().unwrap(), filter(&["*"], &[], &[]))
        .await;
    world.send_to(&all, 7, 7).await;
    assert_eq!(numbers(&world.drain(&all).await), [7]);
}

/// A filter's topics are beginnings; letter case counts, and nothing in them is a wildcard.
pub async fn a_filter_takes_topic_prefixes(world: &mut World) {
    let letters = [
        letter(1, "a.b", "som.news.x", "s"),
        letter(2, "a.b", "som.sport", "s"),
        letter(3, "a.b", "som.New", "s"),
        letter(4, "a.b", "som.s%rt", "s"),
        letter(5, "a.b", "som.", "s"),
        letter(6, "a.b", "som.s_", "s"),
    ];
    let filter = filter(&[], &["som.news", "som.s%", "som.s_"], &[]);
    assert_eq!(got(world, filter, &letters).await, [1, 4, 6]);
}

/// A filter's sources are exact.
pub async fn a_filter_takes_sources(world: &mut World) {
    let letters = [
        letter(1, "a.b", "som.x", "ncs"),
        letter(2, "a.b", "som.x", "ncs-1"),
        letter(3, "a.b", "som.x", "NCS"),
    ];
    assert_eq!(
        got(world, filter(&[], &[], &["ncs", "other"]), &letters).await,
        [1]
    );
}

/// A message must match every list that is not empty.
pub async fn every_list_of_a_filter_must_match(world: &mut World) {
    let letters = [
        letter(1, "a.b", "som.x", "s"),
        letter(2, "a.c", "som.x", "s"),
        letter(3, "a.b", "som.y", "s"),
        letter(4, "a.b", "som.x", "t"),
    ];
    assert_eq!(
        got(world, filter(&["a.b"], &["som.x"], &["s"]), &letters).await,
        [1]
    );
}

/// A consumer gets what is published after its creation came back, and nothing from before.
pub async fn a_new_consumer_gets_everything_from_then_on(world: &mut World) {
    let one = world.queue().await;
    world.send_to(&one, 1, 1).await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 2, 1).await;
    assert_eq!(numbers(&world.drain(&two).await), [2]);
    assert_eq!(numbers(&world.drain(&one).await), [1, 2]);
}

/// A changed filter decides about the next message; what is queued stays.
pub async fn a_changed_filter_takes_the_next_message(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let queue = world.consumer("c1", &workspace, filter(&["a.b"], &[], &[])).await;
    world.send(&workspace, &letter(1, "a.b", "som.x", "s")).await;
    let mut connection = world.connections().get(&queue.consumer).await.unwrap().unwrap();
    connection.version += 1;
    if let Role::Consumer(Consumer { filter: stored, .. }) = &mut connection.role {
        *stored = filter(&["a.c"], &[], &[]);
    }
    let audit = sample::audit("consumer.update", &["w1", "c1"], world.now());
    world.connections().update(&connection, &audit).await.unwrap();
    world.settle().await;
    world.send(&workspace, &letter(2, "a.b", "som.x", "s")).await;
    world.send(&workspace, &letter(3, "a.c", "som.x", "s")).await;
    assert_eq!(numbers(&world.drain(&queue).await), [1, 3]);
}

/// A publication does not meet a consumer that is gone.
pub async fn a_deleted_consumer_gets_nothing(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let audit = sample::audit("consumer.delete", &["w1", "c2"], world.now());
    world.connections().delete(&two.consumer, &audit).await.unwrap();
    world.send_to(&one, 1, 1).await;
    assert!(world.drain(&two).await.is_empty());
    assert_eq!(numbers(&world.drain(&one).await), [1]);
}

/// A message id is published again only 5 minutes after it was; until then it is confirmed and dropped.
pub async fn a_message_id_is_dropped_for_five_minutes(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1);
    world.publish_anew(&queue.workspace, &letter).await;
    world.clock.advance(Duration::from_secs(299));
    world.publish_anew(&queue.workspace, &letter).await;
    assert_eq!(numbers(&world.drain(&queue).await), [1]);
    world.clock.advance(Duration::from_secs(2));
    world.publish_anew(&queue.workspace, &letter).await;
    assert_eq!(numbers(&world.drain(&queue).await), [1], "once more");
}

/// The 5 minutes count from the publication that was delivered, not from one that was dropped.
pub async fn a_dropped_message_does_not_prolong_its_time(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1);
    for _ in 0..3 {
        world.publish_anew(&queue.workspace, &letter).await;
        world.clock.advance(Duration::from_secs(151));
    }
    assert_eq!(
        numbers(&world.drain(&queue).await),
        [1, 1],
        "at 0 s and at 302 s, not at 151 s"
    );
}

/// A message that was received and acknowledged is dropped all the same.
pub async fn an_acknowledged_message_is_still_dropped(world: &mut World) {
    let queue = world.queue().await;
    let letter = Letter::new(1, 1);
    world.publish_anew(&queue.workspace, &letter).await;
    assert_eq!(world.drain(&queue).await.len(), 1);
    world.publish_anew(&queue.workspace, &letter).await;
    assert!(world.drain(&queue).await.is_empty());
}

/// A message id in other letter case is the same message.
pub async fn letter_case_does_not_tell_dropped_ids_apart(world: &mut World) {
    let queue = world.queue().await;
    for text in [
        "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07",
        "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07",
    ] {
        let letter = Letter {
            message_id: text.parse().unwrap(),
            ..Letter::new(1, 1)
        };
        world.publish_anew(&queue.workspace, &letter).await;
    }
    assert_eq!(world.drain(&queue).await.len(), 1);
}

/// The same message id in another workspace is another message.
pub async fn message_ids_are_dropped_per_workspace(world: &mut World) {
    let one = world.queue().await;
    let workspace = world.workspace("w2").await;
    let two = world.consumer("c2", &workspace, Filter::default()).await;
    for queue in [&one, &two] {
        world.publish_anew(&queue.workspace, &Letter::new(1, 1)).await;
        assert_eq!(numbers(&world.drain(queue).await), [1]);
    }
}

/// An engine that was closed remembers what it published.
pub async fn dropping_survives_a_reopening(world: &mut World) {
    let queue = world.queue().await;
    world.publish_anew(&queue.workspace, &Letter::new(1, 1)).await;
    assert_eq!(world.drain(&queue).await.len(), 1);
    world.reopen().await;
    world.publish_anew(&queue.workspace, &Letter::new(1, 1)).await;
    assert!(world.drain(&queue).await.is_empty());
}

/// Messages of one correlation id come in the order in which they were published, whatever comes between.
pub async fn order_is_kept_per_correlation_id(world: &mut World) {
    let queue = world.queue().await;
    for n in 0..30 {
        world.send_to(&queue, n, n % 3).await;
    }
    let received = world.drain(&queue).await;
    assert_eq!(received.len(), 30);
    for group in 0..3 {
        let of_group: Vec<_> = received
            .iter()
            .filter(|d| d.attributes.correlation_id == sample::correlation_id(group).to_string())
            .collect();
        let order = numbers(&of_group.into_iter().cloned().collect::<Vec<_>>());
        assert!(order.len() == 10 && order.is_sorted(), "{order:?}");
    }
}

/// A correlation id in other letter case is the same order group, and each message keeps its own letters.
pub async fn letter_case_does_not_tell_order_groups_apart(world: &mut World) {
    let queue = world.queue().await;
    for (n, text) in [
        (1, "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"),
        (2, "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07"),
    ] {
        let mut letter = Letter {
            correlation_id: text.parse().unwrap(),
            ..Letter::new(n, 1)
        };
        letter.attributes.correlation_id = text.to_owned();
        world.send(&queue.workspace, &letter).await;
    }
    let first = world.receive(&queue, 1).await;
    assert_eq!(numbers(&first), [1]);
    assert!(
        world.receive(&queue, 1).await.is_empty(),
        "the second waits for the first"
    );
    world.acknowledge(&queue, &first).await;
    let second = world.receive(&queue, 1).await;
    assert_eq!(
        second[0].attributes.correlation_id,
        "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07"
    );
}

/// What waits in a queue, and the consumer's filter, are there when the engine is opened again.
pub async fn queues_survive_a_reopening(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let queue = world.consumer("c1", &workspace, filter(&["a.b"], &[], &[])).await;
    world.send(&workspace, &letter(1, "a.b", "som.x", "s")).await;
    world.reopen().await;
    world.send(&workspace, &letter(2, "a.c", "som.x", "s")).await;
    world.send(&workspace, &letter(3, "a.b", "som.x", "s")).await;
    assert_eq!(numbers(&world.drain(&queue).await), [1, 3]);
}

/// Surely refused, and for good; nothing reached the queue.
async fn assert_refused(
    world: &World,
    queue: &storybus_core::domain::delivery::QueueKey,
    n: u64,
    attempt: storybus_core::domain::record::Token,
) {
    let publication = world.publication(&queue.workspace, &Letter::new(n, 1), attempt);
    let refused = world.publish(&publication).await;
    assert!(
        matches!(refused, Err(PublishError::Refused { retryable: false, .. })),
        "{refused:?}"
    );
    assert!(world.drain(queue).await.is_empty());
}

/// Without a record there is no right to publish.
pub async fn a_claim_that_nobody_recorded_is_refused(world: &mut World) {
    let queue = world.queue().await;
    assert_refused(world, &queue, 1, world.token()).await;
    let new = world.record_of(&queue.workspace, &Letter::new(1, 1));
    assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
    assert_refused(world, &queue, 1, world.token()).await;
    assert_refused(world, &queue, 2, new.record.attempt).await;
    world
        .publish(&world.publication(&queue.workspace, &Letter::new(1, 1), new.record.attempt))
        .await
        .unwrap();
    assert_eq!(
        numbers(&world.drain(&queue).await),
        [1],
        "a refusal leaves no trace that would drop the message"
    );
}

/// A slow attempt cannot publish after another took its record over.
pub async fn a_claim_that_was_taken_over_is_refused(world: &mut World) {
    let queue = world.queue().await;
    let new = world.record_of(&queue.workspace, &Letter::new(1, 1));
    assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
    let attempt = world.token();
    let claim = storybus_core::ports::ledger::NewClaim {
        key: new.key,
        read: new.record.attempt,
        attempt,
        story: None,
        now: world.now(),
        expires_at: world.now().plus(RECORD_LIFETIME),
    };
    world.ledger().claim(&claim).await.unwrap();
    assert_refused(world, &queue, 1, new.record.attempt).await;
    world
        .publish(&world.publication(&queue.workspace, &Letter::new(1, 1), attempt))
        .await
        .unwrap();
    assert_eq!(numbers(&world.drain(&queue).await), [1]);
}

/// An attempt whose record was removed, or is marked published, has no right any more.
pub async fn a_claim_that_was_taken_back_is_refused(world: &mut World) {
    let queue = world.queue().await;
    let new = world.record_of(&queue.workspace, &Letter::new(1, 1));
    assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
    let attempt = new.record.attempt;
    let removal = Removal {
        key: new.key.clone(),
        attempt,
        story: None,
        now: world.now(),
        window: WINDOW,
    };
    world.ledger().remove(&removal).await.unwrap();
    assert_refused(world, &queue, 1, attempt).await;
    let marked = world.record_of(&queue.workspace, &Letter::new(2, 1));
    assert_eq!(world.ledger().record(&marked).await.unwrap(), Recorded::Done);
    let attempt = marked.record.attempt;
    let marking = Marking {
        key: marked.key,
        attempt,
        now: world.now(),
        expires_at: world.now().plus(RECORD_LIFETIME),
    };
    world.ledger().mark(&marking).await.unwrap();
    assert_refused(world, &queue, 2, attempt).await;
}

/// No publication begins at or after `until`, by the engine's own clock.
pub async fn a_claim_that_is_over_is_refused(world: &mut World) {
    let queue = world.queue().await;
    for (n, late, published) in [(1, 0, false), (2, 1, true)] {
        let letter = Letter::new(n, n);
        let new = world.record_of(&queue.workspace, &letter);
        assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
        let publication = world.publication(&queue.workspace, &letter, new.record.attempt);
        world.clock.set(storybus_core::domain::time::Millis(
            publication.claim.until.0 - late,
        ));
        assert_eq!(
            world.publish(&publication).await.is_ok(),
            published,
            "{late} ms before the end"
        );
    }
    assert_eq!(numbers(&world.drain(&queue).await), [2]);
}

/// An expired record gives no right to publish.
pub async fn a_claim_whose_record_expired_is_refused(world: &mut World) {
    let queue = world.queue().await;
    let mut new = world.record_of(&queue.workspace, &Letter::new(1, 1));
    new.record.expires_at = world.now().plus(Duration::from_secs(1));
    assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
    world.clock.advance(Duration::from_secs(1));
    assert_refused(world, &queue, 1, new.record.attempt).await;
}
