/* Sessions that meet at a row: who waits decides by what is true when its wait is over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/text.h"
#include "tests/conformance/postgres.h"

#define TTL INT64_C(60000)

static void hex_of(const struct credential *credential, char ret[2 * TOKEN_BYTES + 1])
{
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(ret + 2 * i, 3, "%02x", credential->token[i]);
}

/* A call of a function of the schema with the attempt and its token before `arguments`. */
static char *call_of(const char *function, const struct credential *credential, const char *arguments)
{
    char token[2 * TOKEN_BYTES + 1];

    hex_of(credential, token);
    return mem_format(
        "SELECT * FROM tenure.%s('%s', '\\x%s'%s)", function, credential->attempt_id, token, arguments);
}

static char *call(
    PGconn *db, const char *function, const struct credential *credential, const char *arguments)
{
    _cleanup_(mem_free) char *sql = call_of(function, credential, arguments);

    return pg_text(db, sql);
}

static void assert_call(PGconn *db, const char *function, const struct credential *credential,
    const char *arguments, const char *expected)
{
    _cleanup_(mem_free) char *result = call(db, function, credential, arguments);

    assert_string_equal(result, expected);
}

/* Sends it, and returns when it waits for a lock. */
static void send_and_wait(PGconn *watcher, PGconn *db, const char *sql)
{
    assert_int_equal(PQsendQuery(db, sql), 1);
    pg_wait_for_waiter(watcher);
}

static char *answer_of(PGconn *db)
{
    PGresult *result = PQgetResult(db);
    char *answer = NULL;

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(db));
    answer = mem_string(PQgetvalue(result, 0, 0));
    PQclear(result);
    assert_null(PQgetResult(db));
    return answer;
}

static void assert_answer(PGconn *db, const char *expected)
{
    _cleanup_(mem_free) char *answer = answer_of(db);

    assert_string_equal(answer, expected);
}

static void assert_failure(PGconn *db, const char *sqlstate)
{
    PGresult *result = PQgetResult(db);

    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), sqlstate);
    PQclear(result);
    assert_null(PQgetResult(db));
}

static void row_lock(PGconn *db, const struct credential *credential)
{
    _cleanup_(mem_free) char *sql =
        mem_format("BEGIN; SELECT FROM attempt WHERE id = '%s' FOR UPDATE", credential->attempt_id);

    pg_run(db, sql);
}

/* Three sessions: one that holds, one that waits, one that watches. */
struct sessions {
    PGconn *holder, *waiter, *watcher;
};

static struct sessions sessions_of(struct world *world)
{
    return (struct sessions){pg_connect(world->url), pg_connect(world->url), pg_connect(world->url)};
}

static void sessions_close(struct sessions *sessions)
{
    PQfinish(sessions->holder);
    PQfinish(sessions->waiter);
    PQfinish(sessions->watcher);
}

/* ---- renewals ---- */

static void a_locked_row_does_not_starve_the_others(void **state)
{
    struct world *world = *state;
    struct credential one = run(world, world->a, KIND_DONE, "a"),
                      locked = run(world, world->a, KIND_DONE, "b"),
                      three = run(world, world->a, KIND_DONE, "c");
    struct renewal renewals[] = {{.credential = &locked}, {.credential = &one}, {.credential = &three}};
    int64_t rev = revision(world->a, locked.attempt_id);
    _cleanup_(pg_close) PGconn *holder = pg_connect(world->url);

    row_lock(holder, &locked);
    OK(store_renew(world->a, renewals, ARRAY_SIZE(renewals), NULL));
    assert_int_equal(renewals[0].result, RESULT_BUSY);
    assert_int_equal(renewals[1].result, RESULT_OK);
    assert_int_equal(renewals[2].result, RESULT_OK);
    pg_run(holder, "ROLLBACK");
    assert_int_equal(revision(world->a, locked.attempt_id), rev);
    OK(store_renew(world->a, renewals, ARRAY_SIZE(renewals), NULL));
    assert_int_equal(renewals[0].result, RESULT_OK);
}

/* Who has it locked may be ending it: that proves nothing yet. */
static void a_row_under_a_settlement_is_unconfirmed(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_COMMAND, "a");
    _cleanup_(pg_close) PGconn *holder = pg_connect(world->url);

    pg_run(holder, "BEGIN");
    assert_call(holder, "settle", &mine, ", 'failed', 'nonce'", "ok");
    assert_int_equal(renew(world->a, &mine), RESULT_BUSY);
    pg_run(holder, "COMMIT");
    REFUSED(world, RESULT_RETIRED, renew(world->a, &mine));
}

