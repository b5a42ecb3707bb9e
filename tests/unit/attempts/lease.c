#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "attempts/lease.h"

#define TTL INT64_C(60000)

static struct store_time at(int64_t ms)
{
    struct store_time now = {.ms = ms, .epoch = "boot-1"};

    if (__builtin_add_overflow(INT64_C(1700000000000), ms, &now.wall_ms))
        now.wall_ms = ms;
    return now;
}

static struct lease begun(int64_t ms)
{
    struct lease lease = {0};
    struct store_time now = at(ms);

    lease_begin(&lease, TTL, &now);
    return lease;
}

static bool lapsed_at(const struct lease *lease, int64_t ms)
{
    struct store_time now = at(ms);

    return lease_lapsed(lease, &now);
}

static int64_t remaining_at(const struct lease *lease, int64_t ms)
{
    struct store_time now = at(ms);

    return lease_remaining_ms(lease, &now);
}

static void alive_at_its_end_and_lapsed_a_millisecond_later(void **state _unused_)
{
    struct lease lease = begun(1000);

    assert_int_equal(lease_expiry(&lease), 1000 + TTL);
    assert_false(lapsed_at(&lease, 1000));
    assert_false(lapsed_at(&lease, 1000 + TTL - 1));
    assert_false(lapsed_at(&lease, 1000 + TTL));
    assert_true(lapsed_at(&lease, 1000 + TTL + 1));
}

static void the_moment_of_the_lapse_stands_still_when_it_is_past(void **state _unused_)
{
    struct lease lease = begun(1000);
    struct store_time before = at(1000), after = at(1000 + 3 * TTL);

    before.wall_ms = 500000;
    after.wall_ms = 500000 + 3 * TTL;
    assert_int_equal(lease_lapses_wall_ms(&lease, &before), 500000 + TTL);
    assert_int_equal(lease_lapses_wall_ms(&lease, &after), 500000 + TTL);
}

static void remaining_is_positive_exactly_while_alive(void **state _unused_)
{
    struct lease lease = begun(1000);

    assert_int_equal(remaining_at(&lease, 1000), TTL + 1);
    assert_int_equal(remaining_at(&lease, 1000 + TTL), 1);
    assert_int_equal(remaining_at(&lease, 1000 + TTL + 1), 0);
    assert_true(lapsed_at(&lease, 1000 + remaining_at(&lease, 1000)));
}

static void a_renewal_counts_from_itself(void **state _unused_)
{
    struct lease lease = begun(1000);
    struct store_time now = at(21000);

    lease_renew(&lease, &now);
    assert_int_equal(lease.acquired_ms, 1000);
    assert_int_equal(lease.renewed_ms, 21000);
    assert_int_equal(lease_expiry(&lease), 21000 + TTL);
    assert_false(lapsed_at(&lease, 21000 + TTL));
    assert_true(lapsed_at(&lease, 21000 + TTL + 1));
}

static void an_absent_renewal_counts_as_the_acquisition(void **state _unused_)
{
    struct lease lease = begun(1000);

    lease.renewed_ms = LEASE_TIME_NONE;
    assert_int_equal(lease_expiry(&lease), 1000 + TTL);
    assert_false(lapsed_at(&lease, 1000 + TTL));
    assert_true(lapsed_at(&lease, 1000 + TTL + 1));
}

static void the_earlier_of_claim_and_ttl_counts(void **state _unused_)
{
    struct lease lease = begun(1000);

    lease.expires_ms = 1000 + 9 * 3600 * 1000;
    assert_int_equal(lease_expiry(&lease), 1000 + TTL);
    lease.expires_ms = 1500;
    assert_int_equal(lease_expiry(&lease), 1500);
    assert_false(lapsed_at(&lease, 1500));
    assert_true(lapsed_at(&lease, 1501));
}

