/* libtenure against a real server: what each function answers, what stays in the database, and who may go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/tenure.h"
#include "tests/unit/checked_fork.h"

#define TTL_MS   2000
#define BOUND_MS 20000

static const struct tenure_row ROW = {
    .table = "app.source", .key = "id", .value = "42", .soft_delete = "deleted_at"};

struct place {
    PGconn *admin, *db;
    char name[64], url[512];
};

/* ---- the database ---- */

static void run(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(db));
    PQclear(result);
}

static long number(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    long value = 0;

    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    value = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return value;
}

static int make(void **state)
{
    static int made;
    struct place *place = calloc(1, sizeof *place);
    const char *server = getenv("TENURE_TEST_POSTGRES");
    const char *parameters = server ? strchr(server, '?') : NULL;
    char sql[128];

    assert_non_null(parameters);
    place->admin = PQconnectdb(server);
    assert_int_equal(PQstatus(place->admin), CONNECTION_OK);
    snprintf(place->name, sizeof place->name, "library_%d_%d", (int)getpid(), made++);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s", place->name);
    run(place->admin, sql);
    snprintf(place->url, sizeof place->url, "postgresql://postgres@/%s%s", place->name, parameters);
    place->db = PQconnectdb(place->url);
    assert_int_equal(PQstatus(place->db), CONNECTION_OK);
    *state = place;
    return 0;
}

static void fill(struct place *place)
{
    run(place->db, "CREATE SCHEMA app;"
                   "CREATE TABLE app.source (id int PRIMARY KEY, deleted_at timestamptz);"
                   "CREATE TABLE app.item (value text PRIMARY KEY);"
                   "INSERT INTO app.source VALUES (42), (43)");
}

static int discard(void **state)
{
    struct place *place = *state;
    char sql[128];

    PQfinish(place->db);
    snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", place->name);
    run(place->admin, sql);
    PQfinish(place->admin);
    free(place);
    return 0;
}

static struct tenure_claim *claim_as(struct place *place, enum tenure_result wanted)
{
    struct tenure_claim *claim = NULL;
    enum tenure_result result = tenure_claim(place->url, &ROW, TTL_MS, &claim);

    if (result != wanted)
        fail_msg("%s: %s", tenure_result_name(result), tenure_claim_message(claim));
    return claim;
}

/* The first claim makes the schema, which is done only in an empty database. */
static struct tenure_claim *first_claim(struct place *place)
{
    tenure_claim_free(claim_as(place, TENURE_INVALID));
    fill(place);
    return claim_as(place, TENURE_OK);
}

static void assert_ok(struct tenure_claim *claim, enum tenure_result result)
{
    if (result != TENURE_OK)
        fail_msg("%s: %s", tenure_result_name(result), tenure_claim_message(claim));
}

static void insert(struct tenure_claim *claim, const char *value, enum tenure_result wanted)
{
    const char *values[] = {value};
    int64_t rows = -1;

    assert_int_equal(
        tenure_publication_query(claim, "INSERT INTO app.item VALUES ($1)", values, 1, &rows), wanted);
    assert_int_equal(rows, wanted == TENURE_OK ? 1 : -1);
}

