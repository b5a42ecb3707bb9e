/*
 * fork(2) for tests. A failed one ends the test at once: its -1, given to kill(2) as a pid, would signal
 * every process that may be signalled.
 */
#ifndef TESTS_UNIT_CHECKED_FORK_H
#define TESTS_UNIT_CHECKED_FORK_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

/* The child may outlive its parent: for tests about orphans, which have to end it themselves. */
static inline pid_t checked_fork_free(void)
{
    pid_t pid = fork();
    if (pid < 0)
        fail_msg("fork() failed");
    /* A failed assertion in the child ends it; it must not go on with the rest of the tests. */
    if (pid == 0)
        setenv("CMOCKA_TEST_ABORT", "1", 1);
    return pid;
}

/* The child dies with the thread that made it, so that a test that is ended leaves nothing behind. */
static inline pid_t checked_fork(void)
{
    pid_t parent = getpid(), pid = checked_fork_free();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(126);
    return pid;
}

#endif
