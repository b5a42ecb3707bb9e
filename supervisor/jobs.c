/* Jobs: how they start, what is asked of them, and their time-outs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/proc-private.h"
#include "supervisor/supervisor-private.h"

#define LARGE_PIPES_MAX 8

/* ---- the list ---- */

void job_free(struct job *job)
{
    if (job->capture != NULL)
        capture_close(job->capture);
    output_close(job->output);
    process_close(&job->process);
    text_done(&job->left);
    job_outcome_done(&job->outcome);
    free(job);
}

void job_forget(struct supervisor *supervisor, struct job *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < supervisor->job_count; i++)
        if (supervisor->jobs[i] != job)
            supervisor->jobs[kept++] = supervisor->jobs[i];
    supervisor->job_count = kept;
    job_free(job);
}

static bool leader_lives(const struct job *job)
{
    return job->phase == JOB_RUNNING || job->phase == JOB_ENDING || job->phase == JOB_KILLED;
}

static struct job *job_of_pid(const struct supervisor *supervisor, pid_t pid)
{
    for (size_t i = 0; i < supervisor->job_count; i++)
        if (leader_lives(supervisor->jobs[i]) && supervisor->jobs[i]->process.pid == pid)
            return supervisor->jobs[i];
    return NULL;
}

/* ---- starting ---- */

static struct job *job_new(const struct supervisor *supervisor, const struct job_request *request)
{
    struct job *job = mem_alloc(sizeof(*job));
    job->outcome = (struct job_outcome){.name = mem_string(request->name), .exit_code = -1, .signal = -1};
    job->process.pidfd = -1;
    job->timeout_ms = request->timeout_ms;
    job->quiet_ms = request->quiet_ms;
    job->judged = request->judged;
    job->asked = JOB_VERDICT_MAX;
    job->started_boot_ms = job->heard_boot_ms = supervisor_now(supervisor);
    job->frozen_before_ms = lease_frozen_ms(supervisor, job->started_boot_ms);
    return job;
}

static enum result job_capture(struct supervisor *supervisor, struct job *job,
    const struct job_request *request, int *ret_child_fd, struct error *err)
{
    _cleanup_(mem_free) char *directory =
        mem_format("%s/out", journal_directory(supervisor->options.journal));
    int64_t cap_bytes = request->cap_bytes > 0 ? request->cap_bytes : OUTPUT_CAP_DEFAULT_BYTES;
    enum result r = output_create(directory, request->name, cap_bytes, &job->output, err);
    if (r != RESULT_OK)
        return r;
    job->outcome.log = mem_string(output_name(job->output));
    bool large = supervisor->job_count < LARGE_PIPES_MAX;
    return capture_open(supervisor->event, job->output, large, &job->capture, ret_child_fd, err);
}

static void tell_started(
    struct supervisor *supervisor, const struct job *job, const struct job_request *request)
{
    struct journal_event event = {
        .kind = JOURNAL_STARTED,
        .producer = job->outcome.name,
        .pid = job->process.pid,
        .start_ticks = job->process.start_ticks,
        .log = job->outcome.log,
        .command = request->command,
        .expected_ms = request->expected_ms,
    };
    tell(supervisor, &event, JOURNAL_LAZY);
}

static void job_enlist(struct supervisor *supervisor, struct job *job)
{
    mem_grow(&supervisor->jobs, &supervisor->job_capacity, supervisor->job_count, sizeof(*supervisor->jobs));
    supervisor->jobs[supervisor->job_count++] = job;
}