/* A publication is the one that waits with its renewal. */
static void a_lease_that_lapses_during_the_wait_is_not_renewed(void **state)
{
    struct world *world = *state;
    struct credential strict = run(world, world->a, KIND_PUBLICATION, "a");
    _cleanup_(sessions_close) struct sessions s = sessions_of(world);
    _cleanup_(mem_free) char *begin = call_of("publication_lock", &strict, ""), *before = world_dump(world);
    _cleanup_(mem_free) char *settlement = call_of("settle", &strict, ", 'passed', 'nonce'");

    row_lock(s.holder, &strict);
    assert_call(s.watcher, "renew", &strict, "", "busy");
    send_and_wait(s.watcher, s.waiter, begin);
    backend->pass(world, TTL + 1);
    pg_run(s.holder, "COMMIT");
    assert_failure(s.waiter, "TN004");
    row_lock(s.holder, &strict);
    send_and_wait(s.watcher, s.waiter, settlement);
    pg_run(s.holder, "COMMIT");
    assert_answer(s.waiter, "lapsed");
    assert_call(s.waiter, "renew", &strict, "", "lapsed");
    assert_true(world_same(world, before));
}

/* And one that is renewed during the wait cannot be taken over. */
static void a_lease_that_is_renewed_during_the_wait_is_not_taken(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a");
    _cleanup_(sessions_close) struct sessions s = sessions_of(world);
    _cleanup_(mem_free) char *retirement =
        mem_format("SELECT result FROM tenure.retire('%s', 2, false, 'lapsed')", mine.attempt_id);
    _cleanup_(mem_free) char *reclaim =
        mem_format("SELECT result FROM tenure.reclaim('%s')", mine.attempt_id);

    backend->pass(world, TTL + 1);
    pg_run(s.holder, "BEGIN");
    assert_call(s.holder, "renew", &mine, "", "ok");
    send_and_wait(s.watcher, s.waiter, retirement);
    pg_run(s.holder, "COMMIT");
    assert_answer(s.waiter, "conflict");
    backend->pass(world, TTL + 1);
    pg_run(s.holder, "BEGIN");
    assert_call(s.holder, "renew", &mine, "", "ok");
    send_and_wait(s.watcher, s.waiter, reclaim);
    pg_run(s.holder, "COMMIT");
    assert_answer(s.waiter, "conflict");
    OK(settle(world->a, &mine, ATTEMPT_FAILED));
}

static void whoever_waits_for_a_retirement_is_retired(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a");
    _cleanup_(sessions_close) struct sessions s = sessions_of(world);
    _cleanup_(mem_free) char *settlement = call_of("settle", &mine, ", 'failed', 'nonce'"),
                             *retirement = NULL;

    retirement = mem_format("BEGIN; SELECT tenure.retire('%s', 2, true, 'owner-gone')", mine.attempt_id);
    pg_run(s.holder, retirement);
    send_and_wait(s.watcher, s.waiter, settlement);
    pg_run(s.holder, "COMMIT");
    assert_answer(s.waiter, "retired");
}

/* ---- reservations ---- */

/* Somebody reserves "a" in a transaction that ends with `end`, while another asks for it. */
static void reserve_behind(struct world *world, const char *end, const char *expected)
{
    static const char *const RESERVE =
        "SELECT %s FROM tenure.reserve(gen_random_uuid(), sha256('%d'), 'command', '{a,b}')";
    _cleanup_(sessions_close) struct sessions s = sessions_of(world);
    _cleanup_(mem_free) char *first = mem_format(RESERVE, "record ->> 'id'", 1);
    _cleanup_(mem_free) char *second = mem_format(RESERVE, "concat(result, ' ', record ->> 'id')", 2);
    _cleanup_(mem_free) char *id = NULL, *answer = NULL;

    pg_run(s.holder, "BEGIN");
    id = pg_text(s.holder, first);
    send_and_wait(s.watcher, s.waiter, second);
    pg_run(s.holder, end);
    answer = answer_of(s.waiter);
    assert_true(strncmp(answer, expected, strlen(expected)) == 0);
    assert_int_equal(strstr(answer, id) != NULL, strcmp(expected, "held") == 0);
}