static long items(struct place *place)
{
    return number(place->db, "SELECT count(*) FROM app.item");
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* ---- tests ---- */

static void names_are_told(void **state)
{
    (void)state;
    assert_string_equal(tenure_version(), "0.1.0");
    assert_string_equal(tenure_result_name(TENURE_ABSENT), "absent");
    assert_string_equal(tenure_result_name((enum tenure_result)99), "unknown");
    assert_string_equal(tenure_claim_message(NULL), "");
    assert_false(tenure_claim_is_live(NULL));
    tenure_claim_free(NULL);
}

static void what_is_wrong_is_refused(void **state)
{
    struct place *place = *state;
    struct tenure_row row = ROW;
    struct tenure_claim *claim = NULL;

    assert_int_equal(tenure_claim(NULL, &row, TTL_MS, &claim), TENURE_INVALID);
    tenure_claim_free(claim);
    assert_int_equal(tenure_claim(place->url, NULL, TTL_MS, &claim), TENURE_INVALID);
    tenure_claim_free(claim);
    assert_int_equal(tenure_claim(place->url, &row, 1, &claim), TENURE_INVALID);
    tenure_claim_free(claim);
    assert_int_equal(tenure_claim("sqlite:/nowhere", &row, TTL_MS, &claim), TENURE_INVALID);
    assert_non_null(strstr(tenure_claim_message(claim), "embedded"));
    assert_int_equal(tenure_publication_begin(claim), TENURE_INVALID);
    assert_int_equal(tenure_claim_release(claim), TENURE_INVALID);
    tenure_claim_free(claim);
    assert_int_equal(
        tenure_claim("postgresql://nobody@127.0.0.1:1/x?connect_timeout=2", &row, TTL_MS, &claim),
        TENURE_UNREACHABLE);
    tenure_claim_free(claim);
}

static void what_is_published_stays(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place), *other = NULL;

    assert_true(tenure_claim_is_live(claim));
    assert_true(tenure_claim_fence(claim) > 0);
    assert_int_equal(strlen(tenure_claim_attempt(claim)), 36);
    other = claim_as(place, TENURE_HELD);
    assert_non_null(strstr(tenure_claim_message(other), "held"));
    tenure_claim_free(other);
    assert_ok(claim, tenure_publication_begin(claim));
    assert_int_equal(tenure_publication_begin(claim), TENURE_INVALID);
    insert(claim, "a", TENURE_OK);
    assert_int_equal(items(place), 0);
    assert_ok(claim, tenure_publication_commit(claim));
    assert_int_equal(items(place), 1);
    assert_false(tenure_claim_is_live(claim));
    assert_int_equal(tenure_publication_begin(claim), TENURE_INVALID);
    assert_int_equal(number(place->db, "SELECT count(*) FROM tenure.attempt WHERE state = 'passed'"), 1);
    tenure_claim_free(claim);
    claim = claim_as(place, TENURE_OK);
    assert_ok(claim, tenure_claim_release(claim));
    tenure_claim_free(claim);
    assert_int_equal(number(place->db, "SELECT count(*) FROM tenure.subject"), 0);
}

static void what_fails_is_undone_and_can_be_tried_again(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);

    assert_ok(claim, tenure_publication_begin(claim));
    insert(claim, "a", TENURE_OK);
    insert(claim, "a", TENURE_INVALID);
    assert_non_null(strstr(tenure_claim_message(claim), "duplicate key"));
    insert(claim, "b", TENURE_INVALID);
    assert_int_not_equal(tenure_publication_commit(claim), TENURE_OK);
    assert_int_equal(items(place), 0);
    assert_ok(claim, tenure_publication_begin(claim));
    assert_int_equal(tenure_publication_query(claim, "COMMIT", NULL, 0, NULL), TENURE_INVALID);
    assert_int_equal(tenure_publication_query(claim, "SELECT 1; COMMIT", NULL, 0, NULL), TENURE_INVALID);
    tenure_publication_abort(claim);
    tenure_publication_abort(claim);
    assert_ok(claim, tenure_publication_begin(claim));
    insert(claim, "c", TENURE_OK);
    assert_ok(claim, tenure_publication_commit(claim));
    tenure_claim_free(claim);
    assert_int_equal(items(place), 1);
}

static void a_failure_is_kept(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);

    assert_ok(claim, tenure_claim_fail(claim, "the station does not answer"));
    tenure_claim_free(claim);
    assert_int_equal(
        number(place->db,
            "SELECT count(*) FROM tenure.attempt WHERE state = 'failed' AND reason_text = 'the station "
            "does not answer'"),
        1);
}

static void a_row_that_is_gone_is_not_published(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);

    run(place->db, "UPDATE app.source SET deleted_at = now() WHERE id = 42");
    assert_int_equal(tenure_publication_begin(claim), TENURE_ABSENT);
    assert_ok(claim, tenure_claim_release(claim));
    tenure_claim_free(claim);
    claim = claim_as(place, TENURE_ABSENT);
    assert_string_equal(tenure_claim_attempt(claim), "");
    tenure_claim_free(claim);
}

static void a_claim_outlives_its_ttl_by_renewal(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);
    int64_t until_ms = now_ms() + TTL_MS + TTL_MS / 2;

    for (; now_ms() < until_ms; rest())
        assert_true(tenure_claim_is_live(claim));
    assert_ok(claim, tenure_publication_begin(claim));
    assert_ok(claim, tenure_publication_commit(claim));
    tenure_claim_free(claim);
}

