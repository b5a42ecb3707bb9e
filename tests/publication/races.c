/* Owner against successor: every order of renewal, reclaim and publication, with the second waiting for the
 * first's row lock; and what a loser may still do, which is nothing. */
#include <string.h>

#include "tests/publication/sessions.h"

/* ---- renew against reclaim ---- */

static void a_renewal_under_way_is_waited_for_and_wins(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 179);
    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "ok", RENEW, &a);
    clock_pass(w, 2);
    start(&w->b, RECLAIM, &a);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "COMMIT", NULL);
    before = places_dump(w);
    FINISH(&w->b, "conflict");
    assert_true(places_same(w, before));
    SEEN(w, "running", STATE, &a);
}

static void a_renewal_that_is_undone_does_not_count(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    clock_pass(w, 179);
    STEP(&w->a, "", "BEGIN", NULL);
    STEP(&w->a, "ok", RENEW, &a);
    clock_pass(w, 2);
    start(&w->b, RECLAIM, &a);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "ROLLBACK", NULL);
    FINISH(&w->b, "ok");
    SEEN(w, "cancelled", STATE, &a);
}

/* A heartbeat does not wait: while it is not known who wins, it says nothing of a loss. */
static void a_reclaim_under_way_leaves_a_renewal_unconfirmed(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    clock_pass(w, 181);
    STEP(&w->b, "", "BEGIN", NULL);
    STEP(&w->b, "ok", RECLAIM, &a);
    REFUSAL(w, &w->a, "busy", RENEW, &a);
    REFUSAL(w, &w->a, "busy", RENEW_MANY, &a);
    STEP(&w->b, "", "COMMIT", NULL);
    REFUSAL(w, &w->a, "retired", RENEW, &a);
    REFUSAL(w, &w->a, "retired", RENEW_MANY, &a);
}

static void a_reclaim_that_is_undone_revives_nothing(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 181);
    before = places_dump(w);
    STEP(&w->b, "", "BEGIN", NULL);
    STEP(&w->b, "ok", RECLAIM, &a);
    start(&w->a, PUBLICATION_BEGIN, &a);
    assert_waits(w, &w->a);
    STEP(&w->b, "", "ROLLBACK", NULL);
    FINISH(&w->a, "!TN004");
    REFUSAL(w, &w->a, "lapsed", RENEW, &a);
    assert_true(places_same(w, before));
}

/* ---- the clock is read after the lock ---- */

static void row_locked(struct places *w)
{
    admin(w, "BEGIN; SELECT FROM tenure.attempt FOR UPDATE");
}

static void a_lease_that_lapses_during_the_wait_has_lapsed(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 179);
    before = places_dump(w);
    row_locked(w);
    start(&w->a, PUBLICATION_BEGIN, &a);
    assert_waits(w, &w->a);
    clock_pass(w, 2);
    admin(w, "COMMIT");
    FINISH(&w->a, "!TN004");
    assert_true(places_same(w, before));
}

static void a_locked_row_leaves_a_renewal_unconfirmed(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = places_dump(w);

    row_locked(w);
    STEP(&w->a, "busy", RENEW, &a);
    STEP(&w->a, "busy", RENEW_MANY, &a);
    admin(w, "COMMIT");
    assert_true(places_same(w, before));
    STEP(&w->a, "ok", RENEW_MANY, &a);
}

/* Set back during the wait: what had lapsed lives when the lock is given. */
static void a_reclaim_reads_the_clock_after_its_wait(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 181);
    before = places_dump(w);
    row_locked(w);
    start(&w->b, RECLAIM, &a);
    assert_waits(w, &w->b);
    clock_pass(w, -1);
    admin(w, "COMMIT");
    FINISH(&w->b, "conflict");
    assert_true(places_same(w, before));
}

/* ---- publish against reclaim ---- */

static void published_and_late(struct places *w, const struct claim *a)
{
    clock_pass(w, 179);
    publication_started(&w->a, a);
    STEP(&w->a, "", "INSERT INTO app.item VALUES (42, 'collected')", NULL);
    clock_pass(w, 100);
}

