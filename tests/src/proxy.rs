//! Between one function and AWS: knows each call, and does to it what the plan says.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::fault::{Fault, Freeze, Plan};
use crate::stack::now;
use crate::wire::{Message, until_closed};

/// A publication that AWS was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Its deduplication id: workspace and message.
    pub message: String,
    /// The invocation that it is of.
    pub invocation: u64,
    /// When AWS was given it and when it had answered, ms.
    pub at: (i64, i64),
}

/// The publications of all functions.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<Passed>>>);

impl Journal {
    /// Those of a message, in their order.
    #[must_use]
    pub fn of(&self, message: &str) -> Vec<Passed> {
        let mut all: Vec<Passed> = locked(&self.0)
            .iter()
            .filter(|passed| passed.message == message)
            .cloned()
            .collect();
        all.sort_by_key(|passed| passed.at);
        all
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct State {
    upstream: String,
    plan: Mutex<Plan>,
    calls: AtomicUsize,
    names: Mutex<Vec<String>>,
    process: OnceLock<Pid>,
    invocation: AtomicU64,
    struck: watch::Sender<bool>,
    journal: Journal,
}

/// A proxy on a port of its own. It ends with this; what it has been given still arrives.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: String,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    pub(crate) async fn start(upstream: &str, plan: Plan, journal: Journal) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            upstream: upstream.trim_start_matches("http://").to_owned(),
            plan: Mutex::new(plan),
            calls: AtomicUsize::default(),
            names: Mutex::default(),
            process: OnceLock::new(),
            invocation: AtomicU64::default(),
            struck: watch::Sender::new(false),
            journal,
        });
        let shared = Arc::clone(&state);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // whatever goes wrong, the connection closes
                tokio::spawn(async move { state.pass(stream).await });
            }
        });
        Self {
            address,
            state,
            listening,
        }
    }

    /// Whose calls these are.
    pub(crate) fn of(&self, process: Pid) {
        let _ = self.state.process.set(process);
    }

    /// From now on calls are of this invocation.
    pub(crate) fn begin(&self, invocation: u64) {
        self.state.invocation.store(invocation, Ordering::SeqCst);
    }

    /// The calls until now, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        locked(&self.state.names).clone()
    }

    /// Another plan from now on, and calls are counted anew.
    pub(crate) fn plan(&self, plan: Plan) {
        *locked(&self.state.plan) = plan;
        self.state.calls.store(0, Ordering::SeqCst);
        locked(&self.state.names).clear();
        self.state.struck.send_replace(false);
    }

    /// Whether the one fault has struck.
    pub(crate) fn struck(&self) -> watch::Receiver<bool> {
        self.state.struck.subscribe()
    }
}

impl State {
    async fn pass(&self, mut client: TcpStream) -> Option<()> {
        let request = Message::read(&mut client).await?;
        let name = request.operation();
        let fault = {
            let mut plan = locked(&self.plan);
            let n = self.calls.fetch_add(1, Ordering::SeqCst);
            locked(&self.names).push(name.clone());
            plan.strikes(n, &name)
        };
        let Some((fault, once)) = fault else {
            let answer = self.forward(request).await?;
            return answer.write(&mut client).await;
        };
        let json = request.header("x-amz-target").is_some();
        let struck = || {
            if once {
                self.struck.send_replace(true);
            }
        };
        match fault {
            Fault::KillBefore => {
                self.signal(Signal::KILL);
                struck();
                None
            }
            Fault::KillAfter => {
                self.forward(request).await;
                self.signal(Signal::KILL);
                struck();
                None
            }
            Fault::RequestLost => {
                struck();
                None
            }
            Fault::AnswerLost => {
                self.forward(request).await;
                struck();
                None
            }
            Fault::LateAnswer(by) => {
                let answer = self.forward(request).await?;
                struck();
                tokio::time::sleep(by).await;
                answer.write(&mut client).await
            }
            Fault::LateRequest(by) => {
                struck();
                tokio::time::sleep(by).await;
                self.forward(request).await?.write(&mut client).await
            }
            Fault::Hang => {
                self.forward(request).await;
                struck();
                until_closed(&mut client).await;
                None
            }
            Fault::Answered(status, code) => {
                struck();
                error(status, code, json).write(&mut client).await
            }
            Fault::DeliveredBut(status, code) => {
                self.forward(request).await;
                struck();
                error(status, code, json).write(&mut client).await
            }
            Fault::Frozen(freeze, span) => {
                let mut request = Some(request);
                let mut answer = None;
                self.signal(Signal::STOP);
                if freeze == Freeze::Delivered {
                    answer = self.forward(request.take()?).await;
                }
                struck();
                tokio::time::sleep(span).await;
                if freeze == Freeze::Held {
                    answer = self.forward(request.take()?).await;
                }
                self.signal(Signal::CONT);
                answer?.write(&mut client).await
            }
        }
    }

    async fn forward(&self, request: Message) -> Option<Message> {
        let published = (request.operation() == "Publish").then(|| request.field("MessageDeduplicationId"));
        let invocation = self.invocation.load(Ordering::SeqCst);
        let from = now();
        let mut upstream = TcpStream::connect(&self.upstream).await.ok()?;
        request.closing().write(&mut upstream).await?;
        let answer = Message::read(&mut upstream).await?.closing();
        if let Some(Some(message)) = published
            && answer.head.starts_with("HTTP/1.1 200")
        {
            locked(&self.journal.0).push(Passed {
                message,
                invocation,
                at: (from, now()),
            });
        }
        Some(answer)
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.get() {
            // it may be gone
            let _ = kill_process(*process, signal);
        }
    }
}

/// An error of a service, in its protocol.
fn error(status: u16, code: &str, json: bool) -> Message {
    let (kind, text) = if json {
        (
            "application/x-amz-json-1.0",
            format!(r#"{{"__type":"com.amazonaws.tests#{code}","message":"by the proxy"}}"#),
        )
    } else {
        (
            "text/xml",
            format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>by the proxy</Message></Error></ErrorResponse>"
            ),
        )
    };
    Message::answer(status, &[("content-type", kind)], text)
}
