//! Keys made, rotated and read, with requests lost in between.

use std::time::Duration;

use storybus_core::domain::time::Millis;
use storybus_core::ports::{SigningKeys, StoreError};

use crate::proxy::Fault;
use crate::{Wire, engine};

const NOW: Millis = Millis(1_789_144_860_000);

async fn with_secret() -> Wire {
    let wire = Wire::new().await;
    aws_sdk_secretsmanager::Client::new(&engine::shared())
        .create_secret()
        .name(&wire.direct.config().signing_keys)
        .send()
        .await
        .unwrap();
    wire
}

/// The `kid`s of all keys: those of the secret with whether they can sign, those of the table.
async fn kids(wire: &Wire) -> (Vec<(String, bool)>, Vec<String>) {
    let secret = wire.direct.secret_keys().load().await.unwrap();
    let public = wire.direct.public_keys().load().await.unwrap();
    assert!(public.iter().all(|key| key.private.is_none()));
    for key in &secret {
        let known = public.iter().find(|known| known.kid == key.kid).unwrap();
        assert_eq!(known.public, key.public);
    }
    let secret = secret.into_iter().map(|key| (key.kid, key.private.is_some()));
    (secret.collect(), public.into_iter().map(|key| key.kid).collect())
}

#[tokio::test]
async fn a_first_key_is_made_once() {
    let wire = with_secret().await;
    assert!(matches!(
        wire.aws.public_keys().load().await,
        Err(StoreError::Internal { .. })
    ));
    assert!(wire.aws.secret_keys().load().await.is_err());
    wire.aws.secret_keys().make_first(NOW).await.unwrap();
    let first = kids(&wire).await;
    assert_eq!((first.0.len(), first.1.len()), (1, 1));
    assert!(first.0[0].1, "it can sign");
    wire.aws.secret_keys().make_first(NOW).await.unwrap();
    assert_eq!(kids(&wire).await, first);
}

#[tokio::test]
async fn a_rotation_keeps_the_former_keys_until_their_tokens_have_expired() {
    let wire = with_secret().await;
    let keys = wire.aws.secret_keys();
    keys.make_first(NOW).await.unwrap();
    let (first, _) = kids(&wire).await;
    let second = keys.rotate(NOW).await.unwrap();
    let (secret, public) = kids(&wire).await;
    assert_eq!(secret, [(second.clone(), true), (first[0].0.clone(), false)]);
    assert_eq!(public.len(), 2);
    let third = keys.rotate(NOW.plus(Duration::from_secs(3600))).await.unwrap();
    assert_eq!(
        kids(&wire).await.1.len(),
        3,
        "the first one's tokens may still hold"
    );
    let fourth = keys
        .rotate(NOW.plus(Duration::from_secs(2 * 3600)))
        .await
        .unwrap();
    let (secret, public) = kids(&wire).await;
    let names: Vec<&str> = secret.iter().map(|(kid, _)| kid.as_str()).collect();
    assert_eq!(names, [&fourth, &third, &second]);
    assert_eq!(public.len(), 3);
}

#[tokio::test]
async fn whatever_is_lost_of_a_rotation_every_key_that_signs_is_known() {
    let wire = with_secret().await;
    let keys = wire.aws.secret_keys();
    keys.make_first(NOW).await.unwrap();
    wire.proxy.seen();
    keys.rotate(NOW).await.unwrap();
    let requests = wire.proxy.seen();
    assert_eq!(
        requests,
        ["GetSecretValue", "GetItem", "PutItem", "PutSecretValue"]
    );
    for at in 0..requests.len() {
        for fault in [Fault::AnswerLost, Fault::Answered(400, "AccessDeniedException")] {
            let plan = std::iter::repeat_n(Fault::None, at).chain([fault]);
            wire.proxy.plan(plan);
            let rotated = keys.rotate(NOW).await;
            assert_eq!(
                rotated.is_ok(),
                fault == Fault::AnswerLost,
                "{fault:?} at {at}: {rotated:?}"
            );
            // asserts that what signs is known
            let (secret, _) = kids(&wire).await;
            assert!(secret[0].1 && secret[1..].iter().all(|(_, signs)| !signs));
            if let Ok(kid) = rotated {
                assert_eq!(secret[0].0, kid);
            }
        }
    }
}

