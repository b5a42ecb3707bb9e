/* The one short transaction: everything in it or nothing, on a row that lives, by the owner, within the
 * window. */
#include <string.h>

#include "tests/publication/sessions.h"

#define ITEM   "INSERT INTO app.item VALUES (42, 'collected')"
#define RENAME "UPDATE app.source SET name = 'published' WHERE id = 42"

static void ended(struct session *session, const struct claim *claim)
{
    STEP(session, "", PUBLICATION_END, claim);
    STEP(session, "", "COMMIT", NULL);
}

/* ---- all of it ---- */

static void what_was_written_and_the_ending_come_together(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    publication_started(&w->a, &a);
    STEP(&w->a, "", ITEM, NULL);
    STEP(&w->a, "", RENAME, NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    assert_true(places_same(w, before)); /* nobody sees any of it yet */
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "passed|passed", "SELECT state, reason_code FROM tenure.attempt WHERE id = $1", &a);
    SEEN(w, "42|collected", "SELECT * FROM app.item", NULL);
    SEEN(w, "0", "SELECT count(*) FROM tenure.subject", NULL);
}

static void a_fence_is_handed_to_the_transaction(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    STEP(&w->a, "t",
        "SELECT tenure.publication_begin($1, $2) = (SELECT (tenure.find($1::text) ->> 'fence')::bigint)", &a);
}

/* ---- the row ---- */

static void a_row_deleted_during_collection_is_not_published(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    STEP(&w->b, "", "DELETE FROM app.source WHERE id = 42", NULL);
    REFUSAL(w, &w->a, "!TN005", PUBLICATION_BEGIN, &a);
    STEP(&w->a, "ok", FAIL, &a);
    SEEN(w, "failed|why", "SELECT state, reason_text FROM tenure.attempt WHERE id = $1", &a);
}

static void a_row_soft_deleted_during_collection_is_not_published(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b = {.fence = 0};

    STEP(&w->b, "", "UPDATE app.source SET deleted_at = now() WHERE id = 42", NULL);
    REFUSAL(w, &w->a, "!TN005", PUBLICATION_BEGIN, &a);
    SEEN(w, "running", STATE, &a);

    strcpy(b.attempt, "01890000-0000-7000-8000-000000000001");
    STEP(&w->a, "ok",
        "SELECT result FROM tenure.claim_row_as('01890000-0000-7000-8000-000000000001', sha256('b'),"
        " 'app.source', 'id', '43', 'gone')",
        NULL);
    STEP(&w->b, "", "UPDATE app.source SET gone = true WHERE id = 43", NULL);
    REFUSAL(w, &w->a, "!TN005", "SELECT tenure.publication_begin($1, sha256('b'))", &b);
}

/* Whoever ends the row waits for the publication; the row is whole while it is published. */
static void whoever_deletes_the_row_waits(void **state)
{
    struct places *w = *state;
    static const char *const DELETERS[] = {
        "DELETE FROM app.source WHERE id = 42",
        "UPDATE app.source SET deleted_at = now() WHERE id = 42",
        "UPDATE app.source SET id = 4242 WHERE id = 42",
    };

    for (size_t i = 0; i < ARRAY_SIZE(DELETERS); i++) {
        struct claim a = claimed(&w->a, 42);
        publication_started(&w->a, &a);
        start(&w->b, DELETERS[i], NULL);
        assert_waits(w, &w->b);
        STEP(&w->a, "", RENAME, NULL);
        ended(&w->a, &a);
        FINISH(&w->b, "");
        SEEN(w, "passed", STATE, &a);
        REFUSAL(w, &w->a, "absent", CLAIM(42), NULL);
        admin(w, "DELETE FROM app.source WHERE id IN (42, 4242); INSERT INTO app.source (id) VALUES (42)");
    }
}

/* The other order: the deleter came first, and publication_begin waits for it. */
static void a_publication_waits_for_the_deleter_and_is_refused(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    STEP(&w->b, "", "BEGIN", NULL);
    STEP(&w->b, "", "UPDATE app.source SET deleted_at = now() WHERE id = 42", NULL);
    start(&w->a, PUBLICATION_BEGIN, &a);
    assert_waits(w, &w->a);
    STEP(&w->b, "", "COMMIT", NULL);
    FINISH(&w->a, "!TN005");
    SEEN(w, "running", STATE, &a);
    SEEN(w, "1", "SELECT rev FROM tenure.attempt WHERE id = $1", &a);
}

/* ---- nothing of it ---- */

