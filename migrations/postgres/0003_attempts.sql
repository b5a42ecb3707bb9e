-- The shared store, version 3: the life of an attempt. These functions are the protocol, for any language: each is one
-- call and one decision, made under the row's lock. They run as the owner of the schema, so a role needs nothing but
-- EXECUTE. Results are words: ok, held, retired, lapsed, conflict, denied, newer, absent, invalid; a lock that is not
-- given within two seconds raises 55P03: try again. A refused call changes nothing.

CREATE FUNCTION tenure.subjects_of(subjects text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(s ORDER BY s COLLATE "C"), '{}')
    FROM (SELECT DISTINCT s COLLATE "C" AS s FROM unnest(subjects) s) each
$$;
COMMENT ON FUNCTION tenure.subjects_of(text[]) IS 'Subjects as a record keeps them: sorted bytewise, each once.';

CREATE FUNCTION tenure.check_reservation(token bytea, kind text, subjects text[], ttl interval) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN token IS NULL OR octet_length(token) < 32 THEN 'a token must have at least 32 random bytes'
        WHEN kind IS NULL OR kind NOT IN ('done', 'trial', 'measure', 'command', 'publication')
            THEN format('"%s" is not a kind of attempt', kind)
        WHEN ttl IS NULL OR ttl < '2 s' OR ttl > '1 h' THEN format('a ttl of %s: must be from 2 s to 1 h', ttl)
        WHEN EXISTS (SELECT FROM unnest(subjects) s
            WHERE s IS NULL OR octet_length(s) NOT BETWEEN 1 AND 4096 OR s ~ '[\x01-\x1f\x7f]')
            THEN 'a subject must have 1 to 4096 bytes and no control character'
    END
$$;
COMMENT ON FUNCTION tenure.check_reservation(bytea, text, text[], interval) IS 'What is wrong with the arguments; null when nothing is.';

