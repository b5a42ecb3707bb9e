/* What the tests of this room share: a scratch directory, a journal in it, and a child that owns one. */
#ifndef TESTS_UNIT_JOURNAL_FIXTURE_H
#define TESTS_UNIT_JOURNAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "journal/journal.h"
#include "journal/liveness.h"

#define BOUND_MS 20000 /* for what must happen at all */

struct fixture {
    char *root;
    struct machine machine;
    struct executor executor;
};

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof(*fixture));
    const char *temporary = getenv("TMPDIR");
    fixture->root = mem_format("%s/journal-test-XXXXXX", temporary != NULL ? temporary : "/tmp");
    assert_non_null(mkdtemp(fixture->root));
    struct error err = {0};
    assert_int_equal(machine_read(&fixture->machine, &err), RESULT_OK);
    assert_int_equal(executor_self(&fixture->machine, &fixture->executor, &err), RESULT_OK);
    *state = fixture;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    unsetenv("TENURE_FAILPOINT");
    int failed = directory_remove(AT_FDCWD, fixture->root, NULL) != RESULT_OK;
    free(fixture->root);
    free(fixture);
    return failed;
}

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static inline struct journal *fixture_journal(const struct fixture *fixture, const struct clock *clock)
{
    struct error err = {0};
    struct journal *journal = NULL;
    const struct journal_options options = {
        .root = fixture->root, .clock = clock, .executor = &fixture->executor};
    enum result r = journal_create(&options, &journal, &err);
    if (r != RESULT_OK)
        fail_msg("%s", err.message);
    return journal;
}

static inline void fixture_append(struct journal *journal, const struct journal_event *event)
{
    struct error err = {0};
    if (journal_append(journal, event, JOURNAL_LAZY, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static inline void fixture_note(struct journal *journal, const char *text)
{
    const struct journal_event event = {.kind = JOURNAL_NOTE, .text = text};
    fixture_append(journal, &event);
}

static inline void fixture_settle(struct journal *journal)
{
    const struct journal_event event = {.kind = JOURNAL_SETTLED, .state = "passed", .reason = "passed"};
    fixture_append(journal, &event);
}

static inline void fixture_read(const char *path, struct text *ret)
{
    struct error err = {0};
    if (file_read(AT_FDCWD, path, true, (size_t)256 * 1024 * 1024, ret, &err) != RESULT_OK)
        fail_msg("%s", err.message);
}

static inline void fixture_write(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length, NULL), RESULT_OK);
    close(fd);
}

static inline int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A process that owns a journal and does as it is told: a byte down, an answer up. */
struct owner {
    pid_t pid;
    int command_fd, answer_fd;
    char path[4096];
};

static inline void owner_serve(struct journal *journal, int command_fd, int answer_fd)
{
    char command;
    while (read(command_fd, &command, 1) == 1 && command != 'q') {
        if (command == 'n')
            fixture_note(journal, "as told");
        else if (command == 's')
            fixture_settle(journal);
        else if (command == 'c') {
            journal_close(journal);
            journal = NULL;
        }
        if (write(answer_fd, &command, 1) != 1)
            break;
    }
    _exit(0);
}

static inline struct owner owner_start(const struct fixture *fixture)
{
    int down[2], up[2];
    struct owner owner = {.pid = -1};
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    owner.pid = checked_fork();
    if (owner.pid == 0) {
        close(down[1]);
        close(up[0]);
        struct journal *journal = fixture_journal(fixture, clock_system());
        char path[sizeof(owner.path)] = "";
        snprintf(path, sizeof(path), "%s", journal_path(journal));
        if (write(up[1], path, sizeof(path)) != (ssize_t)sizeof(path))
            _exit(1);
        owner_serve(journal, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    owner.command_fd = down[1];
    owner.answer_fd = up[0];
    assert_int_equal(read(owner.answer_fd, owner.path, sizeof(owner.path)), sizeof(owner.path));
    return owner;
}

static inline void owner_tell(const struct owner *owner, char command)
{
    char answer = 0;
    assert_int_equal(write(owner->command_fd, &command, 1), 1);
    assert_int_equal(read(owner->answer_fd, &answer, 1), 1);
    assert_int_equal(answer, command);
}

static inline void owner_reap(struct owner *owner)
{
    close(owner->command_fd);
    close(owner->answer_fd);
    kill(owner->pid, SIGKILL);
    waitpid(owner->pid, NULL, 0);
}

/* Bytes written to a file above `bytes` fail with EFBIG, as on a full disk. Returns the old limit. */
static inline struct rlimit file_limit_set(rlim_t bytes)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

#endif
