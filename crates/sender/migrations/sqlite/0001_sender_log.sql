-- The outbox: messages on their way to a partner. One table, in the producer's own database.
--
-- A program in any language may enqueue by a plain INSERT, in the transaction of its own business write:
--
--     INSERT INTO sender_log (target, key, order_group, payload) VALUES ('bus', ?, ?, ?)
--
--   target       whom it is for: a name that the relay has a transport for
--   key          what the message is known by at the partner: stable, derived from the domain; once per target
--   order_group  messages of one group are sent one after another, in the order of enqueueing; NULL: in no line
--   payload      the exact bytes
--   content_type may be given too, for partners that look at it
--
-- Every other column is the relay's. To make a repetition harmless add `ON CONFLICT (target, key) DO NOTHING`; that does not tell
-- whether the key was used with other content, as the library's `enqueue` does.
--
-- Times are milliseconds since 1970 by the database's clock. The expression for them is one that old versions of SQLite know too,
-- since it is the inserting program's SQLite that evaluates it.
CREATE TABLE sender_log (
    -- Never used again, also after a purge.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL CHECK (length(target) BETWEEN 1 AND 100 AND target NOT GLOB '*[^!-~]*'),
    key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255 AND key NOT GLOB '*[^!-~]*'),
    order_group TEXT CHECK (length(order_group) BETWEEN 1 AND 255 AND order_group NOT GLOB '*[^!-~]*'),
    -- The SHA-256 of the payload. NULL after a plain INSERT: SQLite has no such function, and the relay fills it in.
    payload_hash BLOB CHECK (length(payload_hash) = 32),
    content_type TEXT,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'refused', 'parked')),
    -- The place in the group's line: 'new' (no relay has looked at it), 'waiting' (an earlier one holds it), 'first' (it may be
    -- claimed, or it is parked and holds its group), NULL (done: it holds nobody).
    turn TEXT DEFAULT 'new' CHECK (turn IN ('new', 'waiting', 'first')),
    -- Attempts in all, counted before each is made; those of the running round; when the first round began.
    attempts INTEGER NOT NULL DEFAULT 0,
    round_attempts INTEGER NOT NULL DEFAULT 0,
    rounds_since INTEGER,
    -- Not to be claimed before. While a lease runs, its end.
    due_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    enqueued_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    first_attempt_at INTEGER,
    last_attempt_at INTEGER,
    -- Since when the partner may have it: the first attempt of which it is not certain that nothing was left of it.
    unsure_since INTEGER,
    finished_at INTEGER,
    last_status INTEGER,
    last_outcome TEXT,
    last_rule TEXT,
    last_detail TEXT,
    -- Who has claimed it, until when, and the how many-th claim this is.
    lease_owner TEXT,
    lease_until INTEGER,
    fence INTEGER NOT NULL DEFAULT 0,
    -- Last, so that what is read without it does not walk through its pages.
    payload BLOB NOT NULL,
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
