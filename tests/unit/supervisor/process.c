/* A process is told from another one of the same number, and a dead one from a living one. */
#include "tests/unit/supervisor/processes.h"

#include <signal.h>

#include "supervisor/process.h"

static void test_open_checks_the_start_time(void **state _unused_)
{
    struct process self, other;
    assert_int_equal(process_open(getpid(), 0, &self, NULL), RESULT_OK);
    assert_true(self.start_ticks > 0);
    assert_int_equal(process_open(getpid(), self.start_ticks, &other, NULL), RESULT_OK);
    process_close(&other);

    _cleanup_(error_done) struct error err = {0};
    struct process untouched = {.pid = -7, .pidfd = -1};
    assert_int_equal(process_open(getpid(), self.start_ticks + 1, &untouched, &err), RESULT_ABSENT);
    assert_non_null(strstr(err.message, "belongs to another process"));
    assert_int_equal(untouched.pid, -7);
    process_close(&self);
}

static void test_a_zombie_is_gone(void **state _unused_)
{
    struct process child = spawn_well(SHELL("exec sleep 600"));
    assert_false(process_is_gone(&child));
    assert_int_equal(process_signal(&child, SIGKILL, NULL), RESULT_OK);
    wait_until(process_is_gone(&child));
    struct process again;
    assert_int_equal(process_open(child.pid, 0, &again, NULL), RESULT_ABSENT);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    assert_int_equal(process_signal(&child, SIGKILL, NULL), RESULT_ABSENT);
    process_close(&child);
    assert_true(process_is_gone(&child));
}

static void test_absent_and_impossible_numbers(void **state _unused_)
{
    struct process process;
    assert_int_equal(process_open(0, 0, &process, NULL), RESULT_ABSENT);
    assert_int_equal(process_open(-1, 0, &process, NULL), RESULT_ABSENT);
    assert_int_equal(process_open(INT32_MAX, 0, &process, NULL), RESULT_ABSENT);
}

static void test_another_users_process_is_denied(void **state _unused_)
{
    pid_t child = checked_fork();
    if (child == 0) {
        struct process first;
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        if (process_open(1, 0, &first, NULL) != RESULT_OK)
            _exit(3);
        _exit(process_signal(&first, 0, NULL) == RESULT_DENIED ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    struct stat init;
    assert_int_equal(stat("/proc/1", &init), 0);
    if (init.st_uid == getuid() && getuid() != 0)
        skip(); /* the first process is our own: nobody else's is known to be there */
    assert_int_equal(status, 0);
}

/* To kill(2), -1 is everybody and 0 is ourselves. Signal 0 asks without hitting, should the guard be gone. */
static void test_a_group_is_never_everybody(void **state _unused_)
{
    static const pid_t NO_GROUPS[] = {1, 0, -1, INT32_MIN};
    for (size_t i = 0; i < ARRAY_SIZE(NO_GROUPS); i++)
        assert_int_equal(process_signal_group(NO_GROUPS[i], 0), RESULT_INVALID);
    assert_int_equal(process_signal_group(getpgrp(), 0), RESULT_INVALID);

    struct process leader = spawn_well(SHELL("sleep 600 & wait"));
    assert_int_equal(process_signal_group(leader.pid, SIGKILL), RESULT_OK);
    pid_t pid = leader.pid;
    assert_int_equal(process_wait(&leader), SIGKILL);
    wait_until(process_signal_group(pid, 0) == RESULT_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_checks_the_start_time),
        cmocka_unit_test(test_a_zombie_is_gone),
        cmocka_unit_test(test_absent_and_impossible_numbers),
        cmocka_unit_test(test_another_users_process_is_denied),
        cmocka_unit_test(test_a_group_is_never_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
