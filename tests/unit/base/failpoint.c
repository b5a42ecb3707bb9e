#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/failpoint.h"
#include "base/mutant.h"

static bool pass_alpha(void)
{
    return FAILPOINT_ERROR("unit-alpha");
}

static bool pass_alphabet(void)
{
    return FAILPOINT_ERROR("unit-alphabet");
}

#ifdef TENURE_FAILPOINTS

static bool is_listed(const char *name)
{
    const char *listed;
    for (size_t i = 0; (listed = failpoint_name(i)); i++)
        if (strcmp(listed, name) == 0)
            return true;
    return false;
}

static void points_are_listed_by_the_linker(void **state _unused_)
{
    assert_true(is_listed("unit-alpha"));
    assert_true(is_listed("unit-alphabet"));
    assert_false(is_listed("unit-beta"));
}

static void nothing_happens_unasked(void **state _unused_)
{
    unsetenv("TENURE_FAILPOINT");
    assert_false(pass_alpha());
    setenv("TENURE_FAILPOINT", "", 1);
    assert_false(pass_alpha());
    setenv("TENURE_FAILPOINT", "other:error", 1);
    assert_false(pass_alpha());
}

static void error_hits_the_named_point_only(void **state _unused_)
{
    setenv("TENURE_FAILPOINT", "unit-alpha:error", 1);
    assert_true(pass_alpha());
    assert_true(pass_alpha());
    assert_false(pass_alphabet());
    setenv("TENURE_FAILPOINT", "x:kill,unit-alphabet:error", 1);
    assert_false(pass_alpha());
    assert_true(pass_alphabet());
}

static void the_nth_time(void **state _unused_)
{
    setenv("TENURE_FAILPOINT", "unit-alphabet:error@1,unit-alpha:error@3", 1);
    assert_false(pass_alpha());
    assert_true(pass_alphabet());
    assert_false(pass_alpha());
    assert_true(pass_alpha());
    assert_false(pass_alpha());
    setenv("TENURE_FAILPOINT", "unit-alpha:error@2", 1); /* another order counts anew */
    assert_false(pass_alpha());
    assert_true(pass_alpha());
}

/* Runs the point `times` in a child; its wait status, stops included. */
static int run_in_child(const char *order, int times, pid_t *ret_child)
{
    setenv("TENURE_FAILPOINT", order, 1);
    pid_t child = checked_fork();
    if (child == 0) {
        for (int i = 0; i < times; i++)
            pass_alpha();
        _exit(7);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    *ret_child = child;
    return status;
}

static void kill_kills(void **state _unused_)
{
    pid_t child;
    int status = run_in_child("unit-alpha:kill", 1, &child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = run_in_child("unit-alpha:kill@3", 2, &child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    status = run_in_child("unit-alpha:kill@3", 3, &child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void stop_stops_until_continued(void **state _unused_)
{
    pid_t child;
    int status = run_in_child("unit-alpha:stop", 1, &child);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void a_misspelt_order_aborts(void **state _unused_)
{
    static const char *const BAD[] = {
        "unit-alpha:kil", "unit-alpha:", "unit-alpha:kill@x", "unit-alpha:kill@", "unit-alpha:error5"};
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
        pid_t child;
        int status = run_in_child(BAD[i], 1, &child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static void delay_delays(void **state _unused_)
{
    struct timespec before, after;
    setenv("TENURE_FAILPOINT", "unit-alpha:delay=30", 1);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_false(pass_alpha());
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    assert_true(ms >= 29);
}

#else

static void nothing_is_built_in(void **state _unused_)
{
    setenv("TENURE_FAILPOINT", "unit-alpha:error", 1);
    assert_null(failpoint_name(0));
    assert_false(pass_alpha());
    assert_false(pass_alphabet());
}

#endif

static void a_mutant_is_active_only_by_its_whole_name(void **state _unused_)
{
    unsetenv("TENURE_MUTANT");
    assert_false(MUTANT("token"));
    setenv("TENURE_MUTANT", "token2", 1);
    assert_false(MUTANT("token"));
    setenv("TENURE_MUTANT", "token", 1);
#ifdef TENURE_MUTANTS
    assert_true(MUTANT("token"));
#else
    assert_false(MUTANT("token"));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef TENURE_FAILPOINTS
        cmocka_unit_test(points_are_listed_by_the_linker),
        cmocka_unit_test(nothing_happens_unasked),
        cmocka_unit_test(error_hits_the_named_point_only),
        cmocka_unit_test(the_nth_time),
        cmocka_unit_test(kill_kills),
        cmocka_unit_test(stop_stops_until_continued),
        cmocka_unit_test(a_misspelt_order_aborts),
        cmocka_unit_test(delay_delays),
#else
        cmocka_unit_test(nothing_is_built_in),
#endif
        cmocka_unit_test(a_mutant_is_active_only_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
