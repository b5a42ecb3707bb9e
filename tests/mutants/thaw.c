/*
 * The thaw's own look at the deadline, with a real process: what was frozen when the lease ran out stands
 * still until a confirmation has moved the deadline, whoever asks for the thaw.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/guard.h"

/* For as long as the program runs: the guard's thread outlives an assertion that fails. */
static struct world {
    struct clock clock;
    _Atomic int64_t now_boot_ms;
    struct gate gate;
    struct containment *containment;
    struct guard *guard;
    pid_t work;
} world;

static int64_t world_boot_ms(const struct clock *clock _unused_)
{
    return world.now_boot_ms;
}

static pid_t start_work(void)
{
    pid_t pid = checked_fork();
    if (pid == 0) {
        setsid();
        for (;;)
            pause();
    }
    return pid;
}

static int begin(void **state _unused_)
{
    world.clock = (struct clock){.boot_ms = world_boot_ms, .wall_ms = world_boot_ms};
    world.now_boot_ms = 1000;
    gate_init(&world.gate, &world.clock, 2000);
    if (containment_open(clock_system(), &world.containment, NULL) != RESULT_OK)
        return -1;
    world.work = start_work();
    containment_add(world.containment, world.work);
    struct guard_options options = {
        .clock = &world.clock,
        .gate = &world.gate,
        .containment = world.containment,
        .policy = LAPSE_FREEZE,
        .margin_ms = 100,
        .notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    return guard_start(&options, &world.guard, NULL) == RESULT_OK ? 0 : -1;
}

static int end(void **state _unused_)
{
    guard_stop(world.guard);
    kill(world.work, SIGKILL);
    waitpid(world.work, NULL, 0);
    containment_close(world.containment);
    gate_done(&world.gate);
    return 0;
}

static char work_state(void)
{
    char path[64], name[64], letter = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", world.work);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    int found = fscanf(file, "%*d %63s %c", name, &letter);
    fclose(file);
    assert_int_equal(found, 2);
    return letter;
}

static void frozen_work_stands_still_until_the_lease_is_confirmed(void **state _unused_)
{
    guard_freeze(world.guard);
    assert_int_equal(work_state(), 'T');
    world.now_boot_ms = 2000; /* the deadline itself: not before it any more */
    bool thawed = guard_resume(world.guard);
    assert_int_equal(work_state(), 'T');
    assert_false(thawed);
    assert_true(world.gate.closed);

    guard_confirm(world.guard, 2001);
    assert_true(guard_resume(world.guard));
    assert_int_not_equal(work_state(), 'T');
    assert_false(world.gate.closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frozen_work_stands_still_until_the_lease_is_confirmed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
