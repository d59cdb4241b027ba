//! Which messages of a range.

use storybus_core::domain::archived::Selection;
use storybus_core::domain::filter::Filter;
use storybus_core::domain::record::story_digest;

use super::{PLENTY, ever, numbers, read, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours_both_ways![
    a_selection_takes_message_types,
    a_selection_takes_stories,
    a_selection_takes_correlation_ids,
    a_selection_has_the_filter_of_a_consumer,
    every_condition_of_a_selection_must_hold,
];

/// What a selection takes of these letters.
async fn taken(world: &World, selection: Selection, letters: &[Letter]) -> Vec<u64> {
    let workspace = world.workspace("w1").await;
    send(world, &workspace, letters).await;
    let found = read(world, &workspace, ever(world), &selection, PLENTY).await;
    numbers(&found)
}

/// Exact types, families at any depth; several are any of them.
pub async fn a_selection_takes_message_types(world: &mut World) {
    let types = [
        "story.context",
        "telling.started",
        "telling.a.b",
        "tellings.x",
        "story.contexts",
        "telling",
    ];
    let letters: Vec<Letter> = (1..)
        .zip(types)
        .map(|(n, t)| Letter::new(n, n).of_type(t))
        .collect();
    let selection = Selection {
        types: vec!["story.context".parse().unwrap(), "telling.*".parse().unwrap()],
        ..Selection::default()
    };
    assert_eq!(taken(world, selection, &letters).await, [1, 2, 3]);
}

/// Stories by their digests, of whatever type the message is; what is about no story is not taken.
pub async fn a_selection_takes_stories(world: &mut World) {
    let letters = [
        Letter::new(1, 1).about("one"),
        Letter::new(2, 2).about("two"),
        Letter::new(3, 1),
        Letter::new(4, 3).about("three").of_type("a.b"),
        Letter::new(5, 4).about("One"),
    ];
    let selection = Selection {
        stories: vec![story_digest("one"), story_digest("three")],
        ..Selection::default()
    };
    assert_eq!(taken(world, selection, &letters).await, [1, 4]);
}

/// Correlation ids, in whatever letter case they were sent.
pub async fn a_selection_takes_correlation_ids(world: &mut World) {
    let mut upper = Letter::new(2, 1);
    upper.attributes.correlation_id = upper.attributes.correlation_id.to_uppercase();
    let letters = [
        Letter::new(1, 1),
        upper,
        Letter::new(3, 2),
        Letter::new(4, 3),
        Letter::new(5, 1),
    ];
    let selection = Selection {
        correlations: vec![sample::correlation_id(1), sample::correlation_id(3)],
        ..Selection::default()
    };
    assert_eq!(taken(world, selection, &letters).await, [1, 2, 4, 5]);
}

/// The filter is that of deliveries.
pub async fn a_selection_has_the_filter_of_a_consumer(world: &mut World) {
    let letter = |n: u64, topic: &str, source: &str| {
        let mut letter = Letter::new(n, n);
        topic.clone_into(&mut letter.attributes.topic);
        source.clone_into(&mut letter.attributes.system_id);
        letter
    };
    let letters = [
        letter(1, "som.news.x", "s"),
        letter(2, "som.sport", "s"),
        letter(3, "som.news", "S"),
        letter(4, "som.news%", "s"),
    ];
    let selection = Selection {
        filter: Filter {
            topic_prefixes: vec!["som.news".to_owned()],
            sources: vec!["s".to_owned()],
            ..Filter::default()
        },
        ..Selection::default()
    };
    assert_eq!(taken(world, selection, &letters).await, [1, 4]);
}

/// Conditions are met together or not at all.
pub async fn every_condition_of_a_selection_must_hold(world: &mut World) {
    let right = |n: u64| Letter::new(n, 1).about("s").of_type("a.b");
    let mut elsewhere = right(5);
    elsewhere.attributes.topic = "other".to_owned();
    let letters = [
        right(1),
        right(2).of_type("a.c"),
        right(3).about("t"),
        Letter::new(4, 2).about("s").of_type("a.b"),
        elsewhere,
        right(6),
    ];
    let selection = Selection {
        types: vec!["a.b".parse().unwrap()],
        stories: vec![story_digest("s")],
        correlations: vec![sample::correlation_id(1)],
        filter: Filter {
            topic_prefixes: vec!["som.".to_owned()],
            ..Filter::default()
        },
    };
    assert_eq!(taken(world, selection, &letters).await, [1, 6]);
}
