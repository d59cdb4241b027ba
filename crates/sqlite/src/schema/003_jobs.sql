-- Version 3. Jobs, dead letters that jobs take, the log of refusals; and positions, which redeliveries and publications share.

-- Ahead of every position that was given: see `writer/positions`.
INSERT INTO meta (name, value) SELECT 'positions', coalesce(max(seq), 0) FROM message;

ALTER TABLE queue ADD COLUMN purged_at INTEGER;

-- So that a row can become a dead letter without a look at its message. `position` of a redelivery is no message.seq.
ALTER TABLE queue_message ADD COLUMN message_id BLOB;
UPDATE queue_message SET message_id = (SELECT message_id FROM message WHERE seq = message);

CREATE TABLE dead_letter_3 (
    queue       INTEGER NOT NULL,
    position    INTEGER NOT NULL,          -- as in the queue
    grp         BLOB NOT NULL,
    message     INTEGER NOT NULL,          -- message.seq
    message_id  BLOB NOT NULL,
    enqueued_at INTEGER NOT NULL,
    receives    INTEGER NOT NULL,
    reason      TEXT,                      -- the consumer's, if it was rejected; else it was received too often
    dead_at     INTEGER NOT NULL,
    redelivery  TEXT,
    job         TEXT,                      -- the redrive that holds it: it is not swept meanwhile
    PRIMARY KEY (queue, position)
) STRICT, WITHOUT ROWID;
INSERT INTO dead_letter_3
    SELECT queue, position, grp, message, message_id, enqueued_at, receives, reason, dead_at, redelivery, NULL
    FROM dead_letter JOIN message ON seq = message;
DROP TABLE dead_letter;
ALTER TABLE dead_letter_3 RENAME TO dead_letter;
CREATE INDEX dead_letter_age        ON dead_letter (dead_at)      WHERE job IS NULL;
CREATE INDEX dead_letter_message    ON dead_letter (message);
CREATE INDEX dead_letter_message_id ON dead_letter (queue, message_id);
CREATE INDEX dead_letter_job        ON dead_letter (queue, job)   WHERE job IS NOT NULL;

-- How far a job has delivered into a queue: what it delivers again up to there is there already.
CREATE TABLE redelivered (
    job     TEXT NOT NULL,
    queue   INTEGER NOT NULL,
    through INTEGER NOT NULL,              -- the place where the job had the last one from
    at      INTEGER NOT NULL,
    PRIMARY KEY (job, queue)
) STRICT, WITHOUT ROWID;
CREATE INDEX redelivered_age ON redelivered (at);

CREATE TABLE job (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    workspace   TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER,
    version     INTEGER NOT NULL,
    entry       TEXT NOT NULL              -- JSON
) STRICT;
CREATE INDEX job_list       ON job (workspace, created_at, id);
CREATE INDEX job_unfinished ON job (created_at, id) WHERE finished_at IS NULL;
CREATE INDEX job_finished   ON job (finished_at)    WHERE finished_at IS NOT NULL;

-- Refused publishes, in the order in which they were noted.
CREATE TABLE refusal (
    id        INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL,            -- workspace_number
    at        INTEGER NOT NULL,
    entry     TEXT NOT NULL                -- JSON
) STRICT;
CREATE INDEX refusal_workspace ON refusal (workspace, id);
