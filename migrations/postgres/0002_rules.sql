-- The shared store, version 2: what is decided, in one place each: the clock, the lease, the transition, the fence, the
-- ending of an attempt. Functions of this file that write run with the rights of their caller: called by hand by
-- somebody who may not write the tables, they change nothing. Tests can remove a condition that ends in "guard: NAME".

-- Those that programs call beside the protocol's are understood now, not by the search_path of who calls them.
CREATE FUNCTION tenure.now() RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN clock_timestamp();
COMMENT ON FUNCTION tenure.now() IS 'The one clock. Read it in a statement after the one that locked the row: a clock read before a wait for a lock is stale.';

CREATE FUNCTION tenure.version() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT CASE WHEN value ~ '^[1-9][0-9]{0,8}$' THEN value::int END FROM tenure.meta WHERE name = 'schema_version'
$$;
COMMENT ON FUNCTION tenure.version() IS 'The schema: of the last file of this folder that ran. Null when it cannot be read.';

CREATE FUNCTION tenure.fail_newer(known int) RETURNS int
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
DECLARE
    told text;
    version int;
BEGIN
    -- Every call of every heartbeat comes this way: the usual answer is compared as it is.
    SELECT m.value INTO told FROM tenure.meta m WHERE m.name = 'schema_version';
    IF told = known::text THEN
        RETURN known;
    END IF;
    version := tenure.version();
    IF version IS NULL THEN
        RAISE EXCEPTION 'the version of the schema cannot be read' USING ERRCODE = 'data_corrupted';
    ELSIF version > known THEN
        RAISE EXCEPTION 'schema % was made by a newer version; this one knows %', version, known
            USING ERRCODE = 'TN002', HINT = 'install the newer version';
    END IF;
    RETURN version;
END $$;
COMMENT ON FUNCTION tenure.fail_newer(int) IS 'Raises TN002 when the schema is newer than `known`: make it a condition of a call, and nothing of the call stays.';

CREATE FUNCTION tenure.identity(OUT store_id text, OUT schema_version int)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT (SELECT value FROM tenure.meta WHERE name = 'store_id'), tenure.version()
$$;
COMMENT ON FUNCTION tenure.identity() IS 'Which store this is, and its schema: see tenure.version().';

-- ---- the lease ----

CREATE FUNCTION tenure.ttl_effective(ttl interval) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT least(greatest(coalesce(nullif(ttl, '0'), '60 s'), '2 s'), '1 h')
$$;
COMMENT ON FUNCTION tenure.ttl_effective(interval) IS 'Any ttl as a legal one: 60 s when absent or zero, from 2 s to 1 h.';

