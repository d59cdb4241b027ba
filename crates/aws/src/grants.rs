//! What the ports ask of AWS: which actions on which kinds of resources.
//!
//! The policies of the template follow from it. Who adds a call to an adapter adds it here, and a test of the functions then asks for
//! it in the template; who takes one away finds the grant that is left over. A port that one function only reads and another also
//! writes has a list for each. Conditions, transactions and batches need the permissions of their parts: a transaction those of
//! its puts, updates, deletions and checks
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html>), a batch of SQS that of its single action
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html>); those of DynamoDB have
//! one of their own.

/// A kind of resource of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    /// The table of the bus.
    BusTable,
    /// Its index `by_list`.
    BusList,
    /// The table of the archive.
    ArchiveTable,
    /// Its index `by_message`.
    ArchiveByMessage,
    /// Its index `by_story`.
    ArchiveByStory,
    /// Its index `by_correlation`.
    ArchiveByCorrelation,
    /// The secret with the keys that sign tokens.
    SigningKeys,
    /// The queues of all consumers, those for what could not be delivered too.
    ConsumerQueues,
    /// The queue that feeds the archive.
    ArchiveQueue,
    /// The queue that consumers' queues drop into.
    DeadLettersQueue,
    /// The queue that drives replays.
    ReplayQueue,
    /// The queue that drives redrives.
    RedriveQueue,
    /// The topics of all workspaces.
    Topics,
    /// The alarms of all consumers.
    ConsumerAlarms,
    /// What AWS lets no policy narrow to a resource.
    Everything,
}