static void a_claim_that_was_taken_is_lost(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);
    int64_t until_ms = now_ms() + BOUND_MS;

    run(place->db, "SELECT r.result FROM tenure.attempt a, tenure.retire(a.id, a.rev, true, 'owner-gone') r "
                   "WHERE a.state = 'running'");
    for (; tenure_claim_is_live(claim) && now_ms() < until_ms; rest())
        continue;
    assert_false(tenure_claim_is_live(claim));
    assert_int_equal(tenure_publication_begin(claim), TENURE_RETIRED);
    assert_int_equal(tenure_claim_fail(claim, "a loser's word"), TENURE_RETIRED);
    tenure_claim_free(claim);
    assert_int_equal(number(place->db, "SELECT count(*) FROM tenure.attempt WHERE state = 'cancelled'"), 1);
}

static void a_connection_that_was_lost_is_made_anew(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);

    run(place->db,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()");
    assert_ok(claim, tenure_publication_begin(claim));
    insert(claim, "a", TENURE_OK);
    run(place->db,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()");
    assert_int_not_equal(tenure_publication_commit(claim), TENURE_OK);
    assert_int_equal(items(place), 0);
    assert_ok(claim, tenure_publication_begin(claim));
    insert(claim, "b", TENURE_OK);
    assert_ok(claim, tenure_publication_commit(claim));
    tenure_claim_free(claim);
    assert_int_equal(items(place), 1);
}

static void a_child_of_a_fork_can_do_no_harm(void **state)
{
    struct place *place = *state;
    struct tenure_claim *claim = first_claim(place);
    int status = -1;
    pid_t child = checked_fork();

    if (child == 0) {
        bool good = !tenure_claim_is_live(claim) && tenure_publication_begin(claim) == TENURE_INVALID &&
                    tenure_claim_release(claim) == TENURE_INVALID;
        tenure_claim_free(claim);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(tenure_claim_is_live(claim));
    assert_ok(claim, tenure_publication_begin(claim));
    insert(claim, "a", TENURE_OK);
    assert_ok(claim, tenure_publication_commit(claim));
    tenure_claim_free(claim);
}

/* One thread each; of all claims of one row one at a time succeeds. */
static void *contend(void *context)
{
    struct place *place = context;
    struct tenure_claim *claim = NULL;
    char value[64];
    const char *values[] = {value};
    enum tenure_result result = TENURE_HELD;

    for (int64_t until_ms = now_ms() + BOUND_MS; result != TENURE_OK && now_ms() < until_ms;) {
        tenure_claim_free(claim);
        result = tenure_claim(place->url, &ROW, TTL_MS, &claim);
    }
    snprintf(value, sizeof value, "%s", tenure_claim_attempt(claim));
    if (result == TENURE_OK)
        result = tenure_publication_begin(claim);
    if (result == TENURE_OK)
        result = tenure_publication_query(claim, "INSERT INTO app.item VALUES ($1)", values, 1, NULL);
    if (result == TENURE_OK)
        result = tenure_publication_commit(claim);
    tenure_claim_free(claim);
    return (void *)(intptr_t)result;
}

static void threads_have_claims_of_their_own(void **state)
{
    struct place *place = *state;
    pthread_t threads[4];

    tenure_claim_free(first_claim(place));
    run(place->db, "SELECT r.result FROM tenure.attempt a, tenure.retire(a.id, a.rev, true, 'owner-gone') r");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, place), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_int_equal((intptr_t)result, TENURE_OK);
    }
    assert_int_equal(items(place), 4);
}

#define ON_A_DATABASE(test) cmocka_unit_test_setup_teardown(test, make, discard)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told),
        ON_A_DATABASE(what_is_wrong_is_refused),
        ON_A_DATABASE(what_is_published_stays),
        ON_A_DATABASE(what_fails_is_undone_and_can_be_tried_again),
        ON_A_DATABASE(a_failure_is_kept),
        ON_A_DATABASE(a_row_that_is_gone_is_not_published),
        ON_A_DATABASE(a_claim_outlives_its_ttl_by_renewal),
        ON_A_DATABASE(a_claim_that_was_taken_is_lost),
        ON_A_DATABASE(a_connection_that_was_lost_is_made_anew),
        ON_A_DATABASE(a_child_of_a_fork_can_do_no_harm),
        ON_A_DATABASE(threads_have_claims_of_their_own),
    };
    return cmocka_run_group_tests_name("library", tests, NULL, NULL);
}
