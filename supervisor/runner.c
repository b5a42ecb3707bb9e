/*
 * Programs run for their output while the loop turns: the supervisor's `struct runner`. Their pipes are
 * sources of the loop; they are started through the gate like any job, frozen and reaped with the work.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "supervisor/collect-private.h"
#include "supervisor/supervisor-private.h"

#define CHUNK_BYTES ((size_t)64 * 1024)

struct piped {
    struct collect *collect;
    struct process process;
    int fds[3]; /* our ends of stdout and stderr, by their numbers; -1 when closed */
    sd_event_source *sources[3];
    bool running, too_long;
};

struct run {
    struct piped *items;
    size_t count;
    int64_t begun_boot_ms, frozen_before_ms;
};

/* ---- one program's pipes ---- */

static void piped_shut(struct piped *piped, int index)
{
    sd_event_source_disable_unref(STEAL(piped->sources[index]));
    fd_close(piped->fds[index]);
    piped->fds[index] = -1;
}

static void piped_done(struct piped *piped)
{
    for (int i = 0; i < 3; i++)
        piped_shut(piped, i);
    process_close(&piped->process);
}

static void keep(struct piped *piped, int index, const char *bytes, size_t length)
{
    struct text *text = index == STDOUT_FILENO ? &piped->collect->output : &piped->collect->complaint;
    size_t limit = COLLECT_COMPLAINT_LIMIT_BYTES;
    if (index == STDOUT_FILENO)
        limit = piped->collect->limit_bytes > 0 ? piped->collect->limit_bytes : COLLECT_LIMIT_DEFAULT_BYTES;
    size_t room = limit - text->length;
    text_append(text, bytes, length < room ? length : room);
    piped->too_long |= index == STDOUT_FILENO && length > room;
}

/* Reads once, at most `limit` bytes; how many there were. Closes at the end. */
static size_t take(struct piped *piped, int index, size_t limit)
{
    _cleanup_(mem_free) char *chunk = mem_resize(NULL, CHUNK_BYTES, 1);
    ssize_t n = read(piped->fds[index], chunk, limit < CHUNK_BYTES ? limit : CHUNK_BYTES);
    if (n > 0)
        keep(piped, index, chunk, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        piped_shut(piped, index);
    return n > 0 ? (size_t)n : 0;
}

/* The rest after the exit: what the pipe holds now. A helper that still holds the other end is not waited
 * for. */
static void take_held(struct piped *piped, int index)
{
    int held = 0;
    if (piped->fds[index] < 0 || ioctl(piped->fds[index], FIONREAD, &held) != 0)
        return;
    for (size_t left = (size_t)held, got = 1; left > 0 && got > 0; left -= got)
        got = take(piped, index, left);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *context)
{
    (void)source, (void)revents;
    struct piped *piped = context;
    take(piped, piped->fds[STDOUT_FILENO] == fd ? STDOUT_FILENO : STDERR_FILENO, CHUNK_BYTES);
    return 0;
}

static enum result watch(
    struct supervisor *supervisor, struct piped *piped, int index, int fd, struct error *err)
{
    piped->fds[index] = fd;
    fd_set_nonblocking(fd);
    int r = sd_event_add_io(supervisor->event, &piped->sources[index], fd, EPOLLIN, on_readable, piped);
    return r < 0 ? error_errno(err, -r, "cannot watch a pipe") : RESULT_OK;
}

/* ---- starting ---- */

struct child_ends {
    int fds[3];
};

static void child_ends_close(struct child_ends *ends)
{
    for (int i = 0; i < 3; i++)
        fd_close(ends->fds[i]);
}

static enum result open_ends(
    struct supervisor *supervisor, struct piped *piped, struct child_ends *ends, struct error *err)
{
    enum result r = collect_input_open(piped->collect, &ends->fds[STDIN_FILENO], err);
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO && r == RESULT_OK; i++) {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
            return error_errno(err, errno, "cannot create a pipe");
        ends->fds[i] = fds[1];
        r = watch(supervisor, piped, i, fds[0], err);
    }
    return r;
}

/* What a program said that was killed at once, because the deadline passed as it was started, is nobody's. */
static void piped_reset(struct piped *piped)
{
    piped_done(piped);
    text_clear(&piped->collect->output);
    text_clear(&piped->collect->complaint);
}

static enum result piped_try(
    struct supervisor *supervisor, struct piped *piped, const char *const *environment, struct error *err)
{
    _cleanup_(child_ends_close) struct child_ends ends = {{-1, -1, -1}};
    enum result r = open_ends(supervisor, piped, &ends, err);
    if (r != RESULT_OK)
        return r;
    struct spawn_failure failure = {.step = SPAWN_STARTED};
    struct spawn_request request = {
        .argv = piped->collect->argv,
        .environment = environment,
        .directory_fd = piped->collect->directory_fd,
        .stdin_fd = ends.fds[STDIN_FILENO],
        .stdout_fd = ends.fds[STDOUT_FILENO],
        .stderr_fd = ends.fds[STDERR_FILENO],
    };
    r = work_start(supervisor, &request, &piped->process, &failure, err);
    piped->running = r == RESULT_OK;
    if (r == RESULT_BUSY)
        piped_reset(piped);
    return r;
}

static enum result stopped_error(struct error *err)
{
    return error_set(err, RESULT_INTERRUPTED, 0, "the run is being stopped");
}

/* Until something has happened; the gate may be open then. Bounded by the patience of a frozen run. */
static enum result wait_for_gate(struct supervisor *supervisor, struct error *err)
{
    enum result r = loop_turn(supervisor, NEVER_MS, err);
    return r == RESULT_OK && supervisor->stop.cause != STOP_NONE ? stopped_error(err) : r;
}

