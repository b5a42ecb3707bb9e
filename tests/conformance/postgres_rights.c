/* Who may do what: a role needs EXECUTE, and gets nothing else. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tests/conformance/postgres.h"

/* A world with a role without rights. */
struct guest {
    struct world *world;
    char *role;
};

static int guest_setup(void **state)
{
    struct guest *guest = mem_alloc(sizeof *guest);

    world_setup((void **)&guest->world);
    guest->role = pg_role();
    *state = guest;
    return 0;
}

static int guest_teardown(void **state)
{
    struct guest *guest = *state;

    world_teardown((void **)&guest->world);
    pg_role_drop(&guest->role);
    free(guest);
    return 0;
}

static void grant(struct guest *guest, const char *what)
{
    _cleanup_(mem_free) char *sql = mem_format("%s TO \"%s\"", what, guest->role);

    backend->execute(guest->world->url, sql);
}

static void grant_use(struct guest *guest)
{
    grant(guest, "GRANT USAGE ON SCHEMA tenure");
    grant(guest, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure");
}

static enum result open_as_guest(
    struct guest *guest, enum store_access access, struct store **ret, struct error *err)
{
    struct store_options options = world_options(guest->world);
    _cleanup_(mem_free) char *database = pg_database(guest->world->url);
    _cleanup_(mem_free) char *url = pg_url(guest->world->url, guest->role, database);

    options.url = url;
    return store_open(&options, access, ret, err);
}

static void assert_names(const char *text, const char *wanted)
{
    if (!text || !strstr(text, wanted))
        print_error("\"%s\" does not have \"%s\"\n", text ? text : "", wanted);
    assert_true(text && strstr(text, wanted));
}

/* What a person can paste into psql. */
static void assert_grant(struct guest *guest, const struct error *err, const char *what)
{
    _cleanup_(mem_free) char *grant = mem_format("%s TO \"%s\"", what, guest->role);

    assert_names(err->remedy, grant);
}

/* ---- without rights ---- */

static void a_first_start_needs_the_right_to_create(void **state)
{
    struct guest *guest = *state;
    struct store *store = NULL;
    _cleanup_(error_done) struct error err = {0};
    _cleanup_(mem_free) char *database = NULL, *what = NULL, *before = NULL;

    world_close(guest->world);
    backend->discard(guest->world->url);
    free(guest->world->url);
    guest->world->url = backend->make();
    database = pg_database(guest->world->url);
    before = world_dump(guest->world);
    assert_int_equal(open_as_guest(guest, STORE_WRITE, &store, &err), RESULT_DENIED);
    what = mem_format("GRANT CREATE ON DATABASE \"%s\"", database);
    assert_grant(guest, &err, what);
    assert_true(world_same(guest->world, before));
    grant(guest, what);
    OK(open_as_guest(guest, STORE_WRITE, &store, NULL));
    store_close(store);
}

static void without_any_right_the_grants_are_named(void **state)
{
    struct guest *guest = *state;
    struct store *store = NULL;
    _cleanup_(error_done) struct error err = {0}, later = {0};

    assert_int_equal(open_as_guest(guest, STORE_WRITE, &store, &err), RESULT_DENIED);
    assert_grant(guest, &err, "GRANT USAGE ON SCHEMA tenure");
    assert_grant(guest, &err, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure");
    grant(guest, "GRANT USAGE ON SCHEMA tenure");
    assert_int_equal(open_as_guest(guest, STORE_WRITE, &store, &later), RESULT_DENIED);
    assert_grant(guest, &later, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tenure");
}

/* ---- with EXECUTE ---- */

static void whole_life(struct guest *guest, struct store *store)
{
    struct world *world = guest->world;
    struct credential done = run(world, store, KIND_DONE, "a"), dead = run(world, store, KIND_DONE, "b");
    struct proof_row proof = proof_of(world, "proof");
    struct reservation refused = reservation_of(world, KIND_DONE, "a");
    _cleanup_(leftover_list_done) struct leftover_list leftovers = {0};
    _cleanup_(store_status_done) struct store_status status = {0};
    _cleanup_(history_done) struct history history = {0};
    _cleanup_(proof_done) struct proof read = {0};
    struct store_time now = {0};

    assert_int_equal(try_reserve(store, &refused), RESULT_HELD);
    OK(renew(store, &done));
    OK(put_evidence(store, &done, "key", true));
    OK(store_request_cancel(store, done.attempt_id, "me", NULL));
    OK(retire(store, dead.attempt_id, 2, true, NULL));
    OK(store_leftovers(store, &leftovers, NULL));
    assert_int_equal(leftovers.count, 1);
    OK(store_leftover_delete(store, dead.attempt_id, NULL));
    OK(settle_with(store, &done, ATTEMPT_PASSED, &proof, NULL));
    OK(store_proof_find(store, &(struct proof_query){0}, &read, NULL));
    OK(store_history(store, NULL, &history, NULL));
    OK(store_status(store, &status, NULL));
    OK(store_now(store, &now, NULL));
    assert_int_equal(status.ended, 2);
}

static void execute_is_enough_for_everything(void **state)
{
    struct guest *guest = *state;
    struct store *store = NULL;

    grant_use(guest);
    OK(open_as_guest(guest, STORE_WRITE, &store, NULL));
    whole_life(guest, store);
    store_close(store);
}

static PGresult *tables_of(PGconn *db)
{
    return pg_rows(db,
        "SELECT oid::regclass, relkind FROM pg_class WHERE relnamespace = 'tenure'::regnamespace"
        " AND relkind IN ('r', 'S')");
}

static void assert_denied(PGconn *db, const char *format, const char *table)
{
    _cleanup_(mem_free) char *sql = NULL;
    struct text text = {0};

    for (const char *at = format; *at; at++)
        if (*at == '%')
            text_add(&text, table);
        else
            text_append(&text, at, 1);
    sql = text_steal(&text);
    if (strcmp(pg_state(db, sql), "42501") != 0)
        fail_msg("%s: %s instead of 42501", sql, pg_state(db, sql));
}

static void execute_opens_no_table(void **state)
{
    struct guest *guest = *state;
    static const char *const TABLE[] = {"SELECT FROM %", "INSERT INTO % DEFAULT VALUES", "DELETE FROM %",
        "TRUNCATE %", "DROP TABLE %", "ALTER TABLE % DISABLE TRIGGER ALL",
        "CREATE TRIGGER mine AFTER INSERT ON % EXECUTE FUNCTION suppress_redundant_updates_trigger()"};
    static const char *const SEQUENCE[] = {
        "SELECT nextval('%')", "SELECT setval('%', 1)", "SELECT last_value FROM %"};
    _cleanup_(pg_close) PGconn *admin = pg_connect(guest->world->url), *db = NULL;
    _cleanup_(mem_free) char *before = NULL;
    PGresult *tables = NULL;

    run(guest->world, guest->world->a, KIND_DONE, "a");
    grant_use(guest);
    before = world_dump(guest->world);
    db = pg_connect_as(guest->world->url, guest->role);
    pg_run(admin, "SET search_path = ''");
    tables = tables_of(admin);
    assert_true(PQntuples(tables) > 8);
    for (int i = 0; i < PQntuples(tables); i++) {
        if (PQgetvalue(tables, i, 1)[0] == 'r')
            for (size_t s = 0; s < ARRAY_SIZE(TABLE); s++)
                assert_denied(db, TABLE[s], PQgetvalue(tables, i, 0));
        else
            for (size_t s = 0; s < ARRAY_SIZE(SEQUENCE); s++)
                assert_denied(db, SEQUENCE[s], PQgetvalue(tables, i, 0));
    }
    PQclear(tables);
    assert_denied(db, "UPDATE % SET rev = 1", "tenure.attempt");
    assert_denied(db, "UPDATE % SET value = '1'", "tenure.meta");
    assert_denied(db, "CREATE FUNCTION %.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "tenure");
    assert_denied(db, "CREATE OR REPLACE FUNCTION %.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
        "tenure");
    assert_true(world_same(guest->world, before));
}

/* The functions that the public ones are made of run with the rights of their caller. */
static void the_inner_functions_change_nothing_by_hand(void **state)
{
    struct guest *guest = *state;
    struct world *world = guest->world;
    static const char *const CALLS[] = {
        "SELECT tenure.lock_attempt('%')",
        "SELECT tenure.remember('%', 'passed', NULL, now())",
        "SELECT tenure.hold_subjects('%', '{b}')",
        "SELECT tenure.holder_of('{a}') -- %",
        "SELECT tenure.fence_draw() -- %",
        "SELECT tenure.end_attempt(jsonb_populate_record(NULL::tenure.attempt, '{\"id\": \"%\"}'), 'passed', "
        "'settled',"
        " now(), NULL, NULL, NULL, NULL)",
    };
    struct credential mine = run(world, world->a, KIND_DONE, "a");
    _cleanup_(pg_close) PGconn *db = NULL;
    _cleanup_(mem_free) char *before = NULL;

    grant_use(guest);
    before = world_dump(world);
    db = pg_connect_as(world->url, guest->role);
    for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++)
        assert_denied(db, CALLS[i], mine.attempt_id);
    assert_true(world_same(world, before));
}

/* ---- look-alikes ---- */

/* A schema that has everything that a careless name would find there first. */
static const char *const LOOK_ALIKES[] = {
    "CREATE SCHEMA evil",
    "CREATE TABLE evil.attempt (LIKE tenure.attempt)",
    "CREATE TABLE evil.meta (LIKE tenure.meta)",
    "CREATE TABLE evil.subject (LIKE tenure.subject)",
    "CREATE TABLE evil.leftover (LIKE tenure.leftover)",
    "CREATE TABLE evil.evidence (LIKE tenure.evidence)",
    "CREATE TABLE evil.proof (LIKE tenure.proof)",
    "CREATE TABLE evil.history (LIKE tenure.history)",
    "CREATE TABLE evil.transition AS SELECT state, event, who, 'passed' AS next_state, false AS needs_lease,"
    " false AS needs_proof FROM tenure.transition",
    "INSERT INTO evil.meta VALUES ('store_id', 'evil'), ('schema_version', '999')",
    "CREATE SEQUENCE evil.fence",
    "CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$",
    "CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT "
    "'infinity'::timestamptz $$",
    "CREATE FUNCTION evil.octet_length(bytea) RETURNS int LANGUAGE sql AS $$ SELECT 32 $$",
    "CREATE FUNCTION evil.always(text, text) RETURNS bool LANGUAGE sql AS $$ SELECT true $$",
    "CREATE OPERATOR evil.= (FUNCTION = evil.always, LEFTARG = text, RIGHTARG = text)",
    "CREATE DOMAIN evil.uuid AS text CHECK (false)",
    "GRANT ALL ON SCHEMA evil TO PUBLIC",
    "GRANT ALL ON ALL TABLES IN SCHEMA evil TO PUBLIC",
};
static const char *const TABLES[] = {
    "attempt", "meta", "subject", "leftover", "evidence", "proof", "history"};

static void evil_is_untouched(PGconn *admin)
{
    for (size_t i = 0; i < ARRAY_SIZE(TABLES); i++) {
        _cleanup_(mem_free) char *sql = mem_format("SELECT count(*) FROM evil.%s", TABLES[i]);
        assert_int_equal(pg_number(admin, sql), strcmp(TABLES[i], "meta") == 0 ? 2 : 0);
    }
}

static void evil_make(struct guest *guest, PGconn *admin)
{
    _cleanup_(mem_free) char *path =
        mem_format("ALTER ROLE \"%s\" SET search_path = evil, pg_temp, pg_catalog, tenure", guest->role);

    for (size_t i = 0; i < ARRAY_SIZE(LOOK_ALIKES); i++)
        pg_run(admin, LOOK_ALIKES[i]);
    pg_run(admin, path);
}

static void a_search_path_of_look_alikes_is_harmless(void **state)
{
    struct guest *guest = *state;
    struct store *store = NULL;
    _cleanup_(pg_close) PGconn *admin = pg_connect(guest->world->url);

    grant_use(guest);
    evil_make(guest, admin);
    OK(open_as_guest(guest, STORE_WRITE, &store, NULL));
    assert_string_equal(store_id(store), store_id(guest->world->a));
    whole_life(guest, store);
    store_close(store);
    evil_is_untouched(admin);
}

/* In one session, so by hand: its own temporary tables bear the names of the store's. */
static void temporary_look_alikes_are_harmless(void **state)
{
    struct guest *guest = *state;
    struct world *world = guest->world;
    _cleanup_(pg_close) PGconn *admin = pg_connect(world->url), *db = NULL;
    _cleanup_(mem_free) char *result = NULL, *again = NULL, *sha = NULL;

    grant_use(guest);
    evil_make(guest, admin);
    db = pg_connect_as(world->url, guest->role);
    for (size_t i = 0; i < ARRAY_SIZE(TABLES); i++) {
        _cleanup_(mem_free) char *sql =
            mem_format("CREATE TEMPORARY TABLE %s AS SELECT * FROM evil.%s", TABLES[i], TABLES[i]);
        pg_run(db, sql);
    }
    pg_run(db, "CREATE TEMPORARY TABLE transition AS SELECT * FROM evil.transition;"
               "SET search_path = pg_temp, evil, pg_catalog, tenure");
    result =
        pg_text(db, "SELECT result FROM tenure.reserve('0192e4a0-0000-7000-8000-000000000001', '\\x"
                    "0000000000000000000000000000000000000000000000000000000000000001', 'command', '{a}')");
    assert_string_equal(result, "ok");
    /* A token whose digest is another in the caller's own sha256() only. */
    again =
        pg_text(db, "SELECT result FROM tenure.settle('0192e4a0-0000-7000-8000-000000000001', '\\x"
                    "0000000000000000000000000000000000000000000000000000000000000002', 'failed', 'nonce')");
    assert_string_equal(again, "retired");
    sha = pg_text(admin, "SELECT state FROM tenure.attempt");
    assert_string_equal(sha, "planning");
    evil_is_untouched(admin);
    for (size_t i = 0; i < ARRAY_SIZE(TABLES); i++) {
        _cleanup_(mem_free) char *sql = mem_format("SELECT count(*) FROM pg_temp.%s", TABLES[i]);
        assert_int_equal(pg_number(db, sql), strcmp(TABLES[i], "meta") == 0 ? 2 : 0);
    }
}

int test_postgres_rights(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, guest_setup, guest_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_first_start_needs_the_right_to_create),
        TEST(without_any_right_the_grants_are_named),
        TEST(execute_is_enough_for_everything),
        TEST(execute_opens_no_table),
        TEST(the_inner_functions_change_nothing_by_hand),
        TEST(a_search_path_of_look_alikes_is_harmless),
        TEST(temporary_look_alikes_are_harmless),
    };

    return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
