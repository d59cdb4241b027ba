//! One trial: an attempt that meets a fault, retries on either side of the window, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use storybus_tests::{Answer, Ended, Fault, Function, Plan, Stack, Where, now, rest};
use tokio::sync::Mutex;

use crate::scene::{Before, Message, Retries, Scene, Trial, messages};

/// The time limit of a publish function.
const LIMIT: Duration = Duration::from_secs(15);
/// That of an attempt whose call is never answered: it is ended there.
const SHORT: Duration = Duration::from_secs(3);

/// Instances of the function that nothing happens to.
pub(crate) struct Pool {
    idle: Mutex<Vec<Arc<Function>>>,
    count: tokio::sync::Semaphore,
}

impl Pool {
    pub(crate) async fn start(stack: &Stack, size: usize) -> Self {
        let mut idle = Vec::new();
        for _ in 0..size {
            idle.push(Arc::new(stack.function(crate::BINARY, Plan::default()).await));
        }
        Self {
            idle: Mutex::new(idle),
            count: tokio::sync::Semaphore::new(size),
        }
    }

    async fn publish(&self, stack: &Stack, message: &Message) -> Sent {
        let _permit = self.count.acquire().await.unwrap();
        let function = self.idle.lock().await.pop().unwrap();
        let sent = send(stack, &function, message, LIMIT).await;
        self.idle.lock().await.push(function);
        assert!(
            sent.answer.is_some(),
            "an instance that nothing happened to: {sent:?}"
        );
        sent
    }
}

/// A publish and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) invocation: u64,
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) answer: Option<Answer>,
}

impl Sent {
    pub(crate) fn status(&self) -> u16 {
        self.answer.as_ref().map_or(0, |answer| answer.status)
    }

    pub(crate) fn rule(&self) -> &str {
        self.answer.as_ref().map_or("-", |answer| &answer.rule)
    }

    /// Whether the client need not send it again.
    fn is_final(&self) -> bool {
        match self.status() {
            200 | 202 => true,
            409 => self.rule() != "commit.contention",
            _ => false,
        }
    }
}

/// What a trial came to.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) trial: Trial,
    pub(crate) messages: Vec<Message>,
    pub(crate) sent: Vec<Sent>,
    /// The last answer to each message.
    pub(crate) last: Vec<Sent>,
    /// Whether the fault has struck.
    pub(crate) struck: bool,
    /// How long after everything had ended a message was still not settled, at most, ms.
    pub(crate) stuck: i64,
}

async fn send(stack: &Stack, function: &Function, message: &Message, limit: Duration) -> Sent {
    let from = now();
    let (invocation, ended) = function.invoke_telling(stack.publish(&message.body), limit).await;
    assert!(
        !matches!(ended, Ended::Failed(_)),
        "{ended:?}: {}",
        function.log()
    );
    Sent {
        id: message.id.clone(),
        invocation,
        from,
        until: now(),
        answer: Answer::of(&ended),
    }
}

/// The calls that an attempt makes when nothing happens.
pub(crate) async fn calls(stack: &Stack, pool: &Pool, trial: &Trial, number: u32) -> Vec<String> {
    let messages = messages(&trial.scene, number);
    prepare(stack, pool, &trial.scene, &messages).await;
    let plan = Plan {
        once: None,
        always: trial.scene.always,
    };
    let function = stack.function(crate::BINARY, plan).await;
    let sent = send(stack, &function, &messages[trial.scene.subject], LIMIT).await;
    assert_ne!(
        sent.status(),
        500,
        "{}: {sent:?} {}",
        trial.scene.name,
        function.log()
    );
    function.calls()
}

/// Brings the messages to where the scene begins.
async fn prepare(stack: &Stack, pool: &Pool, scene: &Scene, messages: &[Message]) {
    for (place, before) in scene.before {
        let message = &messages[*place];
        match before {
            Before::Published => settle(stack, pool, message).await,
            Before::LeftOver => leave_over(stack, message).await,
        }
    }
}

/// Publishes a message; on a machine that is busy it may take more than one attempt.
async fn settle(stack: &Stack, pool: &Pool, message: &Message) {
    while !matches!(pool.publish(stack, message).await.status(), 200 | 202) {
        rest(Duration::from_millis(300)).await;
    }
}

