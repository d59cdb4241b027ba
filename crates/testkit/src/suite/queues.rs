//! The consumers' queues: [`Queues`](storybus_core::ports::Queues).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::filter::Filter;
use storybus_core::ports::queues::{MAX_VISIBILITY, RECEIVE_ATTEMPT_LIFETIME, RETENTION, Receive};

use super::sample;
use super::world::{VISIBILITY, World, handles, numbers, receive};

super::behaviours![
    an_empty_queue_gives_nothing,
    an_unknown_queue_gives_nothing,
    a_delivery_says_all_about_its_message,
    a_receive_gives_no_more_than_asked,
    one_receive_holds_several_of_one_story_in_order,
    oldest_groups_come_first,
    a_group_waits_until_all_is_acknowledged,
    a_group_waits_for_what_is_hidden_though_a_part_is_visible needs Time,
    other_groups_go_on,
    no_message_goes_to_two_receivers,
    an_acknowledged_message_never_comes_back needs Time,
    a_message_comes_back_when_its_visibility_ends needs Time,
    messages_come_back_in_order needs Time,
    a_receive_sets_its_own_visibility needs Time,
    receives_are_counted needs Time,
    a_handle_ends_with_its_visibility needs Time,
    a_handle_ends_with_the_next_receive needs Time,
    an_acknowledgement_can_be_repeated_within_the_visibility needs Time,
    an_acknowledgement_out_of_order_breaks_only_its_own_order needs Time,
    malformed_handles_are_invalid,
    handles_of_another_queue_are_invalid,
    answers_come_in_the_order_of_the_handles,
    a_release_makes_visible_at_once,
    a_released_message_keeps_its_place,
    a_handle_ends_with_its_release,
    a_release_with_a_delay_hides_that_long needs Time,
    a_release_asks_for_more_time needs Time,
    a_release_is_cut_at_twelve_hours_from_the_receive needs Time,
    a_release_of_what_was_acknowledged_brings_nothing_back,
    a_rejected_message_goes_to_the_dead_letters_at_once,
    a_rejection_keeps_its_reason needs DeadLetters,
    a_rejection_lets_its_story_go_on,
    a_rejection_can_be_repeated_within_the_visibility,
    an_expired_handle_rejects_nothing needs Time,
    a_message_received_too_often_goes_to_the_dead_letters,
    a_dead_letter_lets_its_story_go_on_in_the_same_receive,
    a_limit_of_one_receive_holds,
    a_dead_letter_says_how_often_it_was_received needs DeadLetters,
    a_raised_limit_counts_from_then_on,
    a_repeated_receive_gives_the_same,
    a_repeated_receive_hides_anew needs Time,
    a_repeated_receive_does_not_count,
    a_receive_is_repeated_until_one_was_acknowledged,
    a_receive_is_repeated_until_one_was_released,
    a_receive_is_repeated_until_one_was_rejected,
    a_receive_is_repeated_until_one_came_back needs Time,
    a_receive_is_repeated_for_five_minutes needs Time,
    receives_of_other_names_are_apart,
    receives_of_other_queues_are_apart,
    an_empty_receive_is_not_remembered,
    a_long_poll_comes_back_empty_after_its_wait needs Time,
    a_long_poll_does_not_wait_for_what_is_there needs Time,
    a_long_poll_ends_with_a_publication needs Time,
    a_long_poll_ends_with_a_release needs Time,
    a_long_poll_ends_when_a_visibility_ends needs Time,
    a_long_poll_ends_when_a_delay_ends needs Time,
    a_long_poll_ends_when_an_acknowledgement_frees_the_group needs Time,
    a_long_poll_ends_when_a_rejection_frees_the_group needs Time,
    a_long_poll_sleeps_through_what_is_not_for_it needs Time,
    of_two_long_polls_one_gets_the_message needs Time,
    a_newer_receive_of_an_attempt_ends_the_one_that_waits needs Time,
    a_receive_that_does_not_wait_ends_one_of_its_attempt_too needs Time,
    of_many_receives_of_an_attempt_the_newest_waits needs Time,
    receives_of_one_attempt_at_one_moment_get_the_same,
    receives_of_other_attempts_do_not_end_each_other needs Time,
    consumers_have_queues_of_their_own,
    messages_are_kept_for_fourteen_days needs Time,
    a_message_that_is_kept_no_more_holds_nothing_back needs Time,
    dead_letters_are_kept_for_fourteen_days needs Time Counts,
    counts_are_exact needs Time Counts,
    receives_survive_a_reopening needs Reopen,
    handles_survive_a_reopening needs Reopen,
    a_repeated_receive_survives_a_reopening needs Reopen,
];

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// A queue with these messages, each `(number, group)`.
async fn filled(world: &World, messages: &[(u64, u64)]) -> QueueKey {
    let queue = world.queue().await;
    for (n, group) in messages {
        world.send_to(&queue, *n, *group).await;
    }
    queue
}

fn named(attempt: &str) -> Receive {
    Receive {
        attempt: Some(attempt.to_owned()),
        ..receive(10)
    }
}