CREATE FUNCTION tenure.hold_subjects(attempt uuid, wanted text[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    taken bigint;
BEGIN
    INSERT INTO tenure.subject (subject, attempt)
        SELECT s, hold_subjects.attempt FROM unnest(wanted) s ORDER BY s COLLATE "C"
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF taken < cardinality(wanted) THEN -- guard: subject
        RAISE EXCEPTION 'held' USING ERRCODE = 'TN001';
    END IF;
    RETURN true;
EXCEPTION WHEN SQLSTATE 'TN001' THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION tenure.hold_subjects(uuid, text[]) IS 'Holds all of the subjects, or none: false.';

CREATE FUNCTION tenure.holder_of(wanted text[]) RETURNS tenure.attempt LANGUAGE sql VOLATILE AS $$
    SELECT a FROM tenure.subject s JOIN tenure.attempt a ON a.id = s.attempt
    WHERE s.subject = ANY (wanted) ORDER BY s.subject LIMIT 1
$$;
COMMENT ON FUNCTION tenure.holder_of(text[]) IS 'The holder of the first of these subjects that is held.';

CREATE FUNCTION tenure.reserve(attempt uuid, token bytea, kind text, subjects text[],
    executor jsonb DEFAULT '{}', repository text DEFAULT NULL,
    journal_handle text DEFAULT NULL, journal_host text DEFAULT NULL, journal_path text DEFAULT NULL,
    ttl interval DEFAULT '60 s', bind_if_clear boolean DEFAULT false, source jsonb DEFAULT NULL,
    OUT result text, OUT message text, OUT record jsonb)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    wanted text[] := tenure.subjects_of(subjects);
    a tenure.attempt;
    at timestamptz;
    first_state text := 'planning';
BEGIN
    message := tenure.check_reservation(token, kind, subjects, ttl);
    IF message IS NOT NULL THEN
        result := 'invalid';
        RETURN;
    END IF;
    -- A reserve whose answer was lost is asked by repeating it.
    a := tenure.lock_attempt(attempt);
    WHILE a.id IS NULL AND NOT tenure.hold_subjects(attempt, wanted) LOOP
        a := tenure.holder_of(wanted);
        IF a.id IS NOT NULL AND a.id <> attempt THEN
            result := 'held';
            message := format('%s is held by %s of %s', (SELECT min(s COLLATE "C") FROM unnest(wanted) s
                WHERE s = ANY (a.subjects)), tenure.name_of(a), tenure.owner_of(a));
            record := tenure.record(a);
            RETURN;
        END IF;
    END LOOP;
    IF a.id IS NOT NULL THEN
        SELECT o.result, o.message INTO result, message FROM tenure.check_owner(a, token) o;
        IF result = 'ok' THEN
            record := tenure.record(a);
            PERFORM tenure.commit_durably();
        END IF;
        RETURN;
    END IF;

    at := tenure.now();
    IF bind_if_clear AND NOT EXISTS (SELECT FROM tenure.leftover l
        WHERE l.machine_id = executor ->> 'machine_id' AND l.boot_id = executor ->> 'boot_id') THEN
        first_state := 'running';
    END IF;
    INSERT INTO tenure.attempt (id, fence, token_digest, kind, state, repository, subjects, executor,
        journal_handle, journal_host, journal_path, source, ttl, acquired_at, renewed_at, expires_at)
    VALUES (attempt, tenure.fence_draw(), sha256(token), kind, first_state, repository, wanted, executor,
        journal_handle, journal_host, journal_path, source, ttl, at, at, at + ttl)
    RETURNING * INTO a;
    PERFORM tenure.remember(attempt, 'reserved', format('fence %s', a.fence), at);
    IF first_state = 'running' THEN
        PERFORM tenure.remember(attempt, 'bound', NULL, at);
    END IF;
    PERFORM tenure.commit_durably();
    result := 'ok';
    record := tenure.record(a);
END $$;
COMMENT ON FUNCTION tenure.reserve(uuid, bytea, text, text[], jsonb, text, text, text, text, interval, boolean, jsonb) IS
    'Holds all subjects for a new attempt. Id (a UUID, version 7) and token (32 random bytes) are made by the caller; repeated with both the same it answers as the first time. ok: record, with the fence. held: the record of the holder. bind_if_clear: also binds, unless the executor''s machine has leftovers to end.';

CREATE FUNCTION tenure.bind(attempt uuid, token bytea, demand text DEFAULT NULL, OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    at timestamptz := tenure.now();
    next_state text;
BEGIN
    SELECT * INTO result, message, next_state FROM tenure.decide_owner(a, 'bind', token, false, at);
    IF result = 'ok' THEN
        UPDATE tenure.attempt t SET state = next_state, demand = bind.demand, rev = t.rev + 1 WHERE t.id = a.id;
        PERFORM tenure.remember(attempt, 'bound', bind.demand, at);
        PERFORM tenure.commit_durably();
    END IF;
END $$;
COMMENT ON FUNCTION tenure.bind(uuid, bytea, text) IS 'planning -> running: the demand (a digest) is fixed, work may start. ok, retired, invalid, newer, absent.';

CREATE FUNCTION tenure.judge_renewal(a tenure.attempt, token bytea, locked boolean, at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN a.id IS NULL THEN 'absent'
        WHEN a.token_digest IS DISTINCT FROM sha256(token) THEN 'retired' -- guard: token
        WHEN NOT tenure.is_unfinished(a.state) THEN 'retired' -- guard: unfinished-renew
        WHEN a.record_version > 2 THEN 'newer'
        WHEN NOT locked THEN 'busy'
        WHEN tenure.is_strict(a.kind) AND tenure.lapsed(a.acquired_at, a.renewed_at, a.expires_at, a.ttl, at) THEN 'lapsed' -- guard: strict-expiry
        ELSE 'ok'
    END
$$;
COMMENT ON FUNCTION tenure.judge_renewal(tenure.attempt, bytea, boolean, timestamptz) IS
    'What a heartbeat is answered. A record that has ended, or bears another token, says so without its lock: neither ever changes.';

CREATE FUNCTION tenure.renew(attempts uuid[], tokens bytea[], phases text[], done bigint[], total bigint[])
RETURNS TABLE (attempt uuid, result text, reason_code text, reason_text text, reason_by text, cancel_requested boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    locked uuid[];
    at timestamptz;
BEGIN
    SELECT array_agg(each.id) INTO locked FROM (
        SELECT a.id FROM tenure.attempt a WHERE a.id = ANY (attempts) ORDER BY a.id
        FOR NO KEY UPDATE SKIP LOCKED) each;
    at := tenure.now();
    PERFORM tenure.commit_durably();
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT q.nr, q.id, q.phase, q.done, q.total, a.ttl, a.reason_code, a.reason_text, a.reason_by,
            a.cancel_by IS NOT NULL AS cancel_requested,
            tenure.judge_renewal(a, q.token, l.id IS NOT NULL, at) AS result
        FROM unnest(attempts, tokens, phases, done, total) WITH ORDINALITY AS q (id, token, phase, done, total, nr)
            LEFT JOIN tenure.attempt a ON a.id = q.id
            LEFT JOIN unnest(locked) l (id) ON l.id = q.id),
    written AS (
        UPDATE tenure.attempt a SET renewed_at = at, expires_at = at + tenure.ttl_effective(q.ttl), rev = a.rev + 1,
            progress_phase = coalesce(q.phase, a.progress_phase), progress_done = coalesce(q.done, a.progress_done),
            progress_total = coalesce(q.total, a.progress_total)
        FROM asked q WHERE a.id = q.id AND q.result = 'ok')
    SELECT q.id, q.result, q.reason_code, q.reason_text, q.reason_by, q.cancel_requested FROM asked q ORDER BY q.nr;
END $$;
COMMENT ON FUNCTION tenure.renew(uuid[], bytea[], text[], bigint[], bigint[]) IS
    'One heartbeat for everything that a process holds; progress beside it, null leaves what was. A row each, in the order asked: ok, retired (with the reason; the only proof of a loss), lapsed (strict kinds), or unconfirmed: busy (locked by somebody; the others do not wait), absent, newer.';

CREATE FUNCTION tenure.renew(attempt uuid, token bytea DEFAULT NULL, phase text DEFAULT NULL,
    done bigint DEFAULT NULL, total bigint DEFAULT NULL, OUT result text, OUT message text, OUT reason_code text,
    OUT reason_text text, OUT reason_by text, OUT cancel_requested boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
DECLARE
    a tenure.attempt;
    locked boolean;
    at timestamptz;
BEGIN
    SELECT * INTO a FROM tenure.attempt t WHERE t.id = attempt FOR NO KEY UPDATE SKIP LOCKED;
    locked := FOUND;
    at := tenure.now();
    IF NOT locked THEN
        SELECT * INTO a FROM tenure.attempt t WHERE t.id = attempt;
    END IF;
    result := tenure.judge_renewal(a, tenure.token_of(token), locked, at);
    IF result = 'ok' THEN
        UPDATE tenure.attempt t SET renewed_at = at, expires_at = at + tenure.ttl_effective(a.ttl), rev = t.rev + 1,
            progress_phase = coalesce(phase, t.progress_phase), progress_done = coalesce(done, t.progress_done),
            progress_total = coalesce(total, t.progress_total)
        WHERE t.id = attempt;
        PERFORM tenure.commit_durably();
    ELSE
        message := tenure.refusal_of(a, result);
    END IF;
    reason_code := a.reason_code;
    reason_text := a.reason_text;
    reason_by := a.reason_by;
    cancel_requested := a.cancel_by IS NOT NULL;
END $$;
COMMENT ON FUNCTION tenure.renew(uuid, bytea, text, bigint, bigint) IS
    'As tenure.renew() of arrays, for one attempt. Never revives. A token that is null is that of the setting tenure.token.';

CREATE FUNCTION tenure.settle(attempt uuid, token bytea, state text, nonce text, reason_code text DEFAULT NULL,
    reason_text text DEFAULT NULL, proof_id text DEFAULT NULL, envelope bytea DEFAULT NULL, commit_hash text DEFAULT NULL,
    tree text DEFAULT NULL, demand text DEFAULT NULL, key_id text DEFAULT NULL, proof_repository text DEFAULT NULL,
    OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    at timestamptz := tenure.now();
    next_state text;
BEGIN
    SELECT * INTO result, message, next_state
        FROM tenure.decide_owner(a, 'settle ' || state, token, envelope IS NOT NULL, at);
    IF result = 'retired' AND a.token_digest = sha256(token) AND a.state = settle.state AND a.settle_nonce = nonce THEN
        result := 'ok';
        message := NULL;
        PERFORM tenure.commit_durably();
        RETURN;
    END IF;
    IF result IS DISTINCT FROM 'ok' THEN
        result := coalesce(result, 'invalid');
        RETURN;
    END IF;
    PERFORM tenure.end_attempt(a, next_state, 'settled', at, reason_code, reason_text, NULL, nonce);
    IF envelope IS NOT NULL THEN
        INSERT INTO tenure.proof (id, attempt, fence, repository, commit_hash, tree, demand, key_id, envelope, at)
        VALUES (proof_id, a.id, a.fence, coalesce(proof_repository, a.repository), commit_hash, tree, settle.demand,
            key_id, envelope, at);
    END IF;
    PERFORM tenure.commit_durably();
END $$;
COMMENT ON FUNCTION tenure.settle(uuid, bytea, text, text, text, text, text, bytea, text, text, text, text, text) IS
    'Ends the attempt as passed, failed or cancelled, once, with its Proof (kind done). Repeated with the same nonce it answers ok. ok, retired, lapsed, invalid, newer, absent.';

CREATE FUNCTION tenure.settle_ask(attempt uuid, token bytea, nonce text, OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    ours boolean := coalesce(a.token_digest = sha256(tenure.token_of(token)), false);
BEGIN
    IF a.id IS NULL THEN
        result := 'absent';
        message := 'there is no such attempt';
    ELSIF ours AND tenure.is_unfinished(a.state) THEN
        result := 'conflict';
        message := format('attempt %s is not settled yet', tenure.name_of(a));
    ELSIF ours AND a.settle_nonce = nonce THEN
        result := 'ok';
        PERFORM tenure.commit_durably();
    ELSE
        result := 'retired';
        message := format('attempt %s has ended, or is another''s: %s', tenure.name_of(a),
            coalesce(a.reason_code, 'no reason recorded'));
    END IF;
END $$;
COMMENT ON FUNCTION tenure.settle_ask(uuid, bytea, text) IS
    'After the answer of a COMMIT was lost: ok, settled by this nonce; retired, ended by another; conflict, not settled: settle anew with the same nonce. Waits for the row, so a COMMIT under way has landed or never will. A token that is null is that of the setting tenure.token.';

CREATE FUNCTION tenure.retire(attempt uuid, seen_rev bigint, owner_gone boolean, reason_code text,
    reason_text text DEFAULT NULL, by_attempt text DEFAULT NULL, OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    at timestamptz := tenure.now();
    next_state text;
BEGIN
    SELECT * INTO result, message, next_state FROM tenure.decide_other(a, 'retire', seen_rev, owner_gone, at);
    IF result = 'ok' THEN
        PERFORM tenure.end_attempt(a, next_state, 'retired', at, reason_code, reason_text, by_attempt, NULL);
        INSERT INTO tenure.leftover (attempt, machine_id, boot_id)
            SELECT a.id, a.executor ->> 'machine_id', coalesce(a.executor ->> 'boot_id', '')
            WHERE a.executor ->> 'machine_id' IS NOT NULL;
        PERFORM tenure.commit_durably();
    END IF;
END $$;
COMMENT ON FUNCTION tenure.retire(uuid, bigint, boolean, text, text, text) IS
    'Ends another''s attempt as cancelled, when nothing changed since `seen_rev` and its owner is proven gone or its lease lapsed in this very write. ok, conflict, retired (ended already), newer, absent.';

CREATE FUNCTION tenure.request_cancel(attempt uuid, by text, OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := tenure.lock_attempt(attempt);
    at timestamptz := tenure.now();
BEGIN
    result := 'ok';
    IF a.id IS NULL THEN
        result := 'absent';
        message := format('there is no attempt %s', attempt);
    ELSIF NOT tenure.is_unfinished(a.state) THEN
        result := 'retired';
        message := tenure.ending_of(a);
    ELSIF a.cancel_by IS NULL THEN
        UPDATE tenure.attempt t SET cancel_by = coalesce(by, 'somebody'), cancel_at = at, rev = t.rev + 1
        WHERE t.id = a.id;
        PERFORM tenure.remember(attempt, 'cancel-requested', coalesce(by, 'somebody'), at);
    END IF;
END $$;
COMMENT ON FUNCTION tenure.request_cancel(uuid, text) IS 'Asks the owner to stop; its next renewal tells it. ok, retired (has ended), absent.';

UPDATE tenure.meta SET value = '3' WHERE name = 'schema_version';
