/*
 * The guard: its judgement by a clock moved by hand, its thread with a containment that counts.
 */
#include "tests/unit/supervisor/processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "supervisor/guard-private.h"
#include "tests/unit/supervisor/fake_containment.h"

/* ---- the judgement ---- */

#define DEADLINE INT64_C(10000)
#define MARGIN   INT64_C(500)

struct decision {
    enum lapse_policy policy;
    enum guard_state state;
    int64_t now;
    enum guard_act act;
    int64_t wait_ms;
};

static const struct decision DECISIONS[] = {
    {LAPSE_FREEZE, GUARD_WATCHING, 0, GUARD_WAIT, 10000},
    {LAPSE_FREEZE, GUARD_WATCHING, DEADLINE - MARGIN, GUARD_WAIT, MARGIN},
    {LAPSE_FREEZE, GUARD_WATCHING, DEADLINE - 1, GUARD_WAIT, 1},
    {LAPSE_FREEZE, GUARD_WATCHING, DEADLINE, GUARD_FREEZE, 0},
    {LAPSE_FREEZE, GUARD_WATCHING, DEADLINE + 100000, GUARD_FREEZE, 0},
    {LAPSE_FREEZE, GUARD_FROZEN, DEADLINE + 1, GUARD_WAIT, -1},
    {LAPSE_ABORT, GUARD_WATCHING, 0, GUARD_WAIT, DEADLINE - MARGIN},
    {LAPSE_ABORT, GUARD_WATCHING, DEADLINE - MARGIN - 1, GUARD_WAIT, 1},
    {LAPSE_ABORT, GUARD_WATCHING, DEADLINE - MARGIN, GUARD_TERM, 0},
    {LAPSE_ABORT, GUARD_WATCHING, DEADLINE, GUARD_KILL, 0},
    {LAPSE_ABORT, GUARD_ABORTING, DEADLINE - MARGIN, GUARD_WAIT, MARGIN},
    {LAPSE_ABORT, GUARD_ABORTING, DEADLINE, GUARD_KILL, 0},
    {LAPSE_ABORT, GUARD_ABORTED, DEADLINE + 1, GUARD_WAIT, -1},
};

static void test_judgement(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(DECISIONS); i++) {
        const struct decision *d = &DECISIONS[i];
        struct guard_step step = guard_decide(d->policy, d->state, d->now, DEADLINE, MARGIN);
        if (step.act != d->act || step.wait_ms != d->wait_ms)
            fail_msg("row %zu: act %d, wait %lld", i, (int)step.act, (long long)step.wait_ms);
    }
}

/* ---- the thread ---- */

struct fixture {
    struct moved_clock moved;
    struct gate gate;
    struct containment containment;
    struct guard *guard;
    int notify_fd;
};

static struct fixture *now_tested;

static void begin(
    struct fixture *fixture, const struct clock *clock, int64_t deadline, enum lapse_policy policy)
{
    *fixture = (struct fixture){.notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    moved_clock_init(&fixture->moved, 1000);
    if (clock == NULL)
        clock = &fixture->moved.clock;
    gate_init(&fixture->gate, clock, deadline);
    struct guard_options options = {
        .clock = clock,
        .gate = &fixture->gate,
        .containment = &fixture->containment,
        .policy = policy,
        .margin_ms = 100,
        .notify_fd = fixture->notify_fd,
    };
    assert_int_equal(guard_start(&options, &fixture->guard, NULL), RESULT_OK);
    now_tested = fixture;
}

static void end(struct fixture *fixture)
{
    guard_stop(fixture->guard);
    gate_done(&fixture->gate);
    close(fixture->notify_fd);
}

static bool notified(struct fixture *fixture)
{
    struct pollfd fd = {.fd = fixture->notify_fd, .events = POLLIN};
    return poll(&fd, 1, BOUND_MS) == 1;
}

static void test_freezes_at_the_deadline(void **state)
{
    (void)state;
    struct fixture f;
    int64_t deadline = boot_ms() + 300;
    begin(&f, clock_system(), deadline, LAPSE_FREEZE);
    assert_int_equal(guard_state(f.guard), GUARD_WATCHING);
    assert_true(notified(&f));
    assert_true(boot_ms() >= deadline);
    assert_int_equal(guard_state(f.guard), GUARD_FROZEN);
    assert_true(f.gate.closed);
    assert_int_equal(f.containment.freezes, 1);
    /* half a margin for what does not want to stand still */
    assert_in_range(f.containment.freeze_deadline_boot_ms, deadline + 50, boot_ms() + 50);
    struct containment_report report;
    guard_take_report(f.guard, &report);
    assert_int_equal(report.frozen, 1);
    containment_report_done(&report);
    end(&f);
}

static void test_a_confirmation_moves_the_deadline(void **state)
{
    (void)state;
    struct fixture f;
    int64_t start = boot_ms();
    begin(&f, clock_system(), start + 200, LAPSE_FREEZE);
    guard_confirm(f.guard, start + 500);
    assert_true(notified(&f));
    assert_true(boot_ms() >= start + 500);
    assert_int_equal(f.containment.freezes, 1);
    end(&f);
}

static void test_stays_frozen_without_a_confirmation(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, NULL, 2000, LAPSE_FREEZE);
    f.moved.now_boot_ms = 2000;
    guard_freeze(f.guard);
    assert_int_equal(guard_state(f.guard), GUARD_FROZEN);
    assert_false(guard_resume(f.guard));
    assert_int_equal(f.containment.thaws, 0);
    assert_true(f.gate.closed);

