/* The tests' own fork: a child whose assertion fails ends there, and one that would outlive its parent does
 * not. */
#include "tests/unit/checked_fork.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/attributes.h"

static void a_failed_assertion_ends_the_child(void **state _unused_)
{
    int status = 0;
    pid_t child = checked_fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr); /* what it says is no failure of this test */
        assert_true(0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_child_dies_with_its_parent(void **state _unused_)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t parent = checked_fork();
    if (parent == 0) {
        if (checked_fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    /* The pipe's other end is held by the child alone. */
    struct pollfd look = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&look, 1, 20000), 1);
    assert_true(look.revents & POLLHUP);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_assertion_ends_the_child),
        cmocka_unit_test(a_child_dies_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