static enum result job_start(
    struct supervisor *supervisor, struct job *job, const struct job_request *request, struct error *err)
{
    _cleanup_(fd_cleanup) int child_fd = -1;
    if (request->captured) {
        enum result r = job_capture(supervisor, job, request, &child_fd, err);
        if (r != RESULT_OK)
            return r;
    }
    struct spawn_request spawn = {
        .argv = request->argv,
        .environment = request->environment,
        .directory_fd = request->directory_fd,
        .stdin_fd = request->captured ? -1 : STDIN_FILENO,
        .stdout_fd = request->captured    ? child_fd
                     : request->stdout_fd ? request->stdout_fd
                                          : STDOUT_FILENO,
        .stderr_fd = request->captured ? child_fd : STDERR_FILENO,
    };
    struct spawn_failure failure = {.step = SPAWN_STARTED};
    _cleanup_(error_done) struct error why = {0};
    enum result r = work_start(supervisor, &spawn, &job->process, &failure, &why);
    if (r == RESULT_BUSY)
        return error_move(err, &why);
    job_enlist(supervisor, job);
    if (r == RESULT_OK) {
        tell_started(supervisor, job, request);
        FAILPOINT("supervisor-job-started");
        return RESULT_OK;
    }
    /* Its outcome is told in more than one place; what to do about it is told here, once. */
    if (request->captured && why.remedy != NULL) {
        tell_note(supervisor, "%s: %s", request->name, why.remedy);
        free(STEAL(why.remedy));
    }
    outcome_of_failure(job, &failure, &why);
    outcome_end(supervisor, job, false);
    return RESULT_OK;
}

enum result supervisor_spawn(
    struct supervisor *supervisor, const struct job_request *request, struct error *err)
{
    supervisor_turn(supervisor);
    if (supervisor->stop.cause != STOP_NONE)
        return error_set(err, RESULT_INTERRUPTED, 0, "the run is being stopped");
    if (!work_may_start(supervisor) || (lease_withholds(supervisor) && !MUTANT("deadline-spawn")))
        return work_withheld(err);
    struct job *job = job_new(supervisor, request);
    enum result r = job_start(supervisor, job, request, err);
    if (r != RESULT_OK)
        job_free(job);
    return r;
}

size_t supervisor_running(const struct supervisor *supervisor)
{
    return supervisor->job_count;
}

/* ---- asking a job to end ---- */

void job_signal(struct supervisor *supervisor, const struct job *job, int signal)
{
    gate_enter(&supervisor->gate);
    process_signal_group(job->process.pid, signal);
    /* A job that stands still by itself cannot act on a TERM; one that we froze must not be continued. */
    if (signal != SIGKILL && !containment_is_frozen(supervisor->containment))
        process_signal_group(job->process.pid, SIGCONT);
    gate_leave(&supervisor->gate);
}

void job_killed(struct supervisor *supervisor, struct job *job)
{
    job->phase = JOB_KILLED;
    job->act_boot_ms = supervisor_now(supervisor) + END_BOUND_MS;
}

void job_ask(struct supervisor *supervisor, struct job *job, enum job_verdict why)
{
    if (job->phase != JOB_RUNNING)
        return;
    job->asked = why;
    job->phase = JOB_ENDING;
    job->act_boot_ms = supervisor_now(supervisor) + supervisor->options.grace_ms;
    job_signal(supervisor, job, SIGTERM);
}

void supervisor_stop_job(struct supervisor *supervisor, const char *name)
{
    for (size_t i = 0; i < supervisor->job_count; i++)
        if (strcmp(supervisor->jobs[i]->outcome.name, name) == 0)
            job_ask(supervisor, supervisor->jobs[i], JOB_STOPPED);
}

/* ---- children that changed ---- */

/* What it left is named before its pipe closes: whoever writes to that would be gone then, and nobody would
 * know. */
static void job_exited(struct supervisor *supervisor, struct job *job, int wait_status)
{
    sweep_first(supervisor, job);
    outcome_of_exit(supervisor, job, wait_status);
    process_close(&job->process);
    sweep_begin(supervisor, job);
}

/* Jobs that stand still though nobody froze them. */
static void look_at_standing(struct supervisor *supervisor)
{
    if (supervisor->frozen || guard_state(supervisor->guard) == GUARD_FROZEN)
        return;
    for (size_t i = 0; i < supervisor->job_count; i++) {
        struct job *job = supervisor->jobs[i];
        struct proc_stat stat;
        bool stands =
            job->phase == JOB_RUNNING && proc_stat_read(job->process.pid, &stat) && stat.state == 'T';
        if (!stands)
            job->standing_boot_ms = 0;
        else if (job->standing_boot_ms == 0)
            job->standing_boot_ms = supervisor_now(supervisor);
    }
}

