//! Token buckets: that they count right, whoever takes at once and whatever is lost.

use std::time::Duration;

use futures::future::join_all;
use storybus_core::domain::connection::Rate;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Random as _, Rates, StoreError};
use storybus_testkit::{MemoryRates, SeededRandom};

use crate::Wire;
use crate::proxy::Fault;

const NOW: Millis = Millis(1_789_144_860_000);
const SECOND: Duration = Duration::from_secs(1);

fn rate(per_second: u32, burst: u32) -> Rate {
    Rate { per_second, burst }
}

#[tokio::test]
async fn a_bucket_counts_as_the_one_in_memory() {
    let wire = Wire::new().await;
    let (rates, model) = (wire.direct.rates(), MemoryRates::default());
    let random = SeededRandom::new(7);
    let below = |bound: u64| {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound
    };
    let mut now = NOW;
    for step in 0..400 {
        now = now.plus(Duration::from_millis(
            [0, 0, 0, 1, 30, 100, 334, 5000][below(8) as usize],
        ));
        let (bucket, rate) =
            [("a", rate(10, 5)), ("b", rate(3, 1)), ("c", rate(1000, 2000))][below(3) as usize];
        let taken = if below(4) == 0 {
            (
                rates.peek(bucket, rate, now).await,
                model.peek(bucket, rate, now).await,
            )
        } else {
            (
                rates.take(bucket, rate, now).await,
                model.take(bucket, rate, now).await,
            )
        };
        assert_eq!(taken.0.unwrap(), taken.1.unwrap(), "{bucket} at step {step}");
    }
}

#[tokio::test]
async fn of_those_who_take_at_once_as_many_get_one_as_there_are() {
    let wire = Wire::new().await;
    for (bucket, burst) in [("one", 1), ("three", 3), ("six", 6)] {
        let takers = (0..6).map(async |_| {
            let rates = wire.direct.rates();
            rates.take(bucket, rate(1, burst), NOW).await.unwrap()
        });
        let taken = join_all(takers).await;
        let got = taken.iter().filter(|wait| wait.is_none()).count();
        assert_eq!(got, burst as usize, "{bucket}: {taken:?}");
        let wait = NOW.plus(SECOND);
        assert!(taken.iter().flatten().all(|until| *until == wait), "{taken:?}");
        // one comes back in a second, and a full bucket is not fuller
        let rates = wire.direct.rates();
        assert_eq!(rates.peek(bucket, rate(1, burst), NOW).await.unwrap(), Some(wait));
        assert_eq!(rates.take(bucket, rate(1, burst), wait).await.unwrap(), None);
        assert!(rates.take(bucket, rate(1, burst), wait).await.unwrap().is_some());
        let later = NOW.plus(SECOND * 1000);
        for n in 0..=burst {
            let taken = rates.take(bucket, rate(1, burst), later).await.unwrap();
            assert_eq!(taken.is_none(), n < burst);
        }
    }
}

/// A bucket that goes by one producer does not empty another's, and a first take is one request.
#[tokio::test]
async fn buckets_are_apart_and_cost_one_request_or_two() {
    let wire = Wire::new().await;
    let rates = wire.aws.rates();
    for bucket in ["a", "b"] {
        assert_eq!(rates.take(bucket, rate(1, 3), NOW).await.unwrap(), None);
    }
    assert_eq!(wire.proxy.seen(), ["UpdateItem", "UpdateItem"]);
    assert_eq!(rates.take("a", rate(1, 3), NOW).await.unwrap(), None);
    assert_eq!(wire.proxy.seen(), ["UpdateItem", "UpdateItem"]);
}

/// What is lost may be taken twice, never given away.
#[tokio::test]
async fn a_take_whose_answer_was_lost_takes_one_at_least() {
    let wire = Wire::new().await;
    let rates = wire.aws.rates();
    let mut taken = 0;
    for n in 0..6 {
        if n % 2 == 0 {
            wire.proxy.plan([Fault::AnswerLost]);
        }
        taken += u32::from(rates.take("a", rate(1, 4), NOW).await.unwrap().is_none());
    }
    assert!((1..=4).contains(&taken), "{taken}");
    for code in ["TransactionConflictException", "ThrottlingException"] {
        wire.proxy.plan([Fault::Answered(400, code)]);
        assert_eq!(rates.take(code, rate(1, 1), NOW).await.unwrap(), None);
        assert!(rates.take(code, rate(1, 1), NOW).await.unwrap().is_some());
    }
    wire.proxy.always(Fault::Answered(400, "ThrottlingException"));
    let refused = rates.take("b", rate(1, 1), NOW).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
}
