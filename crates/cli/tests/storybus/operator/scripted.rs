//! A bus that answers as it was told to: for what a real one does not do on demand.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bus::Home;

/// What it does with a request.
#[derive(Clone)]
pub(super) enum Turn {
    /// Answers.
    Answer(u16, String),
    /// Takes the request and closes the connection: the answer is lost.
    Lose,
}

impl From<Value> for Turn {
    fn from(body: Value) -> Self {
        Self::Answer(200, body.to_string())
    }
}

/// A request as it came: method and path with its query, and the body.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) body: Value,
}

/// A scripted bus. It ends with the process of the tests.
pub(super) struct Script {
    asked: Arc<Mutex<Vec<Asked>>>,
    pub(super) home: Home,
}

impl Script {
    /// A bus with these turns: for each `METHOD /path?query` the answers in order, of which the last stays.
    pub(super) fn new(turns: &[(&str, &[Turn])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = Home::new();
        let credentials = json!({
            "base_url": format!("http://{}/v1/", listener.local_addr().unwrap()),
            "operator": {"client_id": "o1", "client_secret": "s"},
            "tenant": "w1",
        });
        std::fs::write(home.path("kept.json"), credentials.to_string()).unwrap();
        let mut turns: Vec<(String, VecDeque<Turn>)> = turns
            .iter()
            .map(|(line, turns)| ((*line).to_owned(), turns.iter().cloned().collect()))
            .collect();
        let workspace = json!({"tenant": "w1", "name": "one"});
        let consumer = json!({"client_id": "c1", "tenant": "w1", "name": "rundown", "paused": false, "disabled": false,
            "message_types": [], "topic_prefixes": [], "sources": [], "max_receives": 5, "visibility_seconds": 60});
        let token = json!({"access_token": "x.e30.x", "token_type": "Bearer", "expires_in": 3600, "scope": "sombus/admin"});
        for (line, body) in [
            ("POST /v1/oauth/token", token),
            ("GET /v1/admin/tenants/w1", workspace.clone()),
            (
                "GET /v1/admin/tenants?limit=1000",
                json!({ "tenants": [workspace] }),
            ),
            ("GET /v1/admin/tenants/w1/consumers/c1", consumer.clone()),
            (
                "GET /v1/admin/tenants/w1/consumers?limit=1000",
                json!({ "consumers": [consumer] }),
            ),
        ] {
            turns.push((line.to_owned(), VecDeque::from([Turn::from(body)])));
        }
        turns.push((
            "GET /v1/admin/tenants/w1/consumers/rundown".to_owned(),
            VecDeque::from([Turn::Answer(
                404,
                refusal("consumer.not_found", "no such consumer"),
            )]),
        ));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &mut turns, &heard);
            }
        });
        Self { asked, home }
    }

    /// What was asked, but for tokens.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let asked = self.asked.lock().unwrap().clone();
        asked.into_iter().filter(|a| !a.line.ends_with("token")).collect()
    }
}

fn serve(mut stream: TcpStream, turns: &mut [(String, VecDeque<Turn>)], heard: &Mutex<Vec<Asked>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))
        .map_or(0, |v| v.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let line = head.lines().next().unwrap();
    let line = line.strip_suffix(" http/1.1").unwrap();
    let (method, path) = line.split_once(' ').unwrap();
    let line = format!("{} {path}", method.to_ascii_uppercase());
    heard.lock().unwrap().push(Asked {
        line: line.clone(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let turn = turns
        .iter_mut()
        .find(|(known, _)| known.eq_ignore_ascii_case(&line))
        .map(|(_, turns)| {
            if turns.len() > 1 {
                turns.pop_front().unwrap()
            } else {
                turns[0].clone()
            }
        });
    let not_found = || refusal("route.not_found", &format!("nothing is scripted for {line}"));
    let (status, body) = match turn {
        Some(Turn::Lose) => return,
        Some(Turn::Answer(status, body)) => (status, body),
        None => (404, not_found()),
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).unwrap();
}

/// A refusal's body.
pub(super) fn refusal(rule: &str, message: &str) -> String {
    json!({"accepted": false, "violations": [{"source": "policy", "rule": rule, "message": message}]})
        .to_string()
}
