#include "supervisor/collect-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/files.h"
#include "base/memory.h"
#include "supervisor/offspring-private.h"

#define READ_BYTES      ((size_t)64 * 1024)
#define PIPE_BYTES      (1024 * 1024)
#define KILLED_BOUND_MS 5000
#define HASTY_BOUND_MS  1000 /* the same when somebody wants to be rid of us */
#define SLICE_MS        1000
#define LATE_MS         500 /* no machine is that busy: we or all of it stood still */
#define PACE            4096

void collect_done(struct collect *collect)
{
    text_done(&collect->output);
    text_done(&collect->complaint);
}

/* ---- what it is given ---- */

enum result collect_input_open(const struct collect *collect, int *ret_fd, struct error *err)
{
    *ret_fd = -1;
    if (!collect->input || collect->input_length == 0)
        return RESULT_OK;
    _cleanup_(fd_cleanup) int fd = memfd_create("tenure-input", MFD_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "cannot make the input of %s", collect->argv[0]);
    enum result r = fd_write_all(fd, collect->input, collect->input_length, err);
    if (r != RESULT_OK)
        return r;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return error_errno(err, errno, "cannot rewind the input of %s", collect->argv[0]);
    *ret_fd = fd;
    fd = -1;
    return RESULT_OK;
}

const char **collect_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    const char **entries = mem_alloc((count + 1) * sizeof(*entries));
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "GIT_", strlen("GIT_")) != 0)
            entries[kept++] = environ[i];
    return entries;
}

/* ---- what became of it ---- */

/* Its own words in one line, without the last line end. */
static char *complaint_shown(const struct collect *collect)
{
    struct text shown = {0};
    size_t length = collect->complaint.length;
    while (length > 0 && collect->complaint.bytes[length - 1] == '\n')
        length--;
    for (size_t at = 0; at < length;) {
        const char *line = collect->complaint.bytes + at;
        const char *end = memchr(line, '\n', length - at);
        size_t line_length = end ? (size_t)(end - line) : length - at;
        if (shown.length)
            text_add(&shown, "; ");
        text_add_printable(&shown, line, line_length, false);
        at += line_length + 1;
    }
    return text_steal(&shown);
}

enum result collect_check(const struct collect *collect, struct error *err)
{
    int status = collect->status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return RESULT_OK;
    _cleanup_(mem_free) char *complaint = complaint_shown(collect);
    const char *colon = *complaint ? ": " : "";
    if (WIFSIGNALED(status))
        return error_set(err, RESULT_INVALID, 0, "%s was ended by signal %d (%s)%s%s", collect->argv[0],
            WTERMSIG(status), strsignal(WTERMSIG(status)), colon, complaint);
    return error_set(err, RESULT_INVALID, 0, "%s failed with exit status %d%s%s", collect->argv[0],
        WEXITSTATUS(status), colon, complaint);
}

int64_t collect_bound_ms(const struct collect *collect)
{
    return collect->bound_ms > 0 ? collect->bound_ms : COLLECT_BOUND_DEFAULT_MS;
}

enum result collect_overdue(const struct collect *collect, struct error *err)
{
    char bound[DURATION_TEXT_SIZE];
    _cleanup_(text_done) struct text command = {0};
    for (size_t i = 0; collect->argv[i] != NULL; i++) {
        text_add(&command, i > 0 ? " " : "");
        text_add_printable(&command, collect->argv[i], strlen(collect->argv[i]), false);
    }
    duration_format(collect_bound_ms(collect), bound);
    error_set(
        err, RESULT_SYSTEM, ETIMEDOUT, "`%s` did not end within %s and was ended", command.bytes, bound);
    return error_remedy(err, "see what it waits for: run it by hand; does the file system answer?");
}

/* ---- one program ---- */

struct program {
    struct collect *collect;
    struct process process;
    int output_fd, complaint_fd;
    bool over; /* reaped */
};

