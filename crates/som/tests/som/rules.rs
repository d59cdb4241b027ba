//! The rule ids of the schemas: callers branch on them.

use std::collections::BTreeMap;
use std::path::Path;

use storybus_protocol::rule::{SCHEMA_KEYWORDS, about};
use storybus_som::schema_rules;

#[test]
fn the_ids_never_change() {
    let expected = "
        delivery-media-available.additionalProperties delivery-media-available.anyOf delivery-media-available.const
        delivery-media-available.format.date-time delivery-media-available.format.uuid
        delivery-media-available.pattern delivery-media-available.required delivery-media-available.type

        envelope.additionalProperties envelope.anyOf envelope.enum envelope.false_schema envelope.format.date-time
        envelope.format.uuid envelope.pattern envelope.required envelope.type

        link-event.additionalProperties link-event.enum link-event.format.date-time link-event.format.uuid
        link-event.not link-event.required link-event.type

        skill-warning.additionalProperties skill-warning.const skill-warning.enum skill-warning.false_schema
        skill-warning.format.uuid skill-warning.pattern skill-warning.required skill-warning.type

        story-context.additionalProperties story-context.anyOf story-context.const story-context.enum
        story-context.false_schema story-context.format.date-time story-context.maxLength story-context.maximum
        story-context.minLength story-context.minimum story-context.not story-context.pattern
        story-context.required story-context.type story-context.uniqueItems

        system-audit.additionalProperties system-audit.const system-audit.enum system-audit.format.date-time
        system-audit.format.uuid system-audit.required system-audit.type

        telling-event.additionalProperties telling-event.anyOf telling-event.enum telling-event.format.date-time
        telling-event.format.uuid telling-event.not telling-event.pattern telling-event.required telling-event.type";
    assert_eq!(
        schema_rules().collect::<Vec<_>>(),
        expected.split_whitespace().collect::<Vec<_>>()
    );
}

/// By keyword.
fn by_keyword() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut rules: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for rule in schema_rules() {
        let (_, keyword) = rule.split_once('.').expect("a schema and a keyword");
        rules.entry(keyword).or_default().push(rule);
    }
    rules
}

#[test]
fn clients_can_look_all_of_them_up() {
    for rule in schema_rules() {
        assert!(about(rule).is_some(), "{rule}");
    }
    let keywords: Vec<&str> = SCHEMA_KEYWORDS.iter().map(|about| about.rule).collect();
    assert_eq!(by_keyword().into_keys().collect::<Vec<_>>(), keywords);
}

#[test]
fn the_page_of_a_keyword_lists_its_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors/schema");
    for (keyword, rules) in by_keyword() {
        let page = std::fs::read_to_string(folder.join(format!("{keyword}.md"))).expect("a page");
        let line = page.lines().find_map(|line| line.strip_prefix("Rules: "));
        let mut listed: Vec<&str> = line
            .unwrap_or_default()
            .trim_end_matches('.')
            .split(", ")
            .map(|rule| rule.trim_matches('`'))
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, rules, "{keyword}");
    }
}