static void a_reserve_behind_another_is_held_by_it(void **state)
{
    reserve_behind(*state, "COMMIT", "held");
}

static void a_reserve_behind_one_that_is_undone_wins(void **state)
{
    reserve_behind(*state, "ROLLBACK", "ok");
}

/* All or none: what a held one of several wanted in between, it does not keep. */
static void a_refused_reserve_leaves_no_subject(void **state)
{
    struct world *world = *state;
    static const char *const SUBJECTS[] = {"a", "m", "z"};
    struct reservation several = reservation_of(world, KIND_DONE, "a");
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    reserve(world, world->a, KIND_DONE, "m");
    several.subjects = SUBJECTS;
    several.subject_count = ARRAY_SIZE(SUBJECTS);
    REFUSED(world, RESULT_HELD, store_reserve(world->a, &several, &attempt, &holder, NULL));
    assert_int_equal(pg_number(db, "SELECT count(*) FROM subject"), 1);
}

static void a_locked_row_is_busy_in_time(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a");
    struct store_options options = world_options(world);
    struct store *hasty = NULL;
    _cleanup_(pg_close) PGconn *holder = pg_connect(world->url);

    options.deadline_ms = 200;
    OK(store_open(&options, STORE_WRITE, &hasty, NULL));
    row_lock(holder, &mine);
    REFUSED(world, RESULT_BUSY, settle(hasty, &mine, ATTEMPT_FAILED));
    REFUSED(world, RESULT_BUSY, retire(hasty, mine.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_BUSY, put_evidence(hasty, &mine, "key", true));
    REFUSED(world, RESULT_BUSY, store_request_cancel(hasty, mine.attempt_id, "me", NULL));
    pg_run(holder, "ROLLBACK");
    OK(settle(hasty, &mine, ATTEMPT_FAILED));
    store_close(hasty);
}

/* ---- an answer that was lost ---- */

/* The COMMIT that was never answered is still under way: asking waits for it. */
static void asking_waits_for_the_commit_under_way(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_COMMAND, "a");
    _cleanup_(sessions_close) struct sessions s = sessions_of(world);
    _cleanup_(mem_free) char *ask = call_of("settle_ask", &mine, ", 'nonce'");

    pg_run(s.holder, "BEGIN");
    assert_call(s.holder, "settle", &mine, ", 'passed', 'nonce'", "ok");
    send_and_wait(s.watcher, s.waiter, ask);
    pg_run(s.holder, "ROLLBACK");
    assert_answer(s.waiter, "conflict");
    pg_run(s.holder, "BEGIN");
    assert_call(s.holder, "settle", &mine, ", 'passed', 'nonce'", "ok");
    send_and_wait(s.watcher, s.waiter, ask);
    pg_run(s.holder, "COMMIT");
    assert_answer(s.waiter, "ok");
    assert_call(s.waiter, "settle_ask", &mine, ", 'another'", "retired");
}

/* Its answer tells that the settlement stays: so it waits for the standbys as the settlement would have. */
static void whoever_asks_again_commits_as_durably(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a");
    static const char *const ASKED[] = {"settle_ask", "settle"};
    static const char *const ARGUMENTS[] = {", 'nonce'", ", 'failed', 'nonce'"};
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    assert_call(db, "settle", &mine, ", 'failed', 'nonce'", "ok");
    pg_run(db, "SET synchronous_commit = off");
    for (size_t i = 0; i < ARRAY_SIZE(ASKED); i++) {
        _cleanup_(mem_free) char *kept = NULL;
        pg_run(db, "BEGIN");
        assert_call(db, ASKED[i], &mine, ARGUMENTS[i], "ok");
        kept = pg_text(db, "SHOW synchronous_commit");
        pg_run(db, "COMMIT");
        assert_string_equal(kept, "on");
    }
}

/* The server may have done it or not: nothing is known of any of them. */
static void an_unknown_renewal_is_unconfirmed(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_DONE, "a"),
                      ended = run(world, world->a, KIND_DONE, "b");
    struct renewal renewals[] = {{.credential = &mine}, {.credential = &ended}};

    if (!failpoint_name(0))
        skip();
    OK(settle(world->a, &ended, ATTEMPT_FAILED));
    for (size_t count = 1; count <= ARRAY_SIZE(renewals); count++) {
        setenv("TENURE_FAILPOINT", "renew-before-commit:error", 1);
        REFUSED(world, RESULT_UNKNOWN, store_renew(world->a, renewals, count, NULL));
        unsetenv("TENURE_FAILPOINT");
        for (size_t i = 0; i < count; i++)
            assert_int_equal(renewals[i].result, RESULT_UNKNOWN);
    }
    OK(store_renew(world->a, renewals, ARRAY_SIZE(renewals), NULL));
    assert_int_equal(renewals[0].result, RESULT_OK);
    assert_int_equal(renewals[1].result, RESULT_RETIRED);
    renewal_done(&renewals[1]);
}