static void program_close(struct program *program)
{
    fd_close(program->output_fd);
    fd_close(program->complaint_fd);
    process_close(&program->process);
    program->output_fd = program->complaint_fd = -1;
}

/* Only our end is non-blocking. The flag is the pipe's end's own, so the program's stays as it expects. */
static enum result pipe_open(int *ret_ours, int *ret_theirs, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(err, errno, "cannot make a pipe");
    fd_set_nonblocking(ends[0]);
    /* Fewer turns between the program and us; where the user's limit does not allow it, more turns. */
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    *ret_ours = ends[0];
    *ret_theirs = ends[1];
    return RESULT_OK;
}

static enum result program_spawn(struct program *program, const char *const *environment, struct error *err)
{
    _cleanup_(fd_cleanup) int input = -1;
    _cleanup_(fd_cleanup) int output = -1;
    _cleanup_(fd_cleanup) int complaint = -1;
    const struct collect *collect = program->collect;
    struct spawn_failure failure;
    enum result r = collect_input_open(collect, &input, err);
    if (r == RESULT_OK)
        r = pipe_open(&program->output_fd, &output, err);
    if (r == RESULT_OK)
        r = pipe_open(&program->complaint_fd, &complaint, err);
    if (r != RESULT_OK)
        return r;
    const struct spawn_request request = {
        .argv = collect->argv,
        .environment = collect->environment ? collect->environment : environment,
        .directory_fd = collect->directory_fd,
        .stdin_fd = input,
        .stdout_fd = output,
        .stderr_fd = complaint,
        .dies_with_us = true,
    };
    return spawn_program(spawner_system(), &request, &program->process, &failure, err);
}

/* ---- taking in ---- */

static enum result output_take(struct program *program, const char *bytes, size_t length, struct error *err)
{
    struct collect *collect = program->collect;
    size_t limit = collect->limit_bytes ? collect->limit_bytes : COLLECT_LIMIT_DEFAULT_BYTES;
    if (length > limit - collect->output.length)
        return error_set(
            err, RESULT_INVALID, 0, "the output of %s is larger than %zu bytes", collect->argv[0], limit);
    text_append(&collect->output, bytes, length);
    return RESULT_OK;
}

static void complaint_take(struct program *program, const char *bytes, size_t length)
{
    struct text *complaint = &program->collect->complaint;
    size_t room = COLLECT_COMPLAINT_LIMIT_BYTES - complaint->length;
    text_append(complaint, bytes, length < room ? length : room);
}

