-- The shared store, version 5: fenced publication. A worker claims a row of the application, collects for minutes without
-- any transaction, and publishes in one short one:
--
--     SELECT * FROM tenure.claim_row('app.source', 'id', '42', soft_delete => 'deleted_at', ttl => '180 s');
--     SELECT * FROM tenure.renew(attempt, token);          -- every ttl / 3
--     BEGIN;
--     SELECT tenure.publication_begin(attempt, token);     -- raises when the claim or the row is lost
--     ... the caller's own statements ...
--     SELECT tenure.publication_end(attempt, token);
--     COMMIT;                                              -- any failure undoes all, and the claim stays
--     SELECT * FROM tenure.fail(attempt, token, 'why');
--
-- claim_row and publication_begin read the application's table with the rights of their caller. What raises has
-- SQLSTATE TN003 (retired: ended, or another's), TN004 (lapsed), TN005 (absent: the row is gone or soft-deleted) or
-- TN006 (invalid). A token that is null is taken from the setting tenure.token, in hex, best set for one transaction: a
-- statement that fails is logged by the server with its text, and so without the token.

CREATE FUNCTION tenure.new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(tenure.milliseconds(clock_timestamp())) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid
$$;
COMMENT ON FUNCTION tenure.new_id() IS 'A UUID, version 7 (RFC 9562): milliseconds, then random bits.';

CREATE FUNCTION tenure.new_token() RETURNS bytea LANGUAGE sql VOLATILE AS $$
    SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
$$;
COMMENT ON FUNCTION tenure.new_token() IS '32 bytes of the server''s strong random numbers.';

CREATE FUNCTION tenure.lose(result text, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', message USING ERRCODE = CASE result
        WHEN 'newer' THEN 'TN002'
        WHEN 'retired' THEN 'TN003'
        WHEN 'lapsed' THEN 'TN004'
        WHEN 'absent' THEN 'TN005'
        ELSE 'TN006'
    END;
END $$;
COMMENT ON FUNCTION tenure.lose(text, text) IS 'Ends the caller''s transaction with the SQLSTATE of a result.';

-- ---- the application's row ----

-- Without a look at the session's settings: the same moment is written differently in another time zone, and two claims
-- of one row would have two names.
CREATE FUNCTION tenure.key_text(value anyelement) RETURNS text LANGUAGE plpgsql STABLE
SET timezone = 'UTC' SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET bytea_output = 'hex'
SET extra_float_digits = 1 AS $$
BEGIN
    RETURN value::text;
END $$;
COMMENT ON FUNCTION tenure.key_text(anyelement) IS 'A key as subjects write it, whatever the session''s settings are.';

CREATE FUNCTION tenure.row_query(source regclass, key_column name, soft_delete name) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    -- Without the column's length or scale: a cast to those would cut or round, and find another row.
    key_type text := (SELECT format_type(a.atttypid, -1) FROM pg_attribute a
        WHERE a.attrelid = source AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped);
    mark_type regtype := (SELECT a.atttypid FROM pg_attribute a
        WHERE a.attrelid = source AND a.attname = soft_delete AND a.attnum > 0 AND NOT a.attisdropped);
BEGIN
    IF key_type IS NULL THEN
        PERFORM tenure.lose('invalid', format('%s has no column %I', source, key_column));
    ELSIF soft_delete IS NOT NULL AND mark_type IS NULL THEN
        PERFORM tenure.lose('invalid', format('%s has no column %I', source, soft_delete));
    END IF;
    RETURN format('SELECT tenure.key_text(%I) FROM %s WHERE %I = $1::%s', key_column, source, key_column, key_type)
        || CASE WHEN mark_type = 'boolean'::regtype THEN format(' AND %I IS NOT TRUE', soft_delete) -- guard: soft-delete
            WHEN soft_delete IS NOT NULL THEN format(' AND %I IS NULL', soft_delete) -- guard: soft-delete
            ELSE '' END;
END $$;
COMMENT ON FUNCTION tenure.row_query(regclass, name, name) IS
    'The query for the living rows with a key ($1, text). Soft-deleted: a boolean that is true, or anything that is not null. Raises TN006 for a column that is not there.';

CREATE FUNCTION tenure.claim_row_as(attempt uuid, token bytea, source regclass, key_column name, key_value text,
    soft_delete name DEFAULT NULL, executor jsonb DEFAULT '{}', repository text DEFAULT NULL,
    journal_handle text DEFAULT NULL, journal_host text DEFAULT NULL, journal_path text DEFAULT NULL,
    ttl interval DEFAULT '60 s', bind_if_clear boolean DEFAULT true,
    OUT result text, OUT message text, OUT record jsonb)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp AS $$
DECLARE
    keys text[];
BEGIN
    EXECUTE format('SELECT array_agg(k) FROM (%s LIMIT 2) living (k)', tenure.row_query(source, key_column, soft_delete))
        INTO keys USING key_value;
    IF keys IS NULL THEN -- guard: entry
        result := 'absent';
        message := format('there is no living row of %s with %I = %L', source, key_column, key_value);
        RETURN;
    ELSIF cardinality(keys) > 1 THEN
        result := 'invalid';
        message := format('several rows of %s have %I = %L: a claim is of one', source, key_column, key_value);
        RETURN;
    END IF;
    FOR try IN 1 .. 3 LOOP
        SELECT r.result, r.message, r.record INTO result, message, record FROM tenure.reserve(attempt, token,
            'publication', ARRAY[format('row:%s:%s=%s', source, key_column, coalesce(keys[1], key_value))],
            executor, repository, journal_handle, journal_host, journal_path, ttl, bind_if_clear,
            jsonb_build_object('table', source::oid::bigint, 'key', key_column,
                'value', coalesce(keys[1], key_value), 'soft_delete', soft_delete)) r;
        EXIT WHEN result <> 'held' OR try = 3;
        PERFORM tenure.reclaim((record ->> 'id')::uuid, attempt::text);
    END LOOP;
END $$;
COMMENT ON FUNCTION tenure.claim_row_as(uuid, bytea, regclass, name, text, name, jsonb, text, text, text, text, interval, boolean) IS
    'tenure.claim_row() with the id, the token and the executor of the caller, answered like tenure.reserve(): repeated with the same id and token it answers as the first time.';

CREATE FUNCTION tenure.claim_row(source regclass, key_column name, key_value text, soft_delete name DEFAULT NULL,
    ttl interval DEFAULT '60 s', executor jsonb DEFAULT NULL,
    OUT result text, OUT message text, OUT attempt uuid, OUT token bytea, OUT fence bigint)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp AS $$
DECLARE
    new_id uuid := tenure.new_id();
    new_token bytea := tenure.new_token();
    record jsonb;
BEGIN
    SELECT c.result, c.message, c.record INTO result, message, record
    FROM tenure.claim_row_as(new_id, new_token, source, key_column, key_value, soft_delete, ttl => ttl,
        executor => coalesce(executor, jsonb_build_object('user', session_user,
            'host', coalesce(host(inet_client_addr()), 'this host')))) c;
    IF result = 'ok' THEN
        attempt := new_id;
        token := new_token;
        fence := record ->> 'fence';
    END IF;
END $$;
COMMENT ON FUNCTION tenure.claim_row(regclass, name, text, name, interval, jsonb) IS
    'Claims one living row of the application for a publication. ok: attempt, token, fence; the token is shown here and nowhere else. held: by whom. absent: missing or soft-deleted; contact nobody. A claim whose lease has lapsed is retired on the way.';

CREATE FUNCTION tenure.reclaim(attempt uuid, by_attempt text DEFAULT NULL, OUT result text, OUT message text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt := (SELECT t FROM tenure.attempt t WHERE t.id = attempt);
BEGIN
    -- A lease that lives is left alone without a wait for its row: its owner may be publishing.
    SELECT d.result, d.message INTO result, message
    FROM tenure.decide_other(a, 'retire', a.rev, false, tenure.now()) d;
    IF result = 'ok' THEN
        a := tenure.lock_attempt(attempt);
        SELECT r.result, r.message INTO result, message
        FROM tenure.retire(attempt, a.rev, false, 'lapsed', NULL, by_attempt) r;
    END IF;
END $$;
COMMENT ON FUNCTION tenure.reclaim(uuid, text) IS
    'Ends an attempt whose lease has lapsed, by the server''s clock in this very write. ok, conflict (alive), retired (ended already), newer, absent.';

-- ---- the one short transaction ----

CREATE FUNCTION tenure.lower_setting(setting text, limit_ms bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now_ms bigint := (SELECT s.setting::bigint FROM pg_settings s WHERE s.name = lower_setting.setting);
BEGIN
    IF now_ms = 0 OR now_ms > limit_ms THEN
        PERFORM set_config(setting, limit_ms::text, true);
    END IF;
END $$;
COMMENT ON FUNCTION tenure.lower_setting(text, bigint) IS 'Bounds a time-out (milliseconds, 0: none) for the rest of the transaction.';

CREATE FUNCTION tenure.publication_lock(attempt uuid, token bytea, OUT source jsonb, OUT fence bigint,
    OUT ttl interval)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    a tenure.attempt;
    answer record;
BEGIN
    PERFORM tenure.lock_attempt(attempt);
    SELECT * INTO answer FROM tenure.renew(attempt, token);
    IF answer.result <> 'ok' THEN
        PERFORM tenure.lose(answer.result, answer.message);
    END IF;
    SELECT * INTO a FROM tenure.attempt t WHERE t.id = publication_lock.attempt;
    IF a.kind <> 'publication' OR a.state <> 'running' OR a.source IS NULL THEN
        PERFORM tenure.lose('invalid', format('attempt %s is not the claim of a row', tenure.name_of(a)));
    END IF;
    source := a.source;
    fence := a.fence;
    ttl := tenure.ttl_effective(a.ttl);
END $$;
COMMENT ON FUNCTION tenure.publication_lock(uuid, bytea) IS
    'Locks the attempt to the end of the transaction, checks token and lease, renews; the claimed row, the fence and the ttl. Raises when the claim is lost.';

CREATE FUNCTION tenure.publication_begin(attempt uuid, token bytea DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    claim record;
    living text[];
    ttl_ms bigint;
BEGIN
    SELECT * INTO claim FROM tenure.publication_lock(attempt, tenure.token_of(token));
    EXECUTE format('SELECT array_agg(k) FROM (%s LIMIT 2 FOR NO KEY UPDATE) living (k)',
        tenure.row_query((claim.source ->> 'table')::oid::regclass, (claim.source ->> 'key')::name,
            (claim.source ->> 'soft_delete')::name))
        INTO living USING claim.source ->> 'value';
    IF living IS NULL THEN -- guard: row-lives
        PERFORM tenure.lose('absent', format('the row that attempt %s claimed is gone', attempt));
    ELSIF cardinality(living) > 1 THEN
        PERFORM tenure.lose('invalid', format('the row that attempt %s claimed is no longer the only one with its key',
            attempt));
    END IF;
    ttl_ms := extract(epoch FROM claim.ttl) * 1000;
    PERFORM tenure.lower_setting('idle_in_transaction_session_timeout', ttl_ms);
    PERFORM tenure.lower_setting('statement_timeout', ttl_ms);
    PERFORM set_config('tenure.publication', attempt::text, true);
    RETURN claim.fence;
END $$;
COMMENT ON FUNCTION tenure.publication_begin(uuid, bytea) IS
    'First in the transaction that publishes: locks the attempt and the claimed row to its end, renews the lease and sees that the row lives. From here the lock stands for the lease, for at most the ttl. Returns the fence. Raises TN003, TN004, TN005, TN006.';

CREATE FUNCTION tenure.publication_end(attempt uuid, token bytea DEFAULT NULL, state text DEFAULT 'passed',
    nonce text DEFAULT NULL, reason_code text DEFAULT NULL, reason_text text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp AS $$
DECLARE
    answer record;
BEGIN
    IF current_setting('tenure.publication', true) IS DISTINCT FROM attempt::text THEN
        PERFORM tenure.lose('invalid', format('tenure.publication_begin was not called in this transaction for attempt %s',
            attempt));
    END IF;
    SELECT * INTO answer FROM tenure.settle(attempt, tenure.token_of(token), state,
        coalesce(nonce, replace(gen_random_uuid()::text, '-', '')), coalesce(reason_code, state), reason_text);
    IF answer.result <> 'ok' THEN
        PERFORM tenure.lose(answer.result, answer.message);
    END IF;
    PERFORM set_config('tenure.publication', '', true);
END $$;
COMMENT ON FUNCTION tenure.publication_end(uuid, bytea, text, text, text, text) IS
    'Last in the transaction that publishes: ends the attempt and frees the row''s claim, together with everything that was written. Raises TN003, TN004, TN006. When the answer of the COMMIT is lost, ask tenure.settle_ask() with the same nonce.';

-- ---- outside of it ----

CREATE FUNCTION tenure.fail(attempt uuid, token bytea, why text, OUT result text, OUT message text)
LANGUAGE sql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT s.result, s.message FROM tenure.settle(fail.attempt, tenure.token_of(fail.token), 'failed',
        replace(gen_random_uuid()::text, '-', ''), 'failed', fail.why) s
$$;
COMMENT ON FUNCTION tenure.fail(uuid, bytea, text) IS 'Ends the caller''s own claim as failed and keeps why; the row can be claimed again. A loser''s is refused: retired.';

CREATE FUNCTION tenure.release(attempt uuid, token bytea, OUT result text, OUT message text)
LANGUAGE sql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, tenure, pg_temp AS $$
    SELECT s.result, s.message FROM tenure.settle(release.attempt, tenure.token_of(release.token), 'cancelled',
        replace(gen_random_uuid()::text, '-', ''), 'released', NULL) s
$$;
COMMENT ON FUNCTION tenure.release(uuid, bytea) IS 'Gives the caller''s own claim back, as cancelled. A loser''s is refused: retired.';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tenure FROM PUBLIC;
UPDATE tenure.meta SET value = '5' WHERE name = 'schema_version';
