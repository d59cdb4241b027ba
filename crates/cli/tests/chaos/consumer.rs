//! The consumer: takes everything that is there from the bus itself, and acknowledges it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::desk::Written;
use crate::http::Client;
use crate::processes::Bus;

#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    receipt_handle: &'a str,
    correlation_id: String,
    receive_count: u64,
    #[serde(borrow)]
    envelope: &'a RawValue,
}

#[derive(Deserialize)]
struct Envelope {
    message_id: String,
}

#[derive(Deserialize)]
struct Acknowledged {
    ok: Vec<String>,
}

/// Everything that is in the demo's queue, story by story, in the order in which it came.
pub(crate) async fn drain(bus: &Bus) -> BTreeMap<String, Vec<Written>> {
    let (id, secret) = (
        bus.text("/consumer/client_id"),
        bus.text("/consumer/client_secret"),
    );
    let mut client = Client::log_in(&bus.address, id, secret).await;
    let queue = format!("/v1/tenants/{}/consumers/{id}", bus.text("/tenant"));
    let mut drained: BTreeMap<_, Vec<_>> = BTreeMap::new();
    loop {
        let answer = client.get(&format!("{queue}/messages?max=10")).await;
        let received: Received<'_> = serde_json::from_slice(&answer).expect("messages");
        if received.messages.is_empty() {
            return drained;
        }
        let handles: Vec<_> = received
            .messages
            .iter()
            .map(|message| message.receipt_handle)
            .collect();
        for message in &received.messages {
            // Nothing was received before: so nothing is here because an acknowledgement was lost.
            assert_eq!(message.receive_count, 1);
            let body = message.envelope.get().to_owned();
            let envelope: Envelope = serde_json::from_str(&body).expect("an envelope");
            drained
                .entry(message.correlation_id.clone())
                .or_default()
                .push((envelope.message_id, body));
        }
        let answer = client
            .post(&format!("{queue}/ack"), &json!({ "receipt_handles": handles }))
            .await;
        let acknowledged: Acknowledged = serde_json::from_slice(&answer).expect("an answer");
        assert_eq!(acknowledged.ok.len(), handles.len(), "all are acknowledged");
    }
}

/// What was committed has arrived, once each, unchanged, in its story's order, and nothing else.
pub(crate) fn compare(written: &BTreeMap<String, Vec<Written>>, drained: &BTreeMap<String, Vec<Written>>) {
    let ids = |messages: &[Written]| messages.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    for (story, messages) in written {
        let arrived = drained.get(story).map_or(&[][..], Vec::as_slice);
        assert_eq!(ids(messages), ids(arrived), "story {story}");
        for ((id, sent), (_, got)) in messages.iter().zip(arrived) {
            assert_eq!(sent, got, "the bytes of {id}");
        }
    }
    let unknown: Vec<_> = drained
        .keys()
        .filter(|story| !written.contains_key(*story))
        .collect();
    assert!(unknown.is_empty(), "stories that nobody wrote: {unknown:?}");
}
