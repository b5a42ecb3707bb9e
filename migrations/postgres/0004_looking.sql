-- The shared store, version 4: evidence and Proofs, and all that only looks. Records are JSON as tenure.record() makes
-- them; tenure.status() is for people.

CREATE FUNCTION tenure.evidence_put(attempt uuid, token bytea, machine_id text, producer text, key text, verdict text,
    passed boolean, reusable boolean, repository text DEFAULT NULL, tree text DEFAULT NULL, payload text DEFAULT NULL,
    nonce text DEFAULT NULL, OUT result text, OUT message text, OUT sequence bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
#variable_conflict use_variable
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    now timestamptz := tenure.now();
BEGIN
    SELECT o.result, o.message INTO result, message FROM tenure.check_owner(a, token) o;
    IF result = 'ok' THEN
        -- One whose answer was lost is asked by repeating it.
        SELECT e.sequence INTO sequence FROM tenure.evidence e WHERE e.nonce = nonce AND e.attempt = a.id;
    END IF;
    IF result = 'ok' AND sequence IS NULL THEN
        INSERT INTO tenure.evidence AS e (attempt, machine_id, repository, producer, key, verdict, passed, reusable, tree,
            payload, at, nonce)
        VALUES (a.id, machine_id, coalesce(repository, a.repository), producer, key, verdict, passed, reusable, tree,
            payload, now, nonce)
        RETURNING e.sequence INTO sequence;
        PERFORM tenure.remember(a.id, 'evidence', format('%s: %s', producer, verdict), now);
        PERFORM tenure.commit_durably();
    END IF;
END $$;
COMMENT ON FUNCTION tenure.evidence_put(uuid, bytea, text, text, text, text, boolean, boolean, text, text, text, text) IS
    'Records the outcome of a producer under the token. Repeated with the same nonce it answers as the first time. ok and its number; retired: nothing written.';

CREATE FUNCTION tenure.evidence_find(key text, machine_id text) RETURNS SETOF tenure.evidence
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT * FROM tenure.evidence e
    WHERE e.key = evidence_find.key AND e.reusable AND (e.passed OR e.machine_id = evidence_find.machine_id)
    ORDER BY e.sequence DESC LIMIT 1
$$;
COMMENT ON FUNCTION tenure.evidence_find(text, text) IS 'The newest reusable evidence with this key. A failure counts only on the machine that saw it.';

CREATE FUNCTION tenure.evidence_latest(repository text, producer text) RETURNS SETOF tenure.evidence
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT * FROM tenure.evidence e
    WHERE e.repository IS NOT DISTINCT FROM evidence_latest.repository AND e.producer = evidence_latest.producer
        AND e.reusable
    ORDER BY e.sequence DESC LIMIT 1
$$;
COMMENT ON FUNCTION tenure.evidence_latest(text, text) IS 'The newest reusable evidence of a producer, whatever its key.';

CREATE FUNCTION tenure.proof_find(repository text DEFAULT NULL, tree text DEFAULT NULL, commit_hash text DEFAULT NULL,
    demand text DEFAULT NULL, before_fence bigint DEFAULT NULL)
RETURNS SETOF tenure.proof LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT * FROM tenure.proof p
    WHERE (proof_find.repository IS NULL OR p.repository = proof_find.repository)
        AND (proof_find.tree IS NULL OR p.tree = proof_find.tree)
        AND (proof_find.commit_hash IS NULL OR p.commit_hash = proof_find.commit_hash)
        AND (proof_find.demand IS NULL OR p.demand = proof_find.demand)
        AND (before_fence IS NULL OR p.fence < before_fence)
    ORDER BY p.fence DESC LIMIT 1
$$;
COMMENT ON FUNCTION tenure.proof_find(text, text, text, text, bigint) IS 'The newest Proof that fits; null fits all.';

CREATE FUNCTION tenure.find(id_or_handle text) RETURNS SETOF jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT tenure.record(a) FROM tenure.attempt a
    WHERE a.id = CASE WHEN id_or_handle ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN id_or_handle::uuid END
        OR a.journal_handle = id_or_handle
    ORDER BY a.fence DESC LIMIT 1
$$;
COMMENT ON FUNCTION tenure.find(text) IS 'The record with this id, or the newest with this journal handle.';

CREATE FUNCTION tenure.attempts(repository text DEFAULT NULL, subjects text[] DEFAULT NULL, newest bigint DEFAULT NULL)
RETURNS SETOF jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT tenure.record(a) FROM tenure.attempt a
    WHERE (attempts.repository IS NULL AND attempts.subjects IS NULL)
        OR a.repository = attempts.repository
        OR a.id IN (SELECT s.attempt FROM tenure.subject s WHERE s.subject = ANY (attempts.subjects))
    ORDER BY a.fence DESC LIMIT newest
$$;
COMMENT ON FUNCTION tenure.attempts(text, text[], bigint) IS 'Records, newest first: of a repository, or holding one of the subjects; both null: all.';

CREATE FUNCTION tenure.unfinished(repository text DEFAULT NULL, subjects text[] DEFAULT NULL, newest bigint DEFAULT NULL)
RETURNS SETOF jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT tenure.record(a) FROM tenure.attempt a
    WHERE a.state IN ('planning', 'running')
        AND ((unfinished.repository IS NULL AND unfinished.subjects IS NULL)
            OR a.repository = unfinished.repository
            OR a.id IN (SELECT s.attempt FROM tenure.subject s WHERE s.subject = ANY (unfinished.subjects)))
    ORDER BY a.fence DESC LIMIT newest
$$;
COMMENT ON FUNCTION tenure.unfinished(text, text[], bigint) IS 'As tenure.attempts(), of those that have not ended.';

CREATE FUNCTION tenure.leftovers(machine_id text, boot_id text, forget boolean DEFAULT true) RETURNS SETOF jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
BEGIN
    IF forget THEN
        DELETE FROM tenure.leftover l WHERE l.machine_id = leftovers.machine_id AND l.boot_id <> leftovers.boot_id;
    END IF;
    RETURN QUERY SELECT tenure.record(a) FROM tenure.leftover l JOIN tenure.attempt a ON a.id = l.attempt
        WHERE l.machine_id = leftovers.machine_id AND l.boot_id = leftovers.boot_id ORDER BY a.fence;
END $$;
COMMENT ON FUNCTION tenure.leftovers(text, text, boolean) IS
    'Retired attempts whose work may still live on this machine since this boot. `forget`: those of an earlier boot are deleted; without it nothing is written.';

CREATE FUNCTION tenure.leftover_delete(attempt uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    DELETE FROM tenure.leftover l WHERE l.attempt = leftover_delete.attempt
$$;
COMMENT ON FUNCTION tenure.leftover_delete(uuid) IS 'Nothing of this attempt lives any more.';

CREATE FUNCTION tenure.events(attempt uuid DEFAULT NULL) RETURNS SETOF tenure.history
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT * FROM tenure.history h WHERE events.attempt IS NULL OR h.attempt = events.attempt ORDER BY h.sequence
$$;
COMMENT ON FUNCTION tenure.events(uuid) IS 'The history of an attempt, or of all.';

CREATE FUNCTION tenure.store(OUT id text, OUT schema_version int, OUT unfinished bigint, OUT ended bigint,
    OUT evidence bigint, OUT proofs bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT (SELECT value FROM tenure.meta WHERE name = 'store_id'),
        (SELECT value::int FROM tenure.meta WHERE name = 'schema_version'),
        (SELECT count(*) FROM tenure.attempt WHERE state IN ('planning', 'running')),
        (SELECT count(*) FROM tenure.attempt WHERE state NOT IN ('planning', 'running')),
        (SELECT count(*) FROM tenure.evidence),
        (SELECT count(*) FROM tenure.proof)
$$;
COMMENT ON FUNCTION tenure.store() IS 'What this store is and holds.';

CREATE FUNCTION tenure.status(OUT attempt uuid, OUT handle text, OUT kind text, OUT state text, OUT subjects text[],
    OUT owner text, OUT fence bigint, OUT acquired_at timestamptz, OUT renewed_at timestamptz, OUT lapses_at timestamptz,
    OUT lapsed boolean, OUT progress text)
RETURNS SETOF record LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT a.id, a.journal_handle, a.kind, a.state, a.subjects, tenure.owner_of(a), a.fence, a.acquired_at, a.renewed_at,
        tenure.expiry(a.acquired_at, a.renewed_at, a.expires_at, a.ttl),
        tenure.lapsed(a.acquired_at, a.renewed_at, a.expires_at, a.ttl, tenure.now()),
        format('%s %s/%s', a.progress_phase, a.progress_done, a.progress_total)
    FROM tenure.attempt a WHERE a.state IN ('planning', 'running') ORDER BY a.fence
$$;
COMMENT ON FUNCTION tenure.status() IS 'For people: who holds what, since when, and when it lapses.';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tenure FROM PUBLIC;
UPDATE tenure.meta SET value = '4' WHERE name = 'schema_version';