/* Null is how SQL says that nothing is known. */
static void a_verdict_that_is_unknown_retires_nobody(void **state)
{
    struct world *world = *state;
    struct credential mine = reserve(world, world->a, KIND_DONE, "a");
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT result FROM tenure.retire('%s', 1, NULL, 'unknown')", mine.attempt_id);
    _cleanup_(mem_free) char *before = world_dump(world), *answer = pg_text(db, sql);

    assert_true(world_same(world, before));
    assert_string_equal(answer, "conflict");
}

/* ---- one attempt, one call ---- */

static void the_single_renewal_has_every_guard(void **state)
{
    struct world *world = *state;
    struct credential mine = run(world, world->a, KIND_COMMAND, "a"), stranger = mine, nobody = mine;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    _cleanup_(mem_free) char *before = NULL;

    assert_call(db, "renew", &mine, "", "ok");
    assert_int_equal(revision(world->a, mine.attempt_id), 3);
    before = world_dump(world);
    stranger.token[0] ^= 1;
    assert_call(db, "renew", &stranger, "", "retired");
    strcpy(nobody.attempt_id, "0192e4a0-0000-7000-8000-000000000001");
    assert_call(db, "renew", &nobody, "", "absent");
    assert_true(world_same(world, before));
    OK(settle(world->a, &mine, ATTEMPT_FAILED));
    free(before);
    before = world_dump(world);
    assert_call(db, "renew", &mine, "", "retired");
    assert_true(world_same(world, before));
}

/* ---- fences ---- */

static void fences_go_on_above_the_clock_on_another_server(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a"), two, three;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    two = reserve(world, world->a, KIND_DONE, "b");
    assert_int_equal(two.fence, one.fence + 1);
    backend->pass(world, 1000);
    /* Restored from a copy that knows nothing of the last fences. */
    pg_run(db, "SELECT setval('fence', 1); DELETE FROM subject; UPDATE meta SET value = 'x' WHERE name = "
               "'incarnation'");
    three = reserve(world, world->b, KIND_DONE, "a");
    assert_true(three.fence > two.fence);
    assert_true(three.fence >= world->clock.now_wall_ms * 1000);
}

static void a_clock_that_was_set_back_takes_no_fence_back(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a"), two;

    backend->pass(world, -TTL * 1000);
    backend->restart(world);
    two = reserve(world, world->a, KIND_DONE, "b");
    assert_true(two.fence > one.fence);
}

/* The same server in another session's way of writing times is the same server. */
static void a_time_zone_is_no_other_server(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a");
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    pg_run(db, "SET timezone = 'Asia/Tokyo'; SET datestyle = 'SQL, DMY'");
    assert_int_equal(pg_number(db, "SELECT tenure.fence_draw()"), one.fence + 1);
}

/* A dump that is put back where it came from brings the old incarnation along. */
static void fences_go_on_above_the_clock_after_a_dump_is_put_back(void **state)
{
    struct world *world = *state;
    struct credential one = reserve(world, world->a, KIND_DONE, "a"), two;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);

    backend->pass(world, 1000);
    pg_run(db, "ALTER SEQUENCE tenure.fence RENAME TO old; CREATE SEQUENCE tenure.fence CACHE 1");
    two = reserve(world, world->a, KIND_DONE, "b");
    assert_true(two.fence > one.fence);
}

/* ---- servers with other habits ---- */

