-- The shared store, version 1: the tables. All files of this folder, in order, make the schema `tenure`; each runs as
-- one transaction, by the program or by hand: psql -1 -f FILE.
--
-- Nobody writes these tables but the functions of the later files, which run as the owner of the schema. Times are the
-- server's own. A lease is compared with the clock in one function, tenure.lapsed().

CREATE SCHEMA tenure;
COMMENT ON SCHEMA tenure IS 'Attempts under a renewable lease with a fencing token. Call the functions; the tables are theirs.';

CREATE TABLE tenure.meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);
COMMENT ON TABLE tenure.meta IS 'store_id: random, names this store. schema_version: of the last file run. incarnation: of the server when the last fence was drawn.';
INSERT INTO tenure.meta VALUES
    ('store_id', replace(gen_random_uuid()::text, '-', '')),
    ('schema_version', '1'),
    ('incarnation', '');

-- Without a cache, or a later holder could get a smaller number. tenure.fence_draw() moves it above the microseconds
-- since 1970 whenever the server was started, promoted or restored.
CREATE SEQUENCE tenure.fence CACHE 1;
COMMENT ON SEQUENCE tenure.fence IS 'Fences: strictly increasing, one for each token handed out. Drawn after the subjects are held.';

CREATE TABLE tenure.transition (
    state       text NOT NULL,
    event       text NOT NULL,
    who         text NOT NULL CHECK (who IN ('owner', 'other')),
    next_state  text NOT NULL,
    needs_lease boolean NOT NULL,
    needs_proof boolean NOT NULL,
    PRIMARY KEY (state, event)
);
COMMENT ON TABLE tenure.transition IS 'What may change an attempt; what is not here is refused. needs_lease: of strict kinds (publication). needs_proof: of kind done.';
INSERT INTO tenure.transition (state, event, who, next_state, needs_lease, needs_proof) VALUES
    ('planning', 'bind', 'owner', 'running', false, false),
    ('planning', 'renew', 'owner', 'planning', true, false),
    ('planning', 'settle failed', 'owner', 'failed', false, false),
    ('planning', 'settle cancelled', 'owner', 'cancelled', false, false),
    ('planning', 'retire', 'other', 'cancelled', false, false),
    ('running', 'renew', 'owner', 'running', true, false),
    ('running', 'settle passed', 'owner', 'passed', true, true),
    ('running', 'settle failed', 'owner', 'failed', false, false),
    ('running', 'settle cancelled', 'owner', 'cancelled', false, false),
    ('running', 'retire', 'other', 'cancelled', false, false);

-- A renewal changes no indexed column and finds room on its page: it is a heap-only update.
CREATE TABLE tenure.attempt (
    id              uuid PRIMARY KEY,
    fence           bigint NOT NULL UNIQUE,
    rev             bigint NOT NULL DEFAULT 1,
    acquired_at     timestamptz,
    renewed_at      timestamptz,
    expires_at      timestamptz,
    ttl             interval,
    settled_at      timestamptz,
    cancel_at       timestamptz,
    record_version  int NOT NULL DEFAULT 2,
    kind            text NOT NULL CHECK (kind IN ('done', 'trial', 'measure', 'command', 'publication')),
    state           text NOT NULL CHECK (state IN ('planning', 'running', 'passed', 'failed', 'cancelled')),
    token_digest    bytea NOT NULL CHECK (octet_length(token_digest) = 32),
    repository      text,
    subjects        text[] NOT NULL,
    demand          text,
    executor        jsonb NOT NULL DEFAULT '{}',
    journal_handle  text,
    journal_host    text,
    journal_path    text,
    source          jsonb,
    reason_code     text,
    reason_text     text,
    reason_by       text,
    progress_phase  text NOT NULL DEFAULT '',
    progress_done   bigint NOT NULL DEFAULT 0,
    progress_total  bigint NOT NULL DEFAULT 0,
    cancel_by       text,
    settle_nonce    text
) WITH (fillfactor = 40);
CREATE INDEX attempt_unfinished ON tenure.attempt (repository) WHERE state IN ('planning', 'running');
CREATE INDEX attempt_handle ON tenure.attempt (journal_handle);
COMMENT ON TABLE tenure.attempt IS 'One try, by one executor, at work on named subjects. Ends once.';
COMMENT ON COLUMN tenure.attempt.fence IS 'Safe to show; for third parties to compare.';
COMMENT ON COLUMN tenure.attempt.rev IS 'Counts every change; a retirement names the one it has seen.';
COMMENT ON COLUMN tenure.attempt.token_digest IS 'SHA-256 of the token that only the owner has.';
COMMENT ON COLUMN tenure.attempt.subjects IS 'Sorted bytewise, unique; never changed.';
COMMENT ON COLUMN tenure.attempt.source IS 'Publications: the row that was claimed, {table, key, value, soft_delete}.';
COMMENT ON COLUMN tenure.attempt.executor IS 'machine_id, boot_id, host, user, incarnation, pid_namespace, pid, start_ticks, uid.';