fn polling(seconds: u64) -> Receive {
    Receive {
        wait: Duration::from_secs(seconds),
        ..receive(10)
    }
}

/// What a receive of up to ten gives, by number.
async fn next(world: &World, queue: &QueueKey) -> Vec<u64> {
    numbers(&world.receive(queue, 10).await)
}

/// Nothing there, nothing received.
pub async fn an_empty_queue_gives_nothing(world: &mut World) {
    let queue = world.queue().await;
    assert!(world.receive(&queue, 10).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A queue that does not exist (any more) is an empty one; a long poll at it does not wait.
pub async fn an_unknown_queue_gives_nothing(world: &mut World) {
    let queue = world.queue().await;
    let unknown = QueueKey {
        consumer: "c9".parse().unwrap(),
        ..queue.clone()
    };
    let elsewhere = QueueKey {
        workspace: "w9".parse().unwrap(),
        ..queue.clone()
    };
    world.send_to(&queue, 1, 1).await;
    for queue in [unknown, elsewhere] {
        assert!(world.receive_as(&queue, &polling(20)).await.is_empty());
        assert_eq!(world.counts(&queue).await, QueueCounts::default());
        let answers = world
            .queues()
            .acknowledge(&queue, &["x".to_owned()])
            .await
            .unwrap();
        assert_eq!(answers, [Settled::Invalid]);
    }
}

/// Message, handle, count and time of arrival.
pub async fn a_delivery_says_all_about_its_message(world: &mut World) {
    let queue = world.queue().await;
    world.clock.advance(SECOND);
    let sent_at = world.now();
    let letter = sample::Letter::new(1, 1);
    world.send(&queue.workspace, &letter).await;
    world.clock.advance(SECOND);
    let received = world.receive(&queue, 10).await;
    assert!(!received[0].receipt_handle.is_empty());
    let expected = Delivery {
        receipt_handle: received[0].receipt_handle.clone(),
        message_id: letter.message_id,
        body: letter.body,
        attributes: letter.attributes,
        receive_count: 1,
        enqueued_at: sent_at,
        redelivery: None,
    };
    assert_eq!(received, [expected]);
}

/// `max` is the most; what is left comes with the next receive.
pub async fn a_receive_gives_no_more_than_asked(world: &mut World) {
    let messages: Vec<_> = (0..13).map(|n| (n, n)).collect();
    let queue = filled(world, &messages).await;
    assert_eq!(world.receive(&queue, 1).await.len(), 1);
    assert_eq!(world.receive(&queue, 10).await.len(), 10);
    assert_eq!(world.receive(&queue, 10).await.len(), 2);
}

/// As many of a group as asked for come at once, oldest first.
pub async fn one_receive_holds_several_of_one_story_in_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let received = world.receive(&queue, 10).await;
    assert_eq!(numbers(&received), [1, 2, 3]);
    let mut handles = handles(&received);
    handles.dedup();
    assert_eq!(handles.len(), 3, "each has a handle of its own");
}

/// The group with the oldest message is served first.
pub async fn oldest_groups_come_first(world: &mut World) {
    let queue = filled(world, &[(1, 2), (2, 1), (3, 2), (4, 3)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert_eq!(numbers(&world.receive(&queue, 1).await), [2]);
    assert_eq!(next(world, &queue).await, [4]);
}

/// Nothing more of a group comes until everything received of it is acknowledged.
pub async fn a_group_waits_until_all_is_acknowledged(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    assert!(next(world, &queue).await.is_empty());
    world.acknowledge(&queue, &held[..1]).await;
    assert!(next(world, &queue).await.is_empty(), "the second is still hidden");
    world.acknowledge(&queue, &held[1..]).await;
    assert_eq!(next(world, &queue).await, [3]);
}

/// What came back of a group waits too, as long as another message of the group is hidden.
pub async fn a_group_waits_for_what_is_hidden_though_a_part_is_visible(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    world.release(&queue, &held[..1], Duration::ZERO).await;
    assert!(
        next(world, &queue).await.is_empty(),
        "else the first could come behind the second"
    );
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 2, 3]);
}

/// A group that waits does not hold up the others.
pub async fn other_groups_go_on(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert_eq!(next(world, &queue).await, [3]);
    world.send_to(&queue, 4, 3).await;
    world.send_to(&queue, 5, 1).await;
    assert_eq!(next(world, &queue).await, [4]);
}

/// Two receives at the same moment share what is there.
pub async fn no_message_goes_to_two_receivers(world: &mut World) {
    let messages: Vec<_> = (0..8).map(|n| (n, n)).collect();
    let queue = filled(world, &messages).await;
    let (a, b) = futures::join!(world.receive(&queue, 5), world.receive(&queue, 5));
    let mut all = numbers(&[a, b].concat());
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
}

/// What was acknowledged is gone for good.
pub async fn an_acknowledged_message_never_comes_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
    world.clock.advance(VISIBILITY * 2);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A message is hidden for its visibility, and not a millisecond longer.
pub async fn a_message_comes_back_when_its_visibility_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(next(world, &queue).await, [1]);
    world.clock.advance(VISIBILITY - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [1]);
}

