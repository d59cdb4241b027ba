//! Ranges of time, and the parts in which they are read.

use std::time::Duration;

use storybus_core::domain::archived::{Selection, TimeRange};
use storybus_core::domain::time::Millis;
use storybus_core::ports::archive::PartLimits;

use super::{PLENTY, archived, ever, everything, numbers, part, read, send};
use crate::suite::behaviours_both_ways;
use crate::suite::sample::Letter;
use crate::suite::world::World;

behaviours_both_ways![
    a_range_is_half_open needs Time,
    a_range_of_nothing_is_at_its_end needs Time,
    a_part_ends_with_its_messages,
    a_part_ends_with_what_it_looked_at,
    a_part_ends_with_its_bytes,
    one_large_message_comes_alone,
    no_limits_skip_or_repeat_anything,
    a_part_says_where_it_ended needs Time,
    reading_goes_on_behind_what_came_meanwhile,
    a_position_outside_of_the_range_leads_into_it needs Time,
];

const MS: Duration = Duration::from_millis(1);

/// The start is in the range, the end is not, to the millisecond.
pub async fn a_range_is_half_open(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let began = world.now();
    for n in 0..10 {
        send(world, &workspace, &[Letter::new(n, n % 2)]).await;
        if n % 2 == 1 {
            world.clock.advance(MS); // two of one instant
        }
    }
    for from in 0..6_i64 {
        for to in from..7 {
            let range = TimeRange {
                from: Millis(began.0 + from),
                to: Millis(began.0 + to),
            };
            let found = read(world, &workspace, range, &Selection::default(), PLENTY).await;
            let expected: Vec<u64> = (0..10)
                .filter(|n| (from..to).contains(&i64::try_from(n / 2).unwrap()))
                .collect();
            assert_eq!(numbers(&found), expected, "{from}..{to}");
        }
    }
}

/// A range that holds nothing, or is upside down, ends at once.
pub async fn a_range_of_nothing_is_at_its_end(world: &mut World) {
    let workspace = archived(world, &[(1, 1)]).await;
    let now = world.now();
    for (from, to) in [
        (now, now),
        (now.plus(MS), now.plus(MS * 9)),
        (now.minus(MS * 9), now),
        (now.plus(MS), now),
        (Millis(i64::MIN), Millis(0)),
        (Millis(i64::MAX), Millis(i64::MAX)),
    ] {
        let part = world
            .archive()
            .read(
                &workspace,
                TimeRange { from, to },
                None,
                &Selection::default(),
                PLENTY,
            )
            .await
            .unwrap();
        assert!(part.end && part.messages.is_empty(), "{from:?}..{to:?}");
    }
}

/// A part that is full holds as many messages as asked for.
pub async fn a_part_ends_with_its_messages(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2), (3, 1), (4, 2), (5, 1)]).await;
    let limits = PartLimits {
        messages: 2,
        ..PLENTY
    };
    let first = part(world, &workspace, None, &Selection::default(), limits).await;
    assert_eq!(numbers(&first.messages), [1, 2]);
    assert!(!first.end);
    let second = part(
        world,
        &workspace,
        first.last.as_ref(),
        &Selection::default(),
        limits,
    )
    .await;
    assert_eq!(numbers(&second.messages), [3, 4]);
    assert!(!second.end);
}

/// A selection that takes nothing comes back, with the place to go on from.
pub async fn a_part_ends_with_what_it_looked_at(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 1), (3, 1), (4, 1)]).await;
    send(world, &workspace, &[Letter::new(5, 1).of_type("a.b")]).await;
    let selection = Selection {
        types: vec!["a.b".parse().unwrap()],
        ..Selection::default()
    };
    let limits = PartLimits { scanned: 3, ..PLENTY };
    let first = part(world, &workspace, None, &selection, limits).await;
    assert_eq!(
        (
            first.scanned,
            first.messages.len(),
            first.end,
            first.last.is_some()
        ),
        (3, 0, false, true)
    );
    let second = part(world, &workspace, first.last.as_ref(), &selection, limits).await;
    assert_eq!((second.scanned, numbers(&second.messages)), (2, vec![5]));
    let all = read(
        world,
        &workspace,
        ever(world),
        &selection,
        PartLimits { scanned: 1, ..PLENTY },
    );
    assert_eq!(numbers(&all.await), [5]);
}

/// Bodies are counted as they are, and what is not selected does not count.
pub async fn a_part_ends_with_its_bytes(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letters: Vec<Letter> = (1..=6)
        .map(|n| {
            let letter = Letter::new(n, n).of_size(100);
            if n == 2 {
                letter.of_type("a.b").of_size(10_000)
            } else {
                letter
            }
        })
        .collect();
    send(world, &workspace, &letters).await;
    let selection = Selection {
        types: vec!["telling.*".parse().unwrap()],
        ..Selection::default()
    };
    for (bytes, expected) in [(300, vec![1, 3, 4]), (299, vec![1, 3]), (200, vec![1, 3])] {
        let limits = PartLimits { bytes, ..PLENTY };
        let first = part(world, &workspace, None, &selection, limits).await;
        assert_eq!(numbers(&first.messages), expected, "{bytes} bytes");
        assert!(!first.end);
        let all = read(world, &workspace, ever(world), &selection, limits).await;
        assert_eq!(numbers(&all), [1, 3, 4, 5, 6]);
    }
}

