//! The archive on DynamoDB, fed as the function `archive` feeds it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod engine;

use std::sync::Arc;
use std::time::Duration;

use storybus_aws::{Archiver, Arrived, Aws, Config, DynamoArchive};
use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::domain::record::story_digest;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Archive;
use storybus_core::ports::archive::PartLimits;
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};
use storybus_testkit::FakeClock;

/// The engine's factory is the suites'; here only its deployments are used.
const _: &dyn storybus_testkit::suite::Factory = &engine::AwsFactory;

const PLENTY: PartLimits = PartLimits {
    messages: 100_000,
    scanned: 100_000,
    bytes: 1 << 30,
};
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn message_id(n: u64) -> MessageId {
    format!("00000000-0000-7000-8000-{n:012x}").parse().unwrap()
}

fn correlation_id(n: u64) -> CorrelationId {
    format!("0000abcd-0000-4000-8000-{n:012x}").parse().unwrap()
}

fn number(id: MessageId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[8..].try_into().unwrap()) & 0xffff_ffff_ffff
}

fn numbers(messages: &[Archived]) -> Vec<u64> {
    messages.iter().map(|m| number(m.head.message_id)).collect()
}

fn head_numbers(heads: &[Head]) -> Vec<u64> {
    heads.iter().map(|head| number(head.message_id)).collect()
}

/// Message `n` of a group, as it came into the queue then.
fn arrived(n: u64, group: u64, at: Millis) -> Arrived {
    let correlation = correlation_id(group).to_string();
    let attributes = [
        ("message_type", "telling.started"),
        ("family", "telling-event"),
        ("topic", "som.telling"),
        ("correlation_id", &correlation),
        ("producer_id", "p1"),
        ("system_id", "ncs-1"),
        ("som_version", "1.0.0"),
    ];
    Arrived {
        sqs_message_id: format!("sqs-{n}"),
        receipt_handle: None,
        group: format!("w1.{correlation}"),
        deduplication_id: format!("w1.{}", message_id(n)),
        // SQS's numbers look like this one, and are longer than 64 bits
        sequence_number: (18_849_496_460_467_696_128 + u128::from(n) * 256).to_string(),
        sent_at: at,
        first_received: None,
        receive_count: 1,
        source_queue: None,
        body: format!("{{\"n\": {n} }}"),
        attributes: attributes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    }
}

/// The same as a snapshot of a story.
fn of_story(message: Arrived, story: &str, sequence: &str) -> Arrived {
    let body = serde_json::json!({ "payload": { "story_id": story, "sequence_number": 0 } });
    let body = body.to_string().replace(":0", &format!(":{sequence}"));
    let mut attributes = message.attributes;
    attributes.insert("message_type".to_owned(), "story.context".to_owned());
    attributes.insert("family".to_owned(), "story-context".to_owned());
    Arrived {
        body,
        attributes,
        ..message
    }
}

struct World {
    aws: Aws,
    clock: FakeClock,
    archive: DynamoArchive,
    archiver: Archiver,
    workspace: WorkspaceId,
}

impl World {
    async fn new() -> Self {
        Self::settling(Duration::ZERO).await
    }

    /// A deployment whose counts are believed for what is so old.
    async fn settling(settle: Duration) -> Self {
        let aws = engine::deployment().await;
        let config = Config {
            archive_settle: settle,
            ..aws.config().clone()
        };
        let aws = Aws::new(&engine::shared(), config);
        let clock = FakeClock::new();
        Self {
            archive: aws.archive(Arc::new(clock.clone())),
            archiver: aws.archiver(),
            workspace: "w1".parse().unwrap(),
            aws,
            clock,
        }
    }

    fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Archives messages, ten at a time as the function gets them.
    async fn store(&self, messages: &[Arrived]) {
        for batch in messages.chunks(10) {
            assert_eq!(self.archiver.archive(batch).await, [""; 0]);
        }
    }

