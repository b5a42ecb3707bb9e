#include "supervisor/child-private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/attributes.h"

#define SIGNAL_SET_BYTES 8 /* of the kernel: 64 signals */
#define SIGNAL_LAST      64
#define NS_PER_S         INT64_C(1000000000)

/* Sanitizers keep state per thread, which the child would share with its parent: none of that in here. And
 * every call goes by number, because a wrapper may be intercepted, or keep state of its own. */
#define _bare_    __attribute__((no_sanitize("address", "thread", "undefined"), no_stack_protector))
#define CALL(...) syscall(__VA_ARGS__)

_bare_ _noreturn_ static void child_fail(const struct child_plan *plan, enum spawn_step step, int errnum)
{
    struct spawn_failure failure = {.step = step, .errnum = errnum};
    CALL(SYS_write, plan->report_fd, &failure, sizeof(failure));
    for (;;)
        CALL(SYS_exit_group, 127);
}

/* Closes all from 3 on but those to keep: first of all, so that no lock of the parent is held by us. */
_bare_ static bool others_close(const struct child_plan *plan)
{
    unsigned from = 3;
    for (int i = 0; i < plan->keep_count; i++) {
        unsigned kept = (unsigned)plan->keep[i];
        if (kept > from && CALL(SYS_close_range, from, kept - 1, 0) != 0)
            return false;
        from = kept + 1;
    }
    return CALL(SYS_close_range, from, ~0U, 0) == 0;
}

/* Off the numbers 0 to 2, so that putting one in its place does not close another. */
_bare_ static int stdio_lift(int fd, int place)
{
    if (fd == -1)
        return (int)CALL(
            SYS_openat, AT_FDCWD, "/dev/null", (place == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC, 0);
    return fd < 3 ? (int)CALL(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3) : fd;
}

_bare_ static bool stdio_place(const struct child_plan *plan)
{
    int lifted[3];
    for (int i = 0; i < 3; i++) {
        lifted[i] = stdio_lift(plan->stdio[i], i);
        /* With 0 to 2 closed, /dev/null itself may have got one of these numbers. */
        if (lifted[i] >= 0 && lifted[i] < 3)
            lifted[i] = (int)CALL(SYS_fcntl, lifted[i], F_DUPFD_CLOEXEC, 3);
        if (lifted[i] < 0)
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (CALL(SYS_dup3, lifted[i], i, 0) < 0)
            return false;
    return true;
}

_bare_ static bool descriptors_end(const struct child_plan *plan)
{
    unsigned report = (unsigned)plan->report_fd;
    if (report > 3 && CALL(SYS_close_range, 3, report - 1, 0) != 0)
        return false;
    return CALL(SYS_close_range, report + 1, ~0U, 0) == 0;
}

/* The kernel's structure of a default disposition is all zeros on every architecture. */
_bare_ static void signals_default(const struct child_plan *plan)
{
    static const unsigned char DEFAULT_ACTION[64], EMPTY_SET[SIGNAL_SET_BYTES];
    for (int signal = 1; signal <= SIGNAL_LAST; signal++)
        if (signal != SIGKILL && signal != SIGSTOP && !(plan->left_ignored >> signal & 1))
            CALL(SYS_rt_sigaction, signal, DEFAULT_ACTION, NULL, SIGNAL_SET_BYTES);
    CALL(SYS_rt_sigprocmask, SIG_SETMASK, EMPTY_SET, NULL, SIGNAL_SET_BYTES);
}

_bare_ static bool deadline_has_passed(const struct child_plan *plan)
{
    struct timespec now;
    if (plan->deadline_ns == 0)
        return false;
    if (CALL(SYS_clock_gettime, CLOCK_BOOTTIME, &now) != 0)
        return true;
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec >= plan->deadline_ns;
}

/* A parent that dies before the exec takes the child along: until then the child bears no mark by which
 * anybody could find it. */
_bare_ static void parent_bind(const struct child_plan *plan)
{
    CALL(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (CALL(SYS_getppid) != plan->parent)
        for (;;)
            CALL(SYS_exit_group, 127);
}

_bare_ int child_main(void *context)
{
    const struct child_plan *plan = context;
    if (!others_close(plan))
        child_fail(plan, SPAWN_DESCRIPTORS, errno);
    parent_bind(plan);
    if (!plan->dies_with_parent && CALL(SYS_setsid) < 0)
        child_fail(plan, SPAWN_SESSION, errno);
    if (plan->directory_fd >= 0 && CALL(SYS_fchdir, plan->directory_fd) != 0)
        child_fail(plan, SPAWN_DIRECTORY, errno);
    if (!stdio_place(plan) || !descriptors_end(plan))
        child_fail(plan, SPAWN_DESCRIPTORS, errno);
    signals_default(plan);
    if (plan->has_files)
        CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, &plan->files, NULL);
    if (!plan->dies_with_parent)
        CALL(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0);
    if (deadline_has_passed(plan))
        child_fail(plan, SPAWN_LAPSED, ETIME);
    CALL(SYS_execve, plan->path, plan->argv, plan->environment);
    child_fail(plan, SPAWN_EXEC, errno);
}
