//! The line.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use storybus_core::domain::time::Millis;

use super::{Meter, Metric, NAMESPACE, Unit};

/// A set of dimensions, beside the deployment, by which `Requests` alone are counted too. All are properties of the line.
pub type Directive = &'static [&'static str];

/// Something that the line says beside its numbers.
pub type Property<'a> = (&'static str, Cow<'a, str>);

pub(super) fn write(
    meter: &Meter,
    now: Millis,
    metrics: &[Metric],
    directives: &[Directive],
    properties: &[Property<'_>],
) -> String {
    let all: Vec<Value> = metrics.iter().map(described).collect();
    let mut told = vec![json!({
        "Namespace": NAMESPACE,
        "Dimensions": [["Deployment", "Function"]],
        "Metrics": all,
    })];
    for dimensions in directives {
        let mut whole = vec!["Deployment"];
        whole.extend_from_slice(dimensions);
        told.push(json!({
            "Namespace": NAMESPACE,
            "Dimensions": [whole],
            "Metrics": [{"Name": "Requests", "Unit": "Count"}],
        }));
    }
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({"Timestamp": now.0, "CloudWatchMetrics": told}),
    );
    line.insert("Deployment".to_owned(), json!(meter.deployment));
    line.insert("Function".to_owned(), json!(meter.function));
    for (name, value) in properties {
        line.insert((*name).to_owned(), json!(value));
    }
    for metric in metrics {
        let value = match &metric.values[..] {
            [one] => json!(one),
            several => json!(several),
        };
        line.insert(metric.name.to_owned(), value);
    }
    Value::Object(line).to_string()
}

fn described(metric: &Metric) -> Value {
    let unit = match metric.unit {
        Unit::Count => "Count",
        Unit::Milliseconds => "Milliseconds",
    };
    json!({"Name": metric.name, "Unit": unit})
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_line_names_what_it_holds() {
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let meter = Meter::new(
            "bus",
            "publish",
            Arc::new(move |line| kept.lock().unwrap().push(serde_json::from_str(line).unwrap())),
        );
        meter.count("Requests", 1);
        meter.time("LedgerRecord", 2.5);
        meter.time("LedgerMark", 1.0);
        meter.time("LedgerMark", 1.5);
        meter.count("Claims", 1);
        meter.count("Claims", 1);
        meter.finish(
            Millis(7),
            &[&["Route", "Status"]],
            &[("Route", "/jwt/messages".into()), ("Status", "202".into())],
        );
        meter.finish(Millis(8), &[], &[]);
        let lines = lines.lock().unwrap();
        let all = json!([
            {"Name": "Requests", "Unit": "Count"}, {"Name": "LedgerRecord", "Unit": "Milliseconds"},
            {"Name": "LedgerMark", "Unit": "Milliseconds"}, {"Name": "Claims", "Unit": "Count"},
        ]);
        assert_eq!(
            lines[0],
            json!({
                "_aws": {"Timestamp": 7, "CloudWatchMetrics": [
                    {"Namespace": "StoryBus", "Dimensions": [["Deployment", "Function"]], "Metrics": all},
                    {"Namespace": "StoryBus", "Dimensions": [["Deployment", "Route", "Status"]],
                        "Metrics": [{"Name": "Requests", "Unit": "Count"}]},
                ]},
                "Deployment": "bus", "Function": "publish", "Route": "/jwt/messages", "Status": "202",
                "Requests": 1.0, "LedgerRecord": 2.5, "LedgerMark": [1.0, 1.5], "Claims": 2.0,
            })
        );
        assert_eq!(lines[1]["_aws"]["CloudWatchMetrics"][0]["Metrics"], json!([]));
    }
}
