//! What a function says when something around it is broken: its environment, the table, the topic, itself.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use serde_json::json;
use storybus_core::ops::admin::{Actor, ConsumerMembers, ProducerMembers};
use storybus_tests::{Answer, Ended, Fault, Function, Plan, Stack, queue};

const PUBLISH: &str = env!("CARGO_BIN_EXE_fn-publish");
const LIMIT: Duration = Duration::from_secs(15);

fn message(number: u32, message_type: &str) -> String {
    let id = |kind: u32| format!("{number:08x}-0000-4000-8000-{kind:012x}");
    Stack::envelope(&id(1), &id(2), message_type, &json!({ "text": "one" }))
}

async fn publish(stack: &Stack, function: &Function, body: &str) -> Answer {
    let ended = function.invoke(stack.publish(body), LIMIT).await;
    Answer::of(&ended).unwrap_or_else(|| Answer {
        status: 0,
        rule: format!("{ended:?}"),
        body: function.log(),
    })
}

#[track_caller]
fn is(answer: &Answer, status: u16, rule: &str) {
    assert_eq!(
        (answer.status, answer.rule.as_str()),
        (status, rule),
        "{}",
        answer.body
    );
}

fn always(name: &'static str, status: u16, code: &'static str) -> Plan {
    Plan {
        once: None,
        always: Some((name, Fault::Answered(status, code))),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_broken_is_told_apart() {
    let stack = Stack::start(Duration::from_secs(30)).await;
    an_environment(&stack).await;
    a_table(&stack).await;
    a_topic(&stack).await;
    a_job(&stack).await;
    a_role(&stack).await;
    itself(&stack).await;
}

/// A variable that is missing or wrong: the function ends before it has taken a request, and its log names the variable.
async fn an_environment(stack: &Stack) {
    let whole = stack.environment();
    for (name, value) in [
        ("STORYBUS_TABLE", None),
        ("STORYBUS_PREFIX", None),
        ("STORYBUS_ISSUER", Some("")),
        ("STORYBUS_ACCOUNT", Some("12")),
        ("STORYBUS_ARCHIVE_DAYS", Some("for ever")),
        ("STORYBUS_LOG", Some("loud")),
        ("AWS_REGION", None),
    ] {
        let mut told = whole.clone();
        told.retain(|(n, _)| n != name);
        told.extend(value.map(|v: &str| (name.to_owned(), v.to_owned())));
        let function = stack.function_told(PUBLISH, Plan::default(), &told).await;
        let status = function.exit().await;
        let log = function.log();
        assert!(
            !status.success() && log.contains("cannot start") && log.contains(name),
            "{status}: {log}"
        );
        assert_eq!(function.calls(), [""; 0]);
    }
}

/// Without the table, or the right to it, the bus is at fault: 500. A table that is throttled or fails is one for a while: 503.
async fn a_table(stack: &Stack) {
    let mut told = stack.environment();
    told.retain(|(name, _)| name != "STORYBUS_TABLE");
    told.push(("STORYBUS_TABLE".to_owned(), "absent".to_owned()));
    let function = stack.function_told(PUBLISH, Plan::default(), &told).await;
    let answer = publish(stack, &function, &message(1, "desk.note")).await;
    is(&answer, 500, "bus.internal_error");
    assert!(
        function.log().contains("ResourceNotFoundException"),
        "{}",
        function.log()
    );

    for (name, status, code, (expected, rule)) in [
        (
            "GetItem",
            400,
            "AccessDeniedException",
            (500, "bus.internal_error"),
        ),
        (
            "GetItem",
            400,
            "ProvisionedThroughputExceededException",
            (503, "bus.unavailable"),
        ),
        ("GetItem", 500, "InternalServerError", (503, "bus.unavailable")),
        (
            "PutItem",
            400,
            "AccessDeniedException",
            (500, "bus.internal_error"),
        ),
        ("PutItem", 400, "ThrottlingException", (503, "bus.unavailable")),
        ("PutItem", 400, "RequestLimitExceeded", (503, "bus.unavailable")),
        ("PutItem", 500, "InternalServerError", (503, "bus.publish_failed")),
    ] {
        let function = stack.function(PUBLISH, always(name, status, code)).await;
        let answer = publish(stack, &function, &message(2, "desk.note")).await;
        is(&answer, expected, rule);
        // nothing of it is left, and the same process serves the next
        function.plan(Plan::default());
        let body = message(2, "desk.note");
        let again = publish(stack, &function, &body).await;
        assert!(matches!(again.status, 200 | 202), "{name} {code}: {again:?}");
    }
}

/// A topic that says no leaves no record: the next retry publishes at once.
async fn a_topic(stack: &Stack) {
    for (number, status, code) in [
        (10, 403, "AuthorizationError"),
        (11, 404, "NotFound"),
        (12, 400, "Throttled"),
        (13, 403, "KMSAccessDenied"),
    ] {
        let function = stack.function(PUBLISH, always("Publish", status, code)).await;
        let body = message(number, "desk.note");
        is(&publish(stack, &function, &body).await, 503, "bus.publish_failed");
        let log = function.log();
        assert!(log.contains(code) && log.contains("PublicationsRefused"), "{log}");
        // one that was deleted by hand is named: nobody else sees which it is
        let topic = stack.aws.config().topic_name(&stack.workspace);
        assert_eq!(log.contains(&topic), code == "NotFound", "{log}");
        function.plan(Plan::default());
        is(&publish(stack, &function, &body).await, 202, "-");
    }
}

/// A role lies in the account of the bus; one of another account, or another partition, could never be used.
async fn a_role(stack: &Stack) {
    let (actor, tenant) = (Actor::bus(), stack.workspace.as_str());
    for (arn, is_refused) in [
        ("arn:aws:iam::444455556666:role/reader", true),
        ("arn:aws-cn:iam::000000000000:role/reader", true),
        ("arn:aws:iam::000000000000:user/reader", true),
        ("arn:aws:iam::000000000000:role/desk/reader", false),
    ] {
        let consumer = ConsumerMembers {
            name: Some("reader".to_owned()),
            reader_role_arn: Some(Some(arn.to_owned())),
            ..ConsumerMembers::default()
        };
        let producer = ProducerMembers {
            name: Some("sender".to_owned()),
            system_ids: Some(Vec::new()),
            message_types: Some(Vec::new()),
            role_arn: Some(Some(arn.to_owned())),
            ..ProducerMembers::default()
        };
        let of_producer = stack.bus.producer_create(&actor, tenant, &producer).await;
        let of_consumer = stack.bus.consumer_create(&actor, tenant, &consumer).await;
        let changed = stack
            .bus
            .consumer_update(&actor, tenant, stack.consumer.as_str(), &consumer)
            .await;
        let refusals = [
            ("/role_arn", of_producer.err()),
            ("/reader_role_arn", of_consumer.err()),
            ("/reader_role_arn", changed.err()),
        ];
        for (path, refusal) in refusals {
            assert_eq!(refusal.is_some(), is_refused, "{arn}: {refusal:?}");
            if let Some(refusal) = refusal {
                assert_eq!(refusal.violations.len(), 1, "{refusal:?}");
                assert_eq!(refusal.violations[0].rule, "request.invalid");
                assert_eq!(refusal.violations[0].path.as_deref(), Some(path), "{arn}");
            }
        }
    }
}

/// A job's function reports what it could not do, so that its message comes back.
async fn a_job(stack: &Stack) {
    let told = stack.aws.config().job_queue_name("replay");
    let job = "j0000000000000000".parse().unwrap();
    stack.aws.send_job("replay", &job, "one").await.unwrap();
    let one = stack.take_one(&told).await.unwrap();
    let binary = env!("CARGO_BIN_EXE_fn-replay");
    for (plan, failed) in [
        (always("GetItem", 400, "ThrottlingException"), 1),
        (always("GetItem", 400, "AccessDeniedException"), 1),
        // there is no such job: nothing to do
        (Plan::default(), 0),
    ] {
        let function = stack.function(binary, plan).await;
        let Ended::Answered(answer) = function.invoke(queue::event(&one), Duration::from_secs(60)).await
        else {
            unreachable!("{}", function.log());
        };
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            answer["batchItemFailures"].as_array().unwrap().len(),
            failed,
            "{answer}"
        );
    }
}

/// A panic is a 500 in the bus's format and a line of the log; the process lives, and the next request works.
async fn itself(stack: &Stack) {
    let function = stack
        .function(env!("CARGO_BIN_EXE_fn-panics"), Plan::default())
        .await;
    let answer = publish(stack, &function, &message(20, "desk.panic")).await;
    is(&answer, 500, "bus.internal_error");
    assert!(!answer.body.contains("on purpose"), "{}", answer.body);
    let log = function.log();
    // where it broke off; the text of a panic may hold what a client sent
    assert!(
        log.contains("panicked") && log.contains("panics.rs") && !log.contains("on purpose"),
        "{log}"
    );
    is(
        &publish(stack, &function, &message(21, "desk.note")).await,
        202,
        "-",
    );
    // what it had recorded is in flight until its window is over
    is(
        &publish(stack, &function, &message(20, "desk.panic")).await,
        503,
        "message.in_flight",
    );
}
