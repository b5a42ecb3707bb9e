/*
 * Publications through publication.h. Of the embedded store: that it has none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/publication.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/conformance/conformance.h"

static const struct row_source ROW = {
    .table = "app.source", .key = "id", .value = "42", .soft_delete = "deleted_at"};

static struct reservation reservation_of_row(struct world *world, const struct row_source *row)
{
    struct reservation reservation = reservation_of(world, KIND_PUBLICATION, NULL);

    reservation.subjects = NULL;
    reservation.subject_count = 0;
    reservation.row = row;
    reservation.repository = NULL;
    reservation.bind_if_clear = true;
    return reservation;
}

/* ---- where there is no application's row ---- */

static void rows_cannot_be_claimed_here(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of_row(world, &ROW);
    struct credential owner = reserve(world, world->a, KIND_PUBLICATION, "row:1");
    struct publication *publication = NULL;
    _cleanup_(error_done) struct error err = {0};

    REFUSED(world, RESULT_INVALID, store_reserve(world->a, &reservation, NULL, NULL, &err));
    assert_non_null(strstr(err.remedy, "postgresql://"));
    REFUSED(world, RESULT_INVALID, publication_begin(world->a, &owner, &publication, NULL));
    assert_null(publication);
}

/* ---- where there is one ---- */

static int setup(void **state)
{
    struct world *world = NULL;
    int r = world_setup(state);

    world = *state;
    backend->execute(world->url,
        "CREATE SCHEMA app;"
        "CREATE TABLE app.source (id int PRIMARY KEY, name text, deleted_at timestamptz);"
        "CREATE TABLE app.item (value text PRIMARY KEY, twin text REFERENCES app.item DEFERRABLE INITIALLY "
        "DEFERRED);"
        "INSERT INTO app.source VALUES (42, 'a', NULL), (43, 'b', now()), (44, 'a', NULL)");
    return r;
}

static struct credential claim(struct world *world)
{
    struct reservation reservation = reservation_of_row(world, &ROW);
    _cleanup_(attempt_done) struct attempt attempt = {0};

    OK(store_reserve(world->a, &reservation, &attempt, NULL, NULL));
    assert_int_equal(attempt.state, ATTEMPT_RUNNING);
    assert_int_equal(attempt.subject_count, 1);
    assert_string_equal(attempt.subjects[0], "row:app.source:id=42");
    return reservation.credential;
}

static enum result try_claim(struct world *world, const struct row_source *row, struct error *err)
{
    struct reservation reservation = reservation_of_row(world, row);
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};

    return store_reserve(world->b, &reservation, &attempt, &holder, err);
}

static struct publication *begun(struct world *world, const struct credential *owner)
{
    struct publication *publication = NULL;

    OK(publication_begin(world->a, owner, &publication, NULL));
    return publication;
}

static enum result query(struct publication *publication, const char *sql, struct publication_counts *counts)
{
    struct publication_counts ignored = {0};
    const struct publication_statement statement = {.sql = sql};

    return publication_query(publication, &statement, counts ? counts : &ignored, NULL);
}

static enum result commit(struct publication *publication)
{
    struct settlement settlement;

    settlement_init(&settlement, ATTEMPT_PASSED);
    settlement.reason_code = "passed";
    return publication_commit(&publication, &settlement, NULL);
}

static int64_t items(struct world *world)
{
    return backend->count(world->url, "SELECT count(*) FROM app.item");
}