/* Reads at most `limit` bytes of what a pipe holds. Closes it at its end. */
static enum result pipe_read(struct program *program, int *fd, size_t limit, struct error *err)
{
    _cleanup_(mem_free) char *bytes = mem_resize(NULL, READ_BYTES, 1);
    while (*fd >= 0 && limit > 0) {
        ssize_t got = read(*fd, bytes, limit < READ_BYTES ? limit : READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return RESULT_OK;
        if (got <= 0) {
            fd_close(*fd);
            *fd = -1;
            return RESULT_OK;
        }
        limit -= (size_t)got;
        if (fd == &program->complaint_fd)
            complaint_take(program, bytes, (size_t)got);
        else if (output_take(program, bytes, (size_t)got, err) != RESULT_OK)
            return RESULT_INVALID;
    }
    return RESULT_OK;
}

/* What the pipe holds when the program has ended is its own; whoever still holds the other end is not waited
 * for. */
static enum result pipe_drain(struct program *program, int *fd, struct error *err)
{
    int held = 0;
    if (*fd < 0 || ioctl(*fd, FIONREAD, &held) != 0)
        return RESULT_OK;
    enum result r = pipe_read(program, fd, (size_t)held, err);
    fd_close(*fd);
    *fd = -1;
    return r;
}

static int status_of(const siginfo_t *ended)
{
    if (ended->si_code == CLD_EXITED)
        return W_EXITCODE(ended->si_status, 0);
    return ended->si_code == CLD_DUMPED ? ended->si_status | WCOREFLAG : ended->si_status;
}

static enum result program_reap(struct program *program, struct error *err)
{
    siginfo_t ended = {0};
    while (waitid(P_PIDFD, (id_t)program->process.pidfd, &ended, WEXITED) != 0)
        if (errno != EINTR)
            return error_errno(err, errno, "cannot learn how %s ended", program->collect->argv[0]);
    program->over = true;
    program->collect->status = status_of(&ended);
    enum result r = pipe_drain(program, &program->output_fd, err);
    if (r == RESULT_OK)
        r = pipe_drain(program, &program->complaint_fd, err);
    program_close(program);
    return r;
}

/* ---- all of them ---- */

#define FDS_PER_PROGRAM 3

struct batch {
    struct program *programs;
    struct pollfd *polls; /* of the programs, and of the signals */
    size_t count;
    int64_t looked_ms, spent_ms; /* CLOCK_MONOTONIC, which stands still with the machine */
    sigset_t mask;               /* of this thread, as it was */
    int signal_fd;
    bool interrupted;
};

static bool program_runs(const struct program *program)
{
    return program->process.pidfd >= 0 && !program->over;
}

/* Nothing of a failed batch stays behind, but what hangs in the kernel. */
static void batch_end(struct batch *batch)
{
    _cleanup_(mem_free) pid_t *running = mem_alloc(batch->count * sizeof(pid_t) + 1);
    siginfo_t ended;
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (program_runs(&batch->programs[i]))
            running[count++] = batch->programs[i].process.pid;
    offspring_end(running, count, batch->interrupted ? HASTY_BOUND_MS : KILLED_BOUND_MS);
    for (size_t i = 0; i < batch->count; i++)
        if (program_runs(&batch->programs[i]))
            (void)waitid(P_PIDFD, (id_t)batch->programs[i].process.pidfd, &ended, WEXITED | WNOHANG);
}

static void batch_done(struct batch *batch)
{
    batch_end(batch);
    for (size_t i = 0; i < batch->count; i++)
        program_close(&batch->programs[i]);
    free(batch->programs);
    free(batch->polls);
    fd_close(batch->signal_fd);
    /* Whoever waits for us wants to see by which signal we ended: here it does its work. */
    pthread_sigmask(SIG_SETMASK, &batch->mask, NULL);
}

/* Those that would end us are held back until the programs are ended. A caller that blocked one waits for it
 * itself. */
static void batch_hold_signals(struct batch *batch)
{
    static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t held;
    struct sigaction action;
    sigemptyset(&held);
    pthread_sigmask(SIG_SETMASK, NULL, &batch->mask);
    for (size_t i = 0; i < ARRAY_SIZE(ENDING); i++)
        if (sigismember(&batch->mask, ENDING[i]) == 0 && sigaction(ENDING[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            sigaddset(&held, ENDING[i]);
    batch->signal_fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    if (batch->signal_fd >= 0)
        pthread_sigmask(SIG_BLOCK, &held, NULL);
}

static size_t batch_prepare_polls(struct batch *batch)
{
    size_t running = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct program *program = &batch->programs[i];
        struct pollfd *polls = &batch->polls[i * FDS_PER_PROGRAM];
        polls[0] = (struct pollfd){.fd = program->output_fd, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = program->complaint_fd, .events = POLLIN};
        polls[2] = (struct pollfd){.fd = program->process.pidfd, .events = POLLIN};
        running += !program->over;
    }
    batch->polls[batch->count * FDS_PER_PROGRAM] = (struct pollfd){.fd = batch->signal_fd, .events = POLLIN};
    return running;
}

static enum result program_turn(struct program *program, const struct pollfd *polls, struct error *err)
{
    enum result r = RESULT_OK;
    if (polls[0].revents)
        r = pipe_read(program, &program->output_fd, PIPE_BYTES, err);
    if (r == RESULT_OK && polls[1].revents)
        r = pipe_read(program, &program->complaint_fd, PIPE_BYTES, err);
    if (r == RESULT_OK && polls[2].revents)
        r = program_reap(program, err);
    return r;
}

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / 1000000;
}

/* Who was stopped wakes up late: that time is nobody's. */
static void batch_count_time(struct batch *batch)
{
    int64_t now_ms = monotonic_ms(), passed_ms = now_ms - batch->looked_ms;
    batch->looked_ms = now_ms;
    if (passed_ms <= SLICE_MS + LATE_MS)
        batch->spent_ms += passed_ms;
}

/* How long may be waited for the first of those that still run to be overdue, and which that is. */
static int64_t batch_left_ms(struct batch *batch, size_t *ret_first)
{
    int64_t least_ms = INT64_MAX;
    for (size_t i = 0; i < batch->count; i++) {
        int64_t bound_ms = collect_bound_ms(batch->programs[i].collect);
        if (batch->programs[i].over || bound_ms >= least_ms)
            continue;
        least_ms = bound_ms;
        *ret_first = i;
    }
    batch_count_time(batch);
    return least_ms - batch->spent_ms;
}

static enum result batch_poll(struct batch *batch, int64_t left_ms, struct error *err)
{
    int slice_ms = left_ms < SLICE_MS ? (int)left_ms : SLICE_MS;
    const struct pollfd *signals = &batch->polls[batch->count * FDS_PER_PROGRAM];
    while (poll(batch->polls, batch->count * FDS_PER_PROGRAM + 1, slice_ms) < 0)
        if (errno != EINTR)
            return error_errno(err, errno, "cannot wait for programs");
    batch->interrupted = signals->revents != 0;
    if (batch->interrupted)
        return error_set(
            err, RESULT_INTERRUPTED, 0, "a signal came while %s ran", batch->programs[0].collect->argv[0]);
    return RESULT_OK;
}

static enum result batch_wait(struct batch *batch, struct error *err)
{
    while (batch_prepare_polls(batch) > 0) {
        size_t first = 0;
        int64_t left_ms = batch_left_ms(batch, &first);
        if (left_ms <= 0)
            return collect_overdue(batch->programs[first].collect, err);
        enum result r = batch_poll(batch, left_ms, err);
        for (size_t i = 0; i < batch->count && r == RESULT_OK; i++)
            r = program_turn(&batch->programs[i], &batch->polls[i * FDS_PER_PROGRAM], err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static enum result collect_run(
    struct runner *runner _unused_, struct collect *collects, size_t count, struct error *err)
{
    _cleanup_(batch_done) struct batch batch = {
        .programs = mem_alloc(count * sizeof(struct program)),
        .polls = mem_alloc((count * FDS_PER_PROGRAM + 1) * sizeof(struct pollfd)),
        .looked_ms = monotonic_ms(),
        .signal_fd = -1,
    };
    batch_hold_signals(&batch);
    _cleanup_(mem_free) const char **environment = collect_environment();
    for (size_t i = 0; i < count; i++) {
        batch.programs[i] = (struct program){
            .collect = &collects[i], .process.pidfd = -1, .output_fd = -1, .complaint_fd = -1};
        batch.count++;
        enum result r = program_spawn(&batch.programs[i], environment, err);
        if (r != RESULT_OK)
            return r;
    }
    return batch_wait(&batch, err);
}

void runner_turn(struct runner *runner)
{
    if (runner && runner->tick)
        runner->tick(runner);
}

void runner_pace(struct runner *runner, size_t i)
{
    if (i % PACE == PACE - 1)
        runner_turn(runner);
}

struct runner *collect_runner(void)
{
    static struct runner RUNNER = {.run = collect_run};
    return &RUNNER;
}
