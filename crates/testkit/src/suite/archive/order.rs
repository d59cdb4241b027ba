//! What is in the archive, and in which order.

use std::time::Duration;

use storybus_core::domain::archived::{Head, Selection};
use storybus_core::domain::filter::Filter;

use super::{PLENTY, archived, everything, numbers, part, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours_both_ways![
    a_new_archive_is_empty,
    bytes_attributes_and_more_come_back_unchanged,
    the_time_of_publication_comes_back needs Time,
    what_no_consumer_wants_is_archived,
    order_is_kept_per_correlation_id,
    times_never_go_back,
    positions_tell_messages_apart,
    a_message_published_twice_is_there_twice needs Time,
    a_dropped_message_is_not_archived_again,
    a_refused_message_is_not_archived needs Claims,
    workspaces_are_apart,
    whatever_was_answered_is_there,
    the_archive_survives_a_reopening needs Reopen,
    positions_survive_a_reopening needs Reopen,
];

/// Nothing was published: the first part is the end.
pub async fn a_new_archive_is_empty(world: &mut World) {
    let workspace = world.workspace("w1").await;
    world.file().await;
    let part = part(world, &workspace, None, &Selection::default(), PLENTY).await;
    assert!(part.end && part.messages.is_empty() && part.last.is_none() && part.last_at.is_none());
    assert_eq!(part.scanned, 0);
}

/// Every byte and every member comes back.
pub async fn bytes_attributes_and_more_come_back_unchanged(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut letter = Letter::new(1, 1).snapshot("s", 1).saying(
        " {\"b\":1,\t\"a\": \"\\u00e9 é 😀\", \"n\": 1e0,
        \"payload\":{\"story_id\":\"a \\\"story\\\" \\u00e9😀\", \"sequence_number\" : 12345678901234567890.0 } }\n",
    );
    let about = &letter.about;
    assert_eq!(about.story_id.as_deref(), Some("a \"story\" é😀"));
    assert_eq!(about.sequence_number.as_deref(), Some("12345678901234567890"));
    letter.attributes.topic = "som.'näws'.%_".to_owned();
    letter.attributes.correlation_id = letter.attributes.correlation_id.to_uppercase();
    let plain = Letter::new(2, 2).of_type("a.b");
    send(world, &workspace, &[letter.clone(), plain.clone()]).await;
    let all = everything(world, &workspace).await;
    assert_eq!(all.len(), 2);
    for (message, letter) in all.iter().zip([letter, plain]) {
        assert_eq!(message.body, letter.body);
        let head = Head {
            position: message.head.position.clone(),
            message_id: letter.message_id,
            published_at: message.head.published_at,
            attributes: letter.attributes,
            about: letter.about,
        };
        assert_eq!(message.head, head);
    }
}

/// The time of publication is that of the topic's answer, to the millisecond.
pub async fn the_time_of_publication_comes_back(world: &mut World) {
    world.clock.advance(Duration::from_millis(7));
    let at = world.now();
    let workspace = archived(world, &[(1, 1), (2, 2)]).await;
    world.clock.advance(Duration::from_secs(1));
    let all = everything(world, &workspace).await;
    assert_eq!(
        all.iter().map(|m| m.head.published_at).collect::<Vec<_>>(),
        [at, at]
    );
}

/// The archive does not ask who wants a message.
pub async fn what_no_consumer_wants_is_archived(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let filter = Filter {
        sources: vec!["nobody".to_owned()],
        ..Filter::default()
    };
    world.consumer("c1", &workspace, filter).await;
    send(world, &workspace, &[Letter::new(1, 1)]).await;
    assert_eq!(numbers(&everything(world, &workspace).await), [1]);
}

/// Messages of one correlation id are in the order of their publication.
pub async fn order_is_kept_per_correlation_id(world: &mut World) {
    let messages: Vec<(u64, u64)> = (0..30).map(|n| (29 - n, n % 3)).collect();
    let workspace = archived(world, &messages).await;
    let all = everything(world, &workspace).await;
    assert_eq!(all.len(), 30);
    for group in 0..3 {
        let sent: Vec<u64> = messages
            .iter()
            .filter(|(_, g)| *g == group)
            .map(|(n, _)| *n)
            .collect();
        let id = sample::correlation_id(group).to_string();
        let found: Vec<_> = all
            .iter()
            .filter(|m| m.head.attributes.correlation_id == id)
            .cloned()
            .collect();
        assert_eq!(numbers(&found), sent);
    }
}

/// In the order of the archive, no message was published before the one ahead of it.
pub async fn times_never_go_back(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 0..20 {
        world.send(&workspace, &Letter::new(n, n)).await;
        world.clock.advance(Duration::from_millis(n % 3));
    }
    let all = everything(world, &workspace).await;
    assert_eq!(all.len(), 20);
    assert!(all.is_sorted_by_key(|m| m.head.published_at));
}

/// No two messages have one position.
pub async fn positions_tell_messages_apart(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 1), (3, 2)]).await;
    let all = everything(world, &workspace).await;
    for (n, message) in all.iter().enumerate() {
        assert!(all[..n].iter().all(|m| m.head.position != message.head.position));
    }
}

