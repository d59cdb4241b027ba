-- Version 1. Random access is what costs at scale, so rows are appended and everything that is touched soon after its
-- making lies on pages that are still hot; each publication touches one random page of `record_key` and, for each
-- consumer that has a backlog, one of `queue_group`.

-- Numbers the store keeps for itself.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A workspace's number: what the big tables hold in place of its id. Outlives the workspace.
CREATE TABLE workspace_number (
    number     INTEGER PRIMARY KEY,
    workspace  TEXT NOT NULL UNIQUE,
    deleted_at INTEGER                     -- its stories are being swept
) STRICT;
CREATE INDEX workspace_number_deleted ON workspace_number (number) WHERE deleted_at IS NOT NULL;

CREATE TABLE workspace (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    entry   TEXT NOT NULL                  -- JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE connection (
    id        TEXT PRIMARY KEY,
    workspace TEXT,
    version   INTEGER NOT NULL,
    entry     TEXT NOT NULL                -- JSON
) STRICT, WITHOUT ROWID;
CREATE INDEX connection_workspace ON connection (workspace);

CREATE TABLE system_id (
    system_id TEXT PRIMARY KEY,
    producer  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX system_id_producer ON system_id (producer);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,                 -- JSON
    details TEXT NOT NULL                  -- JSON
) STRICT;

CREATE TABLE record (
    id           INTEGER PRIMARY KEY,
    workspace    INTEGER NOT NULL,         -- workspace_number
    message_id   BLOB NOT NULL,
    content_hash BLOB NOT NULL,
    state        INTEGER NOT NULL,         -- 0 recorded, 1 published, 2 superseded
    recorded_at  INTEGER NOT NULL,
    attempt      BLOB NOT NULL,
    story        BLOB,
    producer     TEXT NOT NULL,
    published_at INTEGER,
    expires_at   INTEGER NOT NULL,
    topic_at     INTEGER                   -- when the topic took it last: its deduplication, which outlives a removal
) STRICT;
CREATE UNIQUE INDEX record_key ON record (workspace, message_id);

CREATE TABLE story (
    id        INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL,            -- workspace_number
    digest    BLOB NOT NULL,
    head      BLOB NOT NULL,
    version   BLOB NOT NULL,
    state     BLOB NOT NULL                -- JSON
) STRICT;
CREATE UNIQUE INDEX story_key ON story (workspace, digest);

-- Every published message once, in the order of publication.
CREATE TABLE message (
    seq            INTEGER PRIMARY KEY,
    workspace      INTEGER NOT NULL,       -- workspace_number
    message_id     BLOB NOT NULL,
    published_at   INTEGER NOT NULL,
    story          BLOB,
    message_type   TEXT NOT NULL,
    family         TEXT,
    topic          TEXT NOT NULL,
    correlation_id TEXT NOT NULL,          -- as sent
    producer       TEXT NOT NULL,
    system_id      TEXT NOT NULL,
    som_version    TEXT NOT NULL,
    body           BLOB NOT NULL
) STRICT;

-- Ids are never used again: a receipt handle holds one.
CREATE TABLE queue (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer      TEXT NOT NULL UNIQUE,
    visible       INTEGER NOT NULL DEFAULT 0,
    in_flight     INTEGER NOT NULL DEFAULT 0,
    dead_lettered INTEGER NOT NULL DEFAULT 0,
    closed        INTEGER NOT NULL DEFAULT 0   -- its consumer is deleted; its rows are being swept
) STRICT;
CREATE INDEX queue_closed ON queue (id) WHERE closed;

-- What waits for a consumer. A group is a correlation id's rows of state < 3. Either one to ten of its first rows are
-- hidden, and then no row of it is ready; or its first row is ready and nothing is hidden.
CREATE TABLE queue_message (
    queue       INTEGER NOT NULL,
    position    INTEGER NOT NULL,          -- order of arrival; a publication's is its message.seq
    grp         BLOB NOT NULL,             -- correlation id
    message     INTEGER NOT NULL,          -- message.seq
    enqueued_at INTEGER NOT NULL,
    receives    INTEGER NOT NULL DEFAULT 0,
    state       INTEGER NOT NULL,          -- 0 waiting, 1 ready, 2 hidden; kept for its handle: 3 acknowledged, 4 rejected
    visible_at  INTEGER,                   -- from state 2 on: until when the handle is good
    received_at INTEGER,
    receipt     INTEGER,                   -- the handle's token
    attempt     TEXT,                      -- the receive's attempt id, while it can be repeated
    redelivery  TEXT,
    PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_group   ON queue_message (queue, grp, position)        WHERE state < 3;
CREATE INDEX queue_ready   ON queue_message (queue, position)             WHERE state = 1;
CREATE INDEX queue_hidden  ON queue_message (queue, visible_at, position) WHERE state = 2;
CREATE INDEX queue_settled ON queue_message (visible_at, queue, position) WHERE state >= 3;
-- For the sweeper of messages: others never outlive their message, by their ages.
CREATE INDEX queue_redelivery ON queue_message (message)                  WHERE redelivery IS NOT NULL;

CREATE TABLE dead_letter (
    queue       INTEGER NOT NULL,
    position    INTEGER NOT NULL,          -- as in the queue
    grp         BLOB NOT NULL,
    message     INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    receives    INTEGER NOT NULL,
    reason      TEXT,                      -- the consumer's, if it was rejected; else it was received too often
    dead_at     INTEGER NOT NULL,
    redelivery  TEXT,
    PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_letter_age     ON dead_letter (dead_at);
CREATE INDEX dead_letter_message ON dead_letter (message);

-- Receives that can be repeated.
CREATE TABLE receive_attempt (
    queue     INTEGER NOT NULL,
    attempt   TEXT NOT NULL,
    at        INTEGER NOT NULL,
    receipt   INTEGER NOT NULL,
    positions TEXT NOT NULL,               -- JSON
    PRIMARY KEY (queue, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX receive_attempt_age ON receive_attempt (at);
