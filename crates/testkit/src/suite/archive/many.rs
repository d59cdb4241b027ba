//! So many messages, and such large ones, that an engine keeps them in several places.

use std::time::Duration;

use storybus_core::domain::archived::{Archived, Selection, TimeRange};
use storybus_core::domain::message::MAX_BODY;
use storybus_core::domain::record::story_digest;
use storybus_core::ports::archive::PartLimits;
use storybus_protocol::id::WorkspaceId;

use super::{PLENTY, ever, head_numbers, numbers, read, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::{self, Letter};
use crate::suite::world::World;

behaviours_both_ways![
    thousands_of_messages_are_read_in_parts,
    a_moment_among_thousands_is_read needs Time,
    few_of_thousands_are_selected,
    the_largest_bodies_come_back,
    a_part_of_thousands_goes_at_its_time needs Time,
];

/// How many.
const MANY: u64 = 2500;
/// How many of one instant.
const AT_ONCE: u64 = 50;

/// What a message of the many looks like.
fn letter(n: u64) -> Letter {
    let letter = Letter::new(n, n % 7).of_size(usize::try_from(n * 37 % 900 + 1).unwrap());
    if n.is_multiple_of(500) {
        letter.about("rare")
    } else {
        letter
    }
}

/// Sends them all; a moment passes now and then.
async fn filled(world: &World) -> WorkspaceId {
    let workspace = world.workspace("w1").await;
    for n in 0..MANY {
        world.publish_anew(&workspace, &letter(n)).await;
        if n % AT_ONCE == AT_ONCE - 1 {
            world.clock.advance(Duration::from_millis(1));
        }
        if n == MANY / 2 {
            world.file().await; // so that some lies beside the rest
        }
    }
    world.file().await;
    workspace
}

fn assert_same(message: &Archived) {
    let letter = letter(crate::suite::world::number(message.head.message_id));
    assert!(message.body == letter.body && message.head.attributes == letter.attributes);
}

/// In parts of any size, all come once, in order, with their bytes.
pub async fn thousands_of_messages_are_read_in_parts(world: &mut World) {
    let workspace = filled(world).await;
    for limits in [
        PLENTY,
        PartLimits {
            messages: 100,
            ..PLENTY
        },
        PartLimits {
            scanned: 333,
            bytes: 50_000,
            ..PLENTY
        },
    ] {
        let all = read(world, &workspace, ever(world), &Selection::default(), limits).await;
        assert_eq!(numbers(&all), (0..MANY).collect::<Vec<_>>());
        all.iter().for_each(assert_same);
    }
    let latest = world.archive().latest(&workspace, None, 300).await.unwrap();
    assert_eq!(
        head_numbers(&latest),
        (MANY - 300..MANY).rev().collect::<Vec<_>>()
    );
}

/// A range takes its own among the many.
pub async fn a_moment_among_thousands_is_read(world: &mut World) {
    let workspace = filled(world).await;
    let range = TimeRange {
        from: world.now().minus(Duration::from_millis(30)),
        to: world.now().minus(Duration::from_millis(10)),
    };
    let some = read(world, &workspace, range, &Selection::default(), PLENTY).await;
    assert_eq!(
        numbers(&some),
        (MANY - 30 * AT_ONCE..MANY - 10 * AT_ONCE).collect::<Vec<_>>()
    );
}

/// A selection finds its few among the many.
pub async fn few_of_thousands_are_selected(world: &mut World) {
    let workspace = filled(world).await;
    let rare = vec![0, 500, 1000, 1500, 2000];
    let selection = Selection {
        stories: vec![story_digest("rare")],
        ..Selection::default()
    };
    for scanned in [200, 10_000] {
        let limits = PartLimits { scanned, ..PLENTY };
        let found = read(world, &workspace, ever(world), &selection, limits).await;
        assert_eq!(numbers(&found), rare);
        found.iter().for_each(assert_same);
    }
    let about = world
        .archive()
        .about(&workspace, &story_digest("rare"), None, None, 100)
        .await
        .unwrap();
    assert_eq!(head_numbers(&about), rare);
    for n in [0, 1, 777, 1250, 1251, MANY - 1] {
        let found = world
            .archive()
            .find(&workspace, sample::message_id(n))
            .await
            .unwrap();
        assert_eq!(head_numbers(&found), [n]);
    }
}

/// Bodies as large as they may be, and small ones between them.
pub async fn the_largest_bodies_come_back(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letters: Vec<Letter> = (0..24)
        .map(|n| Letter::new(n, n % 2).of_size(if n % 5 == 4 { 2 } else { MAX_BODY }))
        .collect();
    send(world, &workspace, &letters).await;
    let limits = PartLimits {
        bytes: 1_000_000,
        ..PLENTY
    };
    let all = read(world, &workspace, ever(world), &Selection::default(), limits).await;
    assert_eq!(all.len(), letters.len());
    for (message, letter) in all.iter().zip(&letters) {
        assert!(message.head.message_id == letter.message_id && message.body == letter.body);
    }
}

/// What is old goes, though it lies among what is not.
pub async fn a_part_of_thousands_goes_at_its_time(world: &mut World) {
    let workspace = filled(world).await;
    let left = Duration::from_millis(17);
    world.clock.advance(world.archive().retention() - left);
    let all = read(world, &workspace, ever(world), &Selection::default(), PLENTY).await;
    assert_eq!(
        numbers(&all),
        (MANY - 17 * AT_ONCE + AT_ONCE..MANY).collect::<Vec<_>>()
    );
    all.iter().for_each(assert_same);
    let gone = world
        .archive()
        .find(&workspace, sample::message_id(0))
        .await
        .unwrap();
    assert!(gone.is_empty());
}
