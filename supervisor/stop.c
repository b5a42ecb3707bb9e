/* Stopping the run: once for one cause, and ending all of its work. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/supervisor-private.h"

#define STOP_SILENT_MS INT64_C(500)

struct reason reason_make(const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct reason reason = {.code = mem_string(code), .text = mem_vformat(format, arguments)};
    va_end(arguments);
    return reason;
}

void stop_kill_all(struct supervisor *supervisor)
{
    struct containment_report report = {0};
    supervisor->killed = true;
    gate_enter(&supervisor->gate);
    containment_signal(supervisor->containment, SIGKILL, &report);
    gate_leave(&supervisor->gate);
    containment_report_done(&report);
    for (size_t i = 0; i < supervisor->job_count; i++) {
        struct job *job = supervisor->jobs[i];
        if (job->phase == JOB_RUNNING || job->phase == JOB_ENDING)
            job_killed(supervisor, job);
    }
}

/* Frozen work cannot act on a TERM and may not be thawed for it; work without a lease has had its time. */
static bool must_kill(const struct supervisor *supervisor)
{
    return supervisor->frozen || supervisor->stop.cause == STOP_RETIRED;
}

static void ask_jobs(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->job_count; i++)
        job_ask(supervisor, supervisor->jobs[i], JOB_STOPPED);
    if (must_kill(supervisor))
        stop_kill_all(supervisor);
}

void stop_run(struct supervisor *supervisor, enum stop_cause cause, int signal, struct reason *reason)
{
    bool first = supervisor->stop.cause == STOP_NONE;
    if (!first && (cause != STOP_RETIRED || supervisor->stop.cause == STOP_RETIRED)) {
        reason_done(reason);
        return;
    }
    reason_done(&supervisor->stop.reason);
    supervisor->stop = (struct stop){.cause = cause, .signal = signal, .reason = *reason};
    *reason = (struct reason){0};
    ask_jobs(supervisor);
    if (first)
        loop_queue(supervisor, &(struct supervisor_event){.kind = SUPERVISOR_STOPPING});
}

void stop_on_signal(struct supervisor *supervisor, int signal)
{
    int64_t now = supervisor_now(supervisor);
    if (supervisor->stop.cause != STOP_NONE) {
        if (supervisor->signal_boot_ms == 0 || now - supervisor->signal_boot_ms > SAME_SIGNAL_MS)
            stop_kill_all(supervisor);
        return;
    }
    supervisor->signal_boot_ms = now;
    struct reason reason = reason_make("signal", "ended by SIG%s", sigabbrev_np(signal));
    stop_run(supervisor, STOP_SIGNAL, signal, &reason);
}

/* What ends at once needs no word; what does not would look as if nobody had heard. */
static void tell_stopping(struct supervisor *supervisor)
{
    struct text names = {0};
    for (size_t i = 0; i < supervisor->job_count; i++)
        text_addf(&names, "%s%s", i > 0 ? ", " : "", supervisor->jobs[i]->outcome.name);
    bool typed = supervisor->stop.signal == SIGINT;
    tell_note(supervisor, "stopping: %s %s asked to end; %s%s ends %s at once", names.bytes,
        supervisor->job_count == 1 ? "was" : "were", typed ? "Ctrl-C" : "another SIG",
        typed ? " again" : sigabbrev_np(supervisor->stop.signal), supervisor->job_count == 1 ? "it" : "them");
    text_done(&names);
}

void stop_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    bool waits = supervisor->stop.cause == STOP_SIGNAL && !supervisor->killed && supervisor->job_count > 0;
    if (!waits || supervisor->stopping_told)
        return;
    if (now < supervisor->signal_boot_ms + STOP_SILENT_MS) {
        due_at(due, supervisor->signal_boot_ms + STOP_SILENT_MS);
        return;
    }
    supervisor->stopping_told = true;
    tell_stopping(supervisor);
}

/* ---- the end of all work ---- */

static bool work_lives(struct supervisor *supervisor)
{
    jobs_reap(supervisor);
    gate_enter(&supervisor->gate);
    bool lives = !containment_is_empty(supervisor->containment);
    gate_leave(&supervisor->gate);
    return lives;
}

static void name_survivors(struct supervisor *supervisor, struct text *ret)
{
    gate_enter(&supervisor->gate);
    containment_name_survivors(supervisor->containment, ret);
    gate_leave(&supervisor->gate);
}

/* Turns the loop until nothing lives, everything was killed by somebody else's wish, or the time is over. */
static bool wait_for_end(struct supervisor *supervisor, int64_t bound_ms, bool until_killed)
{
    int64_t until = supervisor_now(supervisor) + bound_ms;
    while (work_lives(supervisor)) {
        int64_t left = until - supervisor_now(supervisor);
        if (left <= 0 || (until_killed && supervisor->killed))
            return false;
        if (loop_turn(supervisor, left < 20 ? left : 20, NULL) != RESULT_OK)
            return false;
    }
    return true;
}

static bool end_gently(struct supervisor *supervisor)
{
    bool only_orphans = supervisor->job_count == 0;
    struct containment_report report = {0};
    for (size_t i = 0; i < supervisor->job_count; i++)
        job_ask(supervisor, supervisor->jobs[i], JOB_STOPPED);
    gate_enter(&supervisor->gate);
    containment_signal(supervisor->containment, SIGTERM, &report);
    gate_leave(&supervisor->gate);
    containment_report_done(&report);
    int64_t grace_ms = supervisor->options.grace_ms;
    return wait_for_end(
        supervisor, only_orphans && SWEEP_GRACE_MS < grace_ms ? SWEEP_GRACE_MS : grace_ms, true);
}

static bool end_by_force(struct supervisor *supervisor)
{
    for (int64_t until = supervisor_now(supervisor) + END_BOUND_MS; supervisor_now(supervisor) < until;) {
        stop_kill_all(supervisor);
        if (wait_for_end(supervisor, 200, false))
            return true;
    }
    return false;
}

/* The jobs' own outcomes: the sweep of the last one may need a turn more. */
static void finish_jobs(struct supervisor *supervisor)
{
    int64_t until = supervisor_now(supervisor) + SWEEP_GRACE_MS;
    while (supervisor->job_count > 0 && supervisor_now(supervisor) < until)
        if (loop_turn(supervisor, 10, NULL) != RESULT_OK)
            return;
}

enum result supervisor_end_work(
    struct supervisor *supervisor, bool at_once, struct text *ret_named, struct error *err)
{
    if (MUTANT("work-dead") || !work_lives(supervisor))
        return RESULT_OK;
    struct text named = {0};
    name_survivors(supervisor, &named);
    FAILPOINT("supervisor-before-end-work");
    bool dead = !at_once && !must_kill(supervisor) && !supervisor->killed && end_gently(supervisor);
    if (!dead)
        dead = end_by_force(supervisor);
    finish_jobs(supervisor);
    if (named.length > 0) {
        tell_note(supervisor, "ended at the end of the run: %s", named.bytes);
        text_append(ret_named, named.bytes, named.length);
    }
    text_done(&named);
    if (dead)
        return RESULT_OK;
    name_survivors(supervisor, &named);
    error_set(err, RESULT_BUSY, 0, "some of the work could not be ended: %s",
        named.bytes != NULL ? named.bytes : "a process that cannot be seen");
    text_done(&named);
    return error_remedy(
        err, "look at what it waits for (a process in state D hangs in the kernel), then end it");
}
