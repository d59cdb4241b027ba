-- The outbox: messages on their way to a partner. One table, in the producer's own database.
--
-- A program in any language may enqueue by a plain INSERT, in the transaction of its own business write:
--
--     INSERT INTO sender_log (target, key, order_group, payload) VALUES ('bus', ?, ?, ?)
--
--   target       whom it is for: a name that the relay has a transport for
--   key          what the message is known by at the partner: stable, derived from the domain; once per target
--   order_group  messages of one group are sent one after another, in the order of enqueueing; NULL: in no line
--   payload      the exact bytes, at most 16 MiB; of a text its bytes in the database's encoding
--   content_type may be given too, for partners that look at it
--
-- Every other column is the relay's. To make a repetition harmless add `ON CONFLICT (target, key) DO NOTHING`; that does not tell
-- whether the key was used with other content, as the library's `enqueue` does. `INSERT OR REPLACE` is refused where it would replace something.
--
-- A column of SQLite takes values of every type, and one that a relay cannot read would stop more than itself: so each check asks for the type
-- too. `length(CAST(... AS BLOB))` counts what stands behind a zero byte, which other functions on text do not see.
--
-- Times are milliseconds since 1970 by the database's clock. The expression for them is one that old versions of SQLite know too,
-- since it is the inserting program's SQLite that evaluates it.
CREATE TABLE sender_log (
    -- Never used again, also after a purge.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL CHECK (typeof(target) <> 'blob' AND length(target) BETWEEN 1 AND 100 AND length(CAST(target AS BLOB)) = length(target)
        AND target NOT GLOB '*[^!-~]*'),
    key TEXT NOT NULL CHECK (typeof(key) <> 'blob' AND length(key) BETWEEN 1 AND 255 AND length(CAST(key AS BLOB)) = length(key)
        AND key NOT GLOB '*[^!-~]*'),
    order_group TEXT CHECK (typeof(order_group) <> 'blob' AND length(order_group) BETWEEN 1 AND 255 AND length(CAST(order_group AS BLOB)) = length(order_group)
        AND order_group NOT GLOB '*[^!-~]*'),
    -- The SHA-256 of the payload. NULL after a plain INSERT: SQLite has no such function, and the relay fills it in.
    payload_hash BLOB CHECK (typeof(payload_hash) <> 'text' AND length(payload_hash) = 32),
    content_type TEXT CHECK (typeof(content_type) <> 'blob' AND length(content_type) BETWEEN 1 AND 255 AND length(CAST(content_type AS BLOB)) = length(content_type)
        AND content_type NOT GLOB '*[^ -~]*'),
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'refused', 'parked')),
    -- The place in the group's line: 'new' (no relay has looked at it), 'waiting' (an earlier one holds it), 'first' (it may be
    -- claimed, or it is parked and holds its group), NULL (done: it holds nobody).
    turn TEXT DEFAULT 'new' CHECK (turn IN ('new', 'waiting', 'first')),
    -- Attempts in all, counted before each is made; those of the running round; when the first round began.
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (typeof(attempts) = 'integer'),
    round_attempts INTEGER NOT NULL DEFAULT 0 CHECK (typeof(round_attempts) = 'integer'),
    rounds_since INTEGER CHECK (typeof(rounds_since) IN ('integer', 'null')),
    -- How many of the running round's attempts had new credentials, since the old ones were refused.
    round_renewals INTEGER NOT NULL DEFAULT 0 CHECK (typeof(round_renewals) = 'integer'),
    -- Not to be claimed before. While a lease runs, its end.
    due_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) CHECK (typeof(due_at) = 'integer'),
    enqueued_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) CHECK (typeof(enqueued_at) = 'integer'),
    first_attempt_at INTEGER CHECK (typeof(first_attempt_at) IN ('integer', 'null')),
    last_attempt_at INTEGER CHECK (typeof(last_attempt_at) IN ('integer', 'null')),
    -- Since when the partner may have it: the first attempt of which it is not certain that nothing was left of it.
    unsure_since INTEGER CHECK (typeof(unsure_since) IN ('integer', 'null')),
    finished_at INTEGER CHECK (typeof(finished_at) IN ('integer', 'null')),
    last_status INTEGER CHECK (typeof(last_status) IN ('integer', 'null')),
    last_outcome TEXT CHECK (typeof(last_outcome) <> 'blob'),
    last_rule TEXT CHECK (typeof(last_rule) <> 'blob'),
    last_detail TEXT CHECK (typeof(last_detail) <> 'blob'),
    -- Who has claimed it, until when, and the how many-th claim this is.
    lease_owner TEXT CHECK (typeof(lease_owner) <> 'blob'),
    lease_until INTEGER CHECK (typeof(lease_until) IN ('integer', 'null')),
    fence INTEGER NOT NULL DEFAULT 0 CHECK (typeof(fence) = 'integer'),
    -- Last, so that what is read without it does not walk through its pages.
    payload BLOB NOT NULL CHECK (typeof(payload) IN ('blob', 'text') AND length(CAST(payload AS BLOB)) <= 16777216),
    UNIQUE (target, key)
);

