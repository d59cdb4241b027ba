//! What is sure after one try of a publication, and what reaches a queue.

use std::time::{Duration, Instant};

use storybus_core::domain::message::{Claim, Publication};
use storybus_core::domain::record::Token;
use storybus_core::domain::time::Millis;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;
use storybus_testkit::suite::sample::Letter;

use crate::proxy::Fault;
use crate::{Wire, engine};

const TIMEOUT: Duration = Duration::from_millis(1500);

fn publication(workspace: &str, letter: &Letter) -> Publication {
    Publication {
        workspace: workspace.parse().unwrap(),
        message_id: letter.message_id,
        correlation_id: letter.correlation_id,
        story: None,
        body: letter.body.clone(),
        attributes: letter.attributes.clone(),
        about: letter.about.clone(),
        claim: Claim {
            attempt: Token([1; 16]),
            until: Millis(i64::MAX),
        },
    }
}

/// Refused and worth another try, refused for good, or unknown; in each case after one request.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Done,
    Again,
    Never,
    Unknown,
}

async fn tell(wire: &Wire, workspace: &str) -> Told {
    let publication = publication(workspace, &Letter::new(1, 1));
    match wire.aws.topic().publish(&publication, TIMEOUT).await {
        Ok(()) => Told::Done,
        Err(PublishError::Refused { retryable: true, .. }) => Told::Again,
        Err(PublishError::Refused { retryable: false, .. }) => Told::Never,
        Err(PublishError::Unknown { .. }) => Told::Unknown,
    }
}

#[tokio::test]
async fn what_is_sure_of_a_publication_is_told_after_one_try() {
    let wire = Wire::new().await;
    wire.topic("w1").await;
    for (fault, expected) in [
        (Fault::None, Told::Done),
        (Fault::AnswerLost, Told::Unknown),
        (Fault::RequestLost, Told::Unknown),
        (Fault::Answered(500, "InternalError"), Told::Unknown),
        (Fault::Answered(503, "ServiceUnavailable"), Told::Unknown),
        (Fault::Answered(400, "Throttling"), Told::Again),
        (Fault::Answered(400, "Throttled"), Told::Again),
        (Fault::Answered(400, "ThrottlingException"), Told::Again),
        (Fault::Answered(429, "Anything"), Told::Again),
        (Fault::Answered(403, "AuthorizationError"), Told::Never),
        (Fault::Answered(400, "InvalidParameter"), Told::Never),
    ] {
        wire.proxy.plan([fault]);
        assert_eq!(tell(&wire, "w1").await, expected, "{fault:?}");
        assert_eq!(wire.proxy.seen(), ["Publish"], "{fault:?}");
    }
    assert_eq!(tell(&wire, "w2").await, Told::Never, "there is no such topic");
    wire.proxy.plan([Fault::Late(TIMEOUT * 2)]);
    #[expect(clippy::disallowed_methods, reason = "how long a real request takes")]
    let begun = Instant::now();
    assert_eq!(tell(&wire, "w1").await, Told::Unknown);
    assert!(
        begun.elapsed() < TIMEOUT * 2,
        "it waits for no answer that comes too late"
    );
    wire.proxy.refuse().await;
    assert_eq!(tell(&wire, "w1").await, Told::Again, "it never left");
}

/// Bytes and attributes arrive raw, in the message's group.
#[tokio::test]
async fn a_publication_reaches_a_queue_as_it_is() {
    let wire = Wire::new().await;
    wire.topic("w1").await;
    let config = wire.direct.config();
    let (sns, sqs) = (
        aws_sdk_sns::Client::new(&engine::shared()),
        aws_sdk_sqs::Client::new(&engine::shared()),
    );
    let name = format!("{}-by-hand.fifo", config.prefix);
    let fifo = aws_sdk_sqs::types::QueueAttributeName::FifoQueue;
    let queue = sqs
        .create_queue()
        .queue_name(&name)
        .attributes(fifo, "true")
        .send()
        .await
        .unwrap();
    sns.subscribe()
        .topic_arn(config.topic_arn(&"w1".parse().unwrap()))
        .protocol("sqs")
        .endpoint(config.queue_arn(&name))
        .attributes("RawMessageDelivery", "true")
        .send()
        .await
        .unwrap();
    let letter = Letter::new(7, 1);
    let publication = publication("w1", &letter);
    for _ in 0..2 {
        wire.aws.topic().publish(&publication, TIMEOUT).await.unwrap();
    }
    let received = sqs
        .receive_message()
        .queue_url(queue.queue_url.unwrap())
        .max_number_of_messages(10)
        .message_attribute_names("All")
        .message_system_attribute_names(aws_sdk_sqs::types::MessageSystemAttributeName::All)
        .send()
        .await
        .unwrap();
    let [message] = received.messages() else {
        unreachable!("one message, the second of the same id was dropped");
    };
    assert_eq!(message.body().map(str::as_bytes), Some(&letter.body[..]));
    let attributes = message.message_attributes().unwrap();
    for (name, value) in letter.attributes.pairs() {
        assert_eq!(attributes[name].string_value(), Some(value), "{name}");
    }
    let system = message.attributes().unwrap();
    let of = |name: &str| {
        system
            .iter()
            .find(|(key, _)| key.as_str() == name)
            .map(|(_, v)| v.as_str())
    };
    assert_eq!(
        of("MessageGroupId"),
        Some(format!("w1.{}", letter.correlation_id).as_str())
    );
    assert_eq!(
        of("MessageDeduplicationId"),
        Some(format!("w1.{}", letter.message_id).as_str())
    );
}
