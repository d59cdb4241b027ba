//! `storybus explain`: the pages of `docs/errors`, which are part of the binary.

use clap::Args;
use storybus_protocol::rule::{self, About, SCHEMAS};

use super::out::{self, Cell, Table};
use crate::client::json::plain;
use crate::exit::Failure;
use crate::sender::rules;

pub(super) const HELP: &str = "Without a rule all of them are listed. A rule of a schema is <schema>.<keyword>, such as envelope.required.

Examples:
  storybus explain sequence_number.not_increasing
  storybus explain";

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The rule, as a refusal and storybus activity name it
    rule: Option<String>,
}

/// Pages of a folder by their names.
macro_rules! pages {
    ($folder:literal, $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../docs/errors/", $folder, $name, ".md")))),*]
    };
}

/// Each rule's page.
const RULES: &[(&str, &str)] = pages!(
    "",
    "assertion.review_regressed",
    "asset.type_changed",
    "bus.internal_error",
    "bus.publish_failed",
    "bus.unavailable",
    "commit.contention",
    "consumer.limit",
    "consumer.not_found",
    "consumer.not_registered",
    "consumer.unauthenticated",
    "correlation_id.changed",
    "idempotency_key.mismatch",
    "job.finished",
    "job.not_found",
    "message.duplicate_member",
    "message.illegal_character",
    "message.in_flight",
    "message.not_archived",
    "message.not_found",
    "message.not_json",
    "message.superseded",
    "message.too_deep",
    "message.too_large",
    "message_id.reused",
    "message_type.unknown",
    "method.not_allowed",
    "operator.not_found",
    "operator.not_registered",
    "operator.unauthenticated",
    "payload.message_type_mismatch",
    "payload.unvalidated",
    "producer.message_type_not_allowed",
    "producer.not_found",
    "producer.not_registered",
    "producer.system_id_not_allowed",
    "producer.unauthenticated",
    "rate.exceeded",
    "receipt_handle.invalid",
    "request.invalid",
    "request.unsupported",
    "route.not_found",
    "secret.limit",
    "secret.not_found",
    "sequence_number.gap",
    "sequence_number.not_increasing",
    "snapshot.assets_dropped",
    "snapshot.members_missing",
    "som_version.pre_1_0",
    "som_version.unsupported_major",
    "story.not_found",
    "story_type.left_terminal",
    "system_id.taken",
    "tenant.not_empty",
    "tenant.not_found",
    "updated_at.backwards",
);

/// The page of each keyword of the schemas.
const KEYWORDS: &[(&str, &str)] = pages!(
    "schema/",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "false_schema",
    "format.date-time",
    "format.uuid",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "not",
    "pattern",
    "required",
    "type",
    "uniqueItems",
);

/// Runs it.
pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let Some(wanted) = &args.rule else {
        return list();
    };
    let wanted = wanted.trim();
    match page(wanted).map(str::to_owned).or_else(|| rules::page(wanted)) {
        Some(page) => out::text(&page),
        None => Err(Failure::unusable(unknown(wanted))),
    }
}

/// A rule's page, without the lines before it that are for tools.
fn page(wanted: &str) -> Option<&'static str> {
    let (pages, name) = match wanted.split_once('.') {
        Some((schema, keyword)) if SCHEMAS.contains(&schema) => (KEYWORDS, keyword),
        _ => (RULES, wanted),
    };
    let (_, page) = pages.iter().find(|(known, _)| *known == name)?;
    Some(page.splitn(3, "---\n").nth(2).unwrap_or(page).trim_start())
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new(&["RULE", "APPEARS", "FAULT", "RETRY"]);
    let mut row = |about: &About, name: String| {
        let appears: Vec<String> = about.appears.iter().map(ToString::to_string).collect();
        table.row(vec![
            Cell::new(name),
            Cell::new(appears.join(",")),
            Cell::new(about.fault.to_string()),
            Cell::new(about.retry.to_string()),
        ]);
    };
    for about in rule::TABLE {
        row(about, about.rule.to_owned());
    }
    for about in rule::SCHEMA_KEYWORDS {
        row(about, format!("<schema>.{}", about.rule));
    }
    table.print("no rules")?;
    out::note(&format!("the schemas: {}", SCHEMAS.join(", ")));
    Ok(())
}

/// That there is no such rule, and which it may have been.
pub(super) fn unknown(wanted: &str) -> String {
    let near: Vec<&str> = rule::ALL
        .iter()
        .copied()
        .filter(|known| {
            let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
            !wanted.is_empty() && parts(known).iter().any(|part| parts(wanted).contains(part))
        })
        .collect();
    let which = if near.is_empty() {
        "storybus explain lists them".to_owned()
    } else {
        format!("is it one of {}?", near.join(", "))
    };
    format!("there is no rule {:?}; {which}", plain(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_and_every_keyword_has_its_page() {
        for known in rule::ALL {
            assert!(
                page(known).unwrap().starts_with(&format!("# `{known}`")),
                "{known}"
            );
        }
        assert_eq!(RULES.len(), rule::ALL.len());
        for keyword in rule::SCHEMA_KEYWORDS {
            assert!(
                page(&format!("envelope.{}", keyword.rule)).is_some(),
                "{}",
                keyword.rule
            );
        }
        assert!(page("required").is_none() && page("README").is_none());
    }

    #[test]
    fn what_is_no_rule_may_have_been_another() {
        let told = unknown("sequence_number");
        assert!(
            told.contains("sequence_number.gap, sequence_number.not_increasing")
                || told.contains("sequence_number.not_increasing, sequence_number.gap"),
            "{told}"
        );
        assert!(unknown("x").contains("lists them"));
    }
}