static void a_failure_after_real_rows_undoes_all_and_keeps_the_claim(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    publication_started(&w->a, &a);
    STEP(&w->a, "", "INSERT INTO app.item SELECT 42, 'item ' || i FROM generate_series(1, 1000) i", NULL);
    STEP(&w->a, "", RENAME, NULL);
    STEP(&w->a, "!22012", "SELECT 1 / 0", NULL);
    STEP(&w->a, "!25P02", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    assert_true(places_same(w, before));
    STEP(&w->a, "ok", RENEW, &a);
    STEP(&w->a, "ok", FAIL, &a);
    SEEN(w, "failed|failed|why", "SELECT state, reason_code, reason_text FROM tenure.attempt WHERE id = $1",
        &a);
    claimed(&w->b, 42);
}

static void a_failure_of_the_commit_itself_undoes_the_ending_too(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    publication_started(&w->a, &a);
    STEP(&w->a, "", "INSERT INTO app.item VALUES (4242, 'of no source')", NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "!23503", "COMMIT", NULL);
    assert_true(places_same(w, before));
    STEP(&w->a, "ok", FAIL, &a);
}

static void a_connection_that_breaks_undoes_all(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w), *kill = NULL;

    publication_started(&w->a, &a);
    STEP(&w->a, "", ITEM, NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    kill = mem_format("SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(w->a.connection));
    SEEN(w, "t", kill, NULL);
    assert_true(places_same(w, before));
    STEP(&w->b, "ok", FAIL, &a);
}

static void a_publication_longer_than_the_window_is_refused_at_its_end(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    publication_started(&w->a, &a);
    STEP(&w->a, "", ITEM, NULL);
    clock_pass(w, 181);
    STEP(&w->a, "!TN004", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    assert_true(places_same(w, before));
    REFUSAL(w, &w->a, "!TN004", PUBLICATION_BEGIN, &a);
    STEP(&w->a, "ok", FAIL, &a);
}

/* ---- out of order ---- */

static void an_end_needs_its_own_beginning(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b = claimed(&w->a, 43);

    REFUSAL(w, &w->a, "!TN006", PUBLICATION_END, &a);
    publication_started(&w->a, &a);
    STEP(&w->a, "!TN006", PUBLICATION_END, &b);
    STEP(&w->a, "", "ROLLBACK", NULL);
    REFUSAL(w, &w->a, "!TN006", PUBLICATION_END, &a); /* of a transaction before */
    publication_started(&w->a, &a);
    ended(&w->a, &a);
    REFUSAL(w, &w->a, "!TN006", PUBLICATION_END, &a);
}

static void a_beginning_that_was_undone_is_none(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "", "SAVEPOINT s", NULL);
    STEP(&w->a, "t", PUBLICATION_BEGIN, &a);
    STEP(&w->a, "", "ROLLBACK TO s", NULL);
    STEP(&w->a, "", ITEM, NULL);
    STEP(&w->a, "!TN006", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    assert_true(places_same(w, before));
}

static void an_end_that_was_undone_can_be_said_again(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    publication_started(&w->a, &a);
    STEP(&w->a, "", "SAVEPOINT s", NULL);
    STEP(&w->a, "", ITEM, NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "ROLLBACK TO s", NULL);
    ended(&w->a, &a);
    SEEN(
        w, "passed|0", "SELECT state, (SELECT count(*) FROM app.item) FROM tenure.attempt WHERE id = $1", &a);
}

static void an_ending_is_one_of_three(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    static const char *const NONE[] = {"'published'", "'running'", "NULL"};

    for (size_t i = 0; i < ARRAY_SIZE(NONE); i++) {
        _cleanup_(mem_free) char *sql = mem_format("SELECT tenure.publication_end($1, $2, %s)", NONE[i]);
        publication_started(&w->a, &a);
        STEP(&w->a, "!TN006", sql, &a);
        STEP(&w->a, "", "ROLLBACK", NULL);
    }
    SEEN(w, "running", STATE, &a);
}

static void only_the_claim_of_a_row_is_published(void **state)
{
    struct places *w = *state;
    struct claim a = {.attempt = "01890000-0000-7000-8000-000000000001"};

    STEP(&w->a, "ok",
        "SELECT result FROM tenure.reserve('01890000-0000-7000-8000-000000000001', sha256('a'),"
        " 'command', '{x}', bind_if_clear => true)",
        NULL);
    REFUSAL(w, &w->a, "!TN006", "SELECT tenure.publication_begin($1, sha256('a'))", &a);
}

/* ---- the answer of the COMMIT is lost ---- */

#define END_WITH_NONCE "SELECT tenure.publication_end($1, $2, 'passed', 'nonce')"
#define ASK(nonce)     "SELECT result FROM tenure.settle_ask($1, $2, '" nonce "')"

static void whether_the_commit_landed_can_be_asked(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    publication_started(&w->a, &a);
    STEP(&w->a, "", END_WITH_NONCE, &a);
    start(&w->b, ASK("nonce"), &a);
    assert_waits(w, &w->b); /* the COMMIT may still land */
    STEP(&w->a, "", "COMMIT", NULL);
    FINISH(&w->b, "ok");
    REFUSAL(w, &w->b, "retired", ASK("another"), &a);
    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.settle_ask($1, $2, NULL)", &a);
}

static void a_commit_that_did_not_land_is_tried_anew(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    publication_started(&w->a, &a);
    STEP(&w->a, "", ITEM, NULL);
    STEP(&w->a, "", END_WITH_NONCE, &a);
    start(&w->b, ASK("nonce"), &a);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "ROLLBACK", NULL);
    FINISH(&w->b, "conflict");
    publication_started(&w->b, &a);
    STEP(&w->b, "", ITEM, NULL);
    STEP(&w->b, "", END_WITH_NONCE, &a);
    STEP(&w->b, "", "COMMIT", NULL);
    STEP(&w->a, "ok", ASK("nonce"), &a);
    SEEN(w, "1", "SELECT count(*) FROM app.item", NULL);
}

/* ---- time-outs of the transaction ---- */

#define TIMEOUTS                                                                                             \
    "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')"

static void time_outs_are_lowered_for_this_transaction_only(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    publication_started(&w->a, &a);
    STEP(&w->a, "3min|3min", TIMEOUTS, NULL);
    ended(&w->a, &a);
    STEP(&w->a, "0|0", TIMEOUTS, NULL);
}

static void time_outs_are_never_raised(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    STEP(&w->a, "", "SET idle_in_transaction_session_timeout = '179s'; SET statement_timeout = '1h'", NULL);
    publication_started(&w->a, &a);
    STEP(&w->a, "179s|3min", TIMEOUTS, NULL);
    ended(&w->a, &a);
    STEP(&w->a, "179s|1h", TIMEOUTS, NULL);
}

/* A worker that stands still in the middle does not hold the row for ever. */
static void a_session_that_stands_still_loses_its_locks(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    STEP(&w->a, "", "SET idle_in_transaction_session_timeout = '200ms'", NULL);
    publication_started(&w->a, &a);
    STEP(&w->b, "", "SET statement_timeout = '20s'", NULL);
    STEP(&w->b, "", "DELETE FROM app.source WHERE id = 43", NULL);
    STEP(&w->b, "", "UPDATE app.source SET deleted_at = now() WHERE id = 42", NULL);
    STEP(&w->b, "",
        "UPDATE app.source SET deleted_at = NULL WHERE id = 42; INSERT INTO app.source VALUES (43, 'row 43')",
        NULL);
    assert_true(places_same(w, before));
}

/* ---- asynchronous sessions ---- */

static void a_publication_is_durable_whatever_the_session_says(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    STEP(&w->a, "", "SET synchronous_commit = off", NULL);
    publication_started(&w->a, &a);
    STEP(&w->a, "on", "SHOW synchronous_commit", NULL);
    ended(&w->a, &a);
    STEP(&w->a, "off", "SHOW synchronous_commit", NULL);
}

int test_publications(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_and_the_ending_come_together),
        TEST(a_fence_is_handed_to_the_transaction),
        TEST(a_row_deleted_during_collection_is_not_published),
        TEST(a_row_soft_deleted_during_collection_is_not_published),
        TEST(whoever_deletes_the_row_waits),
        TEST(a_publication_waits_for_the_deleter_and_is_refused),
        TEST(a_failure_after_real_rows_undoes_all_and_keeps_the_claim),
        TEST(a_failure_of_the_commit_itself_undoes_the_ending_too),
        TEST(a_connection_that_breaks_undoes_all),
        TEST(a_publication_longer_than_the_window_is_refused_at_its_end),
        TEST(an_end_needs_its_own_beginning),
        TEST(a_beginning_that_was_undone_is_none),
        TEST(an_end_that_was_undone_can_be_said_again),
        TEST(an_ending_is_one_of_three),
        TEST(only_the_claim_of_a_row_is_published),
        TEST(whether_the_commit_landed_can_be_asked),
        TEST(a_commit_that_did_not_land_is_tried_anew),
        TEST(time_outs_are_lowered_for_this_transaction_only),
        TEST(time_outs_are_never_raised),
        TEST(a_session_that_stands_still_loses_its_locks),
        TEST(a_publication_is_durable_whatever_the_session_says),
    };

    return RUN("publications", tests);
}
