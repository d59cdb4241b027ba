//! The clients of one deployment.

use std::sync::Arc;

use aws_config::SdkConfig;

use crate::call::{Caller, retries_off, time_limits};
use crate::config::Config;

/// A deployment and the clients that reach it. Cheap to clone; a client connects when it is first used.
#[derive(Clone)]
pub struct Aws {
    pub(crate) config: Arc<Config>,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sns: aws_sdk_sns::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) caller: Caller,
    shared: SdkConfig,
}

impl Aws {
    /// The clients, by settings that were loaded as every AWS tool loads them. Their own retries are turned off and their time is
    /// limited, whatever the settings say.
    #[must_use]
    pub fn new(shared: &SdkConfig, config: Config) -> Self {
        let shared = shared
            .to_builder()
            .retry_config(retries_off())
            .timeout_config(time_limits())
            .build();
        Self {
            config: Arc::new(config),
            dynamodb: aws_sdk_dynamodb::Client::new(&shared),
            sns: aws_sdk_sns::Client::new(&shared),
            sqs: aws_sdk_sqs::Client::new(&shared),
            caller: Caller,
            shared,
        }
    }

    /// Its names.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// For the alarms of a consumer.
    pub(crate) fn cloudwatch(&self) -> aws_sdk_cloudwatch::Client {
        aws_sdk_cloudwatch::Client::new(&self.shared)
    }

    /// For the keys that sign tokens.
    pub(crate) fn secrets(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&self.shared)
    }
}
