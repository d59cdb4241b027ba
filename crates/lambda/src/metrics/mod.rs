//! Metrics: one line an invocation in CloudWatch's embedded metric format, from which CloudWatch makes them without a call of ours.
//!
//! The line is the invocation's log line too: beside the numbers it says route, status, rule and the ids.
//!
//! Each combination of dimensions is paid for, so there are few, and all of them are bounded: the deployment with the function; with
//! route and status; with the rule of a refusal, where the schemas' rules count as one a schema. Ids are only in the line.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

mod line;
mod timed;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use storybus_core::domain::time::Millis;

pub use line::{Directive, Property};
pub use timed::{TimedLedger, TimedTopic, timed};

use crate::logs::Lines;

/// The namespace of every metric.
pub const NAMESPACE: &str = "StoryBus";
/// The most values of one metric in a line.
const MOST_VALUES: usize = 100;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// How many.
    Count,
    /// How long.
    Milliseconds,
}

/// The numbers of one name.
#[derive(Debug, Clone, PartialEq)]
struct Metric {
    name: &'static str,
    unit: Unit,
    values: Vec<f64>,
}

/// Gathers the numbers of an invocation.
pub struct Meter {
    deployment: String,
    function: &'static str,
    lines: Lines,
    metrics: Mutex<Vec<Metric>>,
}

impl Meter {
    /// A meter of a function.
    #[must_use]
    pub fn new(deployment: impl Into<String>, function: &'static str, lines: Lines) -> Arc<Self> {
        Arc::new(Self {
            deployment: deployment.into(),
            function,
            lines,
            metrics: Mutex::default(),
        })
    }

    /// So many more of something.
    pub fn count(&self, name: &'static str, number: usize) {
        #[expect(clippy::cast_precision_loss, reason = "counts of one invocation are small")]
        let number = number as f64;
        let mut metrics = self.metrics();
        match metrics.iter_mut().find(|m| m.name == name) {
            Some(metric) => metric.values.iter_mut().for_each(|value| *value += number),
            None => metrics.push(Metric {
                name,
                unit: Unit::Count,
                values: vec![number],
            }),
        }
    }

    /// Something took so long.
    pub fn time(&self, name: &'static str, millis: f64) {
        let mut metrics = self.metrics();
        match metrics.iter_mut().find(|m| m.name == name) {
            Some(metric) if metric.values.len() < MOST_VALUES => metric.values.push(millis),
            Some(_) => {}
            None => metrics.push(Metric {
                name,
                unit: Unit::Milliseconds,
                values: vec![millis],
            }),
        }
    }

    /// Writes the line of the invocation, and begins anew.
    pub fn finish(&self, now: Millis, directives: &[Directive], properties: &[Property<'_>]) {
        let metrics = std::mem::take(&mut *self.metrics());
        let line = line::write(self, now, &metrics, directives, properties);
        (self.lines)(&line);
    }

    fn metrics(&self) -> MutexGuard<'_, Vec<Metric>> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
