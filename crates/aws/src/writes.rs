//! Conditional writes: one item alone, or several in one transaction.
//!
//! Every one returns the items that its conditions failed on, so that a repetition of ours is told from a rival: whoever decides
//! compares tokens. A transaction is repeated under one client token; DynamoDB then answers as it did the first time, for 10 minutes
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>).

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use sha2::{Digest, Sha256};
use storybus_core::ports::StoreError;

use crate::Aws;
use crate::call::{Failed, Outcome};
use crate::item::{Item, unreadable};
use crate::keys::hex;

#[derive(Debug, Clone)]
enum Kind {
    Put,
    Update(String),
    Delete,
    Check,
}

/// One item's part of a write. A `#name` in its expressions stands for the attribute `name`: some names are words of DynamoDB.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    kind: Kind,
    /// The whole item of a put, the key of everything else.
    item: Item,
    condition: Option<String>,
    values: HashMap<String, AttributeValue>,
}

impl Action {
    fn new(kind: Kind, item: Item) -> Self {
        Self {
            kind,
            item,
            condition: None,
            values: HashMap::new(),
        }
    }

    /// Writes a whole item.
    pub(crate) fn put(item: Item) -> Self {
        Self::new(Kind::Put, item)
    }

    /// Changes attributes.
    pub(crate) fn update(key: Item, expression: impl Into<String>) -> Self {
        Self::new(Kind::Update(expression.into()), key)
    }

    /// Takes an item away.
    pub(crate) fn delete(key: Item) -> Self {
        Self::new(Kind::Delete, key)
    }

    /// Only asks. In a transaction with others, never alone.
    pub(crate) fn check(key: Item) -> Self {
        Self::new(Kind::Check, key)
    }

    /// What must hold.
    pub(crate) fn when(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// A value of the expressions, as `:name`.
    pub(crate) fn value(mut self, name: &str, value: AttributeValue) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    fn names(&self) -> Option<HashMap<String, String>> {
        let update = match &self.kind {
            Kind::Update(expression) => expression.as_str(),
            _ => "",
        };
        let names: HashMap<_, _> = [update, self.condition.as_deref().unwrap_or_default()]
            .into_iter()
            .flat_map(|expression| expression.split('#').skip(1))
            .map(|rest| {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                (format!("#{}", &rest[..end]), rest[..end].to_owned())
            })
            .collect();
        (!names.is_empty()).then_some(names)
    }

    fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }

