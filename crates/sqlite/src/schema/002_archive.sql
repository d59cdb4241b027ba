-- Version 2. The archive: see `archive`, which says why it lies so.

-- What `message.story` says from now on: the digest of the `payload.story_id` of any message, not of snapshots alone.
ALTER TABLE message ADD COLUMN story_id TEXT;
ALTER TABLE message ADD COLUMN sequence_number TEXT;
CREATE INDEX message_workspace ON message (workspace);          -- and by seq, which every index ends with

ALTER TABLE story ADD COLUMN story_id TEXT;
ALTER TABLE story ADD COLUMN begun_at INTEGER;
CREATE INDEX story_workspace ON story (workspace);              -- and by id

-- Messages of one workspace that lie behind one another, compressed. A message is either here or in `message`. Ids are never
-- used again: the runs hold them.
CREATE TABLE archive_block (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace    INTEGER NOT NULL,         -- workspace_number
    first_seq    INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    first_at     INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    heads_bytes  INTEGER NOT NULL,         -- of what is compressed
    bodies_bytes INTEGER NOT NULL,
    heads        BLOB NOT NULL,            -- zstd, with its checksum
    bodies       BLOB NOT NULL             -- last: who reads heads alone does not come by it
) STRICT;
CREATE UNIQUE INDEX archive_block_seq ON archive_block (workspace, first_seq);
CREATE INDEX archive_block_at         ON archive_block (workspace, last_at);
CREATE INDEX archive_block_age        ON archive_block (last_at);

-- A sorted run of what is in the blocks of a range of ids.
CREATE TABLE archive_segment (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    level       INTEGER NOT NULL,
    first_block INTEGER NOT NULL,
    last_block  INTEGER NOT NULL,
    state       INTEGER NOT NULL           -- 0 in the making, 1 whole, 2 dropped: its pages are being swept
) STRICT;

-- A page of a run: pairs of a key's hash and a block.
CREATE TABLE archive_run (
    id      INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,
    first   INTEGER NOT NULL,              -- the page's first hash
    pairs   BLOB NOT NULL
) STRICT;
CREATE INDEX archive_run_first ON archive_run (segment, first);