/// Actions on kinds of resources.
pub type Grants = &'static [(On, &'static [&'static str])];

/// Records and stories, as a publish moves them.
pub const LEDGER: Grants = &[(
    On::BusTable,
    &[
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
    ],
)];
/// What became of a message.
pub const LEDGER_READ: Grants = &[(On::BusTable, &["dynamodb:GetItem"])];
/// Publications.
pub const TOPIC: Grants = &[(On::Topics, &["sns:Publish"])];
/// A refusal is a line of the log.
pub const ACTIVITY_NOTE: Grants = &[];
/// Looking at refusals.
pub const ACTIVITY_READ: Grants = &[(On::BusTable, &["dynamodb:Query"])];
/// Storing the refusals that a log told.
pub const ACTIVITY_STORE: Grants = &[(On::BusTable, &["dynamodb:BatchWriteItem"])];
/// One workspace or connection by its id or role.
pub const REGISTRY_LOOK: Grants = &[(On::BusTable, &["dynamodb:GetItem"])];
/// Token buckets.
pub const RATES: Grants = &[(On::BusTable, &["dynamodb:GetItem", "dynamodb:UpdateItem"])];
/// The keys that check tokens.
pub const PUBLIC_KEYS: Grants = &[(On::BusTable, &["dynamodb:GetItem"])];
/// The keys that sign tokens.
pub const SECRET_KEYS: Grants = &[(On::SigningKeys, &["secretsmanager:GetSecretValue"])];
/// The first of them, and the key that seals receipt handles.
pub const SECRET_KEYS_MAKE: Grants = &[
    (
        On::SigningKeys,
        &["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"],
    ),
    (On::BusTable, &["dynamodb:GetItem", "dynamodb:PutItem"]),
];
/// Hashing asks nobody.
pub const HASHER: Grants = &[];
/// The audit, read; it is written with what it tells of.
pub const AUDIT: Grants = &[(On::BusTable, &["dynamodb:Query"])];

/// Receiving and settling. What is rejected becomes a dead letter.
pub const QUEUES: Grants = &[
    (
        On::ConsumerQueues,
        &[
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
        ],
    ),
    (On::BusTable, &["dynamodb:GetItem", "dynamodb:PutItem"]),
];
/// How full a queue is.
pub const QUEUES_COUNT: Grants = &[
    (On::ConsumerQueues, &["sqs:GetQueueAttributes"]),
    (On::BusTable, &["dynamodb:GetItem", "dynamodb:Query"]),
];
/// A purge, and where a message is.
pub const QUEUE_CONTROL: Grants = &[
    (On::ConsumerQueues, &["sqs:GetQueueAttributes", "sqs:PurgeQueue"]),
    (
        On::BusTable,
        &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"],
    ),
    (On::BusList, &["dynamodb:Query"]),
];
/// What a job delivers.
pub const QUEUE_DELIVER: Grants = &[
    (On::ConsumerQueues, &["sqs:SendMessage"]),
    (On::BusTable, &["dynamodb:GetItem"]),
];
/// Looking at dead letters.
pub const DEAD_LETTERS_READ: Grants = &[(On::BusTable, &["dynamodb:Query"])];
/// Dead letters in the hands of a job.
pub const DEAD_LETTERS_TAKE: Grants = &[(
    On::BusTable,
    &[
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
    ],
)];
/// Moving dead letters from their queue into the table.
pub const DEAD_LETTERS_MOVE: Grants = &[(On::BusTable, &["dynamodb:GetItem", "dynamodb:PutItem"])];

/// The newest publication of a message, whole.
pub const ARCHIVE_ONE: Grants = &[
    (On::ArchiveTable, &["dynamodb:GetItem"]),
    (On::ArchiveByMessage, &["dynamodb:Query"]),
];
/// Lists of publications.
pub const ARCHIVE_LISTS: Grants = &[
    (On::ArchiveTable, &["dynamodb:Query", "dynamodb:BatchGetItem"]),
    (On::ArchiveByMessage, &["dynamodb:Query"]),
    (On::ArchiveByStory, &["dynamodb:Query"]),
    (On::ArchiveByCorrelation, &["dynamodb:Query"]),
];
/// How far the archive is whole.
pub const ARCHIVE_WATERMARK: Grants = &[
    (On::ArchiveTable, &["dynamodb:GetItem", "dynamodb:PutItem"]),
    (On::ArchiveQueue, &["sqs:GetQueueAttributes"]),
    (On::Everything, &["cloudwatch:GetMetricStatistics"]),
];
/// A range of time, as far as the archive is whole.
pub const ARCHIVE_RANGES: Grants = &[
    (
        On::ArchiveTable,
        &["dynamodb:Query", "dynamodb:GetItem", "dynamodb:PutItem"],
    ),
    (On::ArchiveQueue, &["sqs:GetQueueAttributes"]),
    (On::Everything, &["cloudwatch:GetMetricStatistics"]),
];
/// Archiving what the topics send.
pub const ARCHIVE_WRITE: Grants = &[(On::ArchiveTable, &["dynamodb:Query", "dynamodb:PutItem"])];

/// The stories, to be looked at.
pub const STORIES: Grants = &[
    (On::BusTable, &["dynamodb:GetItem", "dynamodb:BatchGetItem"]),
    (On::BusList, &["dynamodb:Query"]),
];
/// Jobs, as operators make and end them; making one sends its first message.
pub const JOBS: Grants = &[
    (
        On::BusTable,
        &[
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            "dynamodb:PutItem",
            "dynamodb:DeleteItem",
        ],
    ),
    (On::ReplayQueue, &["sqs:SendMessage"]),
    (On::RedriveQueue, &["sqs:SendMessage"]),
];
/// Jobs, as who works at them writes them.
pub const JOBS_STEP: Grants = &[(
    On::BusTable,
    &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"],
)];
/// A replay's next message.
pub const REPLAY_ONWARD: Grants = &[(On::ReplayQueue, &["sqs:SendMessage"])];
/// A redrive's next message.
pub const REDRIVE_ONWARD: Grants = &[(On::RedriveQueue, &["sqs:SendMessage"])];

/// The registry with what its entries have on AWS: topics, queues, subscriptions, alarms.
pub const REGISTRY: Grants = &[
    (
        On::BusTable,
        &[
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:ConditionCheckItem",
        ],
    ),
    (
        On::Topics,
        &[
            "sns:CreateTopic",
            "sns:DeleteTopic",
            "sns:Subscribe",
            "sns:ListSubscriptionsByTopic",
        ],
    ),
    (
        On::Everything,
        &["sns:SetSubscriptionAttributes", "sns:Unsubscribe"],
    ),
    (
        On::ConsumerQueues,
        &["sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes"],
    ),
    (
        On::ConsumerAlarms,
        &["cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"],
    ),
];
/// The sweeper: jobs sent again, what was begun brought to an end, what was deleted by hand made anew; and the teardown.
pub const SWEEPER: Grants = &[
    (
        On::BusTable,
        &[
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            "dynamodb:PutItem",
            "dynamodb:DeleteItem",
        ],
    ),
    (On::ReplayQueue, &["sqs:SendMessage"]),
    (On::RedriveQueue, &["sqs:SendMessage"]),
    (
        On::Topics,
        &[
            "sns:CreateTopic",
            "sns:DeleteTopic",
            "sns:SetTopicAttributes",
            "sns:Subscribe",
            "sns:ListSubscriptionsByTopic",
        ],
    ),
    (
        On::Everything,
        &[
            "sns:SetSubscriptionAttributes",
            "sns:Unsubscribe",
            "sqs:ListQueues",
        ],
    ),
    (
        On::ConsumerQueues,
        &["sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes"],
    ),
    (
        On::ConsumerAlarms,
        &["cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"],
    ),
];

/// What Lambda asks of an event source in the name of the function that it feeds.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
const FED: &[&str] = &[
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
];
/// Fed by the archive's queue.
pub const FED_BY_ARCHIVE: Grants = &[(On::ArchiveQueue, FED)];
/// Fed by the queue of dead letters.
pub const FED_BY_DEAD_LETTERS: Grants = &[(On::DeadLettersQueue, FED)];
/// Fed by the queue of replays.
pub const FED_BY_REPLAYS: Grants = &[(On::ReplayQueue, FED)];
/// Fed by the queue of redrives.
pub const FED_BY_REDRIVES: Grants = &[(On::RedriveQueue, FED)];