static void a_reclaim_waits_for_the_publication_and_finds_it_ended(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    published_and_late(w, &a);
    start(&w->b, RECLAIM, &a);
    assert_waits(w, &w->b);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    before = places_dump(w);
    FINISH(&w->b, "retired");
    assert_true(places_same(w, before));
    SEEN(
        w, "passed|1", "SELECT state, (SELECT count(*) FROM app.item) FROM tenure.attempt WHERE id = $1", &a);
}

static void a_reclaim_gives_up_its_wait_in_time(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    published_and_late(w, &a);
    lock_timeouts(w, "100ms");
    session_open(w, &w->b);
    REFUSAL(w, &w->b, "!55P03", RECLAIM, &a);
    REFUSAL(w, &w->b, "!55P03", CLAIM(42), NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "passed", STATE, &a);
}

/* The attempt is locked meanwhile: a wait without an end would hold it beyond its lease. */
static void a_publication_gives_up_its_wait_for_the_row_in_time(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    lock_timeouts(w, "100ms");
    session_open(w, &w->a);
    admin(w, "BEGIN; SELECT FROM app.source WHERE id = 42 FOR UPDATE");
    STEP(&w->a, "", "SET statement_timeout = '20 s'", NULL); /* of the test, should nothing else end it */
    REFUSAL(w, &w->a, "!55P03", PUBLICATION_BEGIN, &a);
    admin(w, "COMMIT");
    STEP(&w->a, "t", PUBLICATION_BEGIN, &a);
}

static void a_publication_undone_leaves_what_can_be_reclaimed(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    published_and_late(w, &a);
    start(&w->b, RECLAIM, &a);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "ROLLBACK", NULL);
    FINISH(&w->b, "ok");
    REFUSAL(w, &w->a, "!TN003", PUBLICATION_BEGIN, &a);
    SEEN(w, "0", "SELECT count(*) FROM app.item", NULL);
}

static void a_publication_waits_for_the_reclaim_and_is_refused(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 181);
    STEP(&w->b, "", "BEGIN", NULL);
    STEP(&w->b, "ok", RECLAIM, &a);
    STEP(&w->a, "", "BEGIN", NULL);
    start(&w->a, PUBLICATION_BEGIN, &a);
    assert_waits(w, &w->a);
    STEP(&w->b, "", "COMMIT", NULL);
    before = places_dump(w);
    FINISH(&w->a, "!TN003");
    STEP(&w->a, "", "COMMIT", NULL);
    assert_true(places_same(w, before));
}

/* The claim that waited for a publication's end takes the row next, and never the publication's place. */
static void a_claim_that_waited_for_a_publication_comes_after_it(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    published_and_late(w, &a);
    start(&w->b, CLAIM(42), NULL);
    assert_waits(w, &w->b);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    FINISH(&w->b, "ok");
    SEEN(w, "passed\nrunning", "SELECT state FROM tenure.attempt ORDER BY fence", NULL);
}

/* A living claim needs no look at what its owner is doing: no wait for its lock. */
static void a_living_publication_is_held_without_a_wait(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    publication_started(&w->a, &a);
    REFUSAL(w, &w->b, "held", CLAIM(42), NULL);
    REFUSAL(w, &w->b, "conflict", RECLAIM, &a);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
}

/* ---- losers ---- */

static const char *const LOSERS[][2] = {
    {"SELECT result FROM tenure.evidence_put($1, $2, 'm', 'p', 'k', 'passed', true, true)", "retired"},
    {RENEW, "retired"},
    {RENEW_MANY, "retired"},
    {PUBLICATION_BEGIN, "!TN003"},
    {PUBLICATION_END, "!TN006"},
    {FAIL, "retired"},
    {RELEASE, "retired"},
    {RECLAIM, "retired"},
    {"SELECT result FROM tenure.settle($1, $2, 'passed', 'nonce')", "retired"},
    {"SELECT result FROM tenure.settle_ask($1, $2, 'nonce')", "retired"},
    {"SELECT result FROM tenure.bind($1, $2)", "retired"},
};