-- Mutual exclusion: a subject that an unfinished attempt holds is here, once.
CREATE TABLE tenure.subject (
    subject text COLLATE "C" PRIMARY KEY,
    attempt uuid NOT NULL REFERENCES tenure.attempt (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX subject_attempt ON tenure.subject (attempt);
COMMENT ON TABLE tenure.subject IS 'Subjects held by unfinished attempts; the primary key excludes.';

CREATE TABLE tenure.leftover (
    attempt      uuid PRIMARY KEY REFERENCES tenure.attempt (id),
    machine_id   text NOT NULL,
    boot_id      text NOT NULL
);
COMMENT ON TABLE tenure.leftover IS 'Retired attempts whose work may still live on the machine named.';

CREATE TABLE tenure.evidence (
    sequence   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt    uuid NOT NULL REFERENCES tenure.attempt (id),
    machine_id text NOT NULL,
    repository text,
    producer   text NOT NULL,
    key        text NOT NULL,
    verdict    text NOT NULL,
    passed     boolean NOT NULL,
    reusable   boolean NOT NULL,
    tree       text,
    payload    text,
    at         timestamptz NOT NULL,
    nonce      text UNIQUE
);
CREATE INDEX evidence_key ON tenure.evidence (key, sequence) WHERE reusable;
CREATE INDEX evidence_producer ON tenure.evidence (producer, repository, sequence) WHERE reusable;
COMMENT ON TABLE tenure.evidence IS 'Outcomes of producers. key: digest of all that the outcome depends on.';
COMMENT ON COLUMN tenure.evidence.nonce IS 'Of who put it: repeated with it, evidence is the same and not another.';

CREATE TABLE tenure.proof (
    id          text PRIMARY KEY,
    attempt     uuid NOT NULL UNIQUE REFERENCES tenure.attempt (id),
    fence       bigint NOT NULL UNIQUE,
    repository  text,
    commit_hash text,
    tree        text,
    demand      text,
    key_id      text,
    envelope    bytea NOT NULL,
    at          timestamptz NOT NULL
);
CREATE INDEX proof_tree ON tenure.proof (tree, fence);
COMMENT ON TABLE tenure.proof IS 'Signed statements; the bytes as they were signed.';

CREATE TABLE tenure.history (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt  uuid NOT NULL REFERENCES tenure.attempt (id),
    event    text NOT NULL,
    detail   text,
    at       timestamptz NOT NULL
);
CREATE INDEX history_attempt ON tenure.history (attempt);
COMMENT ON TABLE tenure.history IS 'What happened, without renewals. Append-only.';

CREATE FUNCTION tenure.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of tenure.% are written once', TG_TABLE_NAME;
END $$;
COMMENT ON FUNCTION tenure.refuse_change() IS 'Keeps evidence, Proofs and history as they were written.';
CREATE TRIGGER evidence_fixed BEFORE UPDATE OR DELETE ON tenure.evidence
    FOR EACH ROW EXECUTE FUNCTION tenure.refuse_change();
CREATE TRIGGER proof_fixed BEFORE UPDATE OR DELETE ON tenure.proof
    FOR EACH ROW EXECUTE FUNCTION tenure.refuse_change();
CREATE TRIGGER history_fixed BEFORE UPDATE OR DELETE ON tenure.history
    FOR EACH ROW EXECUTE FUNCTION tenure.refuse_change();
