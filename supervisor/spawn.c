#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/child-private.h"
#include "supervisor/proc-private.h"
#include "supervisor/program-private.h"

#define START_BOUND_MS    INT64_C(10000)
#define DEATH_BOUND_MS    100 /* inside the gate: much less than the guard's margin */
#define NS_PER_MS         INT64_C(1000000)
#define CHILD_BLOCK_BYTES ((size_t)64 * 1024)

/* clone(2) by its other name in glibc: sanitizers intercept the common one and take it for a fork, with locks
 * and hooks that a child in our memory must not touch. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

static const char *const STEP_NAMES[] = {
    [SPAWN_STARTED] = "started",
    [SPAWN_FORK] = "fork",
    [SPAWN_SESSION] = "session",
    [SPAWN_DIRECTORY] = "directory",
    [SPAWN_DESCRIPTORS] = "descriptors",
    [SPAWN_LAPSED] = "lapsed",
    [SPAWN_NOT_FOUND] = "not-found",
    [SPAWN_NOT_EXECUTABLE] = "not-executable",
    [SPAWN_NO_INTERPRETER] = "no-interpreter",
    [SPAWN_TOO_LONG] = "too-long",
    [SPAWN_EXEC] = "exec",
};
_Static_assert(ARRAY_SIZE(STEP_NAMES) == SPAWN_STEP_MAX, "every step has a name");

const char *spawn_step_name(enum spawn_step step)
{
    return (unsigned)step < SPAWN_STEP_MAX ? STEP_NAMES[step] : "unknown";
}

static enum result failed(
    struct spawn_failure *ret_failure, enum spawn_step step, int errnum, struct error *err, const char *what)
{
    *ret_failure = (struct spawn_failure){.step = step, .errnum = errnum};
    return error_errno(err, errnum, "%s", what);
}

/* ---- before ---- */

/* A directory that was deleted has no links left; whoever looks it up by name again gets another one. */
static enum result directory_check(int directory_fd, struct spawn_failure *ret_failure, struct error *err)
{
    struct stat status;
    int looked = directory_fd == AT_FDCWD ? stat(".", &status) : fstat(directory_fd, &status);
    if (looked != 0)
        return failed(ret_failure, SPAWN_DIRECTORY, errno, err, "cannot look at the work directory");
    if (!S_ISDIR(status.st_mode))
        return failed(ret_failure, SPAWN_DIRECTORY, ENOTDIR, err, "cannot enter the work directory");
    if (status.st_nlink > 0)
        return RESULT_OK;
    *ret_failure = (struct spawn_failure){.step = SPAWN_DIRECTORY, .errnum = ENOENT};
    error_set(err, RESULT_SYSTEM, ENOENT, "cannot start: the work directory was deleted");
    return error_remedy(err, "start again in a directory that exists");
}

/* With SIGCHLD ignored, as an odd parent may have left it, the kernel throws exit statuses away. */
static void statuses_keep(void)
{
    struct sigaction now;
    if (sigaction(SIGCHLD, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO))
        return;
    if (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT))
        sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* A pipe whose ends are close-on-exec, the write end not among the standard numbers. */
static int report_open(int ret[2])
{
    if (pipe2(ret, O_CLOEXEC) != 0)
        return -1;
    if (ret[1] >= 3)
        return 0;
    int lifted = fcntl(ret[1], F_DUPFD_CLOEXEC, 3);
    fd_close(ret[1]);
    ret[1] = lifted;
    return lifted < 0 ? -1 : 0;
}

static void keep_add(struct child_plan *plan, int fd)
{
    if (fd < 3)
        return;
    int at = plan->keep_count;
    for (int i = 0; i < plan->keep_count; i++)
        if (plan->keep[i] == fd)
            return;
    for (; at > 0 && plan->keep[at - 1] > fd; at--)
        plan->keep[at] = plan->keep[at - 1];
    plan->keep[at] = fd;
    plan->keep_count++;
}

