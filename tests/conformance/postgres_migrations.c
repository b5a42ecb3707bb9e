/* How a schema comes to be, and what is done when it is not this program's. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/migrate.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "tests/conformance/postgres.h"

#define STARTERS 20

/* A world whose database is still empty. */
static int empty_setup(void **state)
{
    struct world *world = NULL;

    world_setup(state);
    world = *state;
    world_close(world);
    backend->discard(world->url);
    free(world->url);
    world->url = backend->make();
    return 0;
}

static enum result try_open(struct world *world, enum store_access access, struct error *err)
{
    struct store_options options = world_options(world);
    struct store *store = NULL;
    enum result r = store_open(&options, access, &store, err);

    store_close(store);
    return r;
}

static bool has_schema(struct world *world)
{
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    return pg_number(db, "SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'") > 0;
}

static void meta_set(struct world *world, const char *name, const char *value)
{
    _cleanup_(mem_free) char *sql = mem_format("UPDATE meta SET value = '%s' WHERE name = '%s'", value, name);

    backend->execute(world->url, sql);
}

static void version_set(struct world *world, int64_t version)
{
    _cleanup_(mem_free) char *text = mem_format("%" PRId64, version);

    meta_set(world, "schema_version", text);
}

/* ---- the first start ---- */

static void a_reader_creates_nothing(void **state)
{
    struct world *world = *state;

    REFUSED(world, RESULT_ABSENT, try_open(world, STORE_READ, NULL));
    assert_false(has_schema(world));
}

