/* What the schema of the shared store is: the same rules as in C, all of it explained, none of it open to
 * all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/transition.h"
#include "base/text.h"
#include "tests/conformance/postgres.h"

/* ---- the transition table ---- */

static char *cell_in_sql(PGconn *db, enum attempt_state from, enum attempt_event event)
{
    _cleanup_(mem_free) char *sql = mem_format(
        "SELECT coalesce((SELECT concat_ws(' ', who, next_state, needs_lease, needs_proof) FROM transition"
        " WHERE state = '%s' AND event = '%s'), 'refused')",
        attempt_state_name(from), attempt_event_name(event));

    return pg_text(db, sql);
}

static char *cell_in_c(enum attempt_state from, enum attempt_event event)
{
    const struct transition *cell = &TRANSITIONS[from][event];

    if (cell->by == BY_NOBODY)
        return mem_string("refused");
    return mem_format("%s %s %s %s", cell->by == BY_OWNER ? "owner" : "other", attempt_state_name(cell->to),
        cell->strict_needs_lease ? "t" : "f", cell->needs_proof ? "t" : "f");
}

static void the_transitions_are_those_of_c(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    int cells = 0;

    for (int s = 0; s < ATTEMPT_STATE_MAX; s++)
        for (int e = 0; e < ATTEMPT_EVENT_MAX; e++) {
            _cleanup_(mem_free) char *sql = cell_in_sql(db, (enum attempt_state)s, (enum attempt_event)e);
            _cleanup_(mem_free) char *c = cell_in_c((enum attempt_state)s, (enum attempt_event)e);
            assert_string_equal(sql, c);
            cells += strcmp(c, "refused") != 0;
        }
    assert_int_equal(pg_number(db, "SELECT count(*) FROM transition"), cells);
}

static void states_and_kinds_are_those_of_c(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    for (int s = 0; s < ATTEMPT_STATE_MAX; s++) {
        _cleanup_(mem_free) char *sql =
            mem_format("SELECT tenure.is_unfinished('%s')::int", attempt_state_name((enum attempt_state)s));
        assert_int_equal(pg_number(db, sql), !attempt_state_is_terminal((enum attempt_state)s));
    }
    for (int k = 0; k < ATTEMPT_KIND_MAX; k++) {
        const char *kind = attempt_kind_name((enum attempt_kind)k);
        _cleanup_(mem_free) char *strict = mem_format("SELECT tenure.is_strict('%s')::int", kind);
        _cleanup_(mem_free) char *known = mem_format(
            "SELECT (tenure.check_reservation(sha256(''), '%s', '{a}', '60 s') IS NULL)::int", kind);
        assert_int_equal(pg_number(db, strict), attempt_kind_is_strict((enum attempt_kind)k));
        assert_int_equal(pg_number(db, known), 1);
    }
}

/* ---- the lease ---- */

#define HOUR INT64_C(3600000)

/* Around each boundary; a time that is none is null or infinite. */
static const int64_t SIGNS[] = {
    LEASE_TIME_NONE, 0, 999999, 1000000, 1000001, 1000000 + HOUR, 1000000 + 2 * HOUR + 1};
static const int64_t ENDS[] = {LEASE_TIME_NONE, 1000000, 1001999, 1002000, 1060000, 1000000 + HOUR, 9 * HOUR};
static const int64_t TTLS[] = {0, 1, 2000, 2001, 60000, HOUR, 9 * HOUR};
static const int64_t NOWS[] = {
    0, 939999, 940000, 940001, 1000000, 1002000, 1002001, 1060000, 1060001, 1000000 + HOUR, 1000001 + HOUR};

static void add_time(struct text *sql, int64_t ms, const char *none)
{
    if (ms == LEASE_TIME_NONE)
        text_addf(sql, "%s::timestamptz,", none);
    else
        text_addf(sql, "'epoch'::timestamptz + %" PRId64 " * interval '1 ms',", ms);
}

/* "EXPIRY LAPSED", as both sides write it. */
static char *judged_by_c(const struct lease *lease, const struct store_time *now)
{
    int64_t expiry_ms = lease_expiry(lease);
    _cleanup_(mem_free) char *expiry =
        expiry_ms == LEASE_TIME_NONE ? mem_string("none") : mem_format("%" PRId64, expiry_ms);

    return mem_format("%s %s", expiry, lease_lapsed(lease, now) ? "t" : "f");
}