/// A batch that comes back comes in its order, in front of what came later.
pub async fn messages_come_back_in_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    assert_eq!(numbers(&world.receive(&queue, 2).await), [1, 2]);
    world.send_to(&queue, 4, 1).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 2, 3, 4]);
}

/// Each receive says how long what it takes is hidden.
pub async fn a_receive_sets_its_own_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let short = Receive {
        visibility: SECOND,
        max: 1,
        ..receive(1)
    };
    let long = Receive {
        visibility: MAX_VISIBILITY,
        ..receive(1)
    };
    assert_eq!(numbers(&world.receive_as(&queue, &short).await), [1]);
    assert_eq!(numbers(&world.receive_as(&queue, &long).await), [2]);
    world.clock.advance(SECOND);
    assert_eq!(numbers(&world.receive_as(&queue, &long).await), [1]);
    world.clock.advance(MAX_VISIBILITY - SECOND - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [2]);
}

/// The count rises with each receive of a message, however it came back, and not with those of others.
pub async fn receives_are_counted(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let counts = |deliveries: &[Delivery]| deliveries.iter().map(|d| d.receive_count).collect::<Vec<_>>();
    assert_eq!(counts(&world.receive(&queue, 10).await), [1]);
    world.clock.advance(VISIBILITY);
    world.send_to(&queue, 2, 1).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(counts(&held), [2, 1]);
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(counts(&world.receive(&queue, 10).await), [3, 2]);
}

/// A handle is good until the visibility ends, though nobody received the message since.
pub async fn a_handle_ends_with_its_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
    assert_eq!(
        world.release(&queue, &held, Duration::ZERO).await,
        [Settled::Invalid]
    );
    assert_eq!(next(world, &queue).await, [1]);
}

/// The handle of an earlier receive has no power over the message.
pub async fn a_handle_ends_with_the_next_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    let second = world.receive(&queue, 10).await;
    assert_ne!(handles(&first), handles(&second));
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Invalid]);
    assert_eq!(
        world.release(&queue, &first, Duration::ZERO).await,
        [Settled::Invalid]
    );
    assert_eq!(world.reject(&queue, &first, "late").await, [Settled::Invalid]);
    assert!(
        next(world, &queue).await.is_empty(),
        "the second receive still holds it"
    );
    assert_eq!(world.acknowledge(&queue, &second).await, [Settled::Done]);
}

/// A second acknowledgement within the visibility is done, and a later one is not.
pub async fn an_acknowledgement_can_be_repeated_within_the_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let twice = [held.clone(), held.clone()].concat();
    assert_eq!(
        world.acknowledge(&queue, &twice).await,
        [Settled::Done, Settled::Done],
        "within one call too"
    );
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
    world.clock.advance(MS);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
}

/// A later message of a batch can be acknowledged alone; the earlier one comes again, behind it.
pub async fn an_acknowledgement_out_of_order_breaks_only_its_own_order(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    assert_eq!(world.acknowledge(&queue, &held[1..]).await, [Settled::Done]);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(VISIBILITY);
    assert_eq!(next(world, &queue).await, [1, 3]);
}

/// Text that was never a handle settles nothing and is no error.
pub async fn malformed_handles_are_invalid(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let handle = &held[0].receipt_handle;
    let cut = handle[..handle.len() - 1].to_owned();
    let long = "A".repeat(10_000);
    let bad: Vec<String> = [
        "",
        " ",
        "0",
        "é",
        "\0",
        "' OR 1=1 --",
        &cut,
        &format!("{handle}x"),
        &long,
    ]
    .map(str::to_owned)
    .into();
    let invalid = vec![Settled::Invalid; bad.len()];
    assert_eq!(world.queues().acknowledge(&queue, &bad).await.unwrap(), invalid);
    assert_eq!(
        world
            .queues()
            .release(&queue, &bad, Duration::ZERO)
            .await
            .unwrap(),
        invalid
    );
    assert_eq!(world.queues().reject(&queue, &bad, "bad").await.unwrap(), invalid);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
}

