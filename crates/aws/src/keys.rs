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
//! | number of workspaces | `WORKSPACES#` | `-` | | `workspaces` |
//! | connection | `CONN#<id>` | `-` | | `connections` |
//! | its place in a list | `CONNS#<workspace or ->#<kind>` | its id | | `connections` |
//! | owner of a `system_id` | `SYSTEM#<digest, hex>` | `-` | | `connections` |
//! | owner of an AWS role | `ROLE#<workspace>#<account>/<role name>` | `-` | | `connections` |
//! | operators that can log in | `OPERATORS` | `-` | | `connections` |
//! | what is half made, changed or gone | `PENDING` | a consumer's or workspace's id | | `pending` |
//! | audit entry | `AUDIT` | time and order | | with each write of an operator |
//! | job | `JOB#<id>` | `-` | | `jobs` |
//! | its place in a list | `JOBS#<workspace>` | time and id | | `jobs` |
//! | its place among the unfinished | `UNFINISHED` | time and id | | `jobs` |
//! | dead letter | `DEAD#<consumer>` | position | `DIED#<workspace>#<message id>`, consumer and position | `dead_letters` |
//! | that a message has become one | `DIED#<consumer>` | SQS's message id | | `dead_letters` |
//! | when a queue was last purged | `PURGED#<workspace>` | consumer | | `queue_control` |
//! | refusal | `REFUSED#<workspace>#<day>` | time and log event | | `activity` |
//! | token bucket | `RATE#<digest, hex>` | `-` | | `rates` |
//! | public keys | `KEYS` | `-` | | `signing_keys` |
//! | the key that seals receipt handles | `SEAL` | `-` | | `queues` |
//!
//! The table of the archive (`archive`). A message should cost one write unit of 1 kB, names included, so they are short. Its
//! indexes hold keys only, in the same order.
//!
//! | item | pk | sk | attributes |
//! |---|---|---|---|
//! | publication | `<workspace>#<hour since 1970, 7 digits>#<shard>` | its place: `<time, ms>-<shard>-<sequence>-<message id>` | `b` body, `h` head without keys, `m`, `s`, `c` |
//! | that a partition exists | `<workspace>#buckets` | `<hour>#<shard>` | |
//! | up to when all is archived | `#watermark` | `-` | `until` |
//!
//! | index | key | value |
//! |---|---|---|
//! | `by_message` | `m` | `<workspace>#<message id>` |
//! | `by_story` | `s` | `<workspace>#<story digest>` |
//! | `by_correlation` | `c` | `<workspace>#<correlation id>` |
//!
//! There, ids and digests are 22 characters of unpadded base64url: sixteen bytes.

use sha2::{Digest, Sha256};
use storybus_core::domain::connection::AwsRole;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::record::{RecordKey, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{ConnectionId, ConnectionKind, JobId, MessageId, WorkspaceId};

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

/// The partition of all workspaces.
pub(crate) const WORKSPACES: &str = "WORKSPACES";
/// The partition of what is half made, changed or gone.
pub(crate) const PENDING: &str = "PENDING";
/// The partition of the audit.
pub(crate) const AUDIT: &str = "AUDIT";
/// The partition of the jobs that are not over.
pub(crate) const UNFINISHED: &str = "UNFINISHED";

/// A workspace.
pub(crate) fn workspace(id: &WorkspaceId) -> Item {
    key(WORKSPACES, id.as_str())
}

/// How many workspaces there are.
pub(crate) fn workspace_count() -> Item {
    key("WORKSPACES#", ONLY)
}

/// A connection.
pub(crate) fn connection(id: &str) -> Item {
    key(format!("CONN#{id}"), ONLY)
}

/// The partition of the connections of a kind in a workspace, or of the operators.
pub(crate) fn connections_of(workspace: Option<&WorkspaceId>, kind: ConnectionKind) -> String {
    let kind = match kind {
        ConnectionKind::Producer => "producer",
        ConnectionKind::Consumer => "consumer",
        ConnectionKind::Operator => "operator",
    };
    format!("CONNS#{}#{kind}", workspace.map_or("-", WorkspaceId::as_str))
}

/// The owner of a `system_id`, which may be any text.
pub(crate) fn system(system_id: &str) -> Item {
    key(format!("SYSTEM#{}", hex(&Sha256::digest(system_id))), ONLY)
}

/// The owner of an AWS role in a workspace.
pub(crate) fn role(workspace: &WorkspaceId, role: AwsRole<'_>) -> Item {
    key(format!("ROLE#{workspace}#{}/{}", role.account, role.name), ONLY)
}

/// The public keys of access tokens.
pub(crate) fn public_keys() -> Item {
    key("KEYS", ONLY)
}

/// The key that seals receipt handles.
pub(crate) fn seal() -> Item {
    key("SEAL", ONLY)
}

/// A partition of the archive.
pub(crate) fn archive_partition(workspace: &str, hour: i64, shard: u8) -> String {
    format!("{workspace}#{hour:07}#{shard}")
}

/// Where a workspace's partitions are listed.
pub(crate) fn archive_directory(workspace: &str) -> String {
    format!("{workspace}#buckets")
}

/// A partition in that list.
pub(crate) fn archive_entry(hour: i64, shard: u8) -> String {
    format!("{hour:07}#{shard}")
}

/// A partition key of the archive's indexes: something of sixteen bytes, in 22 characters.
pub(crate) fn archive_index(workspace: &str, sixteen: &str) -> String {
    format!("{workspace}#{sixteen}")
}

/// Up to when everything is in the archive.
pub(crate) fn watermark() -> Item {
    key("#watermark", ONLY)
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

/// How many operators can log in.
pub(crate) fn operators() -> Item {
    key("OPERATORS", ONLY)
}

/// The note of what is done with the resources of a workspace or a consumer. Their ids differ: the first letter is the kind's.
pub(crate) fn pending(id: &str) -> Item {
    key(PENDING, id)
}

/// A job.
pub(crate) fn job(id: &str) -> Item {
    key(format!("JOB#{id}"), ONLY)
}

/// The partition of a workspace's jobs.
pub(crate) fn jobs_of(workspace: &WorkspaceId) -> String {
    format!("JOBS#{workspace}")
}

/// A job's place among others: the order of their making, and of their ids. A longer id comes behind its beginning, as `#` and
/// everything else that is not of an id is kept out.
pub(crate) fn job_place(created_at: Millis, id: Option<&JobId>) -> String {
    format!("{}#{}", ordered(created_at), id.map_or("", JobId::as_str))
}

/// The partition of a workspace's refusals of a day, counted from 1970.
pub(crate) fn refusals_of(workspace: &WorkspaceId, day: i64) -> String {
    format!("REFUSED#{workspace}#{day}")
}

/// Any time as twenty digits in its order.
pub(crate) fn ordered(at: Millis) -> String {
    format!("{:020}", at.0.cast_unsigned() ^ (1 << 63))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
