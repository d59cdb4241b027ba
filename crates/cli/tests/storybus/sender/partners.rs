//! REST partners beside the bus: the same outbox, the key in `Idempotency-Key`.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use super::proxy::read;
use super::{QUICK, Running, bare, outbox};
use crate::bus::{Home, wait_for};
use crate::verbs::told;

/// Heads and bodies of requests.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A partner that answers with these statuses, one after the other; what it was asked.
fn partner(statuses: &'static [u16]) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/orders", listener.local_addr().unwrap());
    let asked = Requests::default();
    let heard = asked.clone();
    thread::spawn(move || {
        for (client, status) in listener.incoming().flatten().zip(statuses) {
            let request = read(&mut BufReader::new(&client)).unwrap();
            heard.lock().unwrap().push(request);
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            { &client }.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, asked)
}

fn home(url: &str) -> Home {
    let home = Home::new();
    let file = format!(
        "[partners.acme]\nurl = '{url}'\n[partners.acme.headers]\nAuthorization = {{ env = 'ACME_TOKEN', prefix = 'Bearer ' }}\n"
    );
    std::fs::write(home.path("partners.toml"), file).unwrap();
    std::fs::write(home.path("order"), "any bytes, hunter2").unwrap();
    home
}

#[test]
fn a_partner_gets_the_key_in_the_header_until_it_says_yes() {
    let (url, asked) = partner(&[503, 201]);
    let home = home(&url);
    let send = |key: &str| {
        let mut command = bare(
            &home,
            &["send", "order", "--target", "acme", "--partners", "partners.toml"],
        );
        command.args(["--key", key, "--group", "orders"]).args(QUICK);
        told(&command.env("ACME_TOKEN", "of-acme").output().unwrap())
    };
    let (code, out, err) = send("send-1042-to-acme");
    assert!(
        code == 0 && out.starts_with("delivered  send-1042-to-acme  order"),
        "{out}{err}"
    );
    let requests = asked.lock().unwrap().clone();
    assert_eq!(requests.len(), 2);
    for (head, body) in &requests {
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("idempotency-key: \"send-1042-to-acme\"\r\n"),
            "{head}"
        );
        assert!(head.contains("authorization: bearer of-acme\r\n"), "{head}");
        assert_eq!(body, b"any bytes, hunter2");
    }
    assert_eq!(send("send-1042-to-acme").0, 0, "known, and not sent again");
    let entry = outbox(&home, &["show", "send-1042-to-acme", "--target", "acme"]);
    assert_eq!(
        (entry["state"].as_str(), entry["order_group"].as_str()),
        (Some("delivered"), Some("orders"))
    );
    let mut keyless = bare(
        &home,
        &["send", "order", "--target", "acme", "--partners", "partners.toml"],
    );
    let (code, _, err) = told(&keyless.env("ACME_TOKEN", "of-acme").output().unwrap());
    assert!(
        code == 2 && err.contains("a partner's message needs one"),
        "{err}"
    );
    let mut tokenless = bare(
        &home,
        &["send", "order", "--target", "acme", "--partners", "partners.toml"],
    );
    let (code, _, err) = told(&tokenless.args(["--key", "k"]).output().unwrap());
    assert!(code == 2 && err.contains("ACME_TOKEN"), "{err}");
}

#[test]
fn a_relay_serves_partners_without_a_bus() {
    let (url, asked) = partner(&[500, 422]);
    let home = home(&url);
    let nobody = home.read("partners.toml").replace(&url, "http://127.0.0.1:1/");
    std::fs::write(home.path("nobody.toml"), nobody).unwrap();
    let mut enqueue = bare(
        &home,
        &["send", "order", "--target", "acme", "--partners", "nobody.toml"],
    );
    enqueue
        .args(["--key", "k1", "--max-attempts", "1"])
        .env("ACME_TOKEN", "t");
    let (code, _, err) = told(&enqueue.output().unwrap());
    assert!(code == 4 && err.contains("storybus outbox list"), "{err}");
    let resent = bare(&home, &["outbox", "resend", "k1", "--target", "acme"])
        .output()
        .unwrap();
    assert_eq!(told(&resent).0, 0);
    let mut command = bare(
        &home,
        &["relay", "--no-listen", "--no-bus", "--partners", "partners.toml"],
    );
    command.args(QUICK).env("ACME_TOKEN", "t");
    let mut relay = Running::start(&home, command);
    wait_for("a refusal", || {
        let entry = outbox(&home, &["show", "k1", "--target", "acme"]);
        (entry["state"] == "refused").then_some(())
    });
    assert_eq!(relay.stop(), 0);
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert!(!home.read("log").contains("hunter2"), "no payload in the log");
}
