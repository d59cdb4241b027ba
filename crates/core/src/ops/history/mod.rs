//! HISTORY: what happened at the bus, for operators (contract §7): one file a view, all of them reading alone.

mod activity;
mod dead_letters;
mod stories;
mod way;

pub use activity::{Activity, ActivityPage, ActivityQuery};
pub use dead_letters::DeadLetterPage;
pub use stories::{StoryTimeline, TimelinePage};
pub use way::{ConsumerWay, MessageWay, WayState, WayStop};
