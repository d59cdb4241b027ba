//! The rule ids of the schemas: callers branch on them.

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
