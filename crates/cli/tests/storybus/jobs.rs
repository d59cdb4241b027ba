//! Replays and redrives, with the bus killed while they work.
//!
//! A short run is part of the tests; `STORYBUS_JOBS=deep` takes 20,000 messages of 200 stories.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::bus::{Bus, Home, pause};
use crate::client::{Client, snapshot};

/// How much: messages of each story, stories, and how often the bus is killed during each job.
struct Size {
    each: u32,
    stories: u32,
    kills: u64,
}

fn size() -> Size {
    match std::env::var("STORYBUS_JOBS").as_deref() {
        Ok("deep") => Size {
            each: 100,
            stories: 200,
            kills: 40,
        },
        _ => Size {
            each: 40,
            stories: 20,
            kills: 8,
        },
    }
}

/// A bus that is killed and started again, with the clients of its first start.
struct Lives {
    home: Home,
    first: Value,
    bus: Option<Bus>,
}

impl Lives {
    fn begin() -> Self {
        let home = Home::new();
        let bus = home.serve();
        Self {
            home,
            first: bus.credentials.clone(),
            bus: Some(bus),
        }
    }

    fn client(&self, who: &str) -> Client {
        self.bus.as_ref().unwrap().log_in(&self.first, who)
    }

    fn tenant(&self) -> String {
        self.first["tenant"].as_str().unwrap().to_owned()
    }

    /// Kills it, and starts it again.
    fn again(&mut self) {
        self.bus.take().unwrap().kill();
        self.bus = Some(self.home.serve());
    }

    /// Lets a job work through as many lives as it takes, and says what became of it. Between two kills something is
    /// published, so that live traffic is there too.
    fn through(&mut self, job: &Value, kills: u64) -> Value {
        let path = format!(
            "/v1/admin/tenants/{}/jobs/{}",
            self.tenant(),
            job["job_id"].as_str().unwrap()
        );
        for n in 0..kills {
            let live = snapshot("live", self.next_live());
            assert_eq!(self.client("producer").publish(&live).status, 202);
            // anywhere: before the first step of this life, within one, after the last
            pause(n * 37 % 101);
            self.again();
        }
        let mut operator = self.client("operator");
        for _ in 0..6000 {
            let job = operator.get(&path).body;
            if !matches!(job["state"].as_str(), Some("queued" | "running")) {
                return job;
            }
            pause(20);
        }
        panic!("the job does not end");
    }

    fn next_live(&self) -> u32 {
        let path = format!("/v1/admin/tenants/{}/stories/live", self.tenant());
        let story = self.client("operator").get(&path);
        story.body["sequence_number"]
            .as_str()
            .map_or(1, |n| n.parse::<u32>().unwrap() + 1)
    }
}