    guard_confirm(f.guard, 2001);
    assert_true(guard_resume(f.guard));
    assert_int_equal(f.containment.thaws, 1);
    assert_false(f.gate.closed);
    assert_int_equal(guard_state(f.guard), GUARD_WATCHING);
    end(&f);
}

static void time_passes(void)
{
    now_tested->moved.now_boot_ms = 5000;
}

/* Stopped after its last look and before the thaw took effect: frozen again by the second look. */
static void test_looks_again_after_the_thaw(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, NULL, 2000, LAPSE_FREEZE);
    guard_freeze(f.guard);
    f.containment.on_thaw = time_passes;
    assert_false(guard_resume(f.guard));
    assert_int_equal(f.containment.thaws, 1);
    assert_int_equal(f.containment.freezes, 2);
    assert_true(f.containment.frozen);
    assert_true(f.gate.closed);
    assert_int_equal(guard_state(f.guard), GUARD_FROZEN);
    end(&f);
}

static void test_freeze_on_request_is_told_and_undone(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, NULL, 2000, LAPSE_FREEZE);
    guard_freeze(f.guard);
    guard_freeze(f.guard);
    assert_int_equal(f.containment.freezes, 1);
    assert_true(notified(&f));
    assert_true(guard_resume(f.guard));
    assert_true(gate_may_run(&f.gate));
    /* the guard watches again */
    f.moved.now_boot_ms = 2000;
    assert_true(guard_resume(f.guard)); /* not frozen yet: wakes the thread, which sees the time */
    wait_until(guard_state(f.guard) == GUARD_FROZEN);
    end(&f);
}

static void test_abort_asks_then_kills(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, NULL, 2000, LAPSE_ABORT);
    assert_int_equal(guard_state(f.guard), GUARD_WATCHING);
    f.moved.now_boot_ms = 2000 - 100; /* a margin before the deadline */
    (void)!guard_resume(f.guard);     /* wakes the thread, which sees the time */
    wait_until(guard_state(f.guard) == GUARD_ABORTING);
    assert_int_equal(f.containment.last_signal, SIGTERM);
    assert_true(f.gate.closed);
    assert_false(guard_resume(f.guard));
    assert_int_equal(guard_state(f.guard), GUARD_ABORTING);
    f.moved.now_boot_ms = 2000;
    wait_until(guard_state(f.guard) == GUARD_ABORTED);
    assert_int_equal(f.containment.last_signal, SIGKILL);
    assert_int_equal(f.containment.signals, 2);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judgement),
        cmocka_unit_test(test_freezes_at_the_deadline),
        cmocka_unit_test(test_a_confirmation_moves_the_deadline),
        cmocka_unit_test(test_stays_frozen_without_a_confirmation),
        cmocka_unit_test(test_looks_again_after_the_thaw),
        cmocka_unit_test(test_freeze_on_request_is_told_and_undone),
        cmocka_unit_test(test_abort_asks_then_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
