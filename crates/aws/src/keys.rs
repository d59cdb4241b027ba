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
//! | dead letter | `DEAD#<consumer>` | position | `DIED#<workspace>#<message id>`, consumer and position | `dead_letters` |
//! | that a message has become one | `DIED#<consumer>` | SQS's message id | | `dead_letters` |
//! | when a queue was last purged | `PURGED#<workspace>` | consumer | | `queue_control` |
//! | refusal | `REFUSED#<workspace>#<day>` | time and order | | `activity` |
//! | token bucket | `RATE#<digest, hex>` | `-` | | `rates` |
//! | public keys | `KEYS` | `-` | | `signing_keys` |

use sha2::{Digest, Sha256};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::record::{RecordKey, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{ConnectionId, MessageId, WorkspaceId};

use crate::item::{Item, key};

/// The sort key of an item that is alone under its partition key.
pub(crate) const ONLY: &str = "-";

/// A message's record.
pub(crate) fn record(of: &RecordKey) -> Item {
    key(record_name(of), ONLY)
}

/// Its partition key.
pub(crate) fn record_name(of: &RecordKey) -> String {
    format!("REC#{}#{}", of.workspace, of.message_id)
}

/// A story.
pub(crate) fn story(of: &StoryKey) -> Item {
    key(format!("STORY#{}#{}", of.workspace, hex(&of.digest)), ONLY)
}

/// The list of a workspace's stories.
pub(crate) fn stories(of: &WorkspaceId) -> String {
    format!("STORIES#{of}")
}

/// The last place among the stories of one millisecond.
pub(crate) const LAST_PLACE: u32 = 999_999;

/// A story's place in it: when it began, its place among those of this millisecond, its digest.
pub(crate) fn place_of_story(of: &StoryKey, begun_at: Millis, place: u32) -> String {
    format!("{:013}{place:06}{}", begun_at.0.max(0), hex(&of.digest))
}

/// Whether a text is such a place.
pub(crate) fn is_place_of_story(text: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 13 + 6 + 32
        && text.as_bytes()[..19].iter().all(u8::is_ascii_digit)
        && text.as_bytes()[19..].iter().copied().all(lower)
}

/// A token bucket: its name has ids and addresses in it, of any length.
pub(crate) fn rate(bucket: &str) -> Item {
    key(
        format!("RATE#{}", hex(&Sha256::digest(bucket.as_bytes())[..16])),
        ONLY,
    )
}

/// The public keys of access tokens.
pub(crate) fn public_keys() -> Item {
    key("KEYS", ONLY)
}

/// Where a consumer's dead letters are.
pub(crate) fn dead_letters(of: &ConnectionId) -> String {
    format!("DEAD#{of}")
}

/// Where the dead letters of a message are found, in the index.
pub(crate) fn dead_letters_of_message(workspace: &WorkspaceId, message_id: MessageId) -> String {
    format!("DIED#{workspace}#{message_id}")
}

/// That a message of a consumer's queue has become a dead letter.
pub(crate) fn died(consumer: &ConnectionId, sqs_message_id: &str) -> Item {
    key(format!("DIED#{consumer}"), sqs_message_id)
}

/// When the queues of a workspace were purged.
pub(crate) fn purges(of: &WorkspaceId) -> String {
    format!("PURGED#{of}")
}

/// When a queue was purged.
pub(crate) fn purged(queue: &QueueKey) -> Item {
    key(purges(&queue.workspace), queue.consumer.as_str())
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
