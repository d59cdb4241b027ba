use serde_json::{Value, json};
use storybus_sender::answer::Retry;
use storybus_sender::transport::verdict::{Reason, Verdict, read};

use super::{files, id, object, told};

/// What the verdict is, by the members of a case.
fn member(verdict: &Verdict, name: &str) -> Value {
    let rules = |reasons: &[Reason]| reasons.iter().map(|r| r.rule.clone()).collect::<Vec<_>>();
    match (verdict, name) {
        (Verdict::Accepted { .. }, "kind") => json!("accepted"),
        (Verdict::Duplicate { .. }, "kind") => json!("duplicate"),
        (Verdict::Refused { .. }, "kind") => json!("refused"),
        (Verdict::Accepted { message_id, .. } | Verdict::Duplicate { message_id }, "message_id") => {
            json!(message_id)
        }
        (Verdict::Accepted { family, .. }, "family") => json!(family),
        (Verdict::Accepted { tolerated, .. }, "tolerated_rules") => json!(rules(tolerated)),
        (Verdict::Refused { first, .. }, "source") => json!(first.source),
        (Verdict::Refused { first, .. }, "rule") => json!(first.rule),
        (Verdict::Refused { first, .. }, "path") => json!(first.path),
        (Verdict::Refused { first, others, .. }, "rules") => {
            json!([vec![first.rule.clone()], rules(others)].concat())
        }
        (Verdict::Refused { retry, .. }, "retry") => json!(match retry {
            Retry::No => "none",
            Retry::NewToken => "refresh_token",
            Retry::Backoff => "backoff",
        }),
        (verdict, name) => panic!("{verdict:?} has no {name}"),
    }
}

#[test]
fn verdicts() {
    for file in files("verdicts") {
        let mut ran = 0;
        for case in file.cases() {
            let response = object(&case["response"]);
            assert!(
                response
                    .keys()
                    .all(|key| ["status", "body"].contains(&key.as_str())),
                "{}",
                id(case)
            );
            let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
            // `null` stands for a body that is no JSON.
            let bodies = match &response["body"] {
                Value::Null => ["", "null", "Bad Gateway", "<html>", "{\"accepted\":fal"]
                    .iter()
                    .map(|b| b.as_bytes().to_vec())
                    .collect(),
                body => vec![serde_json::to_vec(body).unwrap()],
            };
            for body in bodies {
                let verdict = read(status, &body, None);
                for (name, expected) in object(&case["expect"]) {
                    assert_eq!(&member(&verdict, name), expected, "{}: {name}", id(case));
                }
            }
            ran += 1;
        }
        told(&file, ran);
    }
}
