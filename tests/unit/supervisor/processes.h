/* What the tests of real processes share: waiting for a condition with a bound, and running a shell line. */
#ifndef TESTS_UNIT_SUPERVISOR_PROCESSES_H
#define TESTS_UNIT_SUPERVISOR_PROCESSES_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include "base/files.h"
#include "base/memory.h"
#include "supervisor/proc-private.h"
#include "supervisor/spawn.h"

#define BOUND_MS 20000

/* Repeats an expression until it is true; the test fails when it is not within the bound. */
#define wait_until(condition)                                                                                \
    do {                                                                                                     \
        int64_t end_ms_ = boot_ms() + BOUND_MS;                                                              \
        while (!(condition)) {                                                                               \
            if (boot_ms() > end_ms_)                                                                         \
                fail_msg("not within %d ms: %s", BOUND_MS, #condition);                                      \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                                         \
        }                                                                                                    \
    } while (0)

static _unused_ int64_t boot_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

static _unused_ double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *const ENVIRONMENT[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

/* A request for `sh -c line` in the present directory, with the tests' own stdout and stderr. */
#define SHELL(line)                                                                                          \
    (&(struct spawn_request){                                                                                \
        .argv = (const char *const[]){"sh", "-c", line, NULL},                                               \
        .environment = ENVIRONMENT,                                                                          \
        .directory_fd = AT_FDCWD,                                                                            \
        .stdin_fd = -1,                                                                                      \
        .stdout_fd = 1,                                                                                      \
        .stderr_fd = 2,                                                                                      \
    })

static _unused_ struct process spawn_well(const struct spawn_request *request)
{
    struct process process = {.pidfd = -1};
    struct spawn_failure failure = {0};
    _cleanup_(error_done) struct error err = {0};
    if (spawn_program(spawner_system(), request, &process, &failure, &err) != RESULT_OK)
        fail_msg("%s: %s", spawn_step_name(failure.step), err.message);
    return process;
}

static _unused_ int process_wait(struct process *process)
{
    int status = -1;
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    process_close(process);
    return status;
}

static void end_tree(void *context _unused_, pid_t parent _unused_, pid_t child)
{
    struct proc_stat stat;
    if (proc_stat_read(child, &stat))
        proc_each_child(child, stat.threads, end_tree, NULL);
    if (child > 1)
        kill(child, SIGKILL);
}

/* A test that failed half way has not ended what it started, and that would hold its output open: whoever
 * reads it would wait for programs that sleep for minutes. */
static __attribute__((destructor)) void end_what_is_left(void)
{
    proc_each_child(getpid(), INT64_MAX, end_tree, NULL);
}

/* A directory of the test's own, removed by folder_done(). */
struct folder {
    char path[64];
};

static _unused_ void folder_make(struct folder *folder)
{
    strcpy(folder->path, "/tmp/tenure-test-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static _unused_ void folder_done(struct folder *folder)
{
    assert_int_equal(directory_remove(AT_FDCWD, folder->path, NULL), RESULT_OK);
}

static _unused_ char *folder_file(
    const struct folder *folder, const char *name, const char *content, int mode)
{
    char *path = mem_format("%s/%s", folder->path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, content, strlen(content), NULL), RESULT_OK);
    assert_int_equal(fchmod(fd, (mode_t)mode), 0);
    close(fd);
    return path;
}

#endif