/* A whole life in a new database with this setting. */
static void live_with(struct world *world, const char *setting)
{
    struct credential done, dead;
    struct proof_row proof = proof_of(world, "proof");
    _cleanup_(mem_free) char *database = NULL, *sql = NULL;

    world_close(world);
    backend->discard(world->url);
    free(world->url);
    world->url = backend->make();
    database = pg_database(world->url);
    sql = mem_format("ALTER DATABASE \"%s\" SET %s", database, setting);
    backend->execute(world->url, sql);
    world_reopen(world);
    done = run(world, world->a, KIND_DONE, "a");
    dead = run(world, world->b, KIND_DONE, "b");
    OK(renew(world->a, &done));
    OK(put_evidence(world->a, &done, "key", true));
    OK(retire(world->a, dead.attempt_id, 2, true, NULL));
    REFUSED(world, RESULT_RETIRED, renew(world->b, &dead));
    OK(settle_with(world->a, &done, ATTEMPT_PASSED, &proof, NULL));
}

static void other_habits_of_the_server_change_nothing(void **state)
{
    static const char *const SETTINGS[] = {
        "default_transaction_isolation = 'serializable'",
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_deferrable = on",
        "synchronous_commit = off",
        "standard_conforming_strings = off",
        "search_path = ''",
        "search_path = 'nowhere'",
        "datestyle = 'SQL, DMY'",
        "row_security = off",
        "quote_all_identifiers = on",
        "plpgsql.variable_conflict = use_column",
    };

    for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++) {
        print_message("%s\n", SETTINGS[i]);
        live_with(*state, SETTINGS[i]);
    }
}

/* ---- secrets ---- */

static bool has_token(const char *text, const struct credential *credential)
{
    char hex[2 * TOKEN_BYTES + 1];

    hex_of(credential, hex);
    return strcasestr(text, hex) != NULL;
}

/* The log of a server that writes every statement down. */
static char *log_read(PGconn *db)
{
    return pg_text(db,
        "SELECT pg_read_file((SELECT setting FROM pg_settings WHERE name = 'data_directory') ||"
        " '/../log/postgres')");
}

static void no_token_is_part_of_a_statement(void **state)
{
    struct world *world = *state;
    struct credential mine, stranger;
    _cleanup_(pg_close) PGconn *db = pg_connect(world->url);
    _cleanup_(mem_free) char *database = pg_database(world->url), *log = NULL, *activity = NULL, *dump = NULL;
    _cleanup_(mem_free) char *sql = mem_format("ALTER DATABASE \"%s\" SET log_statement = 'all';"
                                               "ALTER DATABASE \"%s\" SET log_parameter_max_length = 0",
        database, database);

    pg_run(db, sql);
    world_close(world);
    world_reopen(world);
    mine = run(world, world->a, KIND_COMMAND, "a");
    OK(renew(world->a, &mine));
    OK(put_evidence(world->a, &mine, "key", true));
    activity = pg_text(db, "SELECT string_agg(query, ' ') FROM pg_stat_activity");
    stranger = mine;
    stranger.token[0] ^= 1;
    REFUSED(world, RESULT_RETIRED, settle(world->a, &stranger, ATTEMPT_PASSED));
    OK(settle(world->a, &mine, ATTEMPT_PASSED));
    log = log_read(db);
    dump = world_dump(world);
    assert_non_null(strstr(log, "tenure.settle"));
    assert_false(has_token(log, &mine) || has_token(log, &stranger));
    assert_false(has_token(activity, &mine));
    assert_false(has_token(dump, &mine));
}

int test_postgres_rows(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_locked_row_does_not_starve_the_others),
        TEST(a_row_under_a_settlement_is_unconfirmed),
        TEST(a_lease_that_lapses_during_the_wait_is_not_renewed),
        TEST(a_lease_that_is_renewed_during_the_wait_is_not_taken),
        TEST(whoever_waits_for_a_retirement_is_retired),
        TEST(a_reserve_behind_another_is_held_by_it),
        TEST(a_reserve_behind_one_that_is_undone_wins),
        TEST(a_refused_reserve_leaves_no_subject),
        TEST(a_locked_row_is_busy_in_time),
        TEST(asking_waits_for_the_commit_under_way),
        TEST(whoever_asks_again_commits_as_durably),
        TEST(an_unknown_renewal_is_unconfirmed),
        TEST(a_verdict_that_is_unknown_retires_nobody),
        TEST(the_single_renewal_has_every_guard),
        TEST(fences_go_on_above_the_clock_on_another_server),
        TEST(a_clock_that_was_set_back_takes_no_fence_back),
        TEST(a_time_zone_is_no_other_server),
        TEST(fences_go_on_above_the_clock_after_a_dump_is_put_back),
        TEST(other_habits_of_the_server_change_nothing),
        TEST(no_token_is_part_of_a_statement),
    };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
