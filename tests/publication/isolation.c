/* Callers in REPEATABLE READ and SERIALIZABLE, whose snapshot may be older than what happened: they are
 * right, or get 40001 and change nothing. */
#include "tests/publication/sessions.h"

static const char *const LEVELS[] = {"REPEATABLE READ", "SERIALIZABLE"};

/* Begins a transaction whose snapshot is of now. */
static void snapshot_taken(struct session *session, const char *level)
{
    _cleanup_(mem_free) char *begin = mem_format("BEGIN ISOLATION LEVEL %s", level);

    STEP(session, "", begin, NULL);
    STEP(session, "100", "SELECT count(*) FROM app.source", NULL);
}

static void of_each_level(struct places *w, void (*test)(struct places *w, const char *level, int row))
{
    for (size_t i = 0; i < ARRAY_SIZE(LEVELS); i++)
        test(w, LEVELS[i], 42 + (int)i);
}

static void rolled_back(struct places *w, struct session *session, const char *before)
{
    STEP(session, "", "COMMIT", NULL); /* of a transaction that failed: a rollback */
    assert_true(places_same(w, before));
}

static void publish(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);

    snapshot_taken(&w->a, level);
    STEP(&w->a, "t", PUBLICATION_BEGIN, &a);
    STEP(&w->a, "", "INSERT INTO app.item VALUES (1, 'collected')", NULL);
    STEP(&w->a, "", PUBLICATION_END, &a);
    STEP(&w->a, "", "COMMIT", NULL);
    SEEN(w, "passed", STATE, &a);
}

static void a_publication_with_a_snapshot_passes(void **state)
{
    of_each_level(*state, publish);
    SEEN((struct places *)*state, "2", "SELECT count(*) FROM app.item", NULL);
}

static void begin_after_reclaim(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 170);
    snapshot_taken(&w->a, level);
    clock_pass(w, 11);
    STEP(&w->b, "ok", RECLAIM, &a);
    clock_pass(w, -11);
    before = places_dump(w);
    STEP(&w->a, "!40001", PUBLICATION_BEGIN, &a);
    rolled_back(w, &w->a, before);
}

static void a_reclaim_after_the_snapshot_is_seen(void **state)
{
    of_each_level(*state, begin_after_reclaim);
}

static void begin_after_deletion(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *before = NULL,
                             *sql = mem_format("UPDATE app.source SET deleted_at = now() WHERE id = %d", row);

    snapshot_taken(&w->a, level);
    STEP(&w->b, "", sql, NULL);
    before = places_dump(w);
    STEP(&w->a, "!40001", PUBLICATION_BEGIN, &a);
    rolled_back(w, &w->a, before);
    STEP(&w->a, "!TN005", PUBLICATION_BEGIN, &a);
}

static void a_deletion_after_the_snapshot_is_seen(void **state)
{
    of_each_level(*state, begin_after_deletion);
}

static void begin_after_renewal(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *before = NULL;

    snapshot_taken(&w->a, level);
    STEP(&w->b, "ok", RENEW, &a);
    before = places_dump(w);
    STEP(&w->a, "!40001", PUBLICATION_BEGIN, &a);
    rolled_back(w, &w->a, before);
    publish(w, level, row + 10);
}

static void a_renewal_after_the_snapshot_is_repeated_whole(void **state)
{
    of_each_level(*state, begin_after_renewal);
}

/* The window is of now, however old the snapshot is. */
static void begin_after_lapse(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *before = places_dump(w);

    snapshot_taken(&w->a, level);
    clock_pass(w, 181);
    STEP(&w->a, "!TN004", PUBLICATION_BEGIN, &a);
    rolled_back(w, &w->a, before);
}

static void the_clock_is_not_part_of_the_snapshot(void **state)
{
    of_each_level(*state, begin_after_lapse);
}

static void claim_after_claim(struct places *w, const char *level, int row)
{
    struct claim a;
    _cleanup_(mem_free) char *before = NULL,
                             *sql = mem_format(
                                 "SELECT result FROM tenure.claim_row('app.source', 'id', '%d')", row);

    snapshot_taken(&w->b, level);
    a = claimed(&w->a, row);
    before = places_dump(w);
    STEP(&w->b, "!40001", sql, NULL);
    rolled_back(w, &w->b, before);
    STEP(&w->b, "held", sql, NULL);
    STEP(&w->a, "ok", RELEASE, &a);
}

static void a_claim_after_the_snapshot_excludes(void **state)
{
    of_each_level(*state, claim_after_claim);
}

static void claim_after_release(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT result FROM tenure.claim_row('app.source', 'id', '%d')", row);

    snapshot_taken(&w->b, level);
    STEP(&w->a, "ok", RELEASE, &a);
    STEP(&w->b, "ok", sql, NULL);
    STEP(&w->b, "", "COMMIT", NULL);
    SEEN(w, "1", "SELECT count(*) FROM tenure.attempt WHERE state = 'running'", NULL);
    admin(w, "UPDATE tenure.attempt SET state = 'cancelled'; DELETE FROM tenure.subject");
}

static void a_release_after_the_snapshot_frees(void **state)
{
    of_each_level(*state, claim_after_release);
}

static void two_claims(struct places *w, const char *level, int row)
{
    _cleanup_(mem_free) char *sql =
        mem_format("SELECT result FROM tenure.claim_row('app.source', 'id', '%d')", row);

    snapshot_taken(&w->a, level);
    snapshot_taken(&w->b, level);
    STEP(&w->a, "ok", sql, NULL);
    start(&w->b, sql, NULL);
    assert_waits(w, &w->b);
    STEP(&w->a, "", "COMMIT", NULL);
    FINISH(&w->b, "!40001");
    STEP(&w->b, "", "ROLLBACK", NULL);
    STEP(&w->b, "held", sql, NULL);
}

static void of_two_claims_with_snapshots_one_wins(void **state)
{
    of_each_level(*state, two_claims);
    SEEN((struct places *)*state, "2", "SELECT count(*) FROM tenure.attempt", NULL);
}

static void reclaim_after_renewal(struct places *w, const char *level, int row)
{
    struct claim a = claimed(&w->a, row);
    _cleanup_(mem_free) char *before = NULL;

    clock_pass(w, 180);
    snapshot_taken(&w->b, level);
    STEP(&w->a, "ok", RENEW, &a);
    clock_pass(w, 1);
    before = places_dump(w);
    STEP(&w->b, "!40001", RECLAIM, &a);
    rolled_back(w, &w->b, before);
    STEP(&w->b, "conflict", RECLAIM, &a);
}

static void a_renewal_after_the_snapshot_saves_the_claim(void **state)
{
    of_each_level(*state, reclaim_after_renewal);
}

int test_isolation(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_publication_with_a_snapshot_passes),
        TEST(a_reclaim_after_the_snapshot_is_seen),
        TEST(a_deletion_after_the_snapshot_is_seen),
        TEST(a_renewal_after_the_snapshot_is_repeated_whole),
        TEST(the_clock_is_not_part_of_the_snapshot),
        TEST(a_claim_after_the_snapshot_excludes),
        TEST(a_release_after_the_snapshot_frees),
        TEST(of_two_claims_with_snapshots_one_wins),
        TEST(a_renewal_after_the_snapshot_saves_the_claim),
    };

    return RUN("isolation", tests);
}
