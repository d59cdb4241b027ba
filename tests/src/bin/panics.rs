//! The function `publish` with a topic that breaks off at some messages: a panic in the middle of a request.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use storybus_api::Api;
use storybus_core::Bus;
use storybus_core::domain::message::Publication;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;
use storybus_lambda::http::Front;
use storybus_lambda::wiring;

struct Panics(Arc<dyn Topic>);

#[async_trait]
impl Topic for Panics {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        assert_ne!(publication.attributes.message_type, "desk.panic", "on purpose");
        self.0.publish(publication, timeout).await
    }
}

fn main() -> ExitCode {
    storybus_lambda::run("panics", |deployment| {
        let mut ports = wiring::publish(deployment);
        ports.topic = Arc::new(Panics(ports.topic));
        let bus = Bus::new(ports, deployment.settings.bus());
        Front::new(Api::new(bus), Arc::clone(&deployment.meter))
    })
}
