//! The queues that the template makes.

use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName as Name;
use storybus_aws::Config;

/// Makes them.
pub(crate) async fn create(shared: &SdkConfig, config: &Config) {
    let client = Client::new(shared);
    for name in [
        config.archive_queue_name(),
        config.archive_undelivered_name(),
        config.dead_letters_name(),
        config.job_queue_name("replay"),
        config.job_queue_name("redrive"),
    ] {
        let create = client.create_queue().queue_name(name);
        create
            .attributes(Name::FifoQueue, "true")
            .attributes(Name::DeduplicationScope, "messageGroup")
            .attributes(Name::FifoThroughputLimit, "perMessageGroupId")
            .attributes(Name::VisibilityTimeout, "180")
            .send()
            .await
            .unwrap();
    }
}