static void a_claim_is_of_one_living_row(void **state)
{
    struct world *world = *state;
    static const struct {
        struct row_source row;
        enum result wanted;
    } CASES[] = {
        {{"app.source", "id", "45", NULL}, RESULT_ABSENT},
        {{"app.source", "id", "43", "deleted_at"}, RESULT_ABSENT},
        {{"app.source", "name", "a", NULL}, RESULT_INVALID},
        {{"app.source", "nothing", "1", NULL}, RESULT_INVALID},
        {{"app.source", "id", "1", "nothing"}, RESULT_INVALID},
        {{"app.source", "id", "x", NULL}, RESULT_INVALID},
        {{"app.nothing", "id", "1", NULL}, RESULT_INVALID},
        {{"a.b.c.d", "id", "1", NULL}, RESULT_INVALID},
        {{"app.source; DROP TABLE app.source", "id", "1", NULL}, RESULT_INVALID},
        {{"", "id", "1", NULL}, RESULT_INVALID},
    };

    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
        REFUSED(world, CASES[i].wanted, try_claim(world, &CASES[i].row, NULL));
    claim(world);
    _cleanup_(error_done) struct error err = {0};
    REFUSED(world, RESULT_HELD, try_claim(world, &ROW, &err));
    assert_non_null(strstr(err.message, "row:app.source:id=42"));
    /* The name of a row is the same however its key is written. */
    struct row_source written = ROW;
    written.value = " 042";
    REFUSED(world, RESULT_HELD, try_claim(world, &written, NULL));
}

static void a_repeated_claim_is_answered_by_its_own_row(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of_row(world, &ROW);

    OK(store_reserve(world->a, &reservation, NULL, NULL, NULL));
    REFUSED(world, RESULT_OK, store_reserve(world->b, &reservation, NULL, NULL, NULL));
}

static void what_is_published_is_counted_and_ends_the_attempt(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    struct publication *publication = begun(world, &owner);
    struct publication_counts counts = {0};
    const char *values[] = {"a'b", NULL};
    const struct publication_statement insert = {
        .sql = "INSERT INTO app.item VALUES ($1, $2)", .values = values, .value_count = 2};

    OK(publication_query(publication, &insert, &counts, NULL));
    OK(query(publication, "INSERT INTO app.item VALUES ('b'), ('c')", &counts));
    OK(query(publication, "UPDATE app.item SET value = value || 'x' WHERE value > 'b'", &counts));
    OK(query(publication, "DELETE FROM app.item WHERE value = 'bx' OR value = 'b'", &counts));
    OK(query(publication,
        "MERGE INTO app.item i USING (VALUES ('m')) v (value) ON i.value = v.value WHEN NOT MATCHED THEN "
        "INSERT "
        "VALUES (v.value)",
        &counts));
    OK(query(publication, "SELECT * INTO app.copy FROM app.item", &counts));
    OK(query(publication, "CREATE TABLE app.other AS SELECT * FROM app.item", &counts));
    OK(query(publication, "SELECT 1", &counts));
    OK(query(publication, "", &counts));
    assert_int_equal(items(world), 0);
    OK(commit(publication));
    assert_int_equal(counts.inserted, 3);
    assert_int_equal(counts.updated, 1);
    assert_int_equal(counts.deleted, 1);
    assert_int_equal(counts.merged, 1);
    assert_int_equal(counts.copied, 0);
    assert_int_equal(items(world), 3);
    _cleanup_(attempt_done) struct attempt attempt = found(world->b, owner.attempt_id);
    assert_int_equal(attempt.state, ATTEMPT_PASSED);
}

static enum result publish_sql(struct world *world, const struct credential *owner, const char *sql)
{
    struct publication *publication = begun(world, owner);
    enum result r = query(publication, "INSERT INTO app.item VALUES ('first')", NULL);

    if (r == RESULT_OK)
        r = query(publication, sql, NULL);
    if (r == RESULT_OK)
        return commit(publication);
    assert_int_not_equal(query(publication, "INSERT INTO app.item VALUES ('later')", NULL), RESULT_OK);
    publication_abort(&publication);
    assert_null(publication);
    return r;
}