    fn ever(&self) -> TimeRange {
        TimeRange {
            from: Millis(0),
            to: self.now().plus(HOUR),
        }
    }

    async fn part(&self, range: TimeRange, after: Option<&Position>, limits: PartLimits) -> Part {
        self.archive
            .read(&self.workspace, range, after, &Selection::default(), limits)
            .await
            .unwrap()
    }

    /// A range, part by part.
    async fn read(&self, range: TimeRange, limits: PartLimits) -> Vec<Archived> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let part = self.part(range, after.as_ref(), limits).await;
            all.extend(part.messages);
            if part.end {
                return all;
            }
            assert!(part.scanned > 0);
            after = part.last;
        }
    }

    async fn all(&self) -> Vec<Archived> {
        self.read(self.ever(), PLENTY).await
    }

    fn queue_url(&self) -> String {
        self.aws
            .config()
            .queue_url(&self.aws.config().archive_queue_name())
    }

    /// Something waits in the archive's queue.
    async fn wait_in_queue(&self) {
        let send = sqs()
            .send_message()
            .queue_url(self.queue_url())
            .message_body("{}");
        let send = send
            .message_group_id("g")
            .message_deduplication_id(format!("{:?}", self.now()));
        send.send().await.unwrap();
    }

    /// It has left.
    async fn leave_queue(&self) {
        let url = self.queue_url();
        loop {
            let received = sqs().receive_message().queue_url(&url).send().await.unwrap();
            let Some(message) = received.messages().first() else {
                return;
            };
            let handle = message.receipt_handle().unwrap();
            sqs()
                .delete_message()
                .queue_url(&url)
                .receipt_handle(handle)
                .send()
                .await
                .unwrap();
        }
    }
}

fn wall_time() -> Millis {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Millis(i64::try_from(since.as_millis()).unwrap())
}

fn sqs() -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&engine::shared())
}

/// 180 messages of twelve groups over three hours, the last some seconds ago; what it stores of the newest hour comes first.
async fn filled(world: &World) -> Vec<Arrived> {
    let begin = world.now().minus(HOUR * 3);
    let messages: Vec<Arrived> = (0..180)
        .map(|n| {
            arrived(
                n,
                n * 7 % 12,
                begin.plus(SECOND * 59 * (u32::try_from(n).unwrap() / 2 * 2)),
            )
        })
        .collect();
    let (one, two) = messages.split_at(90);
    world.store(two).await;
    world.store(one).await;
    messages
}

#[tokio::test]
async fn order_is_kept_over_shards_and_hours() {
    let world = World::new().await;
    let messages = filled(&world).await;
    for (count, scanned, bytes) in [
        (1000, 1000, 1 << 20),
        (1, 1000, 1 << 20),
        (7, 1000, 1 << 20),
        (1000, 11, 1 << 20),
        (1000, 1000, 70),
    ] {
        let limits = PartLimits {
            messages: count,
            scanned,
            bytes,
        };
        let all = world.read(world.ever(), limits).await;
        assert_eq!(all.len(), 180);
        assert!(all.is_sorted_by_key(|m| m.head.published_at));
        for group in 0..12 {
            let of = |m: &&Archived| m.head.attributes.correlation_id == correlation_id(group).to_string();
            let found: Vec<u64> = all.iter().filter(of).map(|m| number(m.head.message_id)).collect();
            assert_eq!(
                found,
                (0..180).filter(|n| n * 7 % 12 == group).collect::<Vec<_>>()
            );
        }
        for message in &all {
            let sent = &messages[usize::try_from(number(message.head.message_id)).unwrap()];
            assert_eq!(
                (&message.body[..], message.head.published_at),
                (sent.body.as_bytes(), sent.sent_at)
            );
        }
    }
}