static void a_reader_writes_nothing(void **state)
{
    struct world *world = *state;
    struct store_options options = world_options(world);
    struct store *reader = NULL;
    struct credential credential;
    struct reservation reservation = reservation_of(world, KIND_DONE, "b");

    world_reopen(world);
    credential = run(world, world->a, KIND_DONE, "a");
    OK(store_open(&options, STORE_READ, &reader, NULL));
    REFUSED(world, RESULT_DENIED, try_reserve(reader, &reservation));
    REFUSED(world, RESULT_DENIED, renew(reader, &credential));
    REFUSED(world, RESULT_DENIED, settle(reader, &credential, ATTEMPT_FAILED));
    REFUSED(world, RESULT_DENIED, retire(reader, credential.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_DENIED, store_request_cancel(reader, credential.attempt_id, "me", NULL));
    REFUSED(world, RESULT_DENIED, put_evidence(reader, &credential, "key", true));
    REFUSED(world, RESULT_DENIED, store_migrate(reader, NULL));
    store_close(reader);
}

struct start {
    enum result result;
    char id[64];
};

static void start(struct world *world, int index, void *answer)
{
    struct start *first = answer;
    struct store_options options = world_options(world);
    struct store *store = NULL;
    _cleanup_(mem_free) char *database = pg_database(world->url), *url = NULL;

    url = pg_url(getenv(index % 2 ? "TENURE_TEST_POOLER" : "TENURE_TEST_POSTGRES"), "postgres", database);
    options.url = url;
    first->result = store_open(&options, STORE_WRITE, &store, NULL);
    if (store)
        strcpy(first->id, store_id(store));
    store_close(store);
}

/* Half of them through the pooler, where two connections serve ten of them. */
static void of_twenty_first_starts_one_migrates(void **state)
{
    struct world *world = *state;
    struct start starts[STARTERS];
    _cleanup_(pg_close) PGconn *db = NULL;

    world_fork(world, STARTERS, start, starts, sizeof starts[0]);
    for (int i = 0; i < STARTERS; i++) {
        assert_int_equal(starts[i].result, RESULT_OK);
        assert_string_equal(starts[i].id, starts[0].id);
    }
    db = pg_connect(world->url);
    assert_int_equal(
        pg_number(db, "SELECT value FROM meta WHERE name = 'schema_version'"), migration_newest("postgres"));
    world_reopen(world);
    run(world, world->a, KIND_DONE, "a");
}

static void migrating_again_changes_nothing(void **state)
{
    struct world *world = *state;

    world_reopen(world);
    REFUSED(world, RESULT_OK, store_migrate(world->a, NULL));
}

/* ---- killed in the middle ---- */

static void open_in_a_child(struct world *world, int index _unused_, void *answer)
{
    *(bool *)answer = try_open(world, STORE_WRITE, NULL) == RESULT_OK;
}

static bool is_of_a_migration(const char *name)
{
    return strstr(name, "migrate") != NULL;
}

/* True when the point was reached that often. */
static bool killed_at(struct world *world, const char *name, int hit)
{
    _cleanup_(mem_free) char *plan = mem_format("%s:kill@%d", name, hit);
    bool opened = false;

    backend->execute(world->url, "DROP SCHEMA IF EXISTS tenure CASCADE");
    setenv("TENURE_FAILPOINT", plan, 1);
    world_fork(world, 1, open_in_a_child, &opened, sizeof opened);
    unsetenv("TENURE_FAILPOINT");
    return !opened;
}

/* All of it or nothing of it is there, and the next start works. */
static void killed_in_a_migration_leaves_all_or_nothing(void **state)
{
    struct world *world = *state;
    int kills = 0;

    if (!failpoint_name(0)) {
        print_message("built without failpoints: not tested\n");
        skip();
    }
    for (size_t i = 0; failpoint_name(i); i++)
        for (int hit = 1; is_of_a_migration(failpoint_name(i)) && killed_at(world, failpoint_name(i), hit);
             hit++) {
            _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
            bool there = has_schema(world);
            if (there)
                assert_int_equal(pg_number(db, "SELECT value FROM meta WHERE name = 'schema_version'"),
                    migration_newest("postgres"));
            kills++;
            OK(try_open(world, STORE_WRITE, NULL));
        }
    print_message("%d kills\n", kills);
    assert_true(kills >= 3);
}

/* ---- not ours, or not any more ---- */

static void a_database_with_other_tables_is_not_touched_unasked(void **state)
{
    struct world *world = *state;
    _cleanup_(error_done) struct error err = {0};

    backend->execute(world->url, "CREATE TABLE public.customers (name text)");
    assert_int_equal(try_open(world, STORE_READ, NULL), RESULT_ABSENT);
    assert_int_equal(try_open(world, STORE_WRITE, &err), RESULT_INVALID);
    assert_non_null(err.remedy);
    assert_non_null(strstr(err.remedy, "tenure store migrate"));
    assert_false(has_schema(world));
}

static void a_schema_of_that_name_that_is_not_ours_is_left_alone(void **state)
{
    struct world *world = *state;

    backend->execute(world->url, "CREATE SCHEMA tenure; CREATE TABLE tenure.attempt (id int)");
    assert_int_equal(try_open(world, STORE_WRITE, NULL), RESULT_INVALID);
    assert_int_equal(try_open(world, STORE_READ, NULL), RESULT_INVALID);
    backend->execute(world->url, "INSERT INTO tenure.attempt VALUES (1)");
}

static void a_newer_schema_lets_what_runs_end_and_nothing_begin(void **state)
{
    struct world *world = *state;
    struct credential one, two, planned;
    struct reservation late = reservation_of(world, KIND_COMMAND, "d");
    int64_t newest = migration_newest("postgres");

    world_reopen(world);
    one = run(world, world->a, KIND_COMMAND, "a");
    two = run(world, world->a, KIND_COMMAND, "b");
    planned = reserve(world, world->a, KIND_COMMAND, "c");
    version_set(world, newest + 1);
    REFUSED(world, RESULT_NEWER, try_open(world, STORE_WRITE, NULL));
    REFUSED(world, RESULT_NEWER, try_open(world, STORE_READ, NULL));
    REFUSED(world, RESULT_NEWER, store_migrate(world->a, NULL));
    REFUSED(world, RESULT_NEWER, try_reserve(world->a, &late));
    REFUSED(world, RESULT_NEWER, store_bind(world->a, &planned, NULL, NULL));
    REFUSED(world, RESULT_NEWER, put_evidence(world->a, &one, "key", true));
    REFUSED(world, RESULT_NEWER, store_request_cancel(world->a, one.attempt_id, "me", NULL));
    OK(renew(world->a, &one));
    OK(settle(world->a, &one, ATTEMPT_PASSED));
    OK(retire(world->b, two.attempt_id, 2, true, NULL));
    version_set(world, newest + 2);
    REFUSED(world, RESULT_NEWER, renew(world->a, &planned));
    REFUSED(world, RESULT_NEWER, settle(world->a, &planned, ATTEMPT_FAILED));
    REFUSED(world, RESULT_NEWER, retire(world->b, planned.attempt_id, 1, true, NULL));
}

static void a_newer_record_is_neither_read_nor_written(void **state)
{
    struct world *world = *state;
    struct credential credential;
    struct reservation other = reservation_of(world, KIND_COMMAND, "a");
    struct attempt attempt = {0};

    world_reopen(world);
    credential = run(world, world->a, KIND_COMMAND, "a");
    backend->execute(world->url, "UPDATE attempt SET record_version = 3");
    REFUSED(world, RESULT_NEWER, store_find(world->a, credential.attempt_id, &attempt, NULL));
    REFUSED(world, RESULT_NEWER, renew(world->a, &credential));
    REFUSED(world, RESULT_NEWER, settle(world->a, &credential, ATTEMPT_FAILED));
    REFUSED(world, RESULT_NEWER, retire(world->a, credential.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_NEWER, put_evidence(world->a, &credential, "key", true));
    REFUSED(world, RESULT_NEWER, try_reserve(world->a, &other));
}

static void a_store_without_its_identity_is_corrupt(void **state)
{
    struct world *world = *state;
    static const char *const VERSIONS[] = {"many", "", "-1", "0", "99999999999999999999"};

    world_reopen(world);
    for (size_t i = 0; i < ARRAY_SIZE(VERSIONS); i++) {
        meta_set(world, "schema_version", VERSIONS[i]);
        REFUSED(world, RESULT_CORRUPT, try_open(world, STORE_WRITE, NULL));
        REFUSED(world, RESULT_CORRUPT, try_open(world, STORE_READ, NULL));
    }
    version_set(world, migration_newest("postgres"));
    OK(try_open(world, STORE_WRITE, NULL));
    backend->execute(world->url, "DELETE FROM meta WHERE name = 'store_id'");
    REFUSED(world, RESULT_CORRUPT, try_open(world, STORE_WRITE, NULL));
    backend->execute(world->url, "DELETE FROM meta");
    REFUSED(world, RESULT_CORRUPT, try_open(world, STORE_WRITE, NULL));
}

/* ---- damaged rows ---- */

static void a_row_that_does_not_parse_is_corrupt(void **state)
{
    struct world *world = *state;
    static const char *const DAMAGES[] = {
        "kind = 'sabotage'",
        "executor = '[]'",
        "subjects = NULL",
        "record_version = 0",
    };
    struct credential credential;
    struct attempt attempt = {0};

    world_reopen(world);
    credential = run(world, world->a, KIND_COMMAND, "a");
    backend->execute(world->url, "ALTER TABLE attempt DROP CONSTRAINT attempt_kind_check;"
                                 "ALTER TABLE attempt ALTER subjects DROP NOT NULL;"
                                 "CREATE TABLE public.kept AS SELECT * FROM attempt");
    for (size_t i = 0; i < ARRAY_SIZE(DAMAGES); i++) {
        _cleanup_(mem_free) char *damage = mem_format("UPDATE attempt SET %s", DAMAGES[i]);
        print_message("%s\n", DAMAGES[i]);
        backend->execute(world->url, damage);
        REFUSED(world, RESULT_CORRUPT, store_find(world->a, credential.attempt_id, &attempt, NULL));
        backend->execute(world->url,
            "DELETE FROM public.kept WHERE false;"
            "UPDATE attempt SET (kind, rev, executor, subjects, progress_phase, record_version)"
            " = (SELECT kind, rev, executor, subjects, progress_phase, record_version"
            " FROM public.kept)");
    }
    OK(renew(world->a, &credential));
}

static void a_lease_that_cannot_be_read_has_lapsed(void **state)
{
    struct world *world = *state;
    static const char *const DAMAGES[] = {"acquired_at = NULL", "acquired_at = 'infinity'",
        "expires_at = NULL", "expires_at = 'infinity'",
        "renewed_at = now() + interval '1000 years', expires_at = 'infinity'",
        "renewed_at = now() + interval '1000 years', expires_at = now() + interval '1000 years'"};

    world_reopen(world);
    for (size_t i = 0; i < ARRAY_SIZE(DAMAGES); i++) {
        _cleanup_(mem_free) char *damage =
            mem_format("UPDATE attempt SET %s WHERE state = 'running'", DAMAGES[i]);
        struct credential credential = run(world, world->a, KIND_COMMAND, "a");
        _cleanup_(attempt_done) struct attempt attempt = {0};
        struct store_time now;
        backend->execute(world->url, damage);
        attempt = found(world->a, credential.attempt_id);
        OK(store_now(world->a, &now, NULL));
        assert_true(lease_lapsed(&attempt.lease, &now));
        OK(retire(world->b, attempt.id, attempt.rev, false, NULL));
    }
}

int test_postgres_migrations(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, empty_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_reader_creates_nothing),
        TEST(a_reader_writes_nothing),
        TEST(of_twenty_first_starts_one_migrates),
        TEST(migrating_again_changes_nothing),
        TEST(killed_in_a_migration_leaves_all_or_nothing),
        TEST(a_database_with_other_tables_is_not_touched_unasked),
        TEST(a_schema_of_that_name_that_is_not_ours_is_left_alone),
        TEST(a_newer_schema_lets_what_runs_end_and_nothing_begin),
        TEST(a_newer_record_is_neither_read_nor_written),
        TEST(a_store_without_its_identity_is_corrupt),
        TEST(a_row_that_does_not_parse_is_corrupt),
        TEST(a_lease_that_cannot_be_read_has_lapsed),
    };

    return cmocka_run_group_tests_name("migrations", tests, NULL, NULL);
}