/// A handle works at its own queue alone.
pub async fn handles_of_another_queue_are_invalid(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let workspace = world.workspace("w2").await;
    let three = world.consumer("c3", &workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    let held = world.receive(&one, 10).await;
    world.receive(&two, 10).await;
    for queue in [&two, &three] {
        assert_eq!(world.acknowledge(queue, &held).await, [Settled::Invalid]);
        assert_eq!(
            world.release(queue, &held, Duration::ZERO).await,
            [Settled::Invalid]
        );
        assert_eq!(world.reject(queue, &held, "foreign").await, [Settled::Invalid]);
    }
    assert!(next(world, &one).await.is_empty(), "still held");
    assert_eq!(world.acknowledge(&one, &held).await, [Settled::Done]);
}

/// Good and bad handles of one call are answered one by one, in order.
pub async fn answers_come_in_the_order_of_the_handles(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    let mixed = ["x", &held[1].receipt_handle, "y", &held[0].receipt_handle].map(str::to_owned);
    let expected = [Settled::Invalid, Settled::Done, Settled::Invalid, Settled::Done];
    assert_eq!(
        world.queues().acknowledge(&queue, &mixed).await.unwrap(),
        expected
    );
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// Given back without a delay, a message comes with the next receive.
pub async fn a_release_makes_visible_at_once(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    assert_eq!(
        world.release(&queue, &held, Duration::ZERO).await,
        [Settled::Done]
    );
    let again = world.receive(&queue, 10).await;
    assert_eq!(numbers(&again), [1]);
    assert_ne!(handles(&again), handles(&held));
}

/// Given back, a message is where it was: in front of the later ones of its group.
pub async fn a_released_message_keeps_its_place(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 1)]).await;
    let held = world.receive(&queue, 2).await;
    world.send_to(&queue, 4, 2).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(next(world, &queue).await, [1, 2, 3, 4]);
}

/// With the visibility ends the handle, also when it was ended on purpose.
pub async fn a_handle_ends_with_its_release(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.release(&queue, &held, Duration::ZERO).await;
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
    assert_eq!(next(world, &queue).await, [1]);
}

/// Given back with a delay, a message stays hidden, its group waits, and its handle stays good.
pub async fn a_release_with_a_delay_hides_that_long(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    let held = world.receive(&queue, 1).await;
    world.release(&queue, &held, SECOND * 10).await;
    assert_eq!(next(world, &queue).await, [3]);
    world.clock.advance(SECOND * 10 - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    let again = world.receive(&queue, 1).await;
    assert_eq!(numbers(&again), [1]);
    world.release(&queue, &again, SECOND * 10).await;
    world.clock.advance(SECOND * 10 - MS);
    assert_eq!(
        world.acknowledge(&queue, &again).await,
        [Settled::Done],
        "still its handle"
    );
    assert_eq!(next(world, &queue).await, [2]);
}

/// A delay longer than what is left of the visibility gives the consumer more time.
pub async fn a_release_asks_for_more_time(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(
        world.release(&queue, &held, VISIBILITY * 3).await,
        [Settled::Done]
    );
    world.clock.advance(VISIBILITY * 3 - MS);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Done]);
}

/// However often it is prolonged, a message is hidden no longer than 12 hours from its receive.
pub async fn a_release_is_cut_at_twelve_hours_from_the_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(SECOND);
    assert_eq!(
        world.release(&queue, &held, MAX_VISIBILITY).await,
        [Settled::Done]
    );
    world.clock.advance(MAX_VISIBILITY - SECOND * 2);
    assert_eq!(
        world.release(&queue, &held, MAX_VISIBILITY).await,
        [Settled::Done],
        "one second is left"
    );
    world.clock.advance(SECOND - MS);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(MS);
    assert_eq!(next(world, &queue).await, [1]);
    assert_eq!(world.acknowledge(&queue, &held).await, [Settled::Invalid]);
}

/// What was acknowledged cannot be given back or rejected.
pub async fn a_release_of_what_was_acknowledged_brings_nothing_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.acknowledge(&queue, &held).await;
    world.release(&queue, &held, Duration::ZERO).await;
    world.reject(&queue, &held, "late").await;
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// Rejected, a message is a dead letter and comes no more.
pub async fn a_rejected_message_goes_to_the_dead_letters_at_once(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 1).await;
    assert_eq!(world.reject(&queue, &held, "bad").await, [Settled::Done]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
    assert_eq!(next(world, &queue).await, [2]);
    assert_eq!(
        world.acknowledge(&queue, &world.receive(&queue, 10).await).await,
        []
    );
}

/// What the consumer said is kept, to the last character.
pub async fn a_rejection_keeps_its_reason(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    let reason = "ü\"'\\\n😀".repeat(166);
    world.reject(&queue, &held[..1], &reason).await;
    world.reject(&queue, &held[1..], "other").await;
    let letters = world.dead_letters(&queue).await;
    let said: Vec<_> = letters
        .iter()
        .map(|l| (l.message_id, l.reason.as_deref()))
        .collect();
    assert_eq!(
        said,
        [
            (sample::message_id(1), Some(reason.as_str())),
            (sample::message_id(2), Some("other"))
        ]
    );
    assert_eq!(letters[0].at, world.now());
}

/// One bad message does not hold its story back.
pub async fn a_rejection_lets_its_story_go_on(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    assert!(next(world, &queue).await.is_empty());
    world.reject(&queue, &held, "bad").await;
    assert_eq!(next(world, &queue).await, [2]);
}

