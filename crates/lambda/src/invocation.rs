//! One invocation of a function, as Lambda tells of it.

use lambda_runtime::Context;
use storybus_core::domain::time::Millis;

use crate::logs;

/// Which invocation it is and when Lambda ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Its name.
    pub request_id: String,
    /// When the function is ended, whatever it does.
    pub deadline: Millis,
    /// X-Ray's name for what it belongs to.
    pub trace_id: Option<String>,
}

impl From<&Context> for Invocation {
    fn from(context: &Context) -> Self {
        Self {
            request_id: context.request_id.clone(),
            deadline: Millis(i64::try_from(context.deadline).unwrap_or(i64::MAX)),
            trace_id: context.xray_trace_id.clone(),
        }
    }
}

impl Invocation {
    /// From now on log lines are about this invocation, until [`logs::end`].
    pub fn begin(&self, traceparent: Option<&str>) {
        logs::begin(logs::Request {
            request_id: self.request_id.clone(),
            trace_id: self.trace_id.clone(),
            traceparent: traceparent.filter(|t| is_traceparent(t)).map(str::to_owned),
        });
    }
}

/// Whether it is one (W3C Trace Context, version 00): anything else is not logged, since clients choose it.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|p| p.len()).eq([2, 32, 16, 2])
        && parts.iter().all(|p| {
            p.bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        })
}

#[cfg(test)]
mod tests {
    use super::is_traceparent;

    #[test]
    fn traceparents() {
        assert!(is_traceparent(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        ));
        for other in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-secret",
        ] {
            assert!(!is_traceparent(other), "{other}");
        }
    }
}
