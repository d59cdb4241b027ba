//! What the log holds, and what it must not.

use crate::bus::Home;
use crate::client::snapshot;

#[test]
fn no_secret_token_payload_or_receipt_is_ever_logged() {
    let home = Home::new();
    let bus = home.serve_with(&["--demo", "--log", "trace"]);
    let first = bus.credentials.clone();
    let (tenant, consumer) = (
        bus.text("/tenant").to_owned(),
        bus.text("/consumer/client_id").to_owned(),
    );
    let mut producer = bus.log_in(&first, "producer");
    let mut message = snapshot("story-mark-1", 1);
    message["payload"]["headline"] = "payload-mark-2".into();
    assert_eq!(producer.publish(&message).status, 202);
    message["payload"]["headline"] = "payload-mark-3".into();
    assert_eq!(producer.publish(&message).status, 409);
    message["payload"]["surprise"] = "payload-mark-4".into();
    assert_eq!(producer.publish(&message).status, 400);
    assert_eq!(
        producer
            .ask(
                "POST",
                "/v1/jwt/messages",
                &format!("authorization: Bearer {}\r\n", producer.token().to_owned()),
                b"{\"payload-mark-5\""
            )
            .unwrap()
            .status,
        400
    );
    let mut reader = bus.log_in(&first, "consumer");
    let got = reader.get(&format!(
        "/v1/tenants/{tenant}/consumers/{consumer}/messages?attempt=query-mark-6"
    ));
    let receipt = got.body["messages"][0]["receipt_handle"]
        .as_str()
        .unwrap()
        .to_owned();
    reader.post(
        &format!("/v1/tenants/{tenant}/consumers/{consumer}/ack?{receipt}"),
        &serde_json::json!({"receipt_handles": [receipt, "receipt-mark-7"]}),
    );
    assert_eq!(bus.connect().try_log_in("pnobody", "secret-mark-8").status, 401);
    let operator = first["operator"]["client_id"].as_str().unwrap().to_owned();
    assert_eq!(
        bus.log_in(&first, "operator")
            .get(&format!("/v1/tenants/{tenant}/consumers/{consumer}/skills"))
            .status,
        403
    );
    bus.connect()
        .ask(
            "GET",
            "/path-mark-9?query-mark-10",
            "x-header: header-mark-11\r\n",
            b"",
        )
        .unwrap();
    bus.connect()
        .ask(
            "BREW-METHOD-MARK-12",
            "/x",
            "authorization: Bearer token-mark-13\r\n",
            b"",
        )
        .unwrap();
    let secret = |who: &str| first[who]["client_secret"].as_str().unwrap().to_owned();
    let mut forbidden: Vec<String> = ["operator", "producer", "consumer"].map(secret).to_vec();
    forbidden.extend([producer.token().to_owned(), reader.token().to_owned(), receipt]);
    forbidden.extend(["-mark-", "MARK", "authorization", "Basic "].map(str::to_owned));
    assert!(bus.stop().success());
    let log = home.read("err") + &home.read("out");
    for line in [
        "\"route\":\"/jwt/messages\"",
        "\"rule\":\"message_id.reused\"",
        "\"rule\":\"route.not_found\"",
        "\"rule\":\"invalid_client\"",
    ] {
        assert!(log.contains(line), "{line} is missing in {log}");
    }
    for mark in forbidden {
        let found = log.lines().find(|l| l.contains(&mark));
        assert!(found.is_none(), "{mark} stands in the log: {found:?}");
    }
    for line in home.read("err").lines() {
        let parsed: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let refused = |rule: &str| parsed["rule"] == rule;
        if refused("consumer.not_registered") {
            assert_eq!(parsed["client"], operator.as_str(), "{line}");
        }
        if refused("invalid_client") {
            assert_eq!(
                (&parsed["tried"], &parsed["source"]),
                (&"pnobody".into(), &"127.0.0.1".into())
            );
        }
        if let Some(ms) = parsed["ms"].as_f64() {
            assert!((ms * 1e3 - (ms * 1e3).round()).abs() < 1e-6, "{line}");
        }
        assert!(parsed["level"].is_string() && parsed["timestamp"].is_string());
    }
}

#[test]
fn people_get_words_and_a_flood_of_refusals_is_cut() {
    let home = Home::new();
    let bus = home.serve_with(&["--demo", "--log-format", "human"]);
    let mut client = bus.connect();
    for _ in 0..500 {
        assert_eq!(client.get("/nothing").status, 404);
    }
    assert!(bus.stop().success());
    let log = home.read("err");
    assert!(log.contains("INFO listening") || log.contains(" INFO "), "{log}");
    let lines = log.matches("refused").count();
    assert!((1..450).contains(&lines), "{lines} lines for 500 refusals");
}