static enum result piped_start(struct supervisor *supervisor, struct piped *piped, struct error *err)
{
    const char *const *given = piped->collect->environment;
    _cleanup_(mem_free) const char **own = given == NULL ? collect_environment() : NULL;
    enum result r, waited = RESULT_OK;
    while ((r = piped_try(supervisor, piped, given != NULL ? given : own, err)) == RESULT_BUSY) {
        waited = wait_for_gate(supervisor, err);
        if (waited != RESULT_OK)
            return waited;
    }
    return r;
}

/* ---- ending ---- */

bool runner_reaped(struct supervisor *supervisor, pid_t pid, int wait_status)
{
    const struct run *run = supervisor->run;
    for (size_t i = 0; run != NULL && i < run->count; i++) {
        struct piped *piped = &run->items[i];
        if (!piped->running || piped->process.pid != pid)
            continue;
        piped->running = false;
        piped->collect->status = wait_status;
        return true;
    }
    return false;
}

static void kill_running(struct supervisor *supervisor, const struct run *run)
{
    gate_enter(&supervisor->gate);
    for (size_t i = 0; i < run->count; i++)
        if (run->items[i].running)
            process_signal_group(run->items[i].process.pid, SIGKILL);
    gate_leave(&supervisor->gate);
}

static bool any_running(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->items[i].running)
            return true;
    return false;
}

/* When the first of those that still run is overdue, and which that is. Frozen time does not count. */
static int64_t first_overdue(struct supervisor *supervisor, const struct run *run, const struct piped **ret)
{
    int64_t least_ms = NEVER_MS;
    for (size_t i = 0; i < run->count; i++) {
        int64_t bound_ms = collect_bound_ms(run->items[i].collect);
        if (!run->items[i].running || bound_ms >= least_ms)
            continue;
        least_ms = bound_ms;
        *ret = &run->items[i];
    }
    if (least_ms == NEVER_MS)
        return NEVER_MS;
    int64_t frozen_ms = lease_frozen_ms(supervisor, supervisor_now(supervisor)) - run->frozen_before_ms;
    return run->begun_boot_ms + frozen_ms + least_ms;
}

/* They were killed: what hangs in the kernel is not waited for. */
static void wait_for_killed(struct supervisor *supervisor, const struct run *run)
{
    int64_t until = supervisor_now(supervisor) + END_BOUND_MS;
    while (any_running(run) && supervisor_now(supervisor) < until)
        if (loop_turn(supervisor, until - supervisor_now(supervisor), NULL) != RESULT_OK)
            return;
}

/* Until all have ended, the run is being stopped, or one is overdue. */
static enum result wait_for_all(struct supervisor *supervisor, const struct run *run, struct error *err)
{
    while (any_running(run)) {
        const struct piped *first = NULL;
        int64_t overdue = first_overdue(supervisor, run, &first), now = supervisor_now(supervisor);
        if (first != NULL && now >= overdue && !supervisor->frozen)
            return collect_overdue(first->collect, err);
        enum result r = loop_turn(supervisor, overdue > now ? overdue - now : MARK_INTERVAL_MS, err);
        if (r != RESULT_OK)
            return r;
        if (supervisor->stop.cause != STOP_NONE && any_running(run))
            return stopped_error(err);
    }
    return RESULT_OK;
}

static enum result take_rest(struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->count; i++) {
        struct piped *piped = &run->items[i];
        take_held(piped, STDOUT_FILENO);
        take_held(piped, STDERR_FILENO);
        if (piped->too_long)
            return error_set(
                err, RESULT_INVALID, 0, "the output of %s is larger than it may be", piped->collect->argv[0]);
    }
    return RESULT_OK;
}

static struct supervisor *supervisor_of(struct runner *runner)
{
    return (struct supervisor *)((char *)runner - offsetof(struct supervisor, runner));
}

static enum result runner_run(
    struct runner *runner, struct collect *collects, size_t count, struct error *err)
{
    struct supervisor *supervisor = supervisor_of(runner);
    struct run run = {
        .items = mem_alloc(count * sizeof(*run.items) + 1),
        .count = count,
        .begun_boot_ms = supervisor_now(supervisor),
        .frozen_before_ms = lease_frozen_ms(supervisor, supervisor_now(supervisor)),
    };
    for (size_t i = 0; i < count; i++)
        run.items[i] = (struct piped){.collect = &collects[i], .process = {.pidfd = -1}, .fds = {-1, -1, -1}};
    supervisor->run = &run;
    enum result r = supervisor->stop.cause != STOP_NONE ? stopped_error(err) : RESULT_OK;
    for (size_t i = 0; i < count && r == RESULT_OK; i++)
        r = piped_start(supervisor, &run.items[i], err);
    if (r == RESULT_OK)
        r = wait_for_all(supervisor, &run, err);
    if (r != RESULT_OK) {
        kill_running(supervisor, &run);
        wait_for_killed(supervisor, &run);
    } else {
        r = take_rest(&run, err);
    }
    supervisor->run = NULL;
    for (size_t i = 0; i < count; i++) {
        sweep_session(supervisor, run.items[i].process.pid);
        piped_done(&run.items[i]);
    }
    free(run.items);
    return r;
}

static void runner_tick(struct runner *runner)
{
    supervisor_turn(supervisor_of(runner));
}

void runner_init(struct supervisor *supervisor)
{
    supervisor->runner = (struct runner){.run = runner_run, .tick = runner_tick};
}

struct runner *supervisor_runner(struct supervisor *supervisor)
{
    return &supervisor->runner;
}