/// An attempt that ends just after recording, more than a window ago.
async fn leave_over(stack: &Stack, message: &Message) {
    let plan = Plan::at(Where::Named("Publish"), Fault::KillBefore);
    loop {
        let function = stack.function(crate::BINARY, plan.clone()).await;
        // one that was held up for so long that it did not begin to publish has an answer, and has taken its record back
        if send(stack, &function, message, LIMIT).await.answer.is_none() {
            return age(stack, message).await;
        }
    }
}

/// The function is dead: that its record is older is all that time would do.
async fn age(stack: &Stack, message: &Message) {
    let client = Client::new(&stack.shared);
    let span = stack.window.as_millis() + 1000;
    let update = client
        .update_item()
        .table_name(&stack.aws.config().table)
        .key(
            "pk",
            AttributeValue::S(format!("REC#{}#{}", stack.workspace, message.id)),
        )
        .key("sk", AttributeValue::S("-".to_owned()))
        .update_expression("SET recorded_at = recorded_at - :span")
        .condition_expression("attribute_exists(pk)")
        .expression_attribute_values(":span", AttributeValue::N(span.to_string()));
    update.send().await.unwrap();
}

/// Runs a trial.
pub(crate) async fn run(stack: &Stack, pool: &Pool, trial: Trial, number: u32) -> Outcome {
    let all = messages(&trial.scene, number);
    prepare(stack, pool, &trial.scene, &all).await;
    let subject = &all[trial.scene.subject];
    let rival = trial.scene.rival.map(|place| &all[place]);
    let function = stack.function(crate::BINARY, trial.plan()).await;
    let mut struck = function.struck();
    let limit = if trial.fault == Fault::Hang { SHORT } else { LIMIT };
    let first = async {
        let sent = send(stack, &function, subject, limit).await;
        // what it leaves on the wire has still to arrive
        if let Fault::LateRequest(by) = trial.fault {
            rest(by).await;
        }
        sent
    };
    let retried = async {
        // the retries begin when the fault strikes, or when the attempt ends without it
        let _ = tokio::time::timeout(LIMIT, struck.wait_for(|struck| *struck)).await;
        let begun = now();
        let mut sent = round(stack, pool, &trial, subject, rival).await;
        let passed = u64::try_from(now() - begun).unwrap_or(0);
        let window = u64::try_from(stack.window.as_millis()).unwrap() + 300;
        rest(Duration::from_millis(window.saturating_sub(passed))).await;
        sent.extend(round(stack, pool, &trial, subject, rival).await);
        sent
    };
    let (first, retried) = if trial.fault.kills() {
        let first = first.await;
        (first, retried.await)
    } else {
        futures::join!(first, retried)
    };
    let struck = *function.struck().borrow();
    drop(function);
    let mut sent = vec![first];
    sent.extend(retried);
    let ended = now();
    let mut last = Vec::new();
    for message in &all {
        let settled = loop {
            let one = pool.publish(stack, message).await;
            sent.push(one.clone());
            let over = now() - ended > i64::try_from(stack.window.as_millis()).unwrap() * 4 + 10_000;
            if one.is_final() || over {
                break one;
            }
            rest(Duration::from_millis(300)).await;
        };
        last.push(settled);
    }
    Outcome {
        trial,
        messages: all,
        sent,
        last,
        struck,
        stuck: now() - ended,
    }
}

async fn round(
    stack: &Stack,
    pool: &Pool,
    trial: &Trial,
    subject: &Message,
    rival: Option<&Message>,
) -> Vec<Sent> {
    match trial.retries {
        Retries::InTurn => {
            let mut sent = vec![pool.publish(stack, subject).await];
            if let Some(rival) = rival {
                sent.push(pool.publish(stack, rival).await);
            }
            sent
        }
        Retries::AtOnce => {
            let clients = [Some(subject), rival, Some(subject)];
            join_all(
                clients
                    .into_iter()
                    .flatten()
                    .map(|message| pool.publish(stack, message)),
            )
            .await
        }
    }
}
