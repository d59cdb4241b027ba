//! What goes over the wire: how many requests a publish takes, and what is sure when one of them is lost, late, refused or throttled.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../engine/mod.rs"]
mod engine;
mod faults;
mod foreign;
mod forged;
mod gone;
#[path = "../proxy/mod.rs"]
mod proxy;
mod rates;
mod requests;
mod signing_keys;
mod topic;

use storybus_aws::Aws;

use proxy::Proxy;

/// The engine's factory is the suites'; here only its deployments are used.
const _: &dyn storybus_testkit::suite::Factory = &engine::AwsFactory;

/// A fresh deployment, reached through a proxy of its own and past it.
pub(crate) struct Wire {
    /// Through the proxy.
    pub(crate) aws: Aws,
    /// Past it.
    pub(crate) direct: Aws,
    pub(crate) proxy: Proxy,
}

impl Wire {
    pub(crate) async fn new() -> Self {
        let direct = engine::deployment().await;
        let proxy = Proxy::start(engine::address()).await;
        let aws = Aws::new(&engine::shared_at(proxy.address()), direct.config().clone());
        Self { aws, direct, proxy }
    }

    /// Makes a workspace's topic.
    pub(crate) async fn topic(&self, workspace: &str) {
        let name = self.direct.config().topic_name(&workspace.parse().unwrap());
        aws_sdk_sns::Client::new(&engine::shared())
            .create_topic()
            .name(name)
            .attributes("FifoTopic", "true")
            .attributes("FifoThroughputScope", "MessageGroup")
            .send()
            .await
            .unwrap();
    }
}
