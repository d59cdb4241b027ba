//! Lambda's runtime API for one function.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as Waiting, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::proxy::locked;
use crate::wire::Message;

/// What a function said at the end of an invocation: its answer, or that it failed.
pub(crate) type Said = Result<String, String>;

/// An invocation.
pub(crate) struct Invocation {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) deadline: i64,
    pub(crate) answer: oneshot::Sender<Said>,
}

/// The API of one function, on a port of its own.
pub(crate) struct Runtime {
    pub(crate) address: String,
    pub(crate) invocations: mpsc::Sender<Invocation>,
    /// What the function said of its start, when that failed.
    pub(crate) init_error: Arc<Mutex<Option<String>>>,
    listening: JoinHandle<()>,
}

struct State {
    next: Waiting<mpsc::Receiver<Invocation>>,
    open: Mutex<Option<(String, oneshot::Sender<Said>)>>,
    init_error: Arc<Mutex<Option<String>>>,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Runtime {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (invocations, next) = mpsc::channel(1);
        let init_error = Arc::default();
        let state = Arc::new(State {
            next: Waiting::new(next),
            open: Mutex::default(),
            init_error: Arc::clone(&init_error),
        });
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move { state.answer(stream).await });
            }
        });
        Self {
            address,
            invocations,
            init_error,
            listening,
        }
    }
}

impl State {
    async fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let request = Message::read(&mut stream).await?;
        let (method, path) = request.asked();
        let words: Vec<&str> = path.trim_start_matches('/').split('/').skip(1).collect();
        let text = || String::from_utf8_lossy(&request.body).into_owned();
        match (method, &words[..]) {
            ("GET", ["runtime", "invocation", "next"]) => {
                let invocation = self.next.lock().await.recv().await?;
                let deadline = invocation.deadline.to_string();
                let headers = [
                    ("content-type", "application/json"),
                    ("lambda-runtime-aws-request-id", invocation.id.as_str()),
                    ("lambda-runtime-deadline-ms", deadline.as_str()),
                    (
                        "lambda-runtime-invoked-function-arn",
                        "arn:aws:lambda:us-east-1:000000000000:function:proof",
                    ),
                    (
                        "lambda-runtime-trace-id",
                        "Root=1-68e0b9a8-0123456789abcdef01234567",
                    ),
                ];
                let answer = Message::answer(200, &headers, invocation.event);
                *locked(&self.open) = Some((invocation.id, invocation.answer));
                answer.write(&mut stream).await
            }
            ("POST", ["runtime", "invocation", id, end @ ("response" | "error")]) => {
                let said = if *end == "response" {
                    Ok(text())
                } else {
                    Err(text())
                };
                let open = locked(&self.open).take_if(|(open, _)| open == id);
                // without one it is the answer to an invocation that was ended before
                if let Some((_, answer)) = open {
                    let _ = answer.send(said);
                }
                Message::answer(202, &[], r#"{"status":"OK"}"#)
                    .write(&mut stream)
                    .await
            }
            ("POST", ["runtime", "init", "error"]) => {
                *locked(&self.init_error) = Some(text());
                Message::answer(202, &[], r#"{"status":"OK"}"#)
                    .write(&mut stream)
                    .await
            }
            _ => Message::answer(404, &[], "").write(&mut stream).await,
        }
    }
}