/// A second rejection within the visibility is done, and makes no second dead letter.
pub async fn a_rejection_can_be_repeated_within_the_visibility(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    for _ in 0..2 {
        assert_eq!(world.reject(&queue, &held, "bad").await, [Settled::Done]);
    }
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// A handle that has ended rejects nothing.
pub async fn an_expired_handle_rejects_nothing(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(world.reject(&queue, &held, "late").await, [Settled::Invalid]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 0);
    assert_eq!(next(world, &queue).await, [1]);
}

/// Receives and gives back, with a limit; says how often something came.
async fn receives(world: &World, queue: &QueueKey, max_receives: u32, times: usize) -> usize {
    let limited = Receive {
        max_receives,
        ..receive(1)
    };
    let mut came = 0;
    for _ in 0..times {
        let received = world.receive_as(queue, &limited).await;
        came += received.len();
        world.release(queue, &received, Duration::ZERO).await;
    }
    came
}

/// After `max_receives` receives a message is a dead letter instead of being received once more.
pub async fn a_message_received_too_often_goes_to_the_dead_letters(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 3, 3).await, 3);
    assert_eq!(
        world.counts(&queue).await.dead_lettered,
        0,
        "it moves when it would be received again"
    );
    assert_eq!(receives(world, &queue, 3, 2).await, 0);
    let counts = world.counts(&queue).await;
    assert_eq!(
        (counts.visible, counts.in_flight, counts.dead_lettered),
        (0, 0, 1)
    );
}

/// What is behind a new dead letter comes in the same receive.
pub async fn a_dead_letter_lets_its_story_go_on_in_the_same_receive(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    assert_eq!(receives(world, &queue, 2, 2).await, 2);
    let limited = Receive {
        max_receives: 2,
        ..receive(1)
    };
    assert_eq!(numbers(&world.receive_as(&queue, &limited).await), [2]);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// With a limit of one a message comes once.
pub async fn a_limit_of_one_receive_holds(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 1, 3).await, 1);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
}

/// A dead letter keeps its count; it has no reason but the limit.
pub async fn a_dead_letter_says_how_often_it_was_received(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    receives(world, &queue, 2, 3).await;
    let letters = world.dead_letters(&queue).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].message_id, letters[0].receive_count),
        (sample::message_id(1), 2)
    );
    assert_eq!(letters[0].at, world.now());
}

/// The limit is the one of the receive that would be one too many.
pub async fn a_raised_limit_counts_from_then_on(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(receives(world, &queue, 1, 1).await, 1);
    assert_eq!(receives(world, &queue, 4, 9).await, 3);
}

/// The same name gives the same messages with the same handles, instead of leaving them hidden.
pub async fn a_repeated_receive_gives_the_same(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    let first = world.receive_as(&queue, &named("a-1_B")).await;
    assert_eq!(numbers(&first), [1, 2, 3]);
    world.send_to(&queue, 4, 3).await;
    assert_eq!(world.receive_as(&queue, &named("a-1_B")).await, first);
    assert_eq!(
        next(world, &queue).await,
        [4],
        "nothing else was hidden by the repetition"
    );
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Done; 3]);
}

/// A repetition starts the visibility anew.
pub async fn a_repeated_receive_hides_anew(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.clock.advance(VISIBILITY - MS);
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
    world.clock.advance(VISIBILITY - MS);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.acknowledge(&queue, &first).await, [Settled::Done]);
}

/// A repetition is the same receive: neither the count nor the limit takes it for another.
pub async fn a_repeated_receive_does_not_count(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let once = Receive {
        max_receives: 1,
        ..named("a")
    };
    for _ in 0..3 {
        let received = world.receive_as(&queue, &once).await;
        assert_eq!(received.iter().map(|d| d.receive_count).collect::<Vec<_>>(), [1]);
    }
}

/// Once one of its messages was acknowledged, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_acknowledged(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.acknowledge(&queue, &first[..1]).await;
    world.send_to(&queue, 3, 3).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [3]);
    assert_eq!(
        numbers(&world.receive_as(&queue, &named("a")).await),
        [3],
        "which can be repeated in turn"
    );
}

/// Once one of its messages was given back, even to stay hidden, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_released(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.release(&queue, &first[..1], SECOND).await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
    let second = world.receive_as(&queue, &named("b")).await;
    assert!(second.is_empty());
    world.release(&queue, &first[1..], Duration::ZERO).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [2]);
}

/// Once one of its messages was rejected, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_was_rejected(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.reject(&queue, &first[..1], "bad").await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
}

/// Once its messages came back, a name stands for a new receive.
pub async fn a_receive_is_repeated_until_one_came_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.clock.advance(VISIBILITY);
    let second = world.receive_as(&queue, &named("a")).await;
    assert_eq!(numbers(&second), [1]);
    assert_ne!(handles(&first), handles(&second));
    assert_eq!(second[0].receive_count, 2);
}

/// A receive can be repeated for 5 minutes; then its name stands for a new one.
pub async fn a_receive_is_repeated_for_five_minutes(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let hour = Receive {
        visibility: Duration::from_secs(3600),
        ..named("a")
    };
    assert_eq!(world.receive_as(&queue, &hour).await.len(), 1);
    world.clock.advance(RECEIVE_ATTEMPT_LIFETIME - SECOND);
    assert_eq!(world.receive_as(&queue, &hour).await.len(), 1);
    // long enough after either of them
    world.clock.advance(RECEIVE_ATTEMPT_LIFETIME + SECOND);
    world.send_to(&queue, 2, 2).await;
    assert_eq!(numbers(&world.receive_as(&queue, &hour).await), [2]);
}

