//! Killed with -9 in the middle, and started again: nothing is lost, nothing is doubled, every story is in order.

use std::collections::BTreeMap;
use std::fs::File;

use serde_json::Value;

use super::proxy::{Fate, Proxy};
use super::{Running, as_producer, consumed, id, states, wait_long};
use crate::bus::{Bus, Home, wait_for};
use crate::client::snapshot;
use crate::verbs::{told, with_bus};

const STORIES: u32 = 10;
const EACH: u32 = 15;

/// Messages of several stories, mixed: the file `all.ndjson`.
fn mixed(home: &Home) -> Vec<Value> {
    let envelopes: Vec<Value> = (1..=EACH)
        .flat_map(|n| (0..STORIES).map(move |story| snapshot(&format!("story-{story}"), n)))
        .collect();
    let text: String = envelopes.iter().map(|envelope| format!("{envelope}\n")).collect();
    std::fs::write(home.path("all.ndjson"), text).unwrap();
    envelopes
}

/// The consumer got each message once, and each story in its order.
fn each_once_and_in_order(home: &Home, bus: &Bus, envelopes: &[Value]) {
    let got = consumed(home, bus);
    let mut places = BTreeMap::new();
    for (place, id) in got.iter().enumerate() {
        assert!(places.insert(id.clone(), place).is_none(), "{id} came twice");
    }
    assert_eq!(places.len(), envelopes.len(), "each came");
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for envelope in envelopes {
        let place = places[&id(envelope)];
        let story = envelope["correlation_id"].as_str().unwrap();
        if let Some(before) = last.insert(story, place) {
            assert!(before < place, "a story came out of its order");
        }
    }
}

#[test]
fn a_send_that_is_killed_again_and_again_goes_on() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes = mixed(&home);
    // Some answers are lost, so that the kill and the loss meet.
    let script: Vec<Fate> = (0..60)
        .map(|n| match n % 5 {
            0 => Fate::AnswerLost,
            1 => Fate::Cut,
            _ => Fate::Slow(10),
        })
        .collect();
    let proxy = Proxy::start(bus.address(), &script, Fate::Slow(5));
    let start = || {
        let mut command = as_producer(&home, &["send", "-", "--json", "--url", &proxy.url]);
        command
            .args(["--max-attempts", "10", "--timeout-ms", "500"])
            .stdin(File::open(home.path("all.ndjson")).unwrap())
            .stdout(
                File::options()
                    .create(true)
                    .append(true)
                    .open(home.path("events"))
                    .unwrap(),
            )
            .stderr(
                File::options()
                    .create(true)
                    .append(true)
                    .open(home.path("log"))
                    .unwrap(),
            );
        command
    };
    for round in 1..=2 {
        let before = home.read("events").lines().count();
        let mut running = Running {
            child: start().spawn().unwrap(),
        };
        wait_for("attempts", || {
            (home.read("events").lines().count() >= before + 20).then_some(())
        });
        running.kill();
        assert_eq!(
            states(&home).len(),
            envelopes.len(),
            "all of them are kept, round {round}"
        );
    }
    // What the killed one was sending is free once its lease is over: twice the time limit and ten seconds.
    let output = start().stdout(std::process::Stdio::piped()).output().unwrap();
    let (code, out, _) = told(&output);
    assert_eq!(code, 0, "{out}{}", home.read("log"));
    assert!(states(&home).iter().all(|state| state == "delivered"));
    each_once_and_in_order(&home, &bus, &envelopes);
}

#[test]
fn a_relay_that_is_killed_is_followed_by_another() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes = mixed(&home);
    let mut enqueue = as_producer(
        &home,
        &[
            "send",
            "-",
            "--url",
            "http://127.0.0.1:1/v1/",
            "--max-attempts",
            "1",
        ],
    );
    let input = File::open(home.path("all.ndjson")).unwrap();
    assert_eq!(told(&enqueue.stdin(input).output().unwrap()).0, 4);
    let resent = super::bare(&home, &["outbox", "resend", "--all-parked"])
        .output()
        .unwrap();
    assert_eq!(told(&resent).0, 0);
    let proxy = Proxy::start(bus.address(), &[Fate::AnswerLost; 5], Fate::Slow(10));
    let words = ["--url", &proxy.url, "--timeout-ms", "500"];
    let mut first = Running::relay(&home, &words);
    wait_for("attempts", || {
        (home.read("events").lines().count() >= 30).then_some(())
    });
    first.kill();
    let delivered = |home: &Home| states(home).iter().filter(|state| *state == "delivered").count();
    assert!(delivered(&home) < envelopes.len(), "it was killed in the middle");
    proxy.then(Fate::Through);
    let mut second = Running::relay(&home, &words);
    // The leases of the first are over after 11 s.
    wait_long("delivery of everything", || delivered(&home) == envelopes.len());
    assert_eq!(second.stop(), 0);
    each_once_and_in_order(&home, &bus, &envelopes);
}