-- What nobody has placed yet, in the order of enqueueing.
CREATE INDEX sender_log_new ON sender_log (target, id) WHERE turn = 'new';
-- The lines: the next of a group is its lowest id.
CREATE INDEX sender_log_line ON sender_log (target, order_group, id) WHERE turn IS NOT NULL AND order_group IS NOT NULL;
-- At most one of a group can be under way, whatever a relay does.
CREATE UNIQUE INDEX sender_log_first ON sender_log (target, order_group) WHERE turn = 'first' AND order_group IS NOT NULL;
-- What may be claimed, and when: as long as the number of groups, not as the backlog.
CREATE INDEX sender_log_due ON sender_log (target, due_at, id) WHERE turn = 'first' AND state = 'pending';
-- For operators: lists, counts and the purge, without reading payloads.
CREATE INDEX sender_log_state ON sender_log (state, id, target, finished_at);

-- `INSERT OR REPLACE` deletes what it replaces, and no trigger hears of that. But its word counts for what a trigger inserts, too: under it this
-- row is replaced, and under no other (they leave it as it is, or fail as they are about to anyway).
CREATE TABLE IF NOT EXISTS sender_log_guard (key_is_taken INTEGER PRIMARY KEY, replaced INTEGER NOT NULL);
INSERT OR IGNORE INTO sender_log_guard (key_is_taken, replaced) VALUES (1, 0);
CREATE TRIGGER sender_log_replace BEFORE INSERT ON sender_log
WHEN EXISTS (SELECT 1 FROM sender_log WHERE target = NEW.target AND key = NEW.key) OR EXISTS (SELECT 1 FROM sender_log WHERE id = NEW.id)
    OR NEW.turn = 'first'
BEGIN
    INSERT OR IGNORE INTO sender_log_guard (key_is_taken, replaced) VALUES (1, 1);
    SELECT RAISE(ABORT, 'sender_log: what was enqueued is not replaced') FROM sender_log_guard WHERE replaced = 1;
END;
-- What a key stands for never changes, and what is final stays so.
CREATE TRIGGER sender_log_fixed BEFORE UPDATE OF id, target, key, order_group, content_type, enqueued_at, payload ON sender_log
BEGIN
    SELECT RAISE(ABORT, 'sender_log: what was enqueued does not change');
END;
CREATE TRIGGER sender_log_fixed_hash BEFORE UPDATE OF payload_hash ON sender_log WHEN OLD.payload_hash IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'sender_log: what was enqueued does not change');
END;
CREATE TRIGGER sender_log_final BEFORE UPDATE OF state ON sender_log
WHEN OLD.state IN ('delivered', 'refused') AND NEW.state <> OLD.state
BEGIN
    SELECT RAISE(ABORT, 'sender_log: a final state stays');
END;
CREATE TRIGGER sender_log_count BEFORE UPDATE OF attempts, fence ON sender_log
WHEN NEW.attempts < OLD.attempts OR NEW.fence < OLD.fence
BEGIN
    SELECT RAISE(ABORT, 'sender_log: attempts and fence never shrink');
END;