static void what_is_refused_undoes_all(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    static const char *const STATEMENTS[] = {
        "INSERT INTO app.item VALUES ('first')",
        "INSERT INTO app.item VALUES ('orphan', 'nobody')", /* at the COMMIT */
        "SELECT 1; SELECT 2",
        "nonsense",
        "SELECT * FROM nothing",
        "SELECT 1 / 0",
        "COPY app.item FROM STDIN",
        "COPY app.item TO STDOUT",
        "DO $$ BEGIN COMMIT; END $$",
        "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '58030'; END $$",
    };

    for (size_t i = 0; i < ARRAY_SIZE(STATEMENTS); i++) {
        REFUSED(world, RESULT_INVALID, publish_sql(world, &owner, STATEMENTS[i]));
        assert_int_equal(items(world), 0);
    }
    OK(settle(world->a, &owner, ATTEMPT_FAILED));
}

static void words_about_transactions_are_refused_unsent(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    struct publication *publication = begun(world, &owner);
    static const char *const WORDS[] = {"COMMIT", " ; -- x\n commit", "/* /* */ */ ROLLBACK", "END", "ABORT",
        "begin", "START TRANSACTION", "PREPARE TRANSACTION 'x'", "SAVEPOINT s", "RELEASE s"};

    for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++)
        assert_int_equal(query(publication, WORDS[i], NULL), RESULT_INVALID);
    OK(query(publication, "INSERT INTO app.item VALUES ('a')", NULL));
    OK(commit(publication));
    assert_int_equal(items(world), 1);
}

static void the_server_is_quoted_with_the_place(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    struct publication *publication = begun(world, &owner);
    struct publication_counts counts = {0};
    const struct publication_statement statement = {
        .sql = "SELECT 'ä',\n  nonsense\nFROM app.item", .file = "a.sql", .line = 10};
    _cleanup_(error_done) struct error err = {0};

    assert_int_equal(publication_query(publication, &statement, &counts, &err), RESULT_INVALID);
    assert_string_equal(err.message, "a.sql:11: column \"nonsense\" does not exist (SQLSTATE 42703)");
    publication_abort(&publication);
}

static void who_lost_the_claim_begins_nothing(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world), stranger = owner;
    struct publication *publication = NULL;

    stranger.token[0] ^= 1;
    REFUSED(world, RESULT_RETIRED, publication_begin(world->a, &stranger, &publication, NULL));
    backend->execute(world->url, "UPDATE app.source SET deleted_at = now() WHERE id = 42");
    REFUSED(world, RESULT_ABSENT, publication_begin(world->a, &owner, &publication, NULL));
    backend->execute(world->url, "UPDATE app.source SET deleted_at = NULL");
    backend->pass(world, LEASE_TTL_DEFAULT_MS);
    publication_abort(&(struct publication *){begun(world, &owner)});
    backend->pass(world, 1);
    REFUSED(world, RESULT_LAPSED, publication_begin(world->a, &owner, &publication, NULL));
    OK(retire(world->b, owner.attempt_id, revision(world->b, owner.attempt_id), false, NULL));
    REFUSED(world, RESULT_RETIRED, publication_begin(world->a, &owner, &publication, NULL));
    assert_null(publication);
}

/* ---- COPY ---- */

struct feed {
    int64_t left;
    int errnum;
};

static int64_t feed_read(void *context, void *buffer, size_t size_bytes)
{
    struct feed *feed = context;
    size_t length = 0;

    if (feed->left == 0)
        return -feed->errnum;
    for (; feed->left > 0 && length + 32 <= size_bytes; feed->left--)
        length += (size_t)snprintf((char *)buffer + length, 32, "item %lld\n", (long long)feed->left);
    return (int64_t)length;
}

static void much_can_be_copied(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    struct publication *publication = begun(world, &owner);
    struct publication_counts counts = {0};
    struct feed feed = {.left = 200000};

    OK(publication_copy(publication, "COPY app.item (value) FROM STDIN", feed_read, &feed, &counts, NULL));
    assert_int_equal(counts.copied, 200000);
    OK(commit(publication));
    assert_int_equal(items(world), 200000);
}

