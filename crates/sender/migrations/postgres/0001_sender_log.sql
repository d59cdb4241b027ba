-- The outbox: messages on their way to a partner. One table, in the producer's own database.
--
-- A program in any language may enqueue by a plain INSERT, in the transaction of its own business write:
--
--     INSERT INTO sender_log (target, key, order_group, payload) VALUES ('bus', $1, $2, $3)
--
--   target       whom it is for: a name that the relay has a transport for
--   key          what the message is known by at the partner: stable, derived from the domain; once per target
--   order_group  messages of one group are sent one after another, in the order of enqueueing; NULL: in no line
--   payload      the exact bytes, at most 16 MiB
--   content_type may be given too, for partners that look at it
--
-- Every other column is the relay's or a trigger's. To make a repetition harmless add `ON CONFLICT (target, key) DO NOTHING`; that does
-- not tell whether the key was used with other content, as the library's `enqueue` does. The program's role needs
--
--     GRANT INSERT, SELECT ON sender_log TO ...; GRANT USAGE ON SEQUENCE sender_log_id TO ...;
--
-- From the INSERT of a message with a group until the end of its transaction, other transactions that enqueue to the same group wait (and
-- to one group in a thousand others): so enqueue late in the transaction, and to several groups in the same order everywhere. Two that wait
-- for each other are told apart by the server as any deadlock: one of them fails and is repeated.
--
-- The database's encoding has to be UTF8: partners' answers are kept as they are.
--
-- Times are milliseconds since 1970 by the database's clock.
CREATE TABLE sender_log (
    id BIGINT PRIMARY KEY,
    -- Checks run at every write of a row. One pattern with the length in it, `^[!-~]{1,255}$`, takes thirty times as long.
    target TEXT NOT NULL CHECK (length(target) BETWEEN 1 AND 100 AND target !~ '[^!-~]'),
    key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255 AND key !~ '[^!-~]'),
    order_group TEXT CHECK (length(order_group) BETWEEN 1 AND 255 AND order_group !~ '[^!-~]'),
    -- The SHA-256 of the payload. A trigger fills it in.
    payload_hash BYTEA NOT NULL CHECK (octet_length(payload_hash) = 32),
    content_type TEXT CHECK (length(content_type) BETWEEN 1 AND 255 AND content_type !~ '[^ -~]'),
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'refused', 'parked')),
    -- The place in the group's line: 'new' (no relay has looked at it), 'waiting' (an earlier one holds it), 'first' (it may be
    -- claimed, or it is parked and holds its group), NULL (done: it holds nobody).
    turn TEXT DEFAULT 'new' CHECK (turn IN ('new', 'waiting', 'first')),
    -- Attempts in all, counted before each is made; those of the running round; when the first round began.
    attempts BIGINT NOT NULL DEFAULT 0,
    round_attempts BIGINT NOT NULL DEFAULT 0,
    rounds_since BIGINT,
    -- How many of the running round's attempts had new credentials, since the old ones were refused.
    round_renewals BIGINT NOT NULL DEFAULT 0,
    -- Not to be claimed before. While a lease runs, its end.
    due_at BIGINT NOT NULL,
    enqueued_at BIGINT NOT NULL,
    first_attempt_at BIGINT,
    last_attempt_at BIGINT,
    -- Since when the partner may have it: the first attempt of which it is not certain that nothing was left of it.
    unsure_since BIGINT,
    finished_at BIGINT,
    last_status BIGINT,
    last_outcome TEXT,
    last_rule TEXT,
    last_detail TEXT,
    -- Who has claimed it, until when, and the how many-th claim this is.
    lease_owner TEXT,
    lease_until BIGINT,
    fence BIGINT NOT NULL DEFAULT 0,
    payload BYTEA NOT NULL CHECK (octet_length(payload) <= 16777216),
    UNIQUE (target, key)
) WITH (
    -- A row is written a few times and then rests: vacuum by what was written, not by what rests. And its payload lies beside it.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, toast_tuple_target = 512
);
ALTER TABLE sender_log ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE SEQUENCE sender_log_id AS BIGINT OWNED BY sender_log.id;

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

-- Ids of a sequence do not follow commits. The lock of the group, until the end of the transaction, makes them do so within the group. There
-- are 1,024 locks for all groups, so that a transaction with many messages does not exhaust the server's table of locks.
CREATE FUNCTION sender_log_enqueue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.order_group IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(1935832435, hashtext(NEW.target || ' ' || NEW.order_group) & 1023);
    END IF;
    IF NEW.id IS NULL THEN
        NEW.id := nextval((quote_ident(TG_TABLE_SCHEMA) || '.sender_log_id')::regclass);
    END IF;
    IF NEW.payload_hash IS NULL THEN
        NEW.payload_hash := sha256(NEW.payload);
    END IF;
    IF NEW.enqueued_at IS NULL THEN
        NEW.enqueued_at := extract(epoch FROM clock_timestamp()) * 1000;
    END IF;
    IF NEW.due_at IS NULL THEN
        NEW.due_at := NEW.enqueued_at;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER sender_log_enqueue BEFORE INSERT ON sender_log FOR EACH ROW EXECUTE FUNCTION sender_log_enqueue();

-- What a key stands for never changes, and what is final stays so.
CREATE FUNCTION sender_log_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'sender_log: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER sender_log_fixed BEFORE UPDATE OF id, target, key, order_group, payload_hash, content_type, enqueued_at, payload ON sender_log
    FOR EACH ROW EXECUTE FUNCTION sender_log_refuse('what was enqueued does not change');
CREATE TRIGGER sender_log_final BEFORE UPDATE OF state ON sender_log
    FOR EACH ROW WHEN (OLD.state IN ('delivered', 'refused') AND NEW.state <> OLD.state)
    EXECUTE FUNCTION sender_log_refuse('a final state stays');
CREATE TRIGGER sender_log_count BEFORE UPDATE OF attempts, fence ON sender_log
    FOR EACH ROW WHEN (NEW.attempts < OLD.attempts OR NEW.fence < OLD.fence)
    EXECUTE FUNCTION sender_log_refuse('attempts and fence never shrink');
