//! The payload families: which schema a payload is checked against.

use std::fmt;

/// The schema that a payload is checked against, chosen by the envelope's `message_type` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `story.context`
    StoryContext,
    /// `telling.started`, `telling.ended`, `telling.exposed`
    TellingEvent,
    /// `link.committed`, `link.gate_changed`, `link.withdrawn`
    LinkEvent,
    /// `delivery.media_available`
    DeliveryMediaAvailable,
    /// `skill.warning.raised`
    SkillWarning,
    /// `system.audit`
    SystemAudit,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 6] = [
        Self::StoryContext,
        Self::TellingEvent,
        Self::LinkEvent,
        Self::DeliveryMediaAvailable,
        Self::SkillWarning,
        Self::SystemAudit,
    ];

    /// The family of a type; `None` when SOM 1.0 has no schema for it. Letter case matters.
    pub fn of(message_type: &str) -> Option<Self> {
        Some(match message_type {
            "story.context" => Self::StoryContext,
            "telling.started" | "telling.ended" | "telling.exposed" => Self::TellingEvent,
            "link.committed" | "link.gate_changed" | "link.withdrawn" => Self::LinkEvent,
            "delivery.media_available" => Self::DeliveryMediaAvailable,
            "skill.warning.raised" => Self::SkillWarning,
            "system.audit" => Self::SystemAudit,
            _ => return None,
        })
    }

    /// The wire name, which is also the first part of the family's rule ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoryContext => "story-context",
            Self::TellingEvent => "telling-event",
            Self::LinkEvent => "link-event",
            Self::DeliveryMediaAvailable => "delivery-media-available",
            Self::SkillWarning => "skill-warning",
            Self::SystemAudit => "system-audit",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The namespaces that SOM keeps to itself: a 1.0 message may use no type in them that 1.0 does not define.
const OWN_NAMESPACES: [&str; 6] = [
    "story.",
    "telling.",
    "link.",
    "delivery.",
    "system.",
    "skill.warning.",
];

/// Whether a type lies in one of SOM's own namespaces.
pub(crate) fn in_own_namespace(message_type: &str) -> bool {
    OWN_NAMESPACES
        .iter()
        .any(|namespace| message_type.starts_with(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_families() {
        assert_eq!(Family::of("telling.exposed"), Some(Family::TellingEvent));
        assert_eq!(Family::of("Telling.exposed"), None);
        assert_eq!(Family::of("story"), None);
        assert_eq!(Family::SystemAudit.to_string(), "system-audit");
    }

    #[test]
    fn a_namespace_ends_at_its_dot() {
        assert!(in_own_namespace("story.x") && in_own_namespace("skill.warning.lowered"));
        assert!(!in_own_namespace("storyboard.x") && !in_own_namespace("skill.run.completed"));
        assert!(!in_own_namespace("skill.warning") && !in_own_namespace("story"));
    }
}
