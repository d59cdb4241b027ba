//! A proxy of the test's own before the bus: it loses answers, answers itself, delays, counts.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::bus::pause;

/// What happens to a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes through.
    Through,
    /// It reaches the bus, and its answer is lost.
    AnswerLost,
    /// It never reaches the bus.
    Cut,
    /// The proxy says no in its own words.
    Busy,
    /// It goes through after so many milliseconds.
    Slow(u64),
}

struct Shared {
    bus: String,
    /// The fates of the next publishes, then of all others.
    script: Mutex<(VecDeque<Fate>, Fate)>,
    /// The bodies that came.
    bodies: Mutex<Vec<Vec<u8>>>,
}

pub(super) struct Proxy {
    pub(super) url: String,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Before the bus at this address.
    pub(super) fn start(bus: &str, script: &[Fate], then: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            bus: bus.to_owned(),
            script: Mutex::new((script.iter().copied().collect(), then)),
            bodies: Mutex::default(),
        });
        let all = shared.clone();
        // It ends with the test's process: its threads wait for nobody.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = all.clone();
                thread::spawn(move || converse(&client, &shared));
            }
        });
        Self { url, shared }
    }

    pub(super) fn then(&self, fate: Fate) {
        *self.shared.script.lock().unwrap() = (VecDeque::new(), fate);
    }

    pub(super) fn bodies(&self) -> Vec<Vec<u8>> {
        self.shared.bodies.lock().unwrap().clone()
    }
}

/// The head and the body of a request or an answer.
pub(super) fn read(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if &head[before..] == "\r\n" {
            break;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn converse(client: &TcpStream, shared: &Shared) {
    let mut from = BufReader::new(client);
    let mut bus: Option<TcpStream> = None;
    while let Some((head, body)) = read(&mut from) {
        let fate = if head.starts_with("POST /v1/jwt/messages") {
            shared.bodies.lock().unwrap().push(body.clone());
            let mut script = shared.script.lock().unwrap();
            script.0.pop_front().unwrap_or(script.1)
        } else {
            Fate::Through
        };
        match fate {
            Fate::Cut => return,
            Fate::Busy => {
                let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy";
                if { client }.write_all(busy.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
            Fate::Slow(ms) => pause(ms),
            Fate::Through | Fate::AnswerLost => {}
        }
        // A bus that has gone, or has closed an idle connection, ends the client's too.
        let Some(stream) = bus.take().or_else(|| TcpStream::connect(&shared.bus).ok()) else {
            return;
        };
        if { &stream }.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
        let Some(answer) = read(&mut BufReader::new(&stream)) else {
            return;
        };
        bus = Some(stream);
        if fate == Fate::AnswerLost {
            return;
        }
        if { client }
            .write_all(&[answer.0.as_bytes(), &answer.1].concat())
            .is_err()
        {
            return;
        }
    }
}