CREATE FUNCTION tenure.last_sign(acquired_at timestamptz, renewed_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(acquired_at, CASE WHEN isfinite(renewed_at) THEN renewed_at END)
$$;
COMMENT ON FUNCTION tenure.last_sign(timestamptz, timestamptz) IS 'The last sign of an owner: acquisition or renewal, whichever is later.';

CREATE FUNCTION tenure.expiry(acquired_at timestamptz, renewed_at timestamptz, expires_at timestamptz, ttl interval)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN isfinite(acquired_at) AND isfinite(expires_at)
        THEN least(expires_at, tenure.last_sign(acquired_at, renewed_at) + tenure.ttl_effective(ttl)) END
$$;
COMMENT ON FUNCTION tenure.expiry(timestamptz, timestamptz, timestamptz, interval) IS 'When a lease has lapsed at the latest; null when a time is missing, or infinite.';

CREATE FUNCTION tenure.lapsed(acquired_at timestamptz, renewed_at timestamptz, expires_at timestamptz, ttl interval,
    at timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(
        at > tenure.expiry(acquired_at, renewed_at, expires_at, ttl)
            OR tenure.last_sign(acquired_at, renewed_at) > at + tenure.ttl_effective(ttl),
        true)
$$;
COMMENT ON FUNCTION tenure.lapsed(timestamptz, timestamptz, timestamptz, interval, timestamptz) IS
    'May another take over? Exactly at its expiry a lease is alive. A sign of life that is missing, or further ahead than the ttl, is none.';

CREATE FUNCTION tenure.is_unfinished(state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT state IN ('planning', 'running')
$$;
COMMENT ON FUNCTION tenure.is_unfinished(text) IS 'The states that hold subjects.';

CREATE FUNCTION tenure.is_strict(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT kind = 'publication'
$$;
COMMENT ON FUNCTION tenure.is_strict(text) IS 'The kinds that renew and pass under a living lease only.';

-- ---- records ----

CREATE FUNCTION tenure.milliseconds(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN isfinite(at) THEN floor(extract(epoch FROM at) * 1000)::bigint END;
COMMENT ON FUNCTION tenure.milliseconds(timestamptz) IS 'Milliseconds since 1970, as records give times to programs; null for null and for infinity.';

CREATE FUNCTION tenure.record(a tenure.attempt) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'id', a.id, 'fence', a.fence, 'rev', a.rev, 'record_version', a.record_version,
        'kind', a.kind, 'state', a.state, 'repository', a.repository, 'subjects', to_jsonb(a.subjects),
        'demand', a.demand, 'executor', a.executor,
        'journal_handle', a.journal_handle, 'journal_host', a.journal_host, 'journal_path', a.journal_path,
        'source', a.source,
        'reason_code', a.reason_code, 'reason_text', a.reason_text, 'reason_by', a.reason_by,
        'ttl_ms', floor(extract(epoch FROM a.ttl) * 1000)::bigint,
        'acquired_ms', tenure.milliseconds(a.acquired_at), 'renewed_ms', tenure.milliseconds(a.renewed_at),
        'expires_ms', tenure.milliseconds(a.expires_at), 'settled_ms', tenure.milliseconds(a.settled_at),
        'progress_phase', a.progress_phase, 'progress_done', a.progress_done, 'progress_total', a.progress_total,
        'cancel_by', a.cancel_by, 'cancel_ms', tenure.milliseconds(a.cancel_at), 'settle_nonce', a.settle_nonce)
$$;
COMMENT ON FUNCTION tenure.record(tenure.attempt) IS 'A record for programs: everything but what the token leaves. Times in milliseconds since 1970.';

CREATE FUNCTION tenure.name_of(a tenure.attempt) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(a.journal_handle, a.id::text)
$$;
COMMENT ON FUNCTION tenure.name_of(tenure.attempt) IS 'How every sentence names an attempt: its handle; its id when it has none.';

CREATE FUNCTION tenure.owner_of(a tenure.attempt) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT format('%s on %s, pid %s', coalesce(a.executor ->> 'user', 'somebody'),
        coalesce(a.executor ->> 'host', 'an unknown host'), coalesce(a.executor ->> 'pid', 'unknown'))
$$;
COMMENT ON FUNCTION tenure.owner_of(tenure.attempt) IS 'How every sentence names an owner.';

CREATE FUNCTION tenure.lock_attempt(wanted uuid) RETURNS tenure.attempt LANGUAGE sql VOLATILE AS $$
    SELECT a FROM tenure.attempt a WHERE a.id = wanted FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION tenure.lock_attempt(uuid) IS 'Locks a row to the end of the transaction, before anything is decided about it.';

CREATE FUNCTION tenure.remember(attempt uuid, event text, detail text, at timestamptz) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO tenure.history (attempt, event, detail, at) VALUES (attempt, event, detail, at)
$$;
COMMENT ON FUNCTION tenure.remember(uuid, text, text, timestamptz) IS 'Appends to the history.';

CREATE FUNCTION tenure.ending_of(a tenure.attempt) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN a.reason_text IS NOT NULL THEN format('attempt %s was retired: %s', tenure.name_of(a), a.reason_text)
        WHEN a.reason_by IS NOT NULL THEN format('attempt %s was retired (%s) by attempt %s', tenure.name_of(a),
            coalesce(a.reason_code, 'no reason recorded'), a.reason_by)
        ELSE format('attempt %s has ended: %s (%s)', tenure.name_of(a), a.state,
            coalesce(a.reason_code, 'no reason recorded'))
    END
$$;
COMMENT ON FUNCTION tenure.ending_of(tenure.attempt) IS 'How an attempt ended, as a sentence.';

CREATE FUNCTION tenure.refusal_of(a tenure.attempt, result text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN result = 'absent' THEN 'there is no such attempt'
        WHEN result = 'newer' THEN format('attempt %s was written by a newer tenure', tenure.name_of(a))
        WHEN result = 'lapsed' THEN format('the lease of attempt %s has lapsed', tenure.name_of(a))
        WHEN result = 'busy' THEN format('attempt %s is locked by somebody', tenure.name_of(a))
        WHEN result = 'retired' AND tenure.is_unfinished(a.state)
            THEN format('attempt %s is owned under another token', tenure.name_of(a))
        WHEN result = 'retired' THEN tenure.ending_of(a)
    END
$$;
COMMENT ON FUNCTION tenure.refusal_of(tenure.attempt, text) IS 'Why the bearer of a token was refused, as a sentence.';

-- ---- decisions ----

CREATE FUNCTION tenure.token_of(token bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT coalesce(token, decode(current_setting('tenure.token', true), 'hex'))
$$;
COMMENT ON FUNCTION tenure.token_of(bytea) IS 'The token given, or that of the setting tenure.token.';

CREATE FUNCTION tenure.check_owner(a tenure.attempt, token bytea, OUT result text, OUT message text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    result := CASE
        WHEN a.id IS NULL THEN 'absent'
        WHEN a.record_version > 2 THEN 'newer'
        WHEN a.token_digest IS DISTINCT FROM sha256(token) THEN 'retired' -- guard: token
        WHEN NOT tenure.is_unfinished(a.state) THEN 'retired' -- guard: unfinished
        ELSE 'ok'
    END;
    message := tenure.refusal_of(a, result);
END $$;
COMMENT ON FUNCTION tenure.check_owner(tenure.attempt, bytea) IS 'May the bearer of the token write what depends on the attempt? ok, absent, newer, or retired: finished, or another''s.';

CREATE FUNCTION tenure.decide_owner(a tenure.attempt, event text, token bytea, with_proof boolean, at timestamptz,
    OUT result text, OUT message text, OUT next_state text)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    cell tenure.transition;
    proof_wanted boolean;
    lease_wanted boolean;
BEGIN
    SELECT o.result, o.message INTO result, message FROM tenure.check_owner(a, token) o;
    IF result <> 'ok' THEN
        RETURN;
    END IF;
    SELECT * INTO cell FROM tenure.transition t WHERE t.state = a.state AND t.event = decide_owner.event;
    proof_wanted := coalesce(cell.needs_proof AND a.kind = 'done', false);
    lease_wanted := coalesce(cell.needs_lease AND tenure.is_strict(a.kind), false);
    IF cell.who IS DISTINCT FROM 'owner' THEN
        result := 'invalid';
        message := format('attempt %s is %s: %s is not possible', tenure.name_of(a), a.state, event);
    ELSIF lease_wanted AND tenure.lapsed(a.acquired_at, a.renewed_at, a.expires_at, a.ttl, at) THEN -- guard: strict-expiry
        result := 'lapsed';
        message := tenure.refusal_of(a, result);
    ELSIF proof_wanted <> with_proof THEN -- guard: proof-iff-passed
        result := 'invalid';
        message := format('attempt %s cannot %s', tenure.name_of(a),
            CASE WHEN proof_wanted THEN 'pass without its Proof' ELSE 'end with a Proof' END);
    ELSE
        next_state := cell.next_state;
    END IF;
END $$;
COMMENT ON FUNCTION tenure.decide_owner(tenure.attempt, text, bytea, boolean, timestamptz) IS
    'May the bearer of the token do this at this time? By tenure.transition: ok and the next state; retired, lapsed, invalid, newer, absent.';

CREATE FUNCTION tenure.decide_other(a tenure.attempt, event text, seen_rev bigint, owner_gone boolean, at timestamptz,
    OUT result text, OUT message text, OUT next_state text)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    cell tenure.transition;
BEGIN
    SELECT * INTO cell FROM tenure.transition t WHERE t.state = a.state AND t.event = decide_other.event;
    result := 'conflict';
    IF a.id IS NULL THEN
        result := 'absent';
        message := tenure.refusal_of(a, result);
    ELSIF a.record_version > 2 THEN
        result := 'newer';
        message := tenure.refusal_of(a, result);
    ELSIF cell.who IS DISTINCT FROM 'other' THEN
        result := 'retired';
        message := tenure.ending_of(a);
    ELSIF seen_rev IS DISTINCT FROM a.rev THEN -- guard: rev
        message := format('attempt %s changed since it was read', tenure.name_of(a));
    ELSIF owner_gone IS NOT TRUE AND NOT tenure.lapsed(a.acquired_at, a.renewed_at, a.expires_at, a.ttl, at) THEN -- guard: expiry
        message := format('attempt %s still has a living lease, and its owner is not known to be gone',
            tenure.name_of(a));
    ELSE
        result := 'ok';
        next_state := cell.next_state;
    END IF;
END $$;
COMMENT ON FUNCTION tenure.decide_other(tenure.attempt, text, bigint, boolean, timestamptz) IS
    'May somebody without the token end this attempt? ok and the next state; conflict, retired, newer, absent.';

-- ---- writing ----

CREATE FUNCTION tenure.fence_draw() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    -- In numbers: a time is written differently in another session's time zone. A dump that is put back into the same
    -- database has another sequence.
    here text := format('%s %s %s %s', extract(epoch FROM pg_postmaster_start_time()),
        left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
        (SELECT oid FROM pg_database WHERE datname = current_database()), 'tenure.fence'::regclass::oid);
BEGIN
    IF here IS DISTINCT FROM (SELECT value FROM tenure.meta WHERE name = 'incarnation') THEN
        PERFORM FROM tenure.meta WHERE name = 'incarnation' FOR UPDATE;
        IF here IS DISTINCT FROM (SELECT value FROM tenure.meta WHERE name = 'incarnation') THEN
            PERFORM setval('tenure.fence', greatest(nextval('tenure.fence'),
                (extract(epoch FROM tenure.now()) * 1000000)::bigint));
            UPDATE tenure.meta SET value = here WHERE name = 'incarnation';
        END IF;
    END IF;
    RETURN nextval('tenure.fence');
END $$;
COMMENT ON FUNCTION tenure.fence_draw() IS
    'The next fence. On a server that was started, promoted or restored since the last one, fences go on above the microseconds since 1970: what a lost standby or an old copy did not know never comes twice.';

CREATE FUNCTION tenure.end_attempt(a tenure.attempt, next_state text, event text, at timestamptz, code text, reason text,
    by_attempt text, nonce text)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE tenure.attempt t SET state = next_state, reason_code = code, reason_text = reason, reason_by = by_attempt,
        settled_at = at, settle_nonce = nonce, rev = t.rev + 1
    WHERE t.id = a.id;
    DELETE FROM tenure.subject s WHERE s.attempt = a.id;
    PERFORM tenure.remember(a.id, event,
        concat(next_state, ': ' || code, ', by ' || by_attempt), at);
END $$;
COMMENT ON FUNCTION tenure.end_attempt(tenure.attempt, text, text, timestamptz, text, text, text, text) IS
    'Ends a locked attempt and frees its subjects.';

CREATE FUNCTION tenure.commit_durably() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;
COMMENT ON FUNCTION tenure.commit_durably() IS 'A fence or an ending that a crash takes back would be handed out again: the transaction commits at least at "on". So does one that only answers again: it locked the row, and so waits as the lost commit would have.';

UPDATE tenure.meta SET value = '2' WHERE name = 'schema_version';