/* The child reads the kernel's clock, which in a time namespace is not the clock of the deadline. */
static int64_t deadline_of_kernel(int64_t deadline_boot_ms)
{
    struct timespec now;
    if (deadline_boot_ms == 0 || MUTANT("deadline-spawn"))
        return 0;
    if (!clock_is_shifted())
        return deadline_boot_ms * NS_PER_MS;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t kernel_ms = (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
    return (deadline_boot_ms - clock_system()->boot_ms(clock_system()) + kernel_ms) * NS_PER_MS;
}

/* Of the signals that a terminal, or its end, sends to the whole process group: who is in ours ignores what
 * we ignore. */
static uint64_t ignored_by_us(void)
{
    static const int SENT_TO_GROUPS[] = {SIGINT, SIGQUIT, SIGHUP};
    uint64_t ignored = 0;
    struct sigaction action;
    for (size_t i = 0; i < ARRAY_SIZE(SENT_TO_GROUPS); i++)
        if (sigaction(SENT_TO_GROUPS[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            ignored |= UINT64_C(1) << SENT_TO_GROUPS[i];
    return ignored;
}

static void plan_fill(
    struct child_plan *plan, const struct spawn_request *request, const char *path, int report_fd)
{
    static char *const NOTHING[] = {NULL};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a failed preparation is never RESULT_OK */
    *plan = (struct child_plan){
        .path = path,
        /* execve(2) takes pointers to what it does not change */
        .argv = (char *const *)(uintptr_t)request->argv,
        .environment = request->environment ? (char *const *)(uintptr_t)request->environment : NOTHING,
        .directory_fd = request->directory_fd == AT_FDCWD ? -1 : request->directory_fd,
        .stdio = {request->stdin_fd, request->stdout_fd, request->stderr_fd},
        .report_fd = report_fd,
        .parent = getpid(),
        .deadline_ns = deadline_of_kernel(request->deadline_boot_ms),
        .dies_with_parent = request->dies_with_us,
        .left_ignored = request->dies_with_us ? ignored_by_us() : 0,
        .has_files = request->files != NULL,
    };
    if (request->files != NULL)
        plan->files = *request->files;
    for (int i = 0; i < 3; i++)
        keep_add(plan, plan->stdio[i]);
    keep_add(plan, plan->directory_fd);
    keep_add(plan, plan->report_fd);
}

/* ---- the birth ---- */

/* What parent and child share until the exec: a block with the plan at its start and the stack above it. */
struct birth {
    struct child_plan *plan;
    struct process process;
    int report_read, report_write;
    sigset_t mask; /* of this thread, as it was */
    bool masked;
};

static void birth_done(struct birth *birth)
{
    if (birth->masked)
        pthread_sigmask(SIG_SETMASK, &birth->mask, NULL);
    if (birth->plan)
        munmap(birth->plan, CHILD_BLOCK_BYTES);
    fd_close(birth->report_read);
    fd_close(birth->report_write);
    process_close(&birth->process);
}

static enum result birth_prepare(struct birth *birth, struct spawn_failure *ret_failure, struct error *err)
{
    int report[2] = {-1, -1};
    int opened = report_open(report);
    birth->report_read = report[0];
    birth->report_write = report[1];
    if (opened != 0)
        return failed(ret_failure, SPAWN_FORK, errno, err, "cannot make the pipe that tells of the start");
    void *block =
        mmap(NULL, CHILD_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (block == MAP_FAILED)
        return failed(ret_failure, SPAWN_FORK, errno, err, "cannot map the stack of a child");
    birth->plan = block;
    return RESULT_OK;
}

/* Signals stay blocked until the child has told how it went: a handler of ours must not run in the child, and
 * an interrupted call here would overwrite the errno that both share. */
static enum result birth_clone(struct birth *birth, struct spawn_failure *ret_failure, struct error *err)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &birth->mask);
    birth->masked = true;
    char *top = (char *)birth->plan + CHILD_BLOCK_BYTES;
    int pid = __clone(child_main, top, CLONE_VM | CLONE_PIDFD | SIGCHLD, birth->plan, &birth->process.pidfd);
    if (pid < 0) {
        failed(ret_failure, SPAWN_FORK, errno, err, "cannot make a process");
        return error_remedy(err, "look at the limits for processes (ulimit -u, pids.max of the cgroup)");
    }
    birth->process.pid = pid;
    fd_close(birth->report_write);
    birth->report_write = -1;
    return RESULT_OK;
}

static int64_t start_bound_ms(const struct spawn_request *request)
{
    if (request->deadline_boot_ms == 0 || MUTANT("deadline-spawn"))
        return START_BOUND_MS;
    int64_t left_ms = request->deadline_boot_ms - clock_system()->boot_ms(clock_system()) + 1;
    return left_ms < 1 ? 1 : left_ms < START_BOUND_MS ? left_ms : START_BOUND_MS;
}

/* The child's word: an end of file is its exec, anything else its failure. */
static void birth_wait(struct birth *birth, int64_t bound_ms, struct spawn_failure *ret)
{
    struct pollfd look = {.fd = birth->report_read, .events = POLLIN};
    if (poll(&look, 1, (int)bound_ms) <= 0)
        *ret = bound_ms < START_BOUND_MS ? (struct spawn_failure){.step = SPAWN_LAPSED, .errnum = ETIME}
                                         : (struct spawn_failure){.step = SPAWN_EXEC, .errnum = ETIMEDOUT};
    else if (read(birth->report_read, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
        *ret = (struct spawn_failure){.step = SPAWN_STARTED};
}

/* Ends and reaps a child that did not get to its exec. One that hangs in the kernel beyond the bound may
 * still look at the block, so that is left to it; it can do nothing more, for the kill waits for it. */
static void birth_abort(struct birth *birth)
{
    siginfo_t ended;
    struct pollfd look = {.fd = birth->process.pidfd, .events = POLLIN};
    pidfd_send_signal(birth->process.pidfd, SIGKILL, NULL, 0);
    if (poll(&look, 1, DEATH_BOUND_MS) > 0)
        waitid(P_PIDFD, (id_t)birth->process.pidfd, &ended, WEXITED);
    else
        birth->plan = NULL;
}

/* ---- what went wrong, in words ---- */

static const char *const STEP_SENTENCES[] = {
    [SPAWN_SESSION] = "cannot make a session for the child",
    [SPAWN_DIRECTORY] = "cannot enter the work directory",
    [SPAWN_DESCRIPTORS] = "cannot set up the descriptors of the child",
    [SPAWN_EXEC] = "cannot start the program",
    [SPAWN_STEP_MAX] = NULL,
};

static enum result failure_report(const struct spawn_request *request, const char *path,
    const struct spawn_failure *failure, struct spawn_failure *ret_failure, struct error *err)
{
    if (failure->step == SPAWN_LAPSED) {
        *ret_failure = *failure;
        return error_set(err, RESULT_SYSTEM, failure->errnum,
            "%s was not started: the deadline of the lease had passed", request->argv[0]);
    }
    if (failure->step == SPAWN_EXEC && failure->errnum == ETIMEDOUT) {
        failed(ret_failure, SPAWN_EXEC, ETIMEDOUT, err, "the program did not start within 10 seconds");
        return error_remedy(err, "check that the file system of %s answers", path);
    }
    return failed(ret_failure, failure->step, failure->errnum, err, STEP_SENTENCES[failure->step]);
}

static enum result birth_run(struct birth *birth, const struct spawn_request *request, const char *path,
    struct spawn_failure *ret_failure, struct error *err)
{
    enum result r = birth_prepare(birth, ret_failure, err);
    if (r != RESULT_OK)
        return r;
    plan_fill(birth->plan, request, path, birth->report_write);
    FAILPOINT("spawn-before-exec");
    r = birth_clone(birth, ret_failure, err);
    if (r != RESULT_OK)
        return r;
    struct spawn_failure failure;
    birth_wait(birth, start_bound_ms(request), &failure);
    if (failure.step == SPAWN_STARTED)
        return RESULT_OK;
    birth_abort(birth);
    return failure_report(request, path, &failure, ret_failure, err);
}

/* ---- the three steps ---- */

static enum result system_prepare(const struct spawner *spawner _unused_, const struct spawn_request *request,
    char **ret_path, struct spawn_failure *ret_failure, struct error *err)
{
    FAILPOINT("spawn-before-fork");
    enum result r = directory_check(request->directory_fd, ret_failure, err);
    return r == RESULT_OK ? program_find(request, ret_path, ret_failure, err) : r;
}

static enum result system_start(const struct spawner *spawner _unused_, const struct spawn_request *request,
    const char *path, struct process *ret, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(birth_done) struct birth birth = {.process.pidfd = -1, .report_read = -1, .report_write = -1};
    struct proc_stat stat;
    statuses_keep();
    enum result r = birth_run(&birth, request, path, ret_failure, err);
    if (r != RESULT_OK)
        return r;
    FAILPOINT("spawn-after-exec");
    *ret = birth.process;
    ret->start_ticks = proc_stat_read(ret->pid, &stat) ? stat.start_ticks : 0;
    birth.process.pidfd = -1;
    *ret_failure = (struct spawn_failure){.step = SPAWN_STARTED};
    return RESULT_OK;
}

static void system_explain(const struct spawner *spawner _unused_, const struct spawn_request *request,
    const char *path, struct spawn_failure *failure, struct error *err)
{
    if (failure->step == SPAWN_EXEC && failure->errnum != ETIMEDOUT)
        (void)!program_diagnose(request, path, failure->errnum, failure, err);
}

const struct spawner *spawner_system(void)
{
    static const struct spawner SYSTEM = {
        .prepare = system_prepare, .start = system_start, .explain = system_explain};
    return &SYSTEM;
}

enum result spawn_program(const struct spawner *spawner, const struct spawn_request *request,
    struct process *ret, struct spawn_failure *ret_failure, struct error *err)
{
    _cleanup_(mem_free) char *path = NULL;
    enum result r = spawner->prepare(spawner, request, &path, ret_failure, err);
    if (r != RESULT_OK)
        return r;
    r = spawner->start(spawner, request, path, ret, ret_failure, err);
    if (r != RESULT_OK)
        spawner->explain(spawner, request, path, ret_failure, err);
    return r;
}