/// A message that is larger than a part may be is a part of its own.
pub async fn one_large_message_comes_alone(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letters = [
        Letter::new(1, 1).of_size(10),
        Letter::new(2, 1).of_size(5000),
        Letter::new(3, 1).of_size(10),
    ];
    send(world, &workspace, &letters).await;
    let limits = PartLimits { bytes: 100, ..PLENTY };
    let mut after = None;
    for n in 1..=3 {
        let part = part(world, &workspace, after.as_ref(), &Selection::default(), limits).await;
        assert_eq!(numbers(&part.messages), [n]);
        after = part.last;
    }
    let limits = PartLimits { bytes: 0, ..PLENTY };
    let all = read(world, &workspace, ever(world), &Selection::default(), limits).await;
    assert_eq!(all.len(), 3);
}

/// Whatever the limits are, the parts together are the whole.
pub async fn no_limits_skip_or_repeat_anything(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let letters: Vec<Letter> = (0..9)
        .map(|n| {
            let letter = Letter::new(n, n % 3).of_size(usize::try_from(n).unwrap() * 10 + 1);
            if n % 4 == 1 { letter.of_type("a.b") } else { letter }
        })
        .collect();
    send(world, &workspace, &letters).await;
    let telling = Selection {
        types: vec!["telling.*".parse().unwrap()],
        ..Selection::default()
    };
    for (selection, expected) in [
        (Selection::default(), (0..9).collect::<Vec<u64>>()),
        (telling, vec![0, 2, 3, 4, 6, 7, 8]),
    ] {
        for messages in [1, 2, 3, 7, 9, 10] {
            for scanned in [1, 2, 4, 9, 10] {
                for bytes in [0, 1, 70, 160, 1000] {
                    let limits = PartLimits {
                        messages,
                        scanned,
                        bytes,
                    };
                    let all = read(world, &workspace, ever(world), &selection, limits).await;
                    assert_eq!(numbers(&all), expected, "{limits:?}");
                }
            }
        }
    }
}

/// Position and time are those of the last that was looked at, taken or not.
pub async fn a_part_says_where_it_ended(world: &mut World) {
    let workspace = world.workspace("w1").await;
    send(world, &workspace, &[Letter::new(1, 1)]).await;
    world.clock.advance(MS * 5);
    send(world, &workspace, &[Letter::new(2, 1).of_type("a.b")]).await;
    let at = world.now();
    world.clock.advance(MS * 5);
    let all = everything(world, &workspace).await;
    let selection = Selection {
        types: vec!["telling.*".parse().unwrap()],
        ..Selection::default()
    };
    let part = part(world, &workspace, None, &selection, PLENTY).await;
    assert_eq!(numbers(&part.messages), [1]);
    assert_eq!(
        (part.last.as_ref(), part.last_at),
        (Some(&all[1].head.position), Some(at))
    );
}

/// What is published behind the place where a reader stands comes to it.
pub async fn reading_goes_on_behind_what_came_meanwhile(world: &mut World) {
    let workspace = archived(world, &[(1, 1), (2, 2)]).await;
    let first = part(world, &workspace, None, &Selection::default(), PLENTY).await;
    assert!(first.end);
    send(world, &workspace, &[Letter::new(3, 1), Letter::new(4, 3)]).await;
    let second = part(
        world,
        &workspace,
        first.last.as_ref(),
        &Selection::default(),
        PLENTY,
    )
    .await;
    assert_eq!(numbers(&second.messages), [3, 4]);
    let third = part(
        world,
        &workspace,
        second.last.as_ref(),
        &Selection::default(),
        PLENTY,
    )
    .await;
    assert!(third.end && third.scanned == 0);
}

/// A position before the range begins it, one behind it ends it.
pub async fn a_position_outside_of_the_range_leads_into_it(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let began = world.now();
    for n in 0..6 {
        send(world, &workspace, &[Letter::new(n, 1)]).await;
        world.clock.advance(MS);
    }
    let all = everything(world, &workspace).await;
    let range = TimeRange {
        from: Millis(began.0 + 2),
        to: Millis(began.0 + 4),
    };
    for (after, expected) in [
        (0, vec![2, 3]),
        (1, vec![2, 3]),
        (2, vec![3]),
        (3, vec![]),
        (5, vec![]),
    ] {
        let after = &all[after].head.position;
        let part = world
            .archive()
            .read(&workspace, range, Some(after), &Selection::default(), PLENTY)
            .await
            .unwrap();
        assert_eq!(numbers(&part.messages), expected);
        assert!(part.end);
    }
}
