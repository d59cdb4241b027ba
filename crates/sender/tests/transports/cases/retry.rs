use std::time::Duration;

use serde_json::{Value, json};
use storybus_sender::call::{self, Limits};

use super::{files, id, object, text, told};
use crate::support::{ENVELOPE, ID, Ones, Reaction, Still, bus, outgoing, transport};

fn reaction(response: &Value) -> Reaction {
    match response {
        Value::String(none) if none == "network_error" => Reaction::Cut,
        Value::String(none) if none == "timeout" => Reaction::Hang,
        Value::Object(response) => {
            let known = ["status", "headers", "body"];
            assert!(
                response.keys().all(|key| known.contains(&key.as_str())),
                "{response:?}"
            );
            let headers = response.get("headers").map(object).into_iter().flatten();
            let body = response.get("body").map_or_else(String::new, Value::to_string);
            Reaction::Answer {
                status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
                headers: headers
                    .map(|(name, value)| (name.clone(), text(value).to_owned()))
                    .collect(),
                body: body.replace("{message_id}", ID).into_bytes(),
            }
        }
        other => panic!("{other}"),
    }
}

fn millis(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().unwrap())
}

#[tokio::test]
async fn retries() {
    for file in files("retry") {
        let policy = object(&file.top["policy"]);
        let limits = Limits {
            max_attempts: u32::try_from(policy["max_attempts"].as_u64().unwrap()).unwrap(),
            base_delay: millis(&policy["base_delay_ms"]),
            max_delay: millis(&policy["max_delay_ms"]),
            timeout: Duration::from_secs(30),
        };
        assert_eq!((policy.len(), &file.top["random"]), (3, &json!(1)));
        let mut ran = 0;
        for case in file.cases() {
            let responses = case["responses"].as_array().unwrap();
            let waits = responses.contains(&json!("timeout"));
            let timeout = if waits {
                Duration::from_secs(2)
            } else {
                limits.timeout
            };
            let server = bus(responses.iter().map(reaction).collect()).await;
            let (clock, transport) = (Still::default(), transport(&server));
            let limits = Limits { timeout, ..limits };
            let ended = call::send(&transport, outgoing(), limits, &clock, &Ones, &mut |_| {}).await;

            let messages: Vec<_> = server
                .seen()
                .into_iter()
                .filter(|s| s.target.ends_with("/messages"))
                .collect();
            let slept = clock.slept.lock().unwrap();
            for (name, expected) in object(&case["expect"]) {
                let found = match name.as_str() {
                    "outcome" => json!(ended.ending.as_str()),
                    "attempts" => {
                        assert_eq!(messages.len(), usize::try_from(ended.attempts).unwrap());
                        json!(ended.attempts)
                    }
                    "delays_ms" => json!(slept.iter().map(Duration::as_millis).collect::<Vec<_>>()),
                    "same_body" => json!(messages.iter().all(|message| message.body == ENVELOPE.as_bytes())),
                    "token_fetches" => json!(server.count("/oauth/token")),
                    "rule" | "last_rule" => json!(ended.answer.rule),
                    other => panic!("{}: {other} is not known", id(case)),
                };
                assert_eq!(&found, expected, "{}: {name}", id(case));
            }
            ran += 1;
        }
        told(&file, ran);
    }
}
