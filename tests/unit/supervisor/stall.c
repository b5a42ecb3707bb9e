/* Standing still, by a clock moved by hand: what is counted, how often, and by whom. */
#include "tests/unit/supervisor/processes.h"

#include <pthread.h>
#include <sched.h>

#include "supervisor/stall.h"
#include "tests/unit/supervisor/fake_containment.h"

#define START  INT64_C(1000)
#define MARGIN INT64_C(500)

struct silence {
    int64_t lasts_ms, counted_ms;
};

/* The bound itself is no gap: a guard that is a little late must not tell one. */
static void test_more_than_two_margins_is_a_gap(void **state)
{
    (void)state;
    static const struct silence SILENCES[] = {
        {0, 0}, {1, 0}, {MARGIN, 0}, {2 * MARGIN, 0}, {2 * MARGIN + 1, 2 * MARGIN + 1}, {3600000, 3600000}};
    for (size_t i = 0; i < ARRAY_SIZE(SILENCES); i++) {
        struct moved_clock moved;
        struct stall stall;
        moved_clock_init(&moved, START);
        stall_init(&stall, &moved.clock, MARGIN);
        moved.now_boot_ms = START + SILENCES[i].lasts_ms;
        assert_int_equal(stall_look(&stall), SILENCES[i].counted_ms > 0);
        assert_false(stall_look(&stall));
        assert_int_equal(stall_take(&stall), SILENCES[i].counted_ms);
        assert_int_equal(stall_take(&stall), 0);
    }
}

static void test_signs_of_life_in_time_are_no_gap_however_many(void **state)
{
    (void)state;
    struct moved_clock moved;
    struct stall stall;
    moved_clock_init(&moved, START);
    stall_init(&stall, &moved.clock, MARGIN);
    for (int i = 0; i < 1000; i++) {
        moved.now_boot_ms += stall_tick_ms(MARGIN);
        assert_false(stall_look(&stall));
    }
    assert_int_equal(stall_take(&stall), 0);
    assert_true(stall_tick_ms(1) > 0);
}

static void test_gaps_that_nobody_took_add_up(void **state)
{
    (void)state;
    struct moved_clock moved;
    struct stall stall;
    moved_clock_init(&moved, START);
    stall_init(&stall, &moved.clock, MARGIN);
    for (int i = 0; i < 2; i++) {
        moved.now_boot_ms += 5000;
        assert_true(stall_look(&stall));
    }
    assert_int_equal(stall_take(&stall), 10000);
}

struct other {
    struct stall *stall;
    atomic_bool begun, over;
};

static void *look_all_the_time(void *argument)
{
    struct other *other = argument;
    other->begun = true;
    while (!other->over)
        (void)stall_look(other->stall);
    return NULL;
}

/* Whichever of two that wake at once is the first: who looks and takes has it, whole and once. */
static void test_no_gap_is_late(void **state)
{
    (void)state;
    struct moved_clock moved;
    struct stall stall;
    moved_clock_init(&moved, START);
    stall_init(&stall, &moved.clock, MARGIN);
    struct other other = {.stall = &stall};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_all_the_time, &other), 0);
    while (!other.begun)
        sched_yield();
    int late = 0;
    for (int i = 0; i < 200000; i++) {
        moved.now_boot_ms += 5000;
        (void)stall_look(&stall);
        late += stall_take(&stall) != 5000;
    }
    other.over = true;
    pthread_join(thread, NULL);
    assert_int_equal(late, 0);
    assert_int_equal(stall_take(&stall), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_two_margins_is_a_gap),
        cmocka_unit_test(test_signs_of_life_in_time_are_no_gap_however_many),
        cmocka_unit_test(test_gaps_that_nobody_took_add_up),
        cmocka_unit_test(test_no_gap_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