static void the_ttl_of_a_record_is_clamped(void **state _unused_)
{
    static const struct {
        int64_t recorded_ms, worth_ms;
    } CASES[] = {
        {0, 60000},
        {1, 2000},
        {-5, 2000},
        {INT64_MIN, 2000},
        {1999, 2000},
        {2000, 2000},
        {2001, 2001},
        {3600000, 3600000},
        {3600001, 3600000},
        {INT64_MAX, 3600000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct lease lease = begun(1000);
        lease.ttl_ms = CASES[i].recorded_ms;
        lease.expires_ms = INT64_MAX;
        assert_int_equal(lease_expiry(&lease), 1000 + CASES[i].worth_ms);
        assert_false(lapsed_at(&lease, 1000 + CASES[i].worth_ms));
        assert_true(lapsed_at(&lease, 1000 + CASES[i].worth_ms + 1));
    }
}

static void a_sign_from_the_future_is_believed_for_one_ttl_only(void **state _unused_)
{
    struct lease lease = begun(100000);

    assert_false(lapsed_at(&lease, 100000 - TTL));
    assert_true(lapsed_at(&lease, 100000 - TTL - 1));
    assert_int_equal(remaining_at(&lease, 100000 - TTL - 1), 0);
    assert_int_equal(remaining_at(&lease, 100000 - TTL), 2 * TTL + 1);
    lease = begun(1000);
    lease.renewed_ms = INT64_MAX;
    lease.expires_ms = INT64_MAX;
    assert_true(lapsed_at(&lease, 2000));
}

static void what_cannot_be_read_has_lapsed(void **state _unused_)
{
    struct lease acquired = begun(1000), expires = begun(1000), all = begun(1000);

    acquired.acquired_ms = LEASE_TIME_NONE;
    expires.expires_ms = LEASE_TIME_NONE;
    all.acquired_ms = all.renewed_ms = all.expires_ms = LEASE_TIME_NONE;
    assert_true(lapsed_at(&acquired, 1000));
    assert_true(lapsed_at(&expires, 1000));
    assert_true(lapsed_at(&all, 1000));
    assert_true(lease_expiry(&all) == LEASE_TIME_NONE);
    assert_int_equal(remaining_at(&all, 1000), 0);
}

static void another_epoch_has_lapsed(void **state _unused_)
{
    struct lease lease = begun(1000);
    struct store_time now = at(1000);

    assert_true(lease_same_clock(&lease, &now));
    strcpy(now.epoch, "boot-2");
    assert_false(lease_same_clock(&lease, &now));
    assert_true(lease_lapsed(&lease, &now));
    strcpy(lease.epoch, "");
    assert_true(lapsed_at(&lease, 1000));
}

static void a_first_version_record_is_compared_by_wall_clock(void **state _unused_)
{
    int64_t wall_ms = at(5000).wall_ms;
    struct lease lease = {
        .by_wall_clock = true,
        .acquired_ms = wall_ms,
        .renewed_ms = LEASE_TIME_NONE,
        .expires_ms = wall_ms + 9 * 3600 * 1000,
    };
    struct store_time now = at(15000);

    assert_false(lapsed_at(&lease, 5000));
    assert_false(lapsed_at(&lease, 5000 + TTL));
    assert_true(lapsed_at(&lease, 5000 + TTL + 1));
    strcpy(now.epoch, "boot-2");
    assert_false(lease_lapsed(&lease, &now));
    lease_renew(&lease, &now);
    assert_int_equal(lease.renewed_ms, now.wall_ms);
    assert_int_equal(lease.expires_ms, now.wall_ms + TTL);
}

static void sums_do_not_overflow(void **state _unused_)
{
    struct lease lease = begun(1000);
    struct store_time late = at(0);

    lease.acquired_ms = lease.renewed_ms = lease.expires_ms = INT64_MAX;
    assert_true(lease_expiry(&lease) == INT64_MAX);
    assert_true(lapsed_at(&lease, 1000));
    lease.acquired_ms = lease.renewed_ms = lease.expires_ms = INT64_MIN + 1;
    assert_true(lapsed_at(&lease, INT64_MAX));
    late.ms = INT64_MAX;
    lease_begin(&lease, TTL, &late);
    assert_true(lease.expires_ms == INT64_MAX);
}

static void terms_are_checked(void **state _unused_)
{
    static const struct {
        int64_t ttl_ms, heartbeat_ms;
        enum result result;
        int64_t heartbeat_after_ms;
    } CASES[] = {
        {60000, 0, RESULT_OK, 20000},
        {3600000, 0, RESULT_OK, 20000},
        {2000, 0, RESULT_OK, 666},
        {2000, 666, RESULT_OK, 666},
        {2000, 667, RESULT_INVALID, 667},
        {60000, 5, RESULT_OK, 5},
        {60000, -1, RESULT_INVALID, -1},
        {60000, 20001, RESULT_INVALID, 20001},
        {3600000, 1200000, RESULT_OK, 1200000},
        {1999, 0, RESULT_INVALID, 0},
        {3600001, 0, RESULT_INVALID, 0},
        {0, 0, RESULT_INVALID, 0},
        {-1, 0, RESULT_INVALID, 0},
        {INT64_MIN, 0, RESULT_INVALID, 0},
        {INT64_MAX, INT64_MAX, RESULT_INVALID, INT64_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct lease_terms terms = {.ttl_ms = CASES[i].ttl_ms, .heartbeat_ms = CASES[i].heartbeat_ms};
        assert_int_equal(lease_terms_check(&terms, NULL), CASES[i].result);
        assert_true(terms.heartbeat_ms == CASES[i].heartbeat_after_ms);
    }
}

static void the_owner_stops_a_margin_early(void **state _unused_)
{
    assert_int_equal(lease_margin_ms(60000), 10000);
    assert_int_equal(lease_margin_ms(3000), 500);
    assert_int_equal(lease_margin_ms(2000), 500);
    assert_int_equal(lease_own_deadline_ms(7000, 60000), 57000);
    assert_int_equal(lease_own_deadline_ms(7000, 2000), 8500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alive_at_its_end_and_lapsed_a_millisecond_later),
        cmocka_unit_test(remaining_is_positive_exactly_while_alive),
        cmocka_unit_test(the_moment_of_the_lapse_stands_still_when_it_is_past),
        cmocka_unit_test(a_renewal_counts_from_itself),
        cmocka_unit_test(an_absent_renewal_counts_as_the_acquisition),
        cmocka_unit_test(the_earlier_of_claim_and_ttl_counts),
        cmocka_unit_test(the_ttl_of_a_record_is_clamped),
        cmocka_unit_test(a_sign_from_the_future_is_believed_for_one_ttl_only),
        cmocka_unit_test(what_cannot_be_read_has_lapsed),
        cmocka_unit_test(another_epoch_has_lapsed),
        cmocka_unit_test(a_first_version_record_is_compared_by_wall_clock),
        cmocka_unit_test(sums_do_not_overflow),
        cmocka_unit_test(terms_are_checked),
        cmocka_unit_test(the_owner_stops_a_margin_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
