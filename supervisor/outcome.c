/* From what the kernel said about a job to what people and evidence are told. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/memory.h"
#include "supervisor/supervisor-private.h"

static const char *const VERDICT_NAMES[] = {
    [JOB_PASSED] = "passed",
    [JOB_FAILED] = "failed",
    [JOB_SIGNALLED] = "signalled",
    [JOB_TIMED_OUT] = "timed-out",
    [JOB_QUIET] = "quiet",
    [JOB_NOT_STARTED] = "not-started",
    [JOB_STOPPED] = "stopped",
    [JOB_STALLED] = "stalled",
    [JOB_OUTPUT_LOST] = "output-lost",
};
_Static_assert(ARRAY_SIZE(VERDICT_NAMES) == JOB_VERDICT_MAX, "a verdict without a name");

const char *job_verdict_name(enum job_verdict verdict)
{
    return verdict < JOB_VERDICT_MAX ? VERDICT_NAMES[verdict] : "unknown";
}

void job_outcome_done(struct job_outcome *outcome)
{
    free(STEAL(outcome->name));
    free(STEAL(outcome->log));
    free(STEAL(outcome->text));
}

/* ---- the text ---- */

static char *describe_status(const struct job_outcome *outcome)
{
    if (outcome->signal > 0) {
        const char *name = sigabbrev_np(outcome->signal);
        return name != NULL ? mem_format("ended by SIG%s", name)
                            : mem_format("ended by signal %d", outcome->signal);
    }
    return mem_format("exited with status %d", outcome->exit_code);
}

static char *describe_bound(const char *what, int64_t bound_ms, const char *status)
{
    char bound[DURATION_TEXT_SIZE];
    duration_format(bound_ms, bound);
    return mem_format("%s %s, and was ended (%s)", what, bound, status);
}

static char *describe(const struct job *job, const struct error *lost)
{
    _cleanup_(mem_free) char *status = describe_status(&job->outcome);
    switch (job->outcome.verdict) {
    case JOB_TIMED_OUT:
        return describe_bound("did not end within", job->timeout_ms, status);
    case JOB_QUIET:
        return describe_bound("printed nothing for", job->quiet_ms, status);
    case JOB_STALLED:
        return describe_bound("stopped itself and stood still for", STALLED_MS, status);
    case JOB_STOPPED:
        return mem_format("was stopped (%s)", status);
    case JOB_OUTPUT_LOST:
        return mem_format("%s, but its output could not be kept: %s", status, lost->message);
    case JOB_PASSED:
    case JOB_FAILED:
    case JOB_SIGNALLED:
    case JOB_NOT_STARTED:
    case JOB_VERDICT_MAX:
        break;
    }
    return STEAL(status);
}

/* ---- the verdict ---- */

/* What could not be frozen in time was killed: that says nothing about the job. */
static bool killed_by_freeze(const struct supervisor *supervisor, const struct job_outcome *outcome)
{
    return outcome->signal == SIGKILL &&
           (supervisor->frozen || supervisor->killed || guard_state(supervisor->guard) != GUARD_WATCHING);
}

static enum job_verdict judge(const struct supervisor *supervisor, const struct job *job, bool output_lost)
{
    if (job->asked != JOB_VERDICT_MAX)
        return job->asked;
    if (killed_by_freeze(supervisor, &job->outcome))
        return JOB_STOPPED;
    if (job->outcome.signal > 0)
        return JOB_SIGNALLED;
    if (job->outcome.exit_code != 0)
        return JOB_FAILED;
    return output_lost ? JOB_OUTPUT_LOST : JOB_PASSED;
}

/* Takes in what the pipe still holds, and closes the log. */
static enum result take_output(struct job *job, struct error *err)
{
    if (job->output == NULL)
        return RESULT_OK;
    struct job_outcome *outcome = &job->outcome;
    enum result r = capture_drain(job->capture, err);
    if (r == RESULT_OK)
        r = capture_trouble(job->capture, err);
    capture_close(STEAL(job->capture));
    outcome->output_bytes = output_total_bytes(job->output);
    outcome->dropped_bytes = output_dropped_bytes(job->output);
    struct error second = {0};
    enum result finished = output_finish(job->output, outcome->output_digest, &second);
    output_close(STEAL(job->output));
    if (r == RESULT_OK && finished != RESULT_OK)
        return error_move(err, &second);
    error_done(&second);
    return r;
}

