//! The keys of the bus's items: every kind of item in its table, in one place.
//!
//! Both tables have a partition key `pk` and a sort key `sk`, both text. Ids are of `[A-Za-z0-9_-]`, so `#` parts them. The table
//! of the bus has one index, `by_list` (`list_pk`, `list_sk`, keys only): sparse, for lists whose items lie apart.
//!
//! | item | pk | sk | by_list | who writes it |
//! |---|---|---|---|---|
//! | record of a message | `REC#<workspace>#<message id>` | `-` | | `ledger` |
//! | story | `STORY#<workspace>#<digest, hex>` | `-` | `STORIES#<workspace>`, when begun | `ledger` |
//! | workspace | `WORKSPACES` | its id | | `workspaces`, counters by `connections` |
//! | connection | `CONN#<id>` | `-` | | `connections` |
//! | its place in a list | `CONNS#<workspace or ->#<kind>` | its id | | `connections` |
//! | owner of a `system_id` | `SYSTEM#<digest, hex>` | `-` | | `connections` |
//! | operators that can log in | `OPERATORS` | `-` | | `connections` |
//! | what is half made or half gone | `PENDING` | a consumer's or workspace's id | | `resources` |
//! | audit entry | `AUDIT` | time and order | | with each write of an operator |
//! | job | `JOB#<id>` | `-` | | `jobs` |
//! | its place in a list | `JOBS#<workspace>` | time and id | | `jobs` |
//! | its place among the unfinished | `UNFINISHED` | time and id | | `jobs` |
//! | dead letter | `DEAD#<consumer>` | position | | `dead_letters` |
//! | refusal | `REFUSED#<workspace>#<day>` | time and order | | `activity` |
//! | token bucket | `RATE#<digest, hex>` | `-` | | `rates` |
//! | public keys | `KEYS` | `-` | | `signing_keys` |

use storybus_core::domain::record::{RecordKey, StoryKey};

use crate::item::{Item, key};

/// The sort key of an item that is alone under its partition key.
pub(crate) const ONLY: &str = "-";

/// A message's record.
pub(crate) fn record(of: &RecordKey) -> Item {
    key(format!("REC#{}#{}", of.workspace, of.message_id), ONLY)
}

/// A story.
pub(crate) fn story(of: &StoryKey) -> Item {
    key(format!("STORY#{}#{}", of.workspace, hex(&of.digest)), ONLY)
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