/// Until it has settled, functions may sign with the key before: how long that is, follows from what is kept of that one.
#[tokio::test]
async fn a_new_key_settles() {
    let wire = with_secret().await;
    let keys = wire.aws.secret_keys();
    keys.make_first(NOW).await.unwrap();
    let seconds = Duration::from_secs;
    assert_eq!(keys.signs().await.unwrap().settles_in(NOW), Duration::ZERO);
    keys.rotate(NOW).await.unwrap();
    // of two rotations the later one counts
    let made = NOW.plus(seconds(30));
    let kid = keys.rotate(made).await.unwrap();
    let signs = keys.signs().await.unwrap();
    assert_eq!((&signs.kid, signs.since), (&kid, Some(made)));
    assert_eq!(signs.settles_in(made), seconds(90));
    assert_eq!(signs.settles_in(made.plus(seconds(60))), seconds(30));
    assert_eq!(signs.settles_in(made.plus(seconds(90))), Duration::ZERO);
    assert_eq!(signs.settles_in(made.minus(seconds(3600))), seconds(90));
    // one that is interrupted makes no key that signs
    wire.proxy.plan([
        Fault::None,
        Fault::None,
        Fault::None,
        Fault::Answered(400, "AccessDeniedException"),
    ]);
    keys.rotate(made.plus(seconds(80))).await.unwrap_err();
    assert_eq!(keys.signs().await.unwrap(), signs);
}

/// Only the key that signs is left, of tokens and of the table; whoever has another cannot use it.
#[tokio::test]
async fn old_keys_are_dropped_at_once() {
    let wire = with_secret().await;
    let keys = wire.aws.secret_keys();
    assert!(matches!(
        keys.drop_old("k").await,
        Err(StoreError::Internal { .. })
    ));
    assert!(matches!(keys.signs().await, Err(StoreError::Internal { .. })));
    keys.make_first(NOW).await.unwrap();
    let first = keys.signs().await.unwrap();
    assert_eq!(first.since, None);
    assert_eq!(keys.drop_old(&first.kid).await.unwrap(), 0);
    for _ in 0..2 {
        keys.rotate(NOW).await.unwrap();
    }
    let last = keys.rotate(NOW).await.unwrap();
    assert_eq!(kids(&wire).await.1.len(), 4);
    // whoever made another meanwhile is not undone
    assert!(matches!(
        keys.drop_old(&first.kid).await,
        Err(StoreError::Unavailable { .. })
    ));
    assert_eq!(kids(&wire).await.1.len(), 4);
    assert_eq!(keys.drop_old(&last).await.unwrap(), 3);
    let alone = (vec![(last.clone(), true)], vec![last.clone()]);
    assert_eq!(kids(&wire).await, alone);
    assert_eq!(keys.drop_old(&last).await.unwrap(), 0);
    // what a rotation that was interrupted has left goes, too
    wire.proxy.seen();
    wire.proxy.plan([
        Fault::None,
        Fault::None,
        Fault::None,
        Fault::Answered(400, "AccessDeniedException"),
    ]);
    keys.rotate(NOW).await.unwrap_err();
    assert_eq!(kids(&wire).await.1.len(), 2);
    assert_eq!(keys.drop_old(&last).await.unwrap(), 1);
    assert_eq!(kids(&wire).await, alone);
    // and it goes on as before
    let next = keys.rotate(NOW).await.unwrap();
    assert_eq!(kids(&wire).await.1, [next, last]);
}

#[tokio::test]
async fn whatever_is_lost_of_dropping_keys_the_one_that_signs_stays() {
    let wire = with_secret().await;
    let keys = wire.aws.secret_keys();
    keys.make_first(NOW).await.unwrap();
    let requests = ["GetSecretValue", "GetItem", "PutItem", "PutSecretValue"];
    for at in 0..requests.len() {
        for fault in [Fault::AnswerLost, Fault::Answered(400, "AccessDeniedException")] {
            let signs = keys.rotate(NOW).await.unwrap();
            wire.proxy.seen();
            wire.proxy
                .plan(std::iter::repeat_n(Fault::None, at).chain([fault]));
            let dropped = keys.drop_old(&signs).await;
            let seen = wire.proxy.seen();
            assert_eq!(
                dropped.is_ok(),
                fault == Fault::AnswerLost,
                "{fault:?} at {at}: {dropped:?}"
            );
            assert_eq!(seen[at], requests[at], "{seen:?}");
            wire.proxy.plan([]);
            let secret = keys.load().await.unwrap();
            assert_eq!(
                (secret[0].kid.as_str(), secret[0].private.is_some()),
                (signs.as_str(), true)
            );
            keys.drop_old(&signs).await.unwrap();
            assert_eq!(kids(&wire).await, (vec![(signs.clone(), true)], vec![signs]));
        }
    }
}