static bool reap_one(struct supervisor *supervisor, pid_t *ret_pid, int *ret_status)
{
    gate_enter(&supervisor->gate);
    bool reaped = containment_reap(supervisor->containment, ret_pid, ret_status);
    gate_leave(&supervisor->gate);
    return reaped;
}

void jobs_reap(struct supervisor *supervisor)
{
    pid_t pid;
    int status;
    while (reap_one(supervisor, &pid, &status)) {
        struct job *job = job_of_pid(supervisor, pid);
        if (job != NULL)
            job_exited(supervisor, job, status);
        else
            runner_reaped(supervisor, pid, status);
    }
    look_at_standing(supervisor);
}

/* ---- time ---- */

void jobs_thawed(struct supervisor *supervisor, int64_t gap_ms)
{
    for (size_t i = 0; i < supervisor->job_count; i++) {
        supervisor->jobs[i]->heard_boot_ms += gap_ms;
        supervisor->jobs[i]->act_boot_ms += gap_ms;
        supervisor->jobs[i]->standing_boot_ms = 0;
    }
    supervisor->children = true; /* some may have stood still before the freeze */
}

static void listen(struct job *job, int64_t now)
{
    int64_t total = job->output != NULL ? output_total_bytes(job->output) : 0;
    if (total != job->seen_bytes) {
        job->seen_bytes = total;
        job->heard_boot_ms = now;
    }
}

/* One bound of a job: asks it to end for `why` when `limit_ms` since `since` are over. 0: no such bound. */
static void bound_look(struct supervisor *supervisor, struct job *job, int64_t since, int64_t limit_ms,
    enum job_verdict why, int64_t now, int64_t *due)
{
    if (limit_ms == 0 || job->phase != JOB_RUNNING)
        return;
    if (now - since >= limit_ms)
        job_ask(supervisor, job, why);
    else
        due_at(due, since + limit_ms);
}

static void running_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due)
{
    int64_t frozen_ms = lease_frozen_ms(supervisor, now) - job->frozen_before_ms;
    listen(job, now);
    bound_look(supervisor, job, job->started_boot_ms + frozen_ms, job->timeout_ms, JOB_TIMED_OUT, now, due);
    bound_look(supervisor, job, job->heard_boot_ms, job->quiet_ms, JOB_QUIET, now, due);
    bound_look(supervisor, job, job->standing_boot_ms, job->standing_boot_ms != 0 ? STALLED_MS : 0,
        JOB_STALLED, now, due);
}

static void ending_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due)
{
    if (now < job->act_boot_ms) {
        due_at(due, job->act_boot_ms);
        return;
    }
    job_signal(supervisor, job, SIGKILL);
    job_killed(supervisor, job);
}

/* A process that hangs in the kernel outlives its KILL: the run does not wait for it without end. */
static void killed_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due)
{
    if (now < job->act_boot_ms) {
        due_at(due, job->act_boot_ms);
        return;
    }
    outcome_of_survivor(supervisor, job);
    outcome_end(supervisor, job, true);
}

typedef void (*phase_look_fn)(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due);

/* Frozen time counts for nobody: then only what needs no clock of the job is looked at. */
static const struct {
    phase_look_fn look;
    bool when_frozen;
} PHASES[] = {
    [JOB_RUNNING] = {running_look, false},
    [JOB_ENDING] = {ending_look, false},
    [JOB_KILLED] = {killed_look, true},
    [JOB_SWEEPING] = {sweep_look, true},
    [JOB_SWEPT] = {sweep_look, true},
};
_Static_assert(ARRAY_SIZE(PHASES) == JOB_PHASE_MAX, "a phase without its look");

void jobs_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    /* Backwards: a look may end the job and take it off the list. */
    for (size_t i = supervisor->job_count; i-- > 0;) {
        struct job *job = supervisor->jobs[i];
        if (!supervisor->frozen || PHASES[job->phase].when_frozen)
            PHASES[job->phase].look(supervisor, job, now, due);
    }
}
