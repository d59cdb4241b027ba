//! The API described for machines: the documents of `docs/`, for anybody.
//!
//! They are written by hand, since they say what the wire contract says and not what the code happens to do; tests hold
//! them to the table of routes, to the rules, to the schemas of SOM, and to what the routes answer.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;

use crate::answer;
use crate::context::Outcome;
use crate::request::Call;

/// OpenAPI 3.1: every route, what it takes and what it answers.
static OPENAPI: &str = include_str!("../../../../docs/openapi.json");
/// AsyncAPI 3.0: what consumers receive.
static ASYNCAPI: &str = include_str!("../../../../docs/asyncapi.json");

/// `GET /openapi.json`.
pub(super) async fn openapi(_: &Bus, _: &Call, _: &mut Outcome) -> Result<Response<Bytes>, Refusal> {
    Ok(answer::raw(StatusCode::OK, OPENAPI))
}

/// `GET /asyncapi.json`.
pub(super) async fn asyncapi(_: &Bus, _: &Call, _: &mut Outcome) -> Result<Response<Bytes>, Refusal> {
    Ok(answer::raw(StatusCode::OK, ASYNCAPI))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::{SIGNED, TABLE};
    use super::OPENAPI;

    #[test]
    fn every_route_is_documented_and_nothing_else() {
        let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let documented: BTreeSet<String> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods");
                methods
                    .keys()
                    .map(move |m| format!("{} {path}", m.to_uppercase()))
            })
            .collect();
        let routes: BTreeSet<String> = TABLE
            .iter()
            .chain(SIGNED)
            .map(|route| format!("{} {}", route.method, route.template))
            .collect();
        assert_eq!(routes, documented);
    }
}