    fn in_transaction(self, table: &str) -> Result<TransactWriteItem, StoreError> {
        const OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
        let (names, values) = (self.names(), self.values());
        let of = TransactWriteItem::builder();
        let built = match self.kind {
            Kind::Put => Put::builder()
                .table_name(table)
                .set_item(Some(self.item))
                .set_condition_expression(self.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .return_values_on_condition_check_failure(OLD)
                .build()
                .map(|put| of.put(put)),
            Kind::Update(expression) => Update::builder()
                .table_name(table)
                .set_key(Some(self.item))
                .update_expression(expression)
                .set_condition_expression(self.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .return_values_on_condition_check_failure(OLD)
                .build()
                .map(|update| of.update(update)),
            Kind::Delete => Delete::builder()
                .table_name(table)
                .set_key(Some(self.item))
                .set_condition_expression(self.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .return_values_on_condition_check_failure(OLD)
                .build()
                .map(|delete| of.delete(delete)),
            Kind::Check => ConditionCheck::builder()
                .table_name(table)
                .set_key(Some(self.item))
                .set_condition_expression(self.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .return_values_on_condition_check_failure(OLD)
                .build()
                .map(|check| of.condition_check(check)),
        };
        built.map(|built| built.build()).map_err(unreadable)
    }
}

/// What a condition came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Check {
    /// It held, or was not looked at.
    Held,
    /// It failed on this item; none: there is no such item.
    Failed(Option<Item>),
}

impl Check {
    /// Whether it failed, and on what.
    pub(crate) fn failed(&self) -> Option<Option<&Item>> {
        match self {
            Self::Held => None,
            Self::Failed(item) => Some(item.as_ref()),
        }
    }

    /// The item that it failed on.
    pub(crate) fn item(&self) -> Option<&Item> {
        self.failed().flatten()
    }
}

/// What a conditional write came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Committed {
    /// Written, all of it.
    Done,
    /// A condition failed; nothing was written by this try.
    Refused {
        /// One for each action, in their order.
        checks: Vec<Check>,
        /// Whether an earlier try of this call may have been the one that wrote.
        earlier: bool,
    },
}

/// A client token of a transaction that follows from what names it: another as soon as one of the parts is another. DynamoDB knows
/// tokens per account, so the table is one of them.
pub(crate) fn client_token(table: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in [table.as_bytes()].iter().chain(parts) {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

impl Aws {
    /// Writes one item, if its condition holds.
    pub(crate) async fn write_one(&self, table: &str, action: Action) -> Result<Committed, StoreError> {
        self.caller
            .write_knowing(|earlier| {
                let action = action.clone();
                async move {
                    Ok(match self.try_one(table, action).await? {
                        Check::Held => Committed::Done,
                        failed => Committed::Refused {
                            checks: vec![failed],
                            earlier,
                        },
                    })
                }
            })
            .await
    }

    async fn try_one(&self, table: &str, action: Action) -> Result<Check, Failed> {
        const OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
        let (names, values) = (action.names(), action.values());
        match action.kind {
            Kind::Put => {
                let request = self
                    .dynamodb
                    .put_item()
                    .table_name(table)
                    .set_item(Some(action.item))
                    .set_condition_expression(action.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD);
                match request.send().await {
                    Ok(_) => Ok(Check::Held),
                    Err(error) => match error.as_service_error() {
                        Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                            Ok(Check::Failed(failed.item.clone()))
                        }
                        _ => Err(error.into()),
                    },
                }
            }
            Kind::Update(expression) => {
                let request = self
                    .dynamodb
                    .update_item()
                    .table_name(table)
                    .set_key(Some(action.item))
                    .update_expression(expression)
                    .set_condition_expression(action.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD);
                match request.send().await {
                    Ok(_) => Ok(Check::Held),
                    Err(error) => match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                            Ok(Check::Failed(failed.item.clone()))
                        }
                        _ => Err(error.into()),
                    },
                }
            }
            Kind::Delete => {
                let request = self
                    .dynamodb
                    .delete_item()
                    .table_name(table)
                    .set_key(Some(action.item))
                    .set_condition_expression(action.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD);
                match request.send().await {
                    Ok(_) => Ok(Check::Held),
                    Err(error) => match error.as_service_error() {
                        Some(DeleteItemError::ConditionalCheckFailedException(failed)) => {
                            Ok(Check::Failed(failed.item.clone()))
                        }
                        _ => Err(error.into()),
                    },
                }
            }
            Kind::Check => Err(Failed::new(Outcome::Refused, "a condition alone writes nothing")),
        }
    }

    /// Writes several items in one transaction, if every condition holds. No item may be in it twice. The client token names the
    /// write: DynamoDB does nothing for a second one with it within 10 minutes, so it must be fresh, or follow from values that are
    /// never used twice ([`client_token`]). Without one, every try is a write of its own: for writes that find their own traces.
    pub(crate) async fn write_together(
        &self,
        table: &str,
        token: impl Into<Option<String>>,
        actions: Vec<Action>,
    ) -> Result<Committed, StoreError> {
        let token = token.into();
        let actions = actions
            .into_iter()
            .map(|action| action.in_transaction(table))
            .collect::<Result<Vec<_>, _>>()?;
        self.caller
            .write_knowing(|earlier| {
                let request = self
                    .dynamodb
                    .transact_write_items()
                    .set_client_request_token(token.clone())
                    .set_transact_items(Some(actions.clone()));
                async move {
                    match request.send().await {
                        Ok(_) => Ok(Committed::Done),
                        Err(error) => cancelled(error).map(|checks| Committed::Refused { checks, earlier }),
                    }
                }
            })
            .await
    }
}

/// What a transaction that did not succeed was cancelled for, if it was for conditions.
fn cancelled(error: SdkError<TransactWriteItemsError, HttpResponse>) -> Result<Vec<Check>, Failed> {
    let reasons = match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            cancelled.cancellation_reasons()
        }
        _ => return Err(error.into()),
    };
    const FAILED: Option<&str> = Some("ConditionalCheckFailed");
    if reasons.iter().any(|reason| reason.code() == FAILED) {
        return Ok(reasons
            .iter()
            .map(|reason| {
                if reason.code() == FAILED {
                    Check::Failed(reason.item().cloned())
                } else {
                    Check::Held
                }
            })
            .collect());
    }
    Err(of_reasons(reasons))
}

/// What a transaction came to that was cancelled for other things than conditions. It surely did nothing.
pub(crate) fn of_reasons(reasons: &[CancellationReason]) -> Failed {
    let codes = reasons.iter().filter_map(CancellationReason::code);
    let (mut outcome, mut worst) = (Outcome::Conflict, "TransactionConflict");
    for code in codes {
        match code {
            "None" | "TransactionConflict" => {}
            "ThrottlingError" | "ProvisionedThroughputExceeded" | "RequestLimitExceeded" => {
                if outcome == Outcome::Conflict {
                    (outcome, worst) = (Outcome::Throttled, code);
                }
            }
            other => (outcome, worst) = (Outcome::Refused, other),
        }
    }
    Failed::new(outcome, format!("a transaction was cancelled: {worst}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::key;

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        codes
            .iter()
            .map(|code| CancellationReason::builder().code(*code).build())
            .collect()
    }

    #[test]
    fn names_are_those_of_the_expressions() {
        let action =
            Action::update(key("a", "b"), "SET #state = :s, other = :o").when("#state = :r AND #at <= :t");
        let names = action.names().unwrap();
        assert_eq!(names.len(), 2);
        assert_eq!((names["#state"].as_str(), names["#at"].as_str()), ("state", "at"));
        assert_eq!(Action::put(key("a", "b")).names(), None);
    }

    #[test]
    fn a_cancelled_transaction_is_told_by_its_reasons() {
        let outcome = |codes| of_reasons(&reasons(codes)).outcome;
        assert_eq!(outcome(&["None", "TransactionConflict"]), Outcome::Conflict);
        assert_eq!(outcome(&["None", "None"]), Outcome::Conflict);
        assert_eq!(
            outcome(&["TransactionConflict", "ThrottlingError"]),
            Outcome::Throttled
        );
        assert_eq!(
            outcome(&["ValidationError", "TransactionConflict"]),
            Outcome::Refused
        );
    }

    #[test]
    fn client_tokens_differ_with_each_value() {
        let of = |parts: &[&[u8]]| client_token("table", parts);
        assert_eq!(of(&[b"a", b"bc"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"a", b"bc"]), of(&[b"ab", b"c"]));
        assert_ne!(of(&[b"a"]), client_token("other", &[b"a"]));
        assert!(of(&[]).len() <= 36);
    }
}
