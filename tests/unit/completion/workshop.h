/* A throw-away directory with repositories in it, and a shell to work there. One per test program. */
#ifndef TESTS_UNIT_COMPLETION_WORKSHOP_H
#define TESTS_UNIT_COMPLETION_WORKSHOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "supervisor/collect.h"

struct workshop {
    char *path; /* also HOME, so that nobody's settings count */
};
static struct workshop workshop;

static _unused_ int workshop_open(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    char *form = mem_format("%s/tenure-test-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(form))
        return -1;
    workshop.path = realpath(form, NULL);
    free(form);
    setenv("HOME", workshop.path, 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    setenv("GIT_AUTHOR_DATE", "2001-02-03T04:05:06Z", 1);
    setenv("GIT_COMMITTER_DATE", "2001-02-03T04:05:06Z", 1);
    unsetenv("XDG_CONFIG_HOME");
    int fd = open(workshop.path, O_DIRECTORY | O_CLOEXEC);
    int config = openat(fd, ".gitconfig", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    static const char TEXT[] =
        "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n"
        "[protocol \"file\"]\n\tallow = always\n[gc]\n\tauto = 0\n[commit]\n\tgpgSign = false\n";
    bool written = write(config, TEXT, sizeof(TEXT) - 1) == (ssize_t)sizeof(TEXT) - 1;
    close(config);
    close(fd);
    return written ? 0 : -1;
}

static _unused_ int workshop_close(void **state)
{
    (void)state;
    enum result r = directory_remove(AT_FDCWD, workshop.path, NULL);
    free(workshop.path);
    return r == RESULT_OK ? 0 : -1;
}

/* An owned path in the workshop. */
static _unused_ char *place(const char *name)
{
    return mem_format("%s/%s", workshop.path, name);
}

/* Runs a script with `name` (made when missing) as its directory; its stdout, owned. Fails the test when it
 * fails. */
static _unused_ char *shell(const char *name, const char *script)
{
    _cleanup_(mem_free) char *directory = place(name);
    _cleanup_(mem_free) char *line =
        mem_format("set -e; mkdir -p '%s'; cd '%s'; %s", directory, directory, script);
    const char *const argv[] = {"/bin/sh", "-c", line, NULL};
    extern char **environ;
    struct collect call = {
        .argv = argv, .environment = (const char *const *)environ, .directory_fd = AT_FDCWD};
    struct runner *runner = collect_runner();
    _cleanup_(error_done) struct error err = {0};
    if (runner->run(runner, &call, 1, &err) != RESULT_OK || collect_check(&call, &err) != RESULT_OK)
        fail_msg("%s: %s", script, err.message);
    char *output = mem_string(call.output.bytes ? call.output.bytes : "");
    collect_done(&call);
    return output;
}

/* For its effect alone. */
static _unused_ void run(const char *name, const char *script)
{
    free(shell(name, script));
}

static _unused_ void assert_has(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text ? text : "(nothing)");
}

static _unused_ void assert_has_not(const char *text, const char *part)
{
    if (text && strstr(text, part))
        fail_msg("\"%s\" is in \"%s\"", part, text);
}

#endif