/// Another name, or none, is another receive.
pub async fn receives_of_other_names_are_apart(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    assert!(world.receive_as(&queue, &named("A")).await.is_empty());
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
}

/// The same name at another queue is another receive.
pub async fn receives_of_other_queues_are_apart(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    let first = world.receive_as(&one, &named("a")).await;
    let second = world.receive_as(&two, &named("a")).await;
    assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![1]));
    assert_ne!(handles(&first), handles(&second));
}

/// A receive that gave nothing has nothing to repeat.
pub async fn an_empty_receive_is_not_remembered(world: &mut World) {
    let queue = world.queue().await;
    assert!(world.receive_as(&queue, &named("a")).await.is_empty());
    world.send_to(&queue, 1, 1).await;
    assert_eq!(numbers(&world.receive_as(&queue, &named("a")).await), [1]);
}

/// Waits at the queue while something else happens, and says what came and how long that took.
async fn poll_while(
    world: &World,
    queue: &QueueKey,
    seconds: u64,
    other: impl AsyncFnOnce(),
) -> (Vec<u64>, Duration) {
    let before = world.now();
    let waiting = polling(seconds);
    let other = async {
        world.clock.until_asleep(1).await;
        other().await;
    };
    let (received, ()) = futures::join!(world.receive_as(queue, &waiting), other);
    (numbers(&received), before.until(world.now()))
}

/// Nothing came: an empty list at the end of the wait, not before.
pub async fn a_long_poll_comes_back_empty_after_its_wait(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let (received, took) = poll_while(world, &queue, 20, async || {
        clock.advance(SECOND * 20 - MS);
        crate::executor::yield_now().await;
        // unless it came back too early, it still sleeps
        clock.until_asleep(1).await;
        clock.advance(MS);
    })
    .await;
    assert_eq!((received, took), (vec![], SECOND * 20));
}

/// With a message there, nobody waits.
pub async fn a_long_poll_does_not_wait_for_what_is_there(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    assert_eq!(numbers(&world.receive_as(&queue, &polling(20)).await), [1]);
}

/// A publication ends the wait at once.
pub async fn a_long_poll_ends_with_a_publication(world: &mut World) {
    let queue = world.queue().await;
    let (received, took) = poll_while(world, &queue, 20, async || world.send_to(&queue, 1, 1).await).await;
    assert_eq!((received, took), (vec![1], Duration::ZERO));
}

/// A message given back ends the wait at once.
pub async fn a_long_poll_ends_with_a_release(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let release = async || {
        world.release(&queue, &held, Duration::ZERO).await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, release).await,
        (vec![1], Duration::ZERO)
    );
}

/// A message that comes back ends the wait at that moment.
pub async fn a_long_poll_ends_when_a_visibility_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.receive(&queue, 10).await;
    world.clock.advance(VISIBILITY - SECOND * 5);
    let clock = world.clock.clone();
    let got = poll_while(world, &queue, 20, async || clock.advance(SECOND * 5)).await;
    assert_eq!(got, (vec![1], SECOND * 5));
}

/// A delay that was set while somebody waits ends the wait when it is over.
pub async fn a_long_poll_ends_when_a_delay_ends(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    let clock = world.clock.clone();
    let soon = world.now().plus(SECOND * 3);
    let got = poll_while(world, &queue, 20, async || {
        world.release(&queue, &held, SECOND * 3).await;
        // whoever waits must have heard of it before time goes on
        while clock.next_wake() != Some(soon) {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 3);
    })
    .await;
    assert_eq!(got, (vec![1], SECOND * 3));
}

/// An acknowledgement that frees a group ends the wait at once.
pub async fn a_long_poll_ends_when_an_acknowledgement_frees_the_group(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    let acknowledge = async || {
        world.acknowledge(&queue, &held).await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, acknowledge).await,
        (vec![2], Duration::ZERO)
    );
}

/// A rejection that frees a group ends the wait at once.
pub async fn a_long_poll_ends_when_a_rejection_frees_the_group(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let held = world.receive(&queue, 1).await;
    let reject = async || {
        world.reject(&queue, &held, "bad").await;
    };
    assert_eq!(
        poll_while(world, &queue, 20, reject).await,
        (vec![2], Duration::ZERO)
    );
}

/// What happens elsewhere, or is held back, does not end the wait.
pub async fn a_long_poll_sleeps_through_what_is_not_for_it(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let workspace = world.workspace("w2").await;
    let other = world.consumer("c2", &workspace, Filter::default()).await;
    world.receive(&queue, 10).await;
    let clock = world.clock.clone();
    let got = poll_while(world, &queue, 20, async || {
        world.send_to(&queue, 2, 1).await;
        world.send_to(&other, 3, 3).await;
        crate::executor::yield_now().await;
        clock.until_asleep(1).await;
        clock.advance(SECOND * 20);
    })
    .await;
    assert_eq!(got, (vec![], SECOND * 20));
    assert_eq!(next(world, &other).await, [3]);
}

