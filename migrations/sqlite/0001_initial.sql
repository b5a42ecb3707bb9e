-- The embedded store, schema 1. Runs as one transaction; may be run by hand on an empty database.
--
-- Times of a lease (acquired_at, renewed_at, expires_at) are milliseconds of CLOCK_BOOTTIME within the boot
-- that `epoch` names. Records of version 1 hold RFC 3339 text in UTC there, and neither epoch nor ttl. Columns
-- that end in _wall_ms are milliseconds since 1970, for people; nothing is decided by them.

PRAGMA application_id = 0x54454e55; -- "TENU"

-- store_id: random, names this store. machine_id: the machine that made it, the only one that may write.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The last fence handed out; one row.
CREATE TABLE fence (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
);
INSERT INTO fence (one, last) VALUES (1, 0);

CREATE TABLE attempt (
    fence            INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    token_digest     BLOB NOT NULL CHECK (length(token_digest) = 32),
    kind             TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('planning', 'running', 'passed', 'failed', 'cancelled')),
    repository       TEXT,
    subjects         TEXT NOT NULL, -- one a line, sorted bytewise, unique
    demand           TEXT,
    machine_id       TEXT,
    boot_id          TEXT,
    host             TEXT,
    user             TEXT,
    incarnation      TEXT,
    pid_namespace    INTEGER,
    pid              INTEGER,
    start_ticks      INTEGER,
    uid              INTEGER,
    journal_handle   TEXT,
    journal_host     TEXT,
    journal_path     TEXT,
    reason_code      TEXT,
    reason_text      TEXT,
    reason_by        TEXT,
    ttl_ms           INTEGER,
    epoch            TEXT,
    acquired_at      INTEGER,
    renewed_at       INTEGER,
    expires_at       INTEGER,
    acquired_wall_ms INTEGER,
    renewed_wall_ms  INTEGER,
    settled_wall_ms  INTEGER,
    rev              INTEGER NOT NULL,
    record_version   INTEGER NOT NULL,
    progress_phase   TEXT NOT NULL DEFAULT '',
    progress_done    INTEGER NOT NULL DEFAULT 0,
    progress_total   INTEGER NOT NULL DEFAULT 0,
    cancel_by        TEXT,
    cancel_wall_ms   INTEGER,
    settle_nonce     TEXT
);
CREATE INDEX attempt_unfinished ON attempt (repository) WHERE state IN ('planning', 'running');
CREATE INDEX attempt_handle ON attempt (journal_handle);

-- Mutual exclusion: a subject that an unfinished attempt holds is here, once.
CREATE TABLE subject (
    subject TEXT PRIMARY KEY NOT NULL,
    attempt TEXT NOT NULL REFERENCES attempt (id) DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID;
CREATE INDEX subject_attempt ON subject (attempt);

-- Retired attempts whose work may still live.
CREATE TABLE leftover (
    attempt      TEXT PRIMARY KEY NOT NULL REFERENCES attempt (id),
    machine_id   TEXT NOT NULL,
    boot_id      TEXT NOT NULL,
    journal_path TEXT,
    subjects     TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE evidence (
    sequence   INTEGER PRIMARY KEY,
    attempt    TEXT NOT NULL REFERENCES attempt (id),
    machine_id TEXT NOT NULL,
    repository TEXT,
    producer   TEXT NOT NULL,
    key        TEXT NOT NULL,
    verdict    TEXT NOT NULL,
    passed     INTEGER NOT NULL CHECK (passed IN (0, 1)),
    reusable   INTEGER NOT NULL CHECK (reusable IN (0, 1)),
    tree       TEXT,
    payload    TEXT,
    wall_ms    INTEGER NOT NULL
);
CREATE INDEX evidence_key ON evidence (key, sequence) WHERE reusable = 1;
CREATE INDEX evidence_producer ON evidence (producer, repository, sequence) WHERE reusable = 1;

-- Signed statements. The bytes are kept as they were signed.
CREATE TABLE proof (
    id          TEXT PRIMARY KEY NOT NULL,
    attempt     TEXT NOT NULL UNIQUE REFERENCES attempt (id),
    fence       INTEGER NOT NULL UNIQUE,
    repository  TEXT,
    commit_hash TEXT,
    tree        TEXT,
    demand      TEXT,
    key_id      TEXT,
    envelope    BLOB NOT NULL,
    wall_ms     INTEGER NOT NULL
);
CREATE INDEX proof_tree ON proof (tree, fence);

-- What happened, without renewals.
CREATE TABLE history (
    sequence INTEGER PRIMARY KEY,
    attempt  TEXT NOT NULL REFERENCES attempt (id),
    event    TEXT NOT NULL,
    detail   TEXT,
    wall_ms  INTEGER NOT NULL
);
CREATE INDEX history_attempt ON history (attempt);

-- Evidence, Proofs and history are written once.
CREATE TRIGGER evidence_fixed BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is immutable'); END;
CREATE TRIGGER proof_fixed BEFORE UPDATE ON proof
BEGIN SELECT RAISE(ABORT, 'a Proof is immutable'); END;
CREATE TRIGGER history_fixed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER history_kept BEFORE DELETE ON history
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;

PRAGMA user_version = 1;