/* A lease at one moment, and what C says of it. */
struct moment {
    struct lease lease;
    int64_t now_ms;
};

static void add_moment(struct text *sql, const struct moment *moment, const char *none)
{
    const struct lease *lease = &moment->lease;

    text_add(sql, sql->length ? ",(" : "(");
    add_time(sql, lease->acquired_ms, none);
    add_time(sql, lease->renewed_ms, none);
    add_time(sql, lease->expires_ms, none);
    add_time(sql, moment->now_ms, none);
    if (lease->ttl_ms)
        text_addf(sql, "%" PRId64 " * interval '1 ms')", lease->ttl_ms);
    else
        text_add(sql, "NULL::interval)");
}

static void check_moments(PGconn *db, const struct moment *moments, size_t count, const char *none)
{
    struct text cases = {0};
    _cleanup_(mem_free) char *values = NULL, *sql = NULL;
    PGresult *rows = NULL;

    for (size_t i = 0; i < count; i++)
        add_moment(&cases, &moments[i], none);
    values = text_steal(&cases);
    sql = mem_format(
        "SELECT concat(coalesce((extract(epoch FROM tenure.expiry(a, r, e, t)) * 1000)::bigint::text, "
        "'none'), ' ', tenure.lapsed(a, r, e, t, n)) FROM (VALUES %s) v (a, r, e, n, t)",
        values);
    rows = pg_rows(db, sql);
    assert_int_equal(PQntuples(rows), count);
    for (size_t i = 0; i < count; i++) {
        const struct lease *lease = &moments[i].lease;
        _cleanup_(mem_free) char *c = judged_by_c(lease, &(struct store_time){.ms = moments[i].now_ms});
        if (strcmp(PQgetvalue(rows, (int)i, 0), c) != 0)
            print_error("acquired %" PRId64 " renewed %" PRId64 " expires %" PRId64 " ttl %" PRId64
                        " now %" PRId64 ", none as %s\n",
                lease->acquired_ms, lease->renewed_ms, lease->expires_ms, lease->ttl_ms, moments[i].now_ms,
                none);
        assert_string_equal(PQgetvalue(rows, (int)i, 0), c);
    }
    PQclear(rows);
}

/* All ends, ttls and moments of a lease that was acquired and renewed then. */
static size_t check_signs(PGconn *db, int64_t acquired_ms, int64_t renewed_ms, const char *none)
{
    _cleanup_(mem_free) void *room =
        mem_alloc(ARRAY_SIZE(ENDS) * ARRAY_SIZE(TTLS) * ARRAY_SIZE(NOWS) * sizeof(struct moment));
    struct moment *moments = room;
    size_t count = 0;

    for (size_t e = 0; e < ARRAY_SIZE(ENDS); e++)
        for (size_t t = 0; t < ARRAY_SIZE(TTLS); t++)
            for (size_t n = 0; n < ARRAY_SIZE(NOWS); n++)
                moments[count++] = (struct moment){{.ttl_ms = TTLS[t],
                                                       .acquired_ms = acquired_ms,
                                                       .renewed_ms = renewed_ms,
                                                       .expires_ms = ENDS[e]},
                    NOWS[n]};
    check_moments(db, moments, count, none);
    return count;
}

static void a_lease_is_judged_as_in_c(void **state)
{
    struct world *world = *state;
    static const char *const NONE[] = {"NULL", "'infinity'", "'-infinity'"};
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    size_t checked = 0;

    for (size_t none = 0; none < ARRAY_SIZE(NONE); none++)
        for (size_t a = 0; a < ARRAY_SIZE(SIGNS); a++)
            for (size_t r = 0; r < ARRAY_SIZE(SIGNS); r++)
                checked += check_signs(db, SIGNS[a], SIGNS[r], NONE[none]);
    assert_true(checked > 10000);
}

static void a_ttl_of_zero_or_less_is_judged_as_in_c(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    assert_int_equal(pg_number(db, "SELECT extract(epoch FROM tenure.ttl_effective('0'))"), 60);
    assert_int_equal(pg_number(db, "SELECT extract(epoch FROM tenure.ttl_effective('-1 h'))"), 2);
    assert_int_equal(pg_number(db, "SELECT extract(epoch FROM tenure.ttl_effective(NULL))"), 60);
}

/* ---- explained, and closed ---- */

