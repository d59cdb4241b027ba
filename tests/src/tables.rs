//! The tables of the template, as far as the functions see them.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};

/// Index, its partition key, its sort key.
type Index = (&'static str, &'static str, &'static str);

/// The indexes of the bus's table.
pub(crate) const OF_BUS: &[Index] = &[("by_list", "list_pk", "list_sk")];
/// Those of the archive.
pub(crate) const OF_ARCHIVE: &[Index] = &[
    ("by_message", "m", "sk"),
    ("by_story", "s", "sk"),
    ("by_correlation", "c", "sk"),
];

/// Makes a table.
pub(crate) async fn create(client: &Client, name: &str, indexes: &[Index]) {
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
        let keys = Projection::builder().projection_type(ProjectionType::KeysOnly);
        let index = GlobalSecondaryIndex::builder()
            .index_name(*index)
            .set_key_schema(Some(schema(pk, sk)))
            .projection(keys.build());
        create = create.global_secondary_indexes(index.build().unwrap());
    }
    create.send().await.unwrap();
}

fn schema(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
    let keys = [(pk, KeyType::Hash), (sk, KeyType::Range)];
    keys.into_iter()
        .map(|(name, kind)| {
            let element = KeySchemaElement::builder().attribute_name(name).key_type(kind);
            element.build().unwrap()
        })
        .collect()
}
