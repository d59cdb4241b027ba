//! The tables, as the template makes them, but for the deletion of what has expired: the suites' clock is not the emulator's.

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};
use storybus_aws::Config;

/// Index, its partition key, its sort key.
type Index = (&'static str, &'static str, &'static str);

/// Makes the bus's.
pub(crate) async fn bus(shared: &SdkConfig, config: &Config) {
    let client = Client::new(shared);
    table(&client, &config.table, &[("by_list", "list_pk", "list_sk")]).await;
}

/// Makes the archive's.
pub(crate) async fn archive(shared: &SdkConfig, config: &Config) {
    let client = Client::new(shared);
    let of_archive = [
        ("by_message", "m", "sk"),
        ("by_story", "s", "sk"),
        ("by_correlation", "c", "sk"),
    ];
    table(&client, &config.archive_table, &of_archive).await;
}

async fn table(client: &Client, name: &str, indexes: &[Index]) {
    let mut attributes = vec!["pk", "sk"];
    for (_, pk, sk) in indexes {
        attributes.extend([*pk, *sk].into_iter().filter(|a| *a != "sk"));
    }
    let mut create = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(schema("pk", "sk")));
    for attribute in attributes {
        let definition = AttributeDefinition::builder()
            .attribute_name(attribute)
            .attribute_type(ScalarAttributeType::S);
        create = create.attribute_definitions(definition.build().unwrap());
    }
    for (index, pk, sk) in indexes {
        let index = GlobalSecondaryIndex::builder()
            .index_name(*index)
            .set_key_schema(Some(schema(pk, sk)))
            .projection(
                Projection::builder()
                    .projection_type(ProjectionType::KeysOnly)
                    .build(),
            );
        create = create.global_secondary_indexes(index.build().unwrap());
    }
    create.send().await.unwrap();
}

fn schema(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
    [(pk, KeyType::Hash), (sk, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
                .unwrap()
        })
        .collect()
}