/* Every row that the query finds is a fault. */
static void assert_none(PGconn *db, const char *what, const char *sql)
{
    PGresult *rows = pg_rows(db, sql);

    for (int i = 0; i < PQntuples(rows); i++)
        print_error("%s: %s\n", what, PQgetvalue(rows, i, 0));
    assert_int_equal(PQntuples(rows), 0);
    PQclear(rows);
}

static void everything_is_explained(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    assert_true(
        pg_number(db, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace") > 30);
    assert_none(db, "no comment on function",
        "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace"
        " AND obj_description(oid, 'pg_proc') IS NULL");
    assert_none(db, "no comment on table or sequence",
        "SELECT c.relname FROM pg_class c WHERE relnamespace = 'tenure'::regnamespace AND relkind IN ('r', "
        "'v', 'S')"
        " AND obj_description(oid, 'pg_class') IS NULL AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid "
        "= c.oid"
        " AND d.deptype = 'i')");
    assert_none(db, "no comment on the schema",
        "SELECT 1 WHERE obj_description('tenure'::regnamespace, 'pg_namespace') IS NULL");
}

/* A caller's temporary tables are looked at first unless pg_temp is named, and last. */
static void no_function_with_rights_looks_where_its_caller_says(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    assert_true(pg_number(db, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace AND"
                              " prosecdef") > 15);
    assert_none(db, "search_path of",
        "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace AND prosecdef"
        " AND NOT coalesce(proconfig @> ARRAY['search_path=pg_catalog, tenure, pg_temp'], false)");
}

static void nothing_is_open_to_all(void **state)
{
    struct world *world = *state;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    assert_none(db, "open to all",
        "SELECT oid::regprocedure FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) a"
        " WHERE pronamespace = 'tenure'::regnamespace AND a.grantee = 0");
    assert_none(db, "open to all",
        "SELECT oid::regclass FROM pg_class, aclexplode(relacl) a"
        " WHERE relnamespace = 'tenure'::regnamespace AND a.grantee <> relowner");
    assert_none(db, "open to all",
        "SELECT nspname FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = 'tenure' AND a.grantee <> "
        "nspowner");
}

/* Tests replace the clock by its name, and mutants their guards by their marks: both must be there. */
static void the_marks_that_tests_need_are_there(void **state)
{
    struct world *world = *state;
    static const char *const GUARDS[] = {"token", "unfinished", "unfinished-renew", "subject", "rev",
        "expiry", "strict-expiry", "proof-iff-passed"};
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    for (size_t i = 0; i < ARRAY_SIZE(GUARDS); i++) {
        _cleanup_(mem_free) char *sql =
            mem_format("SELECT count(*) FROM pg_proc WHERE pronamespace = 'tenure'::regnamespace AND prosrc ~"
                       " '(?n)^\\s*(IF|ELSIF|WHEN) .* THEN.*-- guard: %s$'",
                GUARDS[i]);
        if (pg_number(db, sql) == 0)
            fail_msg("no removable guard %s", GUARDS[i]);
    }
}

static void evidence_proofs_and_history_are_written_once(void **state)
{
    struct world *world = *state;
    struct credential done = run(world, world->a, KIND_DONE, "a");
    struct proof_row proof = proof_of(world, "one");
    static const char *const TABLES[] = {"evidence", "proof", "history"};
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    OK(put_evidence(world->a, &done, "key", true));
    OK(settle_with(world->a, &done, ATTEMPT_PASSED, &proof, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(TABLES); i++) {
        _cleanup_(mem_free) char *update = mem_format("UPDATE %s SET at = now()", TABLES[i]);
        _cleanup_(mem_free) char *delete = mem_format("DELETE FROM %s", TABLES[i]);
        assert_string_equal(pg_state(db, update), "P0001");
        assert_string_equal(pg_state(db, delete), "P0001");
    }
}

int test_postgres_schema(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_transitions_are_those_of_c),
        TEST(states_and_kinds_are_those_of_c),
        TEST(a_lease_is_judged_as_in_c),
        TEST(a_ttl_of_zero_or_less_is_judged_as_in_c),
        TEST(everything_is_explained),
        TEST(no_function_with_rights_looks_where_its_caller_says),
        TEST(nothing_is_open_to_all),
        TEST(the_marks_that_tests_need_are_there),
        TEST(evidence_proofs_and_history_are_written_once),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
