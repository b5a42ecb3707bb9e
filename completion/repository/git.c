#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

/*
 * Without these git may answer from a hook's lies, overlook a chmod, a restored time, a changed line end, a
 * file behind a link or under another case, or what a submodule's own settings hide. They reach the gits that
 * git starts in submodules. The last ones only save work.
 */
static const char *const SETTINGS[] = {
    "core.fsmonitor=false",
    "core.fileMode=true",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "diff.ignoreSubmodules=none",
    "status.showUntrackedFiles=all",
    "gc.auto=0",
    "maintenance.auto=false",
    "status.renames=false",
    "status.aheadBehind=false",
    "status.showStash=false",
    "status.submoduleSummary=false",
};

static const char *const PROGRAM[] = {"git", "--no-optional-locks", "--no-replace-objects"};

static size_t list_length(const char *const *list)
{
    size_t length = 0;
    while (list[length])
        length++;
    return length;
}

struct collect git_call(int directory_fd, const char *const *arguments, bool settings)
{
    size_t count = 0, argument_count = list_length(arguments);
    const char **argv =
        mem_resize(NULL, ARRAY_SIZE(PROGRAM) + 2 * ARRAY_SIZE(SETTINGS) + argument_count + 1, sizeof(*argv));
    for (size_t i = 0; i < ARRAY_SIZE(PROGRAM); i++)
        argv[count++] = PROGRAM[i];
    for (size_t i = 0; settings && i < ARRAY_SIZE(SETTINGS); i++) {
        argv[count++] = "-c";
        argv[count++] = SETTINGS[i];
    }
    for (size_t i = 0; i <= argument_count; i++) /* the NULL too */
        argv[count++] = arguments[i];
    return (struct collect){.argv = argv, .directory_fd = directory_fd};
}

void git_calls_done(struct collect *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char **argv = (const char **)(uintptr_t)calls[i].argv; /* made by git_call() */
        free(argv);
        collect_done(&calls[i]);
        calls[i].argv = NULL;
    }
}

enum result git_run_all(struct runner *runner, struct collect *calls, size_t count, struct error *err)
{
    enum result r = runner->run(runner, calls, count, err);
    /* A machine without git is no fault of ours. */
    if (r == RESULT_SYSTEM && err && err->errnum == ENOENT)
        r = err->code = RESULT_ABSENT;
    return r;
}

enum result git_run(struct runner *runner, struct collect *call, struct error *err)
{
    enum result r = git_run_all(runner, call, 1, err);
    return r == RESULT_OK ? collect_check(call, err) : r;
}

bool git_exited(const struct collect *call, int status)
{
    return WIFEXITED(call->status) && WEXITSTATUS(call->status) == status;
}

char *git_line(const struct collect *call)
{
    size_t length = call->output.length;
    if (length && call->output.bytes[length - 1] == '\n')
        length--;
    return mem_copy(call->output.bytes ? call->output.bytes : "", length);
}

bool git_is_object_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return length == 40 || length == 64;
}

bool git_same_directory(int a, int b)
{
    struct stat left, right;
    return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

int git_nearest(int directory_fd)
{
    _cleanup_(fd_cleanup) int at = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3);
    while (at >= 0) {
        if (faccessat(at, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            break;
        int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        bool root = parent >= 0 && git_same_directory(at, parent);
        fd_close(at);
        at = parent;
        if (root)
            return -1;
    }
    int found = at;
    at = -1;
    return found;
}
