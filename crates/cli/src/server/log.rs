//! One line a request.
//!
//! A line says which route, by its template, never the path, the query, a header or a body: those carry receipts, secrets
//! and what newsrooms write.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use storybus_api::Outcome;
use tokio::time::Instant;

/// How many refusals are logged a second; what is over is counted in one line.
const REFUSALS_A_SECOND: u32 = 50;

/// The log of requests. A client that is refused all the time must not fill the disk with it.
pub(super) struct RequestLog(Mutex<Second>);

struct Second {
    began: Instant,
    logged: u32,
    left_out: u64,
}

impl Default for RequestLog {
    fn default() -> Self {
        Self(Mutex::new(Second {
            began: Instant::now(),
            logged: 0,
            left_out: 0,
        }))
    }
}

impl RequestLog {
    /// Logs a request: our own faults as warnings, refusals as information, the rest for debugging.
    pub(super) fn request(
        &self,
        method: &Method,
        status: StatusCode,
        outcome: &Outcome,
        took: Duration,
        source: &str,
    ) {
        let (route, rule) = (
            outcome.route.unwrap_or("-"),
            outcome.rule.as_deref().unwrap_or("-"),
        );
        let client = outcome.connection.as_ref().map_or("-", |c| c.as_str());
        let message_id = outcome.message_id.as_deref().unwrap_or("-");
        let (status, ms) = (status.as_u16(), (took.as_secs_f64() * 1e6).round() / 1e3);
        let method = method.as_str().get(..10).unwrap_or(method.as_str());
        if status < 400 {
            tracing::debug!(method, route, status, client, message_id, ms, "answered");
        } else if !self.may_log() {
            // Counted there.
        } else if status >= 500 {
            tracing::warn!(method, route, status, rule, client, message_id, ms, "failed");
        } else if let Some(tried) = &outcome.tried {
            let tried = tried.as_str();
            tracing::info!(method, route, status, rule, tried, source, ms, "refused");
        } else {
            tracing::info!(method, route, status, rule, client, message_id, ms, "refused");
        }
    }

    fn may_log(&self) -> bool {
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now.duration_since(second.began) >= Duration::from_secs(1) {
            if second.left_out > 0 {
                tracing::info!(
                    count = second.left_out,
                    "more requests were refused than are logged"
                );
            }
            *second = Second {
                began: now,
                logged: 0,
                left_out: 0,
            };
        }
        if second.logged >= REFUSALS_A_SECOND {
            second.left_out += 1;
            return false;
        }
        second.logged += 1;
        true
    }
}
