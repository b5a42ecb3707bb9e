/* The gate at its boundaries, by a clock moved by hand. */
#include "tests/unit/supervisor/processes.h"

#include "supervisor/gate.h"

static struct clock_manual manual;

static int set_up(void **state)
{
    (void)state;
    clock_manual_init(&manual, 1000, 0);
    return 0;
}

static void test_deadline_is_exclusive(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, &manual.clock, 2000);
    assert_true(gate_may_run(&gate));
    manual.now_boot_ms = 1999;
    assert_true(gate_may_run(&gate));
    manual.now_boot_ms = 2000;
    assert_false(gate_may_run(&gate));
    manual.now_boot_ms = 2001;
    assert_false(gate_may_run(&gate));
    gate_done(&gate);
}

static void test_closed_beats_the_deadline(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, &manual.clock, 2000);
    gate.closed = true;
    assert_false(gate_may_run(&gate));
    gate_move(&gate, 9000); /* a confirmation permits nothing by itself */
    assert_false(gate_may_run(&gate));
    gate.closed = false;
    assert_true(gate_may_run(&gate));
    gate_done(&gate);
}

static void test_deadline_never_moves_back(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, &manual.clock, 2000);
    gate_move(&gate, 3000);
    assert_int_equal(gate_deadline(&gate), 3000);
    gate_move(&gate, 2500);
    assert_int_equal(gate_deadline(&gate), 3000);
    gate_done(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_deadline_is_exclusive, set_up),
        cmocka_unit_test_setup(test_closed_beats_the_deadline, set_up),
        cmocka_unit_test_setup(test_deadline_never_moves_back, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
