//! A handler that breaks off.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_api::Api;
use storybus_core::domain::message::Publication;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;
use storybus_lambda::http::Front;

use crate::world::{World, json};

struct Broken;

#[async_trait]
impl Topic for Broken {
    async fn publish(&self, _: &Publication, _: Duration) -> Result<(), PublishError> {
        panic!("broken on purpose");
    }
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_next_request_works() {
    let world = World::new().await;
    let broken = world.bus.with_ports(|ports| ports.topic = Arc::new(Broken));
    let front = Front::new(Api::new(broken), Arc::clone(&world.meter));
    let publish = world
        .event(include_str!("../../../../events/http/publish.json"))
        .await;
    let answer = front.answer(&publish, &world.invocation()).await;
    assert_eq!(answer.status_code, 500);
    assert_eq!(json(&answer)["violations"][0]["rule"], "bus.internal_error");
    let line = world.line();
    assert_eq!(
        (line["Panics"].as_f64(), line["Failures"].as_f64()),
        (Some(1.0), Some(1.0))
    );
    let openapi = world
        .event(include_str!("../../../../events/http/openapi.json"))
        .await;
    assert_eq!(front.answer(&openapi, &world.invocation()).await.status_code, 200);
    assert!(world.line()["Panics"].is_null());
}
