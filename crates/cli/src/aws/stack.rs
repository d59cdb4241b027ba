//! Where a deployed bus lies: what its stack's outputs say.

use std::collections::HashMap;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudformation::error::DisplayErrorContext;
use storybus_aws::{ARCHIVE_SETTLE, Aws, Config};

use super::StackArgs;
use crate::exit::Failure;

/// A deployed bus.
pub(super) struct Stack {
    pub(super) aws: Aws,
    pub(super) base_url: String,
}

/// Asks CloudFormation.
pub(super) async fn find(args: &StackArgs) -> Result<Stack, Failure> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(region) = &args.region {
        loader = loader.region(Region::new(region.clone()));
    }
    let shared = loader.load().await;
    if shared.region().is_none() {
        return Err(Failure::unusable(
            "which region? Give --region, AWS_REGION or an AWS profile that has one",
        ));
    }
    let client = aws_sdk_cloudformation::Client::new(&shared);
    let found = client.describe_stacks().stack_name(&args.stack).send().await;
    let found = found.map_err(|error| {
        // What the service says itself: its answer as the SDK would print it is for the SDK's authors.
        let why = match error.as_service_error() {
            Some(said) => said.meta().message().unwrap_or("it does not say why").to_owned(),
            None => DisplayErrorContext(&error).to_string(),
        };
        Failure::unusable(format!("the stack {} cannot be looked at: {why}", args.stack))
    })?;
    let Some(stack) = found.stacks().first() else {
        return Err(Failure::unusable(format!("there is no stack {}", args.stack)));
    };
    let outputs: HashMap<&str, &str> = stack
        .outputs()
        .iter()
        .filter_map(|output| Some((output.output_key()?, output.output_value()?)))
        .collect();
    let output = |key: &str| {
        outputs.get(key).map(|value| (*value).to_owned()).ok_or_else(|| {
            Failure::unusable(format!(
                "the stack {} has no output {key}: it is not a bus of this version, or its deployment has not ended well",
                args.stack
            ))
        })
    };
    let days = output("ArchiveDays")?.parse().unwrap_or(30);
    let place = Place::of(stack.stack_id().unwrap_or_default()).ok_or_else(|| {
        Failure::unusable(format!("the stack {} has an id that cannot be read", args.stack))
    })?;
    let config = Config {
        prefix: args.stack.clone(),
        queue_endpoint: queue_endpoint(&shared, &place),
        partition: place.partition,
        region: place.region,
        account: place.account,
        table: output("Table")?,
        archive_table: output("ArchiveTable")?,
        archive_retention: Duration::from_secs(24 * 3600 * days),
        archive_settle: ARCHIVE_SETTLE,
        signing_keys: output("SigningKeys")?,
        alarm_topic: None,
    };
    Ok(Stack {
        base_url: output("BaseUrl")?,
        aws: Aws::new(&shared, config),
    })
}

fn queue_endpoint(shared: &SdkConfig, place: &Place) -> String {
    match shared.endpoint_url() {
        Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
        None => {
            let suffix = if place.partition == "aws-cn" { ".cn" } else { "" };
            format!("https://sqs.{}.amazonaws.com{suffix}", place.region)
        }
    }
}

/// What an ARN says of where a thing lies.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    partition: String,
    region: String,
    account: String,
}

impl Place {
    fn of(arn: &str) -> Option<Self> {
        let mut parts = arn.split(':');
        let (Some("arn"), partition, _, region, account) = (
            parts.next(),
            parts.next()?,
            parts.next()?,
            parts.next()?,
            parts.next()?,
        ) else {
            return None;
        };
        Some(Self {
            partition: partition.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_says_where_a_thing_lies() {
        let place = Place::of("arn:aws-cn:cloudformation:cn-north-1:111122223333:stack/bus/0199");
        let place = place.unwrap_or_else(|| unreachable!());
        assert_eq!(
            (&*place.partition, &*place.region, &*place.account),
            ("aws-cn", "cn-north-1", "111122223333")
        );
        assert_eq!(Place::of(""), None);
        assert_eq!(Place::of("bus"), None);
    }
}