/// Of two that wait one gets the message, and the other waits on.
pub async fn of_two_long_polls_one_gets_the_message(world: &mut World) {
    let queue = world.queue().await;
    let waiting = polling(20);
    let clock = world.clock.clone();
    let other = async {
        clock.until_asleep(2).await;
        world.send_to(&queue, 1, 1).await;
        // one has gone, and the other sleeps (again)
        while clock.sleepers() != 1 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let (a, b, ()) = futures::join!(
        world.receive_as(&queue, &waiting),
        world.receive_as(&queue, &waiting),
        other
    );
    assert_eq!(numbers(&[a, b].concat()), [1]);
}

fn waiting(attempt: &str) -> Receive {
    Receive {
        attempt: Some(attempt.to_owned()),
        ..polling(20)
    }
}

/// A client that repeats its receive has given the one that waits up: that ends at once, with nothing.
pub async fn a_newer_receive_of_an_attempt_ends_the_one_that_waits(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let wait = waiting("a");
    let ended = AtomicBool::new(false);
    let first = async {
        let received = world.receive_as(&queue, &wait).await;
        ended.store(true, Ordering::Relaxed);
        received
    };
    let second = async {
        clock.until_asleep(1).await;
        world.receive_as(&queue, &wait).await
    };
    let send = async {
        while !ended.load(Ordering::Relaxed) {
            crate::executor::yield_now().await;
        }
        clock.until_asleep(1).await;
        world.send_to(&queue, 1, 1).await;
    };
    let before = world.now();
    let (first, second, ()) = futures::join!(first, second, send);
    assert_eq!((numbers(&first), numbers(&second)), (vec![], vec![1]));
    assert_eq!(world.now(), before);
    assert_eq!(
        world.receive_as(&queue, &named("a")).await,
        second,
        "to be repeated as ever"
    );
}

/// It need not wait itself.
pub async fn a_receive_that_does_not_wait_ends_one_of_its_attempt_too(world: &mut World) {
    let queue = world.queue().await;
    let wait = waiting("a");
    let second = async {
        world.clock.until_asleep(1).await;
        world.receive_as(&queue, &named("a")).await
    };
    let before = world.now();
    let (first, second) = futures::join!(world.receive_as(&queue, &wait), second);
    assert!(first.is_empty() && second.is_empty());
    assert_eq!(world.now(), before);
}

/// Of many repetitions the last one waits, beside others.
pub async fn of_many_receives_of_an_attempt_the_newest_waits(world: &mut World) {
    let queue = world.queue().await;
    let clock = world.clock.clone();
    let (wait, other) = (waiting("a"), polling(20));
    let clients = async { futures::future::join_all((0..5).map(|_| world.receive_as(&queue, &wait))).await };
    let other = async {
        clock.until_asleep(1).await;
        world.receive_as(&queue, &other).await
    };
    let send = async {
        while clock.sleepers() != 2 {
            crate::executor::yield_now().await;
        }
        world.send_to(&queue, 1, 1).await;
        // one of the two looks for it
        while clock.sleepers() > 1 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let (mut received, other, ()) = futures::join!(clients, other, send);
    let newest = received.pop().unwrap_or_default();
    assert!(received.iter().all(Vec::is_empty), "{received:?}");
    assert_eq!(numbers(&[newest, other].concat()), [1]);
}

/// Both get what is there, as one receive and its repetition.
pub async fn receives_of_one_attempt_at_one_moment_get_the_same(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    for (wait, attempt) in [(named("a"), "a"), (waiting("b"), "b")] {
        let (a, b) = futures::join!(world.receive_as(&queue, &wait), world.receive_as(&queue, &wait));
        assert_eq!(numbers(&a), [1, 2], "{attempt}");
        assert_eq!(a, b, "{attempt}");
        world.release(&queue, &a, Duration::ZERO).await;
    }
}

/// Another name, another queue, or no name: each waits on.
pub async fn receives_of_other_attempts_do_not_end_each_other(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    let clock = world.clock.clone();
    let (a, b, none) = (waiting("a"), waiting("b"), polling(20));
    let time = async {
        while clock.sleepers() != 4 {
            crate::executor::yield_now().await;
        }
        clock.advance(SECOND * 20);
    };
    let before = world.now();
    let (received, ()) = futures::join!(
        futures::future::join_all([
            world.receive_as(&one, &a),
            world.receive_as(&one, &b),
            world.receive_as(&two, &a),
            world.receive_as(&one, &none),
        ]),
        time
    );
    assert!(received.iter().all(Vec::is_empty));
    assert_eq!(before.until(world.now()), SECOND * 20);
}

/// What one consumer does is not seen by the other.
pub async fn consumers_have_queues_of_their_own(world: &mut World) {
    let one = world.queue().await;
    let two = world.consumer("c2", &one.workspace, Filter::default()).await;
    world.send_to(&one, 1, 1).await;
    world.send_to(&one, 2, 1).await;
    let held = world.receive(&one, 10).await;
    world.reject(&one, &held[..1], "bad").await;
    world.acknowledge(&one, &held[1..]).await;
    let theirs = world.receive(&two, 10).await;
    assert_eq!(numbers(&theirs), [1, 2]);
    assert_eq!(theirs[0].receive_count, 1);
    assert_eq!(world.counts(&two).await.dead_lettered, 0);
}

/// A message waits for 14 days, and is gone then.
pub async fn messages_are_kept_for_fourteen_days(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.clock.advance(RETENTION - VISIBILITY - SECOND);
    assert_eq!(next(world, &queue).await, [1]);
    world.clock.advance(VISIBILITY);
    assert_eq!(world.counts(&queue).await.visible, 1);
    world.clock.advance(SECOND);
    assert!(next(world, &queue).await.is_empty());
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A message that is gone by age, hidden or not, does not block its group.
pub async fn a_message_that_is_kept_no_more_holds_nothing_back(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    world.clock.advance(RETENTION - SECOND);
    world.send_to(&queue, 2, 1).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    assert!(next(world, &queue).await.is_empty());
    world.clock.advance(SECOND);
    assert_eq!(next(world, &queue).await, [2]);
}

/// Dead letters are gone after 14 days too.
pub async fn dead_letters_are_kept_for_fourteen_days(world: &mut World) {
    let queue = filled(world, &[(1, 1)]).await;
    let held = world.receive(&queue, 10).await;
    world.reject(&queue, &held, "bad").await;
    world.clock.advance(RETENTION - SECOND);
    assert_eq!(world.counts(&queue).await.dead_lettered, 1);
    world.clock.advance(SECOND);
    assert_eq!(world.counts(&queue).await.dead_lettered, 0);
}

/// Every message is visible, in flight or dead; the oldest that lives says since when.
pub async fn counts_are_exact(world: &mut World) {
    let queue = world.queue().await;
    let began = world.now();
    for n in 1..=5 {
        world.send_to(&queue, n, n.min(4)).await;
        world.clock.advance(SECOND);
    }
    let counts = |visible, in_flight, dead_lettered, oldest: Option<u64>| QueueCounts {
        visible,
        in_flight,
        dead_lettered,
        oldest_at: oldest.map(|n| began.plus(SECOND * u32::try_from(n - 1).unwrap())),
    };
    assert_eq!(world.counts(&queue).await, counts(5, 0, 0, Some(1)));
    let held = world.receive(&queue, 4).await;
    assert_eq!(
        world.counts(&queue).await,
        counts(1, 4, 0, Some(1)),
        "the one that waits for its group is visible"
    );
    world.acknowledge(&queue, &held[..1]).await;
    assert_eq!(world.counts(&queue).await, counts(1, 3, 0, Some(2)));
    world.reject(&queue, &held[1..2], "bad").await;
    assert_eq!(world.counts(&queue).await, counts(1, 2, 1, Some(3)));
    world.release(&queue, &held[2..3], Duration::ZERO).await;
    assert_eq!(world.counts(&queue).await, counts(2, 1, 1, Some(3)));
    world.release(&queue, &held[3..], SECOND * 100).await;
    world.clock.advance(VISIBILITY);
    assert_eq!(
        world.counts(&queue).await,
        counts(2, 1, 1, Some(3)),
        "hidden by its delay"
    );
    world.clock.advance(SECOND * 40);
    assert_eq!(world.counts(&queue).await, counts(3, 0, 1, Some(3)));
    world.drain(&queue).await;
    assert_eq!(world.counts(&queue).await, counts(0, 0, 1, None));
}

/// What is hidden stays hidden, and counted, when the engine is opened again.
pub async fn receives_survive_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1), (3, 2)]).await;
    assert_eq!(numbers(&world.receive(&queue, 1).await), [1]);
    world.reopen().await;
    assert_eq!(next(world, &queue).await, [3]);
    world.clock.advance(VISIBILITY);
    let received = world.receive(&queue, 10).await;
    assert_eq!(numbers(&received), [1, 2, 3]);
    assert_eq!(
        received.iter().map(|d| d.receive_count).collect::<Vec<_>>(),
        [2, 1, 2]
    );
}

/// A handle from before settles its message after the engine was opened again, and so does a second acknowledgement.
pub async fn handles_survive_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 2)]).await;
    let held = world.receive(&queue, 10).await;
    world.acknowledge(&queue, &held[..1]).await;
    world.reopen().await;
    assert_eq!(
        world.acknowledge(&queue, &held).await,
        [Settled::Done, Settled::Done]
    );
    assert_eq!(world.counts(&queue).await, QueueCounts::default());
}

/// A receive whose answer was lost because the bus stopped can be repeated.
pub async fn a_repeated_receive_survives_a_reopening(world: &mut World) {
    let queue = filled(world, &[(1, 1), (2, 1)]).await;
    let first = world.receive_as(&queue, &named("a")).await;
    world.reopen().await;
    assert_eq!(world.receive_as(&queue, &named("a")).await, first);
}