/// Publishes them all, several stories at a time; the ids by story, in order.
fn publish(lives: &Lives, size: &Size) -> BTreeMap<String, Vec<String>> {
    let workers = 4;
    std::thread::scope(|scope| {
        let work = |worker: u32| {
            let mut producer = lives.client("producer");
            move || {
                let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for n in 1..=size.each {
                    for story in (worker..size.stories).step_by(workers as usize) {
                        let story = format!("story-{story}");
                        let envelope = snapshot(&story, n);
                        let answer = producer.publish(&envelope);
                        assert_eq!(answer.status, 202, "{answer:?}");
                        let id = envelope["message_id"].as_str().unwrap().to_owned();
                        sent.entry(story).or_default().push(id);
                    }
                }
                sent
            }
        };
        let threads: Vec<_> = (0..workers).map(|n| scope.spawn(work(n))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

/// Receives until nothing comes, and settles what came; each message's story, id and mark.
fn take_all(consumer: &mut Client, base: &str, how: &str) -> Vec<(String, String, Option<String>)> {
    let mut taken = Vec::new();
    loop {
        let answer = consumer.get(&format!("{base}/messages?max=10"));
        let messages = answer.body["messages"].as_array().unwrap().clone();
        if messages.is_empty() {
            return taken;
        }
        let handles: Vec<&Value> = messages.iter().map(|m| &m["receipt_handle"]).collect();
        let mut body = json!({ "receipt_handles": handles });
        if how == "reject" {
            body["reason"] = json!("cannot use it");
        }
        let answer = consumer.post(&format!("{base}/{how}"), &body);
        assert_eq!(answer.body["failed"], json!([]), "{answer:?}");
        for message in &messages {
            let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
            taken.push((
                text("/envelope/payload/story_id").unwrap().to_owned(),
                text("/envelope/message_id").unwrap().to_owned(),
                text("/redelivery").map(str::to_owned),
            ));
        }
    }
}

/// What the job delivered is all there, once each, in each story's order; what came live is there too.
fn check(
    taken: &[(String, String, Option<String>)],
    sent: &BTreeMap<String, Vec<String>>,
    mark: &str,
    what: &str,
) {
    let mut by_story: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (story, id, redelivery) in taken {
        if redelivery.is_some() {
            assert_eq!(redelivery.as_deref(), Some(mark), "{what}");
            by_story.entry(story).or_default().push(id);
        }
    }
    for (story, ids) in sent {
        let got = by_story.get(story.as_str()).cloned().unwrap_or_default();
        assert_eq!(got, *ids, "{what}: {story}");
    }
    let once: BTreeSet<_> = taken.iter().collect();
    assert_eq!(once.len(), taken.len(), "{what}: something came twice");
}

#[test]
fn jobs_survive_any_death() {
    let size = size();
    let mut lives = Lives::begin();
    let tenant = lives.tenant();
    let total = u64::from(size.each) * u64::from(size.stories);
    let id = |lives: &Lives, who: &str| lives.first[who]["client_id"].as_str().unwrap().to_owned();
    let demo = id(&lives, "consumer");
    let consumers = format!("/v1/admin/tenants/{tenant}/consumers");
    let pull = format!("/v1/tenants/{tenant}/consumers/{demo}");

    let sent = publish(&lives, &size);
    let rejected = take_all(&mut lives.client("consumer"), &pull, "reject");
    assert_eq!(rejected.len() as u64, total);

    let asked = lives
        .client("operator")
        .post(&format!("{consumers}/{demo}/redrives"), &json!({}));
    assert_eq!(asked.status, 202, "{asked:?}");
    let job = lives.through(&asked.body, size.kills);
    let counts = |job: &Value| (job["state"].clone(), job["moved"].clone(), job["scanned"].clone());
    assert_eq!(counts(&job), (json!("done"), json!(total), json!(total)), "{job}");
    let queue = lives
        .client("operator")
        .get(&format!("{consumers}/{demo}/queue"))
        .body;
    assert_eq!(queue["dead_lettered"], 0, "{queue}");
    let taken = take_all(&mut lives.client("consumer"), &pull, "ack");
    let mark = format!("redrive:{}", job["job_id"].as_str().unwrap());
    check(&taken, &sent, &mark, "redrive");
    assert_eq!(
        taken.len() as u64,
        total + size.kills,
        "what came live is there too"
    );

    // A replay of everything to a consumer that was not there when it was published.
    let mut operator = lives.client("operator");
    let made = operator.post(&consumers, &json!({"name": "late"})).body;
    let late = made["client_id"].as_str().unwrap().to_owned();
    let from = lives_ago(&mut operator);
    let asked = operator.post(
        &format!("{consumers}/{late}/replays"),
        &json!({
            "from": from,
            "to": "9999-12-31T00:00:00Z",
            "story_ids": sent.keys().take(100).collect::<Vec<_>>(),
        }),
    );
    assert_eq!(asked.status, 202, "{asked:?}");
    let chosen: BTreeMap<_, _> = sent
        .iter()
        .take(100)
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let expected: u64 = chosen.values().map(|ids| ids.len() as u64).sum();
    let job = lives.through(&asked.body, size.kills);
    assert_eq!(
        counts(&job),
        (json!("done"), json!(expected), json!(total + size.kills)),
        "{job}"
    );
    let mut client = lives.bus.as_ref().unwrap().connect();
    client.log_in(&late, made["client_secret"].as_str().unwrap());
    let taken = take_all(
        &mut client,
        &format!("/v1/tenants/{tenant}/consumers/{late}"),
        "ack",
    );
    let mark = format!("replay:{}", job["job_id"].as_str().unwrap());
    check(&taken, &chosen, &mark, "replay");
    assert_eq!(taken.len() as u64, expected + size.kills);
}

/// A time before anything was published, as the audit tells it.
fn lives_ago(operator: &mut Client) -> String {
    let entries = operator.get("/v1/admin/audit?limit=1000").body;
    let oldest = entries["entries"].as_array().unwrap().last().unwrap();
    oldest["at"].as_str().unwrap().to_owned()
}
