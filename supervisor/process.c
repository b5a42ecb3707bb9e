#include "supervisor/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/files.h"
#include "supervisor/proc-private.h"

static bool pidfd_has_ended(int pidfd)
{
    struct pollfd look = {.fd = pidfd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

static enum result process_absent(pid_t pid, struct error *err)
{
    return error_set(err, RESULT_ABSENT, ESRCH, "process %d is gone", pid);
}

/* The start time is read after the pidfd was opened and while that process lives: so both are of one. */
static enum result start_check(
    pid_t pid, int pidfd, int64_t expected_ticks, int64_t *ret_ticks, struct error *err)
{
    struct proc_stat stat;
    if (!proc_stat_read(pid, &stat) || pidfd_has_ended(pidfd))
        return process_absent(pid, err);
    if (expected_ticks != 0 && stat.start_ticks != expected_ticks)
        return error_set(err, RESULT_ABSENT, ESRCH,
            "process %d is gone; its number belongs to another process (%s) now", pid, stat.name);
    *ret_ticks = stat.start_ticks;
    return RESULT_OK;
}

enum result process_open(pid_t pid, int64_t start_ticks, struct process *ret, struct error *err)
{
    if (pid <= 0)
        return error_set(err, RESULT_ABSENT, ESRCH, "there is no process %d", pid);
    _cleanup_(fd_cleanup) int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT)) /* the latter two: a thread */
        return process_absent(pid, err);
    if (pidfd < 0)
        return error_errno(err, errno, "cannot open process %d", pid);
    int64_t ticks = 0;
    enum result r = start_check(pid, pidfd, start_ticks, &ticks, err);
    if (r != RESULT_OK)
        return r;
    *ret = (struct process){.pid = pid, .pidfd = pidfd, .start_ticks = ticks};
    pidfd = -1;
    return RESULT_OK;
}

enum result process_signal(const struct process *process, int signal, struct error *err)
{
    if (process->pidfd < 0)
        return process_absent(process->pid, err);
    if (pidfd_send_signal(process->pidfd, signal, NULL, 0) == 0)
        return RESULT_OK;
    if (errno == ESRCH)
        return process_absent(process->pid, err);
    if (errno == EPERM)
        return error_set(err, RESULT_DENIED, EPERM,
            "process %d belongs to another user and may not be signalled", process->pid);
    return error_errno(err, errno, "cannot signal process %d", process->pid);
}

enum result process_signal_group(pid_t leader, int signal)
{
    if (leader <= 1 || leader == getpgrp())
        return RESULT_INVALID;
    return kill(-leader, signal) == 0 ? RESULT_OK : RESULT_ABSENT;
}

bool process_is_gone(const struct process *process)
{
    return process->pidfd < 0 || pidfd_has_ended(process->pidfd);
}

void process_close(struct process *process)
{
    fd_close(process->pidfd);
    process->pidfd = -1;
}
