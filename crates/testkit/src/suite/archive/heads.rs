//! Messages without their bodies: by id, by story, the latest.

use storybus_core::domain::archived::{Head, Position};
use storybus_core::domain::record::story_digest;

use super::{archived, everything, head_numbers, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours_both_ways![
    a_message_is_found_by_its_id,
    heads_are_those_of_the_archive,
    a_story_has_its_messages_and_those_of_its_correlation_id,
    a_story_is_read_page_by_page,
    the_latest_come_newest_first,
    the_latest_are_read_page_by_page,
    a_page_stays_when_newer_messages_come,
    foreign_texts_are_no_positions,
];

/// An id finds its message and no other.
pub async fn a_message_is_found_by_its_id(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 1), (3, 2)]).await;
    for n in 1..=3 {
        let found = world
            .archive()
            .find(&workspace, sample::message_id(n))
            .await
            .unwrap();
        assert_eq!(head_numbers(&found), [n]);
    }
    let unknown = world
        .archive()
        .find(&workspace, sample::message_id(4))
        .await
        .unwrap();
    assert!(unknown.is_empty());
}

/// Whichever way a head is read, it is the same.
pub async fn heads_are_those_of_the_archive(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letter = Letter::new(1, 1).snapshot("s", 7);
    assert_eq!(letter.about.sequence_number.as_deref(), Some("7"));
    send(world, &workspace, &[letter]).await;
    let head = everything(world, &workspace).await.remove(0).head;
    let archive = world.archive();
    let found = archive.find(&workspace, head.message_id).await.unwrap();
    let about = archive
        .about(&workspace, &story_digest("s"), None, None, 9)
        .await
        .unwrap();
    let latest = archive.latest(&workspace, None, 9).await.unwrap();
    assert_eq!(
        [found, about, latest],
        [vec![head.clone()], vec![head.clone()], vec![head]]
    );
}

async fn about(
    world: &World,
    workspace: &storybus_protocol::id::WorkspaceId,
    group: Option<u64>,
    after: Option<&Position>,
    limit: usize,
) -> Vec<Head> {
    let correlation = group.map(sample::correlation_id);
    world
        .archive()
        .about(workspace, &story_digest("s"), correlation, after, limit)
        .await
        .unwrap()
}

/// What names the story or bears the correlation id, each once, oldest first.
pub async fn a_story_has_its_messages_and_those_of_its_correlation_id(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut upper = Letter::new(6, 1);
    upper.attributes.correlation_id = upper.attributes.correlation_id.to_uppercase();
    let letters = [
        Letter::new(1, 1).about("s"),
        Letter::new(2, 1),
        Letter::new(3, 2).about("s"),
        Letter::new(4, 2),
        Letter::new(5, 1).about("t"),
        upper,
        Letter::new(7, 1).about("s"),
    ];
    send(world, &workspace, &letters).await;
    let both = about(world, &workspace, Some(1), None, 9).await;
    assert_eq!(head_numbers(&both), [1, 2, 3, 5, 6, 7]);
    let story = about(world, &workspace, None, None, 9).await;
    assert_eq!(head_numbers(&story), [1, 3, 7]);
    let neither = about(world, &workspace, Some(9), None, 9).await;
    assert_eq!(head_numbers(&neither), [1, 3, 7]);
    let nothing = world
        .archive()
        .about(&workspace, &story_digest("u"), None, None, 9)
        .await
        .unwrap();
    assert!(nothing.is_empty());
}

/// Page by page, each message comes once.
pub async fn a_story_is_read_page_by_page(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letters: Vec<Letter> = (0..12)
        .map(|n| match n % 3 {
            0 => Letter::new(n, 1).about("s"),
            1 => Letter::new(n, 2).about("s"),
            _ => Letter::new(n, 1),
        })
        .collect();
    send(world, &workspace, &letters).await;
    for limit in 1..=13 {
        let mut all = Vec::new();
        loop {
            let after = all.last().map(|head: &Head| head.position.clone());
            let page = about(world, &workspace, Some(1), after.as_ref(), limit).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            all.extend(page);
            world.file().await;
        }
        assert_eq!(head_numbers(&all), (0..12).collect::<Vec<_>>(), "{limit} a page");
    }
}

/// The newest is the first.
pub async fn the_latest_come_newest_first(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2), (3, 1)]).await;
    let latest = world.archive().latest(&workspace, None, 2).await.unwrap();
    assert_eq!(head_numbers(&latest), [3, 2]);
}

/// Page by page, each message comes once.
pub async fn the_latest_are_read_page_by_page(world: &mut World) {
    let messages: Vec<(u64, u64)> = (1..=7).map(|n| (n, n % 3)).collect();
    let workspace = archived(world, &messages).await;
    for limit in 1..=8 {
        let mut all = Vec::new();
        loop {
            let before = all.last().map(|head: &Head| head.position.clone());
            let page = world
                .archive()
                .latest(&workspace, before.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        assert_eq!(head_numbers(&all), [7, 6, 5, 4, 3, 2, 1], "{limit} a page");
    }
}

/// Older pages are the same whatever was published since.
pub async fn a_page_stays_when_newer_messages_come(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2), (3, 1)]).await;
    let first = world.archive().latest(&workspace, None, 1).await.unwrap();
    send(world, &workspace, &[Letter::new(4, 1)]).await;
    let second = world
        .archive()
        .latest(&workspace, Some(&first[0].position), 9)
        .await
        .unwrap();
    assert_eq!(head_numbers(&second), [2, 1]);
}

/// A text is known for a position or not, whatever was published; no text is an accident.
pub async fn foreign_texts_are_no_positions(world: &mut World) {
    let workspace = archived(world, &[(1, 1)]).await;
    let own = everything(world, &workspace).await.remove(0).head.position;
    assert!(world.archive().is_position(&own));
    for text in sample::FOREIGN_POSITIONS {
        assert!(
            !world.archive().is_position(&Position((*text).to_owned())),
            "{text:?}"
        );
    }
}