static void all_refused(struct places *w, struct session *session, const struct claim *loser)
{
    for (size_t i = 0; i < ARRAY_SIZE(LOSERS); i++)
        REFUSAL(w, session, LOSERS[i][1], LOSERS[i][0], loser);
}

static void a_loser_changes_nothing(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b;

    clock_pass(w, 181);
    b = claimed(&w->b, 42);
    all_refused(w, &w->a, &a);
    SEEN(w, "running", STATE, &b);
    STEP(&w->b, "ok", RENEW, &b);
}

static void a_successor_of_the_same_second_is_another(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), b;

    STEP(&w->a, "ok", RELEASE, &a);
    b = claimed(&w->b, 42);
    assert_true(a.fence < b.fence);
    SEEN(w, "1", "SELECT count(DISTINCT acquired_at) FROM tenure.attempt", NULL);
    all_refused(w, &w->a, &a);
    publication_started(&w->b, &b);
    STEP(&w->b, "", PUBLICATION_END, &b);
    STEP(&w->b, "", "COMMIT", NULL);
    all_refused(w, &w->a, &a);
    all_refused(w, &w->b, &b);
}

/* The successor's attempt with the loser's token, with none, and with nearly the right one. */
static void another_token_is_no_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42), forged, none;

    clock_pass(w, 181);
    forged = claimed(&w->b, 42);
    memcpy(forged.token, a.token, sizeof a.token);
    none = forged;
    memcpy(none.token, "\\x", sizeof "\\x");
    for (size_t i = 0; i < ARRAY_SIZE(LOSERS); i++) {
        const char *expected = strcmp(LOSERS[i][0], RECLAIM) == 0 ? "conflict" : LOSERS[i][1];
        REFUSAL(w, &w->a, expected, LOSERS[i][0], &forged);
        REFUSAL(w, &w->a, expected, LOSERS[i][0], &none);
    }
}

static void no_token_is_no_token(void **state)
{
    struct places *w = *state;
    struct claim a = claimed(&w->a, 42);

    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.renew($1, NULL)", &a);
    REFUSAL(w, &w->b, "retired",
        "SELECT result FROM tenure.renew(ARRAY[$1], ARRAY[NULL]::bytea[], NULL, NULL, NULL)", &a);
    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.renew(ARRAY[$1], NULL, NULL, NULL, NULL)", &a);
    REFUSAL(w, &w->b, "!TN003", "SELECT tenure.publication_begin($1)", &a);
    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.fail($1, NULL, 'why')", &a);
    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.settle($1, NULL, 'failed', 'nonce')", &a);
    REFUSAL(w, &w->b, "retired", "SELECT result FROM tenure.settle_ask($1, NULL, 'nonce')", &a);
}

int test_races(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_renewal_under_way_is_waited_for_and_wins),
        TEST(a_renewal_that_is_undone_does_not_count),
        TEST(a_reclaim_under_way_leaves_a_renewal_unconfirmed),
        TEST(a_reclaim_that_is_undone_revives_nothing),
        TEST(a_lease_that_lapses_during_the_wait_has_lapsed),
        TEST(a_locked_row_leaves_a_renewal_unconfirmed),
        TEST(a_reclaim_reads_the_clock_after_its_wait),
        TEST(a_reclaim_waits_for_the_publication_and_finds_it_ended),
        TEST(a_reclaim_gives_up_its_wait_in_time),
        TEST(a_publication_gives_up_its_wait_for_the_row_in_time),
        TEST(a_publication_undone_leaves_what_can_be_reclaimed),
        TEST(a_publication_waits_for_the_reclaim_and_is_refused),
        TEST(a_claim_that_waited_for_a_publication_comes_after_it),
        TEST(a_living_publication_is_held_without_a_wait),
        TEST(a_loser_changes_nothing),
        TEST(a_successor_of_the_same_second_is_another),
        TEST(another_token_is_no_token),
        TEST(no_token_is_no_token),
    };

    return RUN("races", tests);
}