/// A message that the topic let through again (guarantee F) is archived again, at its own time and place.
pub async fn a_message_published_twice_is_there_twice(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letter = Letter::new(1, 1);
    let first_at = world.now();
    world.publish_anew(&workspace, &letter).await;
    world.send(&workspace, &Letter::new(2, 1)).await;
    world.clock.advance(Duration::from_secs(301));
    world.publish_anew(&workspace, &letter).await;
    let all = everything(world, &workspace).await;
    assert_eq!(numbers(&all), [1, 2, 1]);
    assert_eq!(
        (all[0].head.published_at, all[2].head.published_at),
        (first_at, world.now())
    );
    assert_eq!(all[0].body, all[2].body);
    let found = world.archive().find(&workspace, letter.message_id).await.unwrap();
    assert_eq!(found, [all[0].head.clone(), all[2].head.clone()]);
}

/// A message that the topic dropped is not archived.
pub async fn a_dropped_message_is_not_archived_again(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for _ in 0..2 {
        world.publish_anew(&workspace, &Letter::new(1, 1)).await;
    }
    assert_eq!(numbers(&everything(world, &workspace).await), [1]);
}

/// What was not published is not archived.
pub async fn a_refused_message_is_not_archived(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let publication = world.publication(&workspace, &Letter::new(1, 1), world.token());
    assert!(world.publish(&publication).await.is_err());
    assert!(everything(world, &workspace).await.is_empty());
}

/// No workspace sees what another published, not by its positions either.
pub async fn workspaces_are_apart(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    let story = Letter::new(0, 1).about("s").about.story.unwrap();
    for n in 1..=6 {
        let workspace = if n % 2 == 0 { &two } else { &one };
        world.send(workspace, &Letter::new(n, 1).about("s")).await;
    }
    world.file().await;
    let archive = world.archive();
    for (workspace, sent) in [(&one, [1, 3, 5]), (&two, [2, 4, 6])] {
        let all = everything(world, workspace).await;
        assert_eq!(numbers(&all), sent);
        let heads = archive
            .about(workspace, &story, Some(sample::correlation_id(1)), None, 9)
            .await
            .unwrap();
        assert_eq!(super::head_numbers(&heads), sent);
        let mut heads = archive.latest(workspace, None, 9).await.unwrap();
        heads.reverse();
        assert_eq!(super::head_numbers(&heads), sent);
        for n in 1..=6 {
            let found = archive.find(workspace, sample::message_id(n)).await.unwrap();
            assert_eq!(found.len(), usize::from(sent.contains(&n)));
        }
    }
    let after = everything(world, &one).await[0].head.position.clone();
    let rest = part(world, &two, Some(&after), &Selection::default(), PLENTY).await;
    assert!(numbers(&rest.messages).iter().all(|n| n % 2 == 0));
}

/// After each answer, the whole archive up to its end holds what was answered.
pub async fn whatever_was_answered_is_there(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=12 {
        world.send(&workspace, &Letter::new(n, n % 2)).await;
        let all = everything(world, &workspace).await;
        assert_eq!(numbers(&all), (1..=n).collect::<Vec<_>>());
    }
}

/// Closed and opened again, the archive is what it was, and goes on.
pub async fn the_archive_survives_a_reopening(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2), (3, 1)]).await;
    let before = everything(world, &workspace).await;
    world.reopen().await;
    assert_eq!(everything(world, &workspace).await, before);
    send(world, &workspace, &[Letter::new(4, 1)]).await;
    assert_eq!(numbers(&everything(world, &workspace).await), [1, 2, 3, 4]);
}

/// A position leads to the same place after a reopening.
pub async fn positions_survive_a_reopening(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2), (3, 1)]).await;
    let first = everything(world, &workspace).await[0].head.position.clone();
    world.reopen().await;
    assert!(world.archive().is_position(&first));
    send(world, &workspace, &[Letter::new(4, 1)]).await;
    let rest = part(world, &workspace, Some(&first), &Selection::default(), PLENTY).await;
    assert_eq!(numbers(&rest.messages), [2, 3, 4]);
}
