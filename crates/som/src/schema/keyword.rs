//! The keywords that can rule, and the rule ids made from them.

use crate::Family;

/// A document of its own in `schemas/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemaName {
    /// What every message carries.
    Envelope,
    /// What the payload of a family carries.
    Payload(Family),
}

impl SchemaName {
    /// All seven.
    pub(crate) const ALL: [Self; 7] = [
        Self::Envelope,
        Self::Payload(Family::StoryContext),
        Self::Payload(Family::TellingEvent),
        Self::Payload(Family::LinkEvent),
        Self::Payload(Family::DeliveryMediaAvailable),
        Self::Payload(Family::SkillWarning),
        Self::Payload(Family::SystemAudit),
    ];
}

/// Declares [`Keyword`] and the table of rule ids: literals, so that naming a rule costs nothing.
macro_rules! keywords {
    ($($(#[$doc:meta])* $variant:ident = $suffix:literal,)*) => {
        /// A keyword that can fail by itself.
        ///
        /// `$ref allOf properties patternProperties items if then else` are not here: what fails inside them is
        /// listed as if it stood where they stand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Keyword {
            $($(#[$doc])* $variant,)*
        }

        impl Keyword {
            /// The rule id of the keyword in a schema: `<schema>.<keyword>`.
            pub(crate) const fn rule(self, schema: SchemaName) -> &'static str {
                macro_rules! table {
                    ($name:literal) => {
                        match self { $(Self::$variant => concat!($name, ".", $suffix),)* }
                    };
                }
                match schema {
                    SchemaName::Envelope => table!("envelope"),
                    SchemaName::Payload(Family::StoryContext) => table!("story-context"),
                    SchemaName::Payload(Family::TellingEvent) => table!("telling-event"),
                    SchemaName::Payload(Family::LinkEvent) => table!("link-event"),
                    SchemaName::Payload(Family::DeliveryMediaAvailable) => table!("delivery-media-available"),
                    SchemaName::Payload(Family::SkillWarning) => table!("skill-warning"),
                    SchemaName::Payload(Family::SystemAudit) => table!("system-audit"),
                }
            }
        }
    };
}

keywords! {
    /// The member's schema is `false`: it must not be there.
    FalseSchema = "false_schema",
    /// `type`
    Type = "type",
    /// `const`
    Const = "const",
    /// `enum`
    Enum = "enum",
    /// `format` of the name `uuid`
    FormatUuid = "format.uuid",
    /// `format` of the name `date-time`
    FormatDateTime = "format.date-time",
    /// `pattern`
    Pattern = "pattern",
    /// `minLength`
    MinLength = "minLength",
    /// `maxLength`
    MaxLength = "maxLength",
    /// `minimum`
    Minimum = "minimum",
    /// `maximum`
    Maximum = "maximum",
    /// `uniqueItems`
    UniqueItems = "uniqueItems",
    /// `required`, once for each missing member
    Required = "required",
    /// `additionalProperties`, once for each surplus member
    AdditionalProperties = "additionalProperties",
    /// `anyOf`
    AnyOf = "anyOf",
    /// `oneOf`
    OneOf = "oneOf",
    /// `not`
    Not = "not",
}

impl Keyword {
    /// Whether a failure means no more than that a later minor version may know better.
    pub(crate) const fn tolerable(self) -> bool {
        matches!(self, Self::Enum | Self::AdditionalProperties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_schema_and_keyword() {
        assert_eq!(
            Keyword::FormatUuid.rule(SchemaName::Envelope),
            "envelope.format.uuid"
        );
        let audit = SchemaName::Payload(Family::SystemAudit);
        assert_eq!(
            Keyword::AdditionalProperties.rule(audit),
            "system-audit.additionalProperties"
        );
        for family in Family::ALL {
            let rule = Keyword::Not.rule(SchemaName::Payload(family));
            assert_eq!(rule, format!("{family}.not"));
        }
    }
}