static void take_time(struct supervisor *supervisor, struct job *job)
{
    struct job_outcome *outcome = &job->outcome;
    int64_t now = supervisor_now(supervisor);
    outcome->frozen_ms = lease_frozen_ms(supervisor, now) - job->frozen_before_ms;
    outcome->duration_ms = now - job->started_boot_ms - outcome->frozen_ms;
}

void outcome_of_survivor(struct supervisor *supervisor, struct job *job)
{
    struct job_outcome *outcome = &job->outcome;
    struct error dropped = {0};
    take_time(supervisor, job);
    enum result r = take_output(job, &dropped);
    (void)r; /* there are worse news */
    error_done(&dropped);
    outcome->verdict = job->asked != JOB_VERDICT_MAX ? job->asked : JOB_STOPPED;
    outcome->text =
        mem_format("was killed, but process %d does not go: it hangs in the kernel", (int)job->process.pid);
}

void outcome_of_exit(struct supervisor *supervisor, struct job *job, int wait_status)
{
    struct job_outcome *outcome = &job->outcome;
    take_time(supervisor, job);
    if (WIFEXITED(wait_status))
        outcome->exit_code = WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status))
        outcome->signal = WTERMSIG(wait_status);
    _cleanup_(error_done) struct error lost = {0};
    bool output_lost = take_output(job, &lost) != RESULT_OK;
    outcome->verdict = judge(supervisor, job, output_lost);
    outcome->text = describe(job, &lost);
}

void outcome_of_failure(struct job *job, const struct spawn_failure *failure, const struct error *err)
{
    struct job_outcome *outcome = &job->outcome;
    struct error dropped = {0};
    enum result r = take_output(job, &dropped);
    (void)r; /* nothing was written to it */
    error_done(&dropped);
    outcome->verdict = JOB_NOT_STARTED;
    outcome->failure = *failure;
    outcome->text =
        err->remedy != NULL ? mem_format("%s; %s", err->message, err->remedy) : mem_string(err->message);
}

/* ---- the end ---- */

static void add_leftovers(struct job *job, bool survived)
{
    /* What belongs to a job that we ended was to end with it: that is no news. */
    bool asked = job->asked != JOB_VERDICT_MAX && !survived;
    if (job->left.length == 0 || asked)
        return;
    char *text = mem_format("%s; %d process%s outlived it and %s: %s", job->outcome.text,
        job->outcome.leftovers, job->outcome.leftovers == 1 ? "" : "es",
        survived ? "could not be ended" : "had to be ended", job->left.bytes);
    free(job->outcome.text);
    job->outcome.text = text;
}

static void tell_finished(
    struct supervisor *supervisor, const struct job_outcome *outcome, const char *verdict, const char *text)
{
    struct journal_event event = {
        .kind = JOURNAL_FINISHED,
        .producer = outcome->name,
        .verdict = verdict,
        .exit_code = outcome->exit_code,
        .signal = outcome->signal,
        .duration_ms = outcome->duration_ms,
        .frozen_ms = outcome->frozen_ms,
        .digest = outcome->output_digest[0] != '\0' ? outcome->output_digest : NULL,
        .offset_bytes = outcome->output_bytes,
        .dropped_bytes = outcome->dropped_bytes,
        .log = outcome->log,
        .text = text,
    };
    /* Evidence may follow from what was captured; from anything else only the settlement, which syncs both.
     */
    tell(supervisor, &event, outcome->log != NULL ? JOURNAL_DURABLE : JOURNAL_LAZY);
}

void outcome_end(struct supervisor *supervisor, struct job *job, bool survived)
{
    struct job_outcome *outcome = &job->outcome;
    add_leftovers(job, survived);
    outcome->unjudged = job->judged && outcome->verdict == JOB_PASSED;
    if (!outcome->unjudged)
        tell_finished(supervisor, outcome, job_verdict_name(outcome->verdict), outcome->text);
    struct supervisor_event event = {.kind = SUPERVISOR_JOB_FINISHED, .outcome = job->outcome};
    job->outcome = (struct job_outcome){0};
    loop_queue(supervisor, &event);
    job_forget(supervisor, job);
}

void supervisor_judge(
    struct supervisor *supervisor, struct job_outcome *outcome, const char *verdict, const char *text)
{
    if (!outcome->unjudged)
        return;
    outcome->unjudged = false;
    if (verdict != NULL) {
        tell_finished(supervisor, outcome, verdict, text != NULL ? text : outcome->text);
        return;
    }
    _cleanup_(mem_free) char *never =
        mem_format("%s, but the run ended before somebody looked at what it left", outcome->text);
    tell_finished(supervisor, outcome, job_verdict_name(JOB_STOPPED), never);
}