static enum result copy(
    struct world *world, const struct credential *owner, const char *sql, struct feed feed)
{
    struct publication *publication = begun(world, owner);
    struct publication_counts counts = {0};
    enum result r = publication_copy(publication, sql, feed_read, &feed, &counts, NULL);

    assert_int_equal(counts.copied, 0);
    assert_int_not_equal(query(publication, "SELECT 1", NULL), RESULT_OK);
    publication_abort(&publication);
    return r;
}

static void a_copy_that_fails_undoes_all(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    static const char SQL[] = "COPY app.item (value) FROM STDIN";

    REFUSED(world, RESULT_SYSTEM, copy(world, &owner, SQL, (struct feed){.left = 10, .errnum = EIO}));
    REFUSED(world, RESULT_INVALID,
        copy(world, &owner, "COPY app.item (value, twin) FROM STDIN", (struct feed){.left = 100000}));
    REFUSED(
        world, RESULT_INVALID, copy(world, &owner, "COPY app.nothing FROM STDIN", (struct feed){.left = 1}));
    REFUSED(world, RESULT_INVALID, copy(world, &owner, "SELECT 1", (struct feed){.left = 1}));
    REFUSED(world, RESULT_INVALID, copy(world, &owner, "COPY app.item TO STDOUT", (struct feed){.left = 1}));
    assert_int_equal(items(world), 0);
    OK(publish_sql(world, &owner, "INSERT INTO app.item VALUES ('second')"));
}

/* ---- time ---- */

static void what_outlasts_the_lease_is_undone(void **state)
{
    struct world *world = *state;
    struct reservation reservation = reservation_of_row(world, &ROW);

    reservation.ttl_ms = LEASE_TTL_MIN_MS;
    OK(store_reserve(world->a, &reservation, NULL, NULL, NULL));
    REFUSED(world, RESULT_LAPSED, publish_sql(world, &reservation.credential, "SELECT pg_sleep(60)"));
    assert_int_equal(items(world), 0);
}

static bool stop_waiting(struct world *world)
{
    (void)world;
    return false;
}

static void who_ends_the_wait_undoes_all(void **state)
{
    struct world *world = *state;
    struct credential owner = claim(world);
    struct publication *publication = begun(world, &owner);

    OK(query(publication, "INSERT INTO app.item VALUES ('first')", NULL));
    world->waiting = stop_waiting;
    enum result r = query(publication, "SELECT pg_sleep(60)", NULL);
    world->waiting = NULL;
    assert_true(r == RESULT_BUSY || r == RESULT_INVALID);
    publication_abort(&publication);
    assert_int_equal(items(world), 0);
    OK(publish_sql(world, &owner, "INSERT INTO app.item VALUES ('second')"));
}

#define TEST(test)     cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define ROW_TEST(test) cmocka_unit_test_setup_teardown(test, setup, world_teardown)

int test_publications(void)
{
    const struct CMUnitTest without[] = {
        TEST(rows_cannot_be_claimed_here),
    };
    const struct CMUnitTest with[] = {
        ROW_TEST(a_claim_is_of_one_living_row),
        ROW_TEST(a_repeated_claim_is_answered_by_its_own_row),
        ROW_TEST(what_is_published_is_counted_and_ends_the_attempt),
        ROW_TEST(what_is_refused_undoes_all),
        ROW_TEST(words_about_transactions_are_refused_unsent),
        ROW_TEST(the_server_is_quoted_with_the_place),
        ROW_TEST(who_lost_the_claim_begins_nothing),
        ROW_TEST(much_can_be_copied),
        ROW_TEST(a_copy_that_fails_undoes_all),
        ROW_TEST(what_outlasts_the_lease_is_undone),
        ROW_TEST(who_ends_the_wait_undoes_all),
    };

    if (strcmp(backend->name, "sqlite") == 0)
        return cmocka_run_group_tests_name("publications", without, NULL, NULL);
    return cmocka_run_group_tests_name("publications", with, NULL, NULL);
}
