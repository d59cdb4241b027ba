//! Operators: one can always log in.

use storybus_core::domain::connection::Connection;
use storybus_core::domain::filter::Filter;
use storybus_core::ports::workspaces::RegistryError;

use super::{audited, create, delete, get, next, update};
use crate::suite::world::World;
use crate::suite::{behaviours, sample};

behaviours![
    the_last_operator_that_can_log_in_stays,
    an_operator_that_cannot_log_in_may_go,
    operators_that_shut_each_other_out_do_not_both_succeed,
];

/// It cannot be disabled, lose its last secret or be deleted; it may be changed otherwise. Others do not count that cannot
/// log in, or are no operators. What is refused is not in the audit.
pub async fn the_last_operator_that_can_log_in_stays(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let mut last = sample::operator("o1", world.now());
    let mut disabled = sample::operator("o2", world.now());
    disabled.disabled = true;
    let mut silent = sample::operator("o0", world.now());
    silent.secrets.clear();
    for connection in [
        &last,
        &disabled,
        &silent,
        &sample::producer("p1", &workspace, &["a"], world.now()),
        &sample::consumer("c1", &workspace, Filter::default(), world.now()),
    ] {
        create(world, connection).await.unwrap();
    }
    let before = audited(world).await;
    let refused = async |world: &World, last: &Connection| {
        let answers = [
            update(world, &next(last, |o| o.disabled = true)).await,
            update(world, &next(last, |o| o.secrets.clear())).await,
            delete(world, last).await,
        ];
        for answer in answers {
            assert!(matches!(answer, Err(RegistryError::LastOperator)), "{answer:?}");
        }
        assert_eq!(get(world, last).await.as_ref(), Some(last));
    };
    refused(world, &last).await;
    assert_eq!(audited(world).await, before);
    last = next(&last, |o| o.name = "Other".to_owned());
    update(world, &last).await.unwrap();
    refused(world, &last).await;
    // with another one it may go, and that one stays
    let other = next(&disabled, |o| o.disabled = false);
    update(world, &other).await.unwrap();
    delete(world, &last).await.unwrap();
    refused(world, &other).await;
}

/// One that cannot log in is not missed, be it the only one.
pub async fn an_operator_that_cannot_log_in_may_go(world: &mut World) {
    let mut operator = sample::operator("o1", world.now());
    operator.disabled = true;
    create(world, &operator).await.unwrap();
    let operator = next(&operator, |o| o.secrets.clear());
    update(world, &operator).await.unwrap();
    delete(world, &operator).await.unwrap();
    assert_eq!(get(world, &operator).await, None);
}

/// Two operators delete or disable each other at the same moment: one is done, the other refused.
pub async fn operators_that_shut_each_other_out_do_not_both_succeed(world: &mut World) {
    let one = sample::operator("o1", world.now());
    let mut two = sample::operator("o2", world.now());
    create(world, &one).await.unwrap();
    create(world, &two).await.unwrap();
    let (disabled_one, disabled_two) = (
        next(&one, |o| o.disabled = true),
        next(&two, |o| o.disabled = true),
    );
    let (a, b) = futures::join!(update(world, &disabled_one), update(world, &disabled_two));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let refused = if a.is_ok() { b } else { a };
    assert!(matches!(refused, Err(RegistryError::LastOperator)), "{refused:?}");
    let [Some(mut one), Some(found)] = [get(world, &one).await, get(world, &two).await] else {
        unreachable!("both are there");
    };
    two = found;
    for operator in [&mut one, &mut two].into_iter().filter(|o| o.disabled) {
        *operator = next(operator, |o| o.disabled = false);
        update(world, operator).await.unwrap();
    }
    let (a, b) = futures::join!(delete(world, &one), delete(world, &two));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let left = async |o: &Connection| usize::from(get(world, o).await.is_some());
    assert_eq!(left(&one).await + left(&two).await, 1);
}
