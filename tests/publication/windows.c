/* The window's boundaries. A sign of life that is exactly as old as the window, or as far ahead of the clock,
 * is one; a second beyond is none, and so is a missing one. Tried with every function that looks at it. */
#include <string.h>

#include "tests/publication/sessions.h"

static const struct age {
    int64_t seconds, us; /* how long ago the row was claimed; negative: the clock was set back */
    const char *strip;   /* what is then taken from the record */
    bool live;
} AGES[] = {
    {-181, 0, NULL, false},
    {-180, -1, NULL, false},
    {-180, 0, NULL, true},
    {-179, 0, NULL, true},
    {0, 0, NULL, true},
    {179, 0, NULL, true},
    {180, 0, NULL, true},
    {180, 1, NULL, false},
    {181, 0, NULL, false},
    {0, 0, "acquired_at = NULL", false},
    {0, 0, "acquired_at = NULL, renewed_at = NULL", false},
    {0, 0, "expires_at = NULL", false},
    {0, 0, "acquired_at = 'infinity'", false},
    {0, 0, "acquired_at = '-infinity', renewed_at = '-infinity'", false},
    /* Claimed, and not renewed yet: the claim is the sign of life. */
    {0, 0, "renewed_at = NULL", true},
    {180, 0, "renewed_at = NULL", true},
    {181, 0, "renewed_at = NULL", false},
    {180, 0, "renewed_at = 'infinity'", true},
    {181, 0, "renewed_at = 'infinity'", false},
    /* Whatever it claims to last: a ttl is at most an hour, and the earlier of the two ends counts. */
    {181, 0, "expires_at = expires_at + interval '9 hours'", false},
    {3601, 0, "ttl = '9 hours', expires_at = expires_at + interval '9 hours'", false},
    {3600, 0, "ttl = '9 hours', expires_at = expires_at + interval '9 hours'", true},
    {100, 0, "expires_at = acquired_at + interval '99 s'", false},
};

static struct claim aged(struct places *w, const struct age *age)
{
    struct claim claim;

    admin(w, "TRUNCATE tenure.attempt, tenure.subject, tenure.leftover, tenure.evidence, tenure.proof, "
             "tenure.history,"
             " app.item");
    claim = claimed(&w->a, 42);
    clock_pass(w, age->seconds);
    clock_pass_us(w, age->us);
    if (age->strip) {
        _cleanup_(mem_free) char *sql = mem_format("UPDATE tenure.attempt SET %s", age->strip);
        admin(w, sql);
    }
    return claim;
}

/* `sql` must answer `live` while the lease lives, and else `lapsed`; then, if `refused`, it changes nothing.
 */
static void at_every_age(struct places *w, struct session *session, const char *sql, const char *live,
    bool live_is_refused, const char *lapsed, bool lapsed_is_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(AGES); i++) {
        const struct age *age = &AGES[i];
        struct claim claim = aged(w, age);
        const char *expected = age->live ? live : lapsed;
        _cleanup_(mem_free) char *before = places_dump(w), *got = outcome(session, sql, &claim);
        if (age->live ? live_is_refused : lapsed_is_refused)
            assert_true(places_same(w, before));
        if (strcmp(got, expected) != 0)
            print_error("%zu: age %ld s and %ld us, %s: %s: %s instead of %s\n", i, (long)age->seconds,
                (long)age->us, age->strip ? age->strip : "complete", sql, got, expected);
        assert_string_equal(got, expected);
    }
}

static void another_claims_only_what_has_lapsed(void **state)
{
    struct places *w = *state;

    at_every_age(w, &w->b, CLAIM(42), "held", true, "ok", false);
    SEEN(w, "1", "SELECT count(*) FROM tenure.attempt WHERE state = 'running'", NULL);
}

static void only_what_lives_is_renewed(void **state)
{
    struct places *w = *state;

    at_every_age(w, &w->a, RENEW, "ok", false, "lapsed", true);
    at_every_age(w, &w->a, RENEW_MANY, "ok", false, "lapsed", true);
}

static void only_what_has_lapsed_is_reclaimed(void **state)
{
    struct places *w = *state;

    at_every_age(w, &w->b, RECLAIM, "conflict", true, "ok", false);
}

static void only_what_lives_is_published(void **state)
{
    struct places *w = *state;

    at_every_age(w, &w->a, PUBLICATION_BEGIN, "t", false, "!TN004", true);
}

/* Giving up needs no lease, only that nobody else has ended the claim: a diagnostic is never lost to the
 * clock. */
static void whoever_is_still_the_owner_may_end_it(void **state)
{
    struct places *w = *state;

    at_every_age(w, &w->a, RELEASE, "ok", false, "ok", false);
    at_every_age(w, &w->a, FAIL, "ok", false, "ok", false);
}

static void a_publication_ends_within_the_window(void **state)
{
    struct places *w = *state;
    static const struct {
        int64_t us;
        const char *expected;
    } LASTING[] = {{0, ""}, {180000000, ""}, {180000001, "!TN004"}, {181000000, "!TN004"}};

    for (size_t i = 0; i < ARRAY_SIZE(LASTING); i++) {
        struct claim claim = aged(w, &(struct age){.seconds = 170});
        publication_started(&w->a, &claim);
        clock_pass_us(w, LASTING[i].us);
        STEP(&w->a, LASTING[i].expected, PUBLICATION_END, &claim);
        STEP(&w->a, "", "COMMIT", NULL);
        SEEN(w, LASTING[i].expected[0] ? "running" : "passed", STATE, &claim);
    }
}

/* A renewal counts from when it is written, and lasts for the claim's own ttl. */
static void a_renewal_opens_a_new_window(void **state)
{
    struct places *w = *state;
    struct claim claim = claimed(&w->a, 42);

    clock_pass(w, 180);
    STEP(&w->a, "ok", RENEW, &claim);
    clock_pass(w, 180);
    REFUSAL(w, &w->b, "conflict", RECLAIM, &claim);
    STEP(&w->a, "ok", RENEW_MANY, &claim);
    clock_pass(w, 180);
    REFUSAL(w, &w->b, "held", CLAIM(42), NULL);
    clock_pass(w, 1);
    REFUSAL(w, &w->a, "lapsed", RENEW, &claim);
    STEP(&w->b, "ok", RECLAIM, &claim);
}

int test_windows(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_claims_only_what_has_lapsed),
        TEST(only_what_lives_is_renewed),
        TEST(only_what_has_lapsed_is_reclaimed),
        TEST(only_what_lives_is_published),
        TEST(whoever_is_still_the_owner_may_end_it),
        TEST(a_publication_ends_within_the_window),
        TEST(a_renewal_opens_a_new_window),
    };

    return RUN("windows", tests);
}