#[tokio::test]
async fn ranges_are_half_open_to_the_millisecond() {
    let world = World::new().await;
    let begin = world.now().minus(MS * 6);
    let messages: Vec<Arrived> = (0..10)
        .map(|n| arrived(n, n % 2, begin.plus(MS * (u32::try_from(n).unwrap() / 2))))
        .collect();
    world.store(&messages).await;
    for from in 0..6_i64 {
        for to in from..7 {
            let range = TimeRange {
                from: Millis(begin.0 + from),
                to: Millis(begin.0 + to),
            };
            let mut found = numbers(&world.read(range, PLENTY).await);
            found.sort_unstable();
            assert_eq!(
                found,
                (0..10)
                    .filter(|n| (from..to).contains(&(*n as i64 / 2)))
                    .collect::<Vec<_>>()
            );
        }
    }
    for (from, to) in [(i64::MIN, 0), (i64::MAX, i64::MAX), (begin.0 + 3, begin.0)] {
        let range = TimeRange {
            from: Millis(from),
            to: Millis(to),
        };
        assert!(world.part(range, None, PLENTY).await.end);
    }
}

#[tokio::test]
async fn the_same_batch_again_changes_nothing_and_a_second_publication_is_kept() {
    let world = World::new().await;
    let at = world.now().minus(SECOND * 600);
    let first = arrived(1, 1, at);
    let again = Arrived {
        sequence_number: arrived(9, 1, at).sequence_number,
        sent_at: at.plus(SECOND * 301),
        body: "{\"second\": 1}".to_owned(),
        ..first.clone()
    };
    let batch = [first, arrived(2, 1, at.plus(MS)), again];
    for _ in 0..3 {
        world.store(&batch).await;
        let restarted = world.aws.archiver();
        assert!(restarted.archive(&batch).await.is_empty());
    }
    let all = world.all().await;
    assert_eq!(numbers(&all), [1, 2, 1]);
    let found = world.archive.find(&world.workspace, message_id(1)).await.unwrap();
    assert_eq!(found, [all[0].head.clone(), all[2].head.clone()]);
    let newest = world
        .archive
        .newest(&world.workspace, message_id(1))
        .await
        .unwrap();
    assert_eq!(newest.as_ref(), Some(&all[2]));
    let whole = world
        .archive
        .whole(&world.workspace, &found[0].position)
        .await
        .unwrap();
    assert_eq!(whole.as_ref(), Some(&all[0]));
    assert_eq!(
        world
            .archive
            .newest(&world.workspace, message_id(3))
            .await
            .unwrap(),
        None
    );
    let elsewhere = "w2".parse().unwrap();
    assert_eq!(
        world.archive.whole(&elsewhere, &found[0].position).await.unwrap(),
        None
    );
    assert!(
        world
            .archive
            .find(&elsewhere, message_id(1))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn what_a_message_is_about_is_read_from_its_body() {
    let world = World::new().await;
    let at = world.now().minus(SECOND);
    let mut upper = of_story(arrived(1, 1, at), "a \"story\" é😀", "12345678901234567890");
    let correlation = upper.attributes["correlation_id"].to_uppercase();
    upper
        .attributes
        .insert("correlation_id".to_owned(), correlation.clone());
    let mut plain = arrived(2, 2, at);
    plain.attributes.remove("family");
    plain.body = "no JSON".to_owned();
    world.store(&[upper.clone(), plain.clone()]).await;
    let mut all = world.all().await;
    all.sort_by_key(|m| m.head.message_id);
    let (one, two) = (&all[0], &all[1]);
    assert_eq!(one.head.attributes.correlation_id, correlation);
    assert_eq!(one.head.about.story, Some(story_digest("a \"story\" é😀")));
    assert_eq!(one.head.about.story_id.as_deref(), Some("a \"story\" é😀"));
    assert_eq!(
        one.head.about.sequence_number.as_deref(),
        Some("12345678901234567890")
    );
    assert_eq!(
        (&one.body[..], &two.body[..]),
        (upper.body.as_bytes(), plain.body.as_bytes())
    );
    assert_eq!(
        (&two.head.about, &two.head.attributes.family),
        (&Default::default(), &None)
    );
}

#[tokio::test]
async fn the_latest_are_read_backwards() {
    let world = World::new().await;
    let messages = filled(&world).await;
    let mut expected: Vec<(Millis, u64)> = messages.iter().zip(0..).map(|(m, n)| (m.sent_at, n)).collect();
    expected.reverse();
    for limit in [1, 13, 100, 1000] {
        let (mut all, mut before) = (Vec::new(), None::<Position>);
        loop {
            let page = world
                .archive
                .latest(&world.workspace, before.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            before = Some(last.position.clone());
            all.extend(page);
        }
        assert_eq!(all.len(), 180);
        assert!(all.iter().rev().is_sorted_by_key(|head| head.published_at));
        let mut back: Vec<Head> = world.all().await.into_iter().map(|m| m.head).collect();
        back.reverse();
        assert_eq!(all, back);
    }
}

#[tokio::test]
async fn a_story_is_read_by_its_id_and_its_correlation_id() {
    let world = World::new().await;
    let at = |n: u32| world.now().minus(HOUR * 2).plus(Duration::from_secs(600) * n);
    let messages = [
        of_story(arrived(1, 1, at(0)), "s", "1"),
        arrived(2, 1, at(1)),
        of_story(arrived(3, 2, at(2)), "s", "2"),
        arrived(4, 2, at(3)),
        of_story(arrived(5, 1, at(4)), "t", "1"),
        arrived(6, 1, at(9)),
    ];
    world.store(&messages).await;
    for limit in 1..9 {
        let (mut all, mut after) = (Vec::new(), None::<Position>);
        loop {
            let page = world
                .archive
                .about(
                    &world.workspace,
                    &story_digest("s"),
                    Some(correlation_id(1)),
                    after.as_ref(),
                    limit,
                )
                .await
                .unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.position.clone());
            all.extend(page);
        }
        assert_eq!(head_numbers(&all), [1, 2, 3, 5, 6]);
    }
    let about = |story: &'static str| {
        let digest = story_digest(story);
        let (world, workspace) = (&world, &world.workspace);
        async move {
            head_numbers(
                &world
                    .archive
                    .about(workspace, &digest, None, None, 9)
                    .await
                    .unwrap(),
            )
        }
    };
    assert_eq!((about("s").await, about("u").await), (vec![1, 3], vec![]));
}

#[tokio::test]
async fn a_message_goes_when_its_time_is_over() {
    let world = World::new().await;
    let at = world.now().minus(SECOND);
    let messages: Vec<Arrived> = (1..5)
        .map(|n| of_story(arrived(n, n, at.plus(MS * u32::try_from(n).unwrap())), "s", "1"))
        .collect();
    world.store(&messages).await;
    let first = world.all().await[0].head.position.clone();
    world.clock.set(at.plus(world.archive.retention()));
    for left in (0..4).rev() {
        let expected: Vec<u64> = (5 - left - 1..5).collect();
        assert_eq!(numbers(&world.all().await), expected);
        let archive = &world.archive;
        let about = archive
            .about(&world.workspace, &story_digest("s"), None, None, 9)
            .await
            .unwrap();
        assert_eq!(head_numbers(&about), expected);
        let latest = archive.latest(&world.workspace, None, 9).await.unwrap();
        assert_eq!(latest.len(), expected.len());
        let found = archive.find(&world.workspace, message_id(1)).await.unwrap();
        assert_eq!(found.len(), usize::from(left == 3));
        assert_eq!(
            archive.whole(&world.workspace, &first).await.unwrap().is_some(),
            left == 3
        );
        world.clock.advance(MS);
    }
    assert!(world.archive.is_position(&first));
    let behind = world.part(world.ever(), Some(&first), PLENTY).await;
    assert!(behind.end && behind.scanned == 0);
}

#[tokio::test]
async fn what_is_still_on_its_way_is_not_passed_over() {
    let world = World::new().await;
    let (late, early) = (
        arrived(1, 1, world.now()),
        arrived(2, 2, world.now().plus(SECOND)),
    );
    world.clock.advance(SECOND * 2);
    let range = TimeRange {
        from: Millis(0),
        to: world.now(),
    };
    world.wait_in_queue().await;
    world.store(&[early]).await;
    for _ in 0..3 {
        // the first of the two waits in the queue, for however long
        let part = world.part(range, None, PLENTY).await;
        assert!(!part.end && part.scanned == 0 && part.last.is_none());
        world.clock.advance(HOUR);
    }
    world.store(&[late]).await;
    world.leave_queue().await;
    let part = world.part(range, None, PLENTY).await;
    assert_eq!((numbers(&part.messages), part.end), (vec![1, 2], true));
    // what is known holds, however busy the queue is then
    world.wait_in_queue().await;
    let part = world.part(range, None, PLENTY).await;
    assert_eq!((numbers(&part.messages), part.end), (vec![1, 2], true));
    let open = world.part(world.ever(), None, PLENTY).await;
    assert!(open.end, "as of the moment at which the queue was empty");
    world.clock.advance(HOUR);
    let open = world.part(world.ever(), None, PLENTY).await;
    assert_eq!((numbers(&open.messages), open.end), (vec![1, 2], false));
    // and another process knows it too
    let other = world.aws.archive(Arc::new(world.clock.clone()));
    let part = other
        .read(&world.workspace, range, None, &Selection::default(), PLENTY)
        .await
        .unwrap();
    assert_eq!((numbers(&part.messages), part.end), (vec![1, 2], true));
}

#[tokio::test]
async fn counts_are_believed_for_what_is_older_than_they_may_lag() {
    let world = World::settling(SECOND * 60).await;
    let now = world.now();
    world
        .store(&[
            arrived(1, 1, now.minus(SECOND * 61)),
            arrived(2, 2, now.minus(SECOND * 59)),
        ])
        .await;
    let range = TimeRange {
        from: Millis(0),
        to: now,
    };
    let first = world.part(range, None, PLENTY).await;
    assert_eq!((numbers(&first.messages), first.end), (vec![1], false));
    world.clock.advance(SECOND * 60);
    let second = world.part(range, first.last.as_ref(), PLENTY).await;
    assert_eq!((numbers(&second.messages), second.end), (vec![2], true));
}

#[tokio::test]
async fn a_queue_that_is_never_empty_is_followed_by_its_measured_age() {
    let world = World::settling(SECOND * 10).await;
    world.clock.set(wall_time()); // the emulator forgets measures of more than two weeks ago
    let begin = Millis(world.now().0 / 60_000 * 60_000);
    world.clock.set(begin.plus(SECOND * 60));
    world.archive.advance().await.unwrap(); // an instant of peace
    world.wait_in_queue().await;
    for n in 0..10 {
        world
            .store(&[arrived(n, n, begin.plus(SECOND * 60 * u32::try_from(n).unwrap()))])
            .await;
    }
    let range = TimeRange {
        from: begin,
        to: begin.plus(SECOND * 600),
    };
    world.clock.set(begin.plus(SECOND * 720));
    assert_eq!(numbers(&world.part(range, None, PLENTY).await.messages), [0]);
    let cloudwatch = aws_sdk_cloudwatch::Client::new(&engine::shared());
    let measure = async |minute: u32, age: f64| {
        let datum = aws_sdk_cloudwatch::types::MetricDatum::builder()
            .metric_name("ApproximateAgeOfOldestMessage")
            .dimensions(
                aws_sdk_cloudwatch::types::Dimension::builder()
                    .name("QueueName")
                    .value(world.aws.config().archive_queue_name())
                    .build(),
            )
            .timestamp(aws_smithy_types::DateTime::from_millis(
                begin.plus(SECOND * 60 * minute).0,
            ))
            .value(age)
            .build();
        cloudwatch
            .put_metric_data()
            .namespace("AWS/SQS")
            .metric_data(datum)
            .send()
            .await
            .unwrap();
        world.clock.advance(SECOND);
        numbers(&world.part(range, None, PLENTY).await.messages)
    };
    assert_eq!(measure(2, 1.0).await, [0, 1]);
    assert_eq!(measure(3, 1.0).await, [0, 1, 2]);
    assert_eq!(
        measure(9, 1.0).await,
        [0, 1, 2],
        "what was not measured may have failed many times"
    );
    assert_eq!(measure(4, 300.0).await, [0, 1, 2], "an old one is in the queue");
    assert_eq!(measure(5, 1.0).await, (0..5).collect::<Vec<_>>());
    assert_eq!(measure(7, 1.0).await, (0..9).collect::<Vec<_>>());
}

#[tokio::test]
async fn clocks_that_differ_do_not_turn_the_order_of_a_group() {
    let world = World::new().await;
    // the end of an hour lies between them
    let hour = Millis(world.now().0 / 3_600_000 * 3_600_000);
    let messages = [
        arrived(1, 1, hour.plus(MS * 400)),
        arrived(2, 1, hour.minus(MS * 300)),
        arrived(3, 1, hour.plus(MS * 100)),
        arrived(4, 1, hour.plus(MS * 500)),
    ];
    for order in [vec![0, 1, 2, 3], vec![1, 2, 3], vec![2], vec![3]] {
        // in one batch, and each in one of its own
        for n in order {
            world.store(&messages[n..=n]).await;
        }
        world.store(&messages).await;
    }
    let all = world.all().await;
    assert_eq!(numbers(&all), [1, 2, 3, 4]);
    let at: Vec<i64> = all.iter().map(|m| m.head.published_at.0 - hour.0).collect();
    assert_eq!(at, [400, 400, 400, 500]);
}

#[tokio::test]
async fn what_cannot_be_archived_comes_again_with_all_behind_it() {
    let world = World::new().await;
    let at = world.now().minus(SECOND);
    let mut batch: Vec<Arrived> = (0..10).map(|n| arrived(n, n % 3, at)).collect();
    batch[4].attributes.remove("topic");
    let again = world.archiver.archive(&batch).await;
    assert_eq!(again, ["sqs-4", "sqs-7"]);
    let mut stored = numbers(&world.all().await);
    stored.sort_unstable();
    assert_eq!(stored, [0, 1, 2, 3, 5, 6, 8, 9]);
    let lost = Config {
        archive_table: "no-such-table".to_owned(),
        ..world.aws.config().clone()
    };
    let again = Aws::new(&engine::shared(), lost).archiver().archive(&batch).await;
    assert_eq!(again.len(), 10);
}

#[tokio::test]
async fn the_largest_bodies_and_many_messages_come_back() {
    let world = World::new().await;
    let mut state = 1_u32;
    let messages: Vec<Arrived> = (0..60)
        .map(|n| {
            let size = if n % 3 == 0 { 240_000 } else { 3 };
            let noise = (0..size).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b' ' + u8::try_from((state >> 16) % 95).unwrap())
            });
            Arrived {
                body: noise.collect(),
                ..arrived(n, n % 2, world.now().minus(SECOND))
            }
        })
        .collect();
    world.store(&messages).await;
    let limits = PartLimits {
        bytes: 1_000_000,
        ..PLENTY
    };
    let all = world.read(world.ever(), limits).await;
    assert_eq!(all.len(), 60);
    for message in all {
        let sent = &messages[usize::try_from(number(message.head.message_id)).unwrap()];
        assert!(message.body == sent.body.as_bytes());
    }
}
