/* Running the plan: needs first, so many at once, evidence under the token, and the tree looked at around
 * each. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "completion/completion-private.h"
#include "completion/demand/pathspec.h"

#define FAILED_SHOWN 10

#define JOB_FILES 4  /* of each job */
#define OWN_FILES 28 /* of the run itself, and while git looks at the tree */

static enum result record(
    struct run *run, const struct journal_event *event, enum journal_durability durability, struct error *err)
{
    return journal_append(hold_journal(run->hold), event, durability, err);
}

/* A broken journal is a lost witness, not a lost run: it has said so itself. */
static void record_note(struct run *run, const char *text)
{
    _cleanup_(error_done) struct error ignored = {0};
    struct journal_event event = {.kind = JOURNAL_NOTE, .text = text};
    (void)!record(run, &event, JOURNAL_LAZY, &ignored);
}

/* The first one's sentence is what the run is told by; of several, their names. Takes over the sentence. */
static void fail(struct run *run, const char *name, char *sentence)
{
    run->failed = true;
    if (run->failed_count++ < FAILED_SHOWN)
        text_addf(&run->failed_names, "%s%s", run->failed_count > 1 ? ", " : "", name);
    if (run->failure == NULL)
        run->failure = sentence;
    else
        free(sentence);
}

static void sum_up_failures(struct run *run, size_t demanded)
{
    if (run->failed_count < 2)
        return;
    free(run->failure);
    if (run->failed_count > FAILED_SHOWN)
        text_addf(&run->failed_names, " and %zu more", run->failed_count - FAILED_SHOWN);
    run->failure = mem_format("%zu of %zu failed: %s", run->failed_count, demanded, run->failed_names.bytes);
}

static size_t count_state(const struct run *run, enum step_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < run->config.producer_count; i++)
        count += run->steps[i].state == state;
    return count;
}

static void tell_progress(struct run *run)
{
    size_t total = run->config.producer_count - count_state(run, STEP_OUT);
    supervisor_progress(
        hold_supervisor(run->hold), "producers", (int64_t)count_state(run, STEP_ENDED), (int64_t)total);
}

/* ---- who is next ---- */

enum readiness {
    STEP_READY,
    STEP_NOT_YET,
    STEP_NEVER, /* a need failed or was dropped */
};

static enum readiness readiness(const struct run *run, const struct step *step)
{
    enum readiness all = STEP_READY;
    for (size_t i = 0; i < step->producer->needs.count; i++) {
        const struct step *need = &run->steps[step->producer->need_indices[i]];
        if (need->state == STEP_DROPPED || (need->state == STEP_ENDED && !need->evidence.passed))
            return STEP_NEVER;
        if (need->state != STEP_ENDED)
            all = STEP_NOT_YET;
    }
    return all;
}

/* As many as the limit for descriptors bears (RLIMIT_NOFILE); one at least. */
static size_t places_at_most(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    size_t left = files.rlim_cur > OWN_FILES ? (size_t)files.rlim_cur - OWN_FILES : 0;
    return left / JOB_FILES > 0 ? left / JOB_FILES : 1;
}

static size_t places(const struct run *run)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = run->options->jobs > 0 ? run->options->jobs : processors > 0 ? (size_t)processors : 1;
    size_t most = places_at_most();
    return wanted < most ? wanted : most;
}

/* ---- the tree ---- */

/* The usual reason at first: what producers make is not ignored yet. The sentence says so itself, since it
 * becomes the reason in the record. */
static enum result refuse_moved(struct run *run, const struct candidate *now, struct error *err)
{
    _cleanup_(text_done) struct text remedy = {0};
    run->moved = true;
    if (!config_left_behind(&run->config, now, &remedy))
        return RESULT_CONFLICT;
    _cleanup_(mem_free) char *message = mem_string(err->message);
    return error_set(err, RESULT_CONFLICT, 0, "%s; producers leave this behind: %s", message, remedy.bytes);
}

static enum result look_at_tree(struct run *run, struct error *err)
{
    struct candidate now = {.top_fd = -1};
    enum result r = candidate_look(run->runner, run->candidate.top, &now, err);
    if (r == RESULT_INVALID || r == RESULT_CONFLICT) {
        /* The repository itself is gone, renamed or replaced: the tree that was to be proved is not there. Or
         * somebody writes to it faster than git can read. */
        run->moved = true;
        return RESULT_CONFLICT;
    }
    if (r != RESULT_OK)
        return r;
    r = candidate_check_same(&run->candidate, &now, err);
    if (r == RESULT_CONFLICT)
        r = refuse_moved(run, &now, err);
    candidate_done(&now);
    run->looked = r == RESULT_OK;
    return r;
}

static enum result take_inputs(struct run *run, struct step *step, struct error *err)
{
    _cleanup_(mem_free) size_t *indices = NULL;
    size_t count = 0;
    pathspec_select(&run->candidate, &step->producer->inputs, &indices, &count);
    return snapshot_take(&run->candidate, indices, count, &step->ahead, err);
}

/* Of those that may start in this turn, and of `must` in any case. It comes before the look: what was looked
 * at behind it and is as it was then in the end, was the candidate's the whole time. */
static enum result take_ahead(struct run *run, const struct step *must, struct error *err)
{
    size_t running = count_state(run, STEP_RUNNING), most = places(run);
    size_t left = most > running ? most - running : 0;
    enum result r = RESULT_OK;
    for (size_t n = 0; n < run->config.producer_count && r == RESULT_OK; n++) {
        struct step *step = &run->steps[run->config.order[n]];
        snapshot_free(STEAL(step->ahead));
        bool next =
            left > 0 && step->state == STEP_WAITING && !step->reuse && readiness(run, step) == STEP_READY;
        left -= next;
        if (next || step == must)
            r = take_inputs(run, step, err);
    }
    return r;
}

static enum result look_behind_inputs(struct run *run, const struct step *must, struct error *err)
{
    if (run->options->dirty || (run->looked && (must == NULL || must->ahead != NULL)))
        return RESULT_OK;
    run->looked = false;
    enum result r = take_ahead(run, must, err);
    return r == RESULT_OK ? look_at_tree(run, err) : r;
}

enum result schedule_look(struct run *run, struct error *err)
{
    return look_behind_inputs(run, NULL, err);
}

static enum result check_needs(struct run *run, const struct step *step, struct error *err)
{
    if (run->options->dirty)
        return RESULT_OK;
    enum result r = plan_check_needs(run, step, err);
    run->moved |= r == RESULT_CONFLICT;
    return r;
}

static enum result check_inputs(struct run *run, struct step *step, struct error *err)
{
    if (run->options->dirty || step->inputs == NULL)
        return RESULT_OK;
    enum result r = snapshot_check(step->inputs, err);
    if (r == RESULT_OK)
        r = check_needs(run, step, err);
    run->moved |= r == RESULT_CONFLICT;
    return r;
}

/* ---- evidence ---- */

static enum result put_evidence(struct run *run, struct step *step, struct error *err)
{
    struct evidence_row row = {0};
    evidence_to_row(&step->evidence, run->repository, &row);
    enum result r = RESULT_LAPSED;
    if (hold_is_confirmed(run->hold))
        r = store_evidence_put(hold_store(run->hold), hold_credential(run->hold), &row, err);
    else
        error_set(err, RESULT_LAPSED, 0, "the lease could not be confirmed; no evidence was stored");
    step->evidence.sequence = row.sequence;
    evidence_row_done(&row);
    if (r != RESULT_OK)
        return r;
    struct journal_event event = {.kind = JOURNAL_EVIDENCE,
        .producer = step->producer->name,
        .key = step->evidence.applicability.key,
        .verdict = step->evidence.verdict};
    return record(run, &event, JOURNAL_LAZY, err);
}

static enum result note_reuse(struct run *run, struct step *step, struct error *err)
{
    struct journal_event event = {.kind = JOURNAL_EVIDENCE,
        .producer = step->producer->name,
        .key = step->evidence.applicability.key,
        .verdict = step->evidence.verdict,
        .text = step->reason,
        .reused = true};
    return record(run, &event, JOURNAL_LAZY, err);
}

static void fail_evidence(struct evidence *evidence, const char *verdict, char *text)
{
    evidence->passed = false;
    free(evidence->verdict);
    evidence->verdict = mem_string(verdict);
    free(evidence->text);
    evidence->text = text;
}

static void check_made(struct evidence *evidence, const struct output_states *states)
{
    for (size_t i = 0; i < states->count && evidence->passed; i++) {
        const char *path = states->items[i].path;
        _cleanup_(text_done) struct text name = {0};
        if (states->items[i].mode != 0)
            continue;
        text_add_printable(&name, path, strlen(path), false);
        fail_evidence(evidence, VERDICT_OUTPUT_MISSING,
            mem_format("it exited 0 and did not make %s, which it declares", name.bytes));
    }
}

/* What the producer promised to leave behind, looked at right after it. What cannot be kept (a FIFO, a link
 * on the way) is as bad as nothing there: the producer failed. */
static enum result look_at_outputs(struct run *run, struct step *step, struct error *err)
{
    struct evidence *evidence = &step->evidence;
    _cleanup_(error_done) struct error why = {0};
    enum result r =
        outputs_look(run->candidate.top_fd, &step->producer->outputs, run->runner, &evidence->outputs, &why);
    if (r == RESULT_OK)
        r = outputs_look(
            run->candidate.top_fd, &step->producer->artifacts, run->runner, &evidence->artifacts, &why);
    if (r != RESULT_OK && r != RESULT_INVALID)
        return error_move(err, &why);
    if (r == RESULT_INVALID && evidence->passed)
        fail_evidence(evidence, VERDICT_OUTPUT_UNFIT, mem_string(why.message));
    check_made(evidence, &evidence->outputs);
    check_made(evidence, &evidence->artifacts);
    return RESULT_OK;
}

static void describe_evidence(struct run *run, struct step *step, const struct job_outcome *outcome)
{
    struct evidence *evidence = &step->evidence;
    const struct attempt *attempt = hold_attempt(run->hold);
    snprintf(evidence->attempt_id, sizeof evidence->attempt_id, "%s", attempt->id);
    evidence->handle = mem_string(attempt->journal_handle);
    evidence->host = mem_string(attempt->executor.host);
    evidence->commit = mem_string(run->candidate.commit);
    evidence->tree = mem_string(run->candidate.tree);
    evidence->wall_ms = run->clock->wall_ms(run->clock);
    if (outcome->log)
        evidence->log = mem_format("%s/out/%s", journal_directory(hold_journal(run->hold)), outcome->log);
}

static bool is_stopped(const struct run *run)
{
    return supervisor_stop_of(hold_supervisor(run->hold))->cause != STOP_NONE;
}

/* Whether it passed, once it has ended well: its outputs, and what it was made from. Then the record may say
 * so. CONFLICT: the tree moved. */
static enum result judge_step(
    struct run *run, struct step *step, struct job_outcome *outcome, struct error *err)
{
    struct evidence *evidence = &step->evidence;
    _cleanup_(error_done) struct error why = {0};
    enum result r = look_at_outputs(run, step, &why);
    if (r == RESULT_OK)
        r = check_inputs(run, step, &why);
    if (r == RESULT_CONFLICT && evidence->passed)
        fail_evidence(evidence, VERDICT_INPUTS_CHANGED, mem_string(why.message));
    bool known = r == RESULT_OK || r == RESULT_CONFLICT;
    supervisor_judge(
        hold_supervisor(run->hold), outcome, known ? evidence->verdict : NULL, known ? evidence->text : NULL);
    return r == RESULT_OK ? r : error_move(err, &why);
}

static enum result finish_step(
    struct run *run, struct step *step, struct job_outcome *outcome, struct error *err)
{
    step->state = STEP_ENDED;
    evidence_from_outcome(outcome, &step->applicability, &step->evidence);
    describe_evidence(run, step, outcome);
    enum result r = judge_step(run, step, outcome, err);
    if (r == RESULT_OK && !is_stopped(run))
        r = schedule_look(run, err);
    if (r != RESULT_OK)
        return r;
    if (!step->evidence.passed && !is_stopped(run))
        fail(run, step->producer->name,
            mem_format("%s: %s", step->producer->name,
                step->evidence.text ? step->evidence.text : step->evidence.verdict));
    if (run->options->dirty || is_stopped(run))
        return RESULT_OK;
    return put_evidence(run, step, err);
}

/* ---- starting ---- */

static enum result spawn(struct run *run, const char *name, const struct command_line *line,
    const struct producer *producer, int64_t timeout_ms, int64_t expected_ms, struct error *err)
{
    static const struct producer NO_DECLARATIONS = {0};
    const struct producer *declared = producer ? producer : &NO_DECLARATIONS;
    char **environment = environment_make(declared, run->surroundings.environment, hold_marks(run->hold));
    const char *shell[] = {"/bin/sh", "-c", line->shell ? line->words.items[0] : NULL, NULL};
    _cleanup_(mem_free) char *command = command_line_quote(line);
    struct job_request request = {
        .name = name,
        .command = command,
        .argv = line->shell ? shell : (const char *const *)line->words.items,
        .environment = (const char *const *)environment,
        .directory_fd = run->candidate.top_fd,
        .captured = true,
        .judged = producer != NULL,
        .timeout_ms = timeout_ms,
        .quiet_ms = declared->quiet_ms,
        .expected_ms = expected_ms,
    };
    enum result r = supervisor_spawn(hold_supervisor(run->hold), &request, err);
    environment_free(environment);
    return r;
}

static enum result start_step(struct run *run, struct step *step, struct error *err)
{
    enum result r = look_behind_inputs(run, step, err);
    if (r == RESULT_OK)
        r = check_needs(run, step, err);
    step->inputs = STEAL(step->ahead);
    if (r == RESULT_OK)
        r = spawn(run, step->producer->name, &step->producer->run, step->producer, step->producer->timeout_ms,
            step->expected_ms, err);
    if (r == RESULT_OK)
        step->state = STEP_RUNNING;
    else {
        snapshot_free(step->inputs);
        step->inputs = NULL;
    }
    return r;
}

static enum result reuse_step(struct run *run, struct step *step, struct error *err)
{
    step->state = STEP_ENDED;
    if (!step->evidence.passed)
        fail(run, step->producer->name,
            mem_format("%s failed before, and nothing that it depends on changed", step->producer->name));
    return note_reuse(run, step, err);
}

static bool may_start_more(const struct run *run)
{
    return !is_stopped(run) && !run->moved && (!run->failed || run->options->keep_going);
}

/* What is known comes first: a failure seen before is told at once, before anything is started. */
static enum result reuse_known(struct run *run, struct error *err)
{
    enum result r = RESULT_OK;
    for (size_t n = 0; n < run->config.producer_count && r == RESULT_OK && may_start_more(run); n++) {
        size_t index = run->config.order[n];
        struct step *step = &run->steps[index];
        if (step->state != STEP_WAITING || !step->reuse || readiness(run, step) != STEP_READY)
            continue;
        r = plan_resolve(run, hold_store(run->hold), index, err);
        if (r == RESULT_OK && step->reuse)
            r = reuse_step(run, step, err);
    }
    return r;
}

static enum result begin_step(struct run *run, size_t index, struct error *err)
{
    struct step *step = &run->steps[index];
    enum result r = plan_resolve(run, hold_store(run->hold), index, err);
    if (r != RESULT_OK)
        return r;
    return step->reuse ? reuse_step(run, step, err) : start_step(run, step, err);
}

/* Starts what can be started now. BUSY is not an error: the gate is closed, and opens with an event. */
static enum result start_ready(struct run *run, struct error *err)
{
    const size_t most = places(run); /* asks the kernel: not for each of a thousand producers */
    size_t running = count_state(run, STEP_RUNNING);
    for (size_t n = 0; n < run->config.producer_count && may_start_more(run); n++) {
        size_t index = run->config.order[n];
        struct step *step = &run->steps[index];
        if (step->state != STEP_WAITING)
            continue;
        enum readiness ready = readiness(run, step);
        if (ready == STEP_NEVER)
            step->state = STEP_DROPPED;
        if (ready != STEP_READY || running >= most)
            continue;
        enum result r = begin_step(run, index, err);
        running += step->state == STEP_RUNNING;
        if (r == RESULT_BUSY || r == RESULT_INTERRUPTED) {
            error_done(err);
            return RESULT_OK;
        }
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static struct step *step_named(struct run *run, const char *name)
{
    size_t index = config_producer(&run->config, name);
    return index == SIZE_MAX ? NULL : &run->steps[index];
}

/* ---- procedures: under the lease, and no evidence ---- */

static enum result await_procedure(struct run *run, const struct procedure *procedure, struct error *err)
{
    for (;;) {
        struct supervisor_event event = {0};
        enum result r = supervisor_next(hold_supervisor(run->hold), &event, err);
        if (r != RESULT_OK)
            return r;
        if (event.kind != SUPERVISOR_JOB_FINISHED && event.kind != SUPERVISOR_IDLE)
            continue;
        if (event.kind == SUPERVISOR_JOB_FINISHED && event.outcome.verdict != JOB_PASSED && !is_stopped(run))
            fail(run, procedure->name,
                mem_format("procedure %s: %s", procedure->name,
                    event.outcome.text ? event.outcome.text : job_verdict_name(event.outcome.verdict)));
        job_outcome_done(&event.outcome);
        return RESULT_OK;
    }
}

static enum result run_procedures(struct run *run, enum procedure_when when, struct error *err)
{
    for (size_t i = 0; i < run->config.procedure_count && may_start_more(run); i++) {
        const struct procedure *procedure = &run->config.procedures[i];
        if (procedure->when != when)
            continue;
        enum result r = spawn(run, procedure->name, &procedure->run, NULL, procedure->timeout_ms, 0, err);
        if (r == RESULT_OK)
            r = await_procedure(run, procedure, err);
        if (r == RESULT_INTERRUPTED) {
            error_done(err);
            return RESULT_OK;
        }
        if (r != RESULT_OK)
            return r;
        run->looked = false;
    }
    return RESULT_OK;
}

/* ---- the round ---- */

static enum result take_event(struct run *run, bool *ret_more, struct error *err)
{
    struct supervisor_event event = {0};
    enum result r = supervisor_next(hold_supervisor(run->hold), &event, err);
    if (r != RESULT_OK)
        return r;
    run->looked = false;
    if (event.kind == SUPERVISOR_IDLE)
        *ret_more = false;
    if (event.kind != SUPERVISOR_JOB_FINISHED)
        return RESULT_OK;
    struct step *step = step_named(run, event.outcome.name);
    if (step != NULL && step->state == STEP_RUNNING)
        r = finish_step(run, step, &event.outcome, err);
    job_outcome_done(&event.outcome);
    tell_progress(run);
    return r;
}

static enum result run_producers(struct run *run, struct error *err)
{
    for (bool more = true; more;) {
        enum result r = start_ready(run, err);
        if (r != RESULT_OK)
            return r;
        if (count_state(run, STEP_RUNNING) == 0 &&
            (count_state(run, STEP_WAITING) == 0 || !may_start_more(run)))
            break;
        r = take_event(run, &more, err);
        if (r != RESULT_OK)
            return r;
        more |= may_start_more(run) && count_state(run, STEP_WAITING) > 0;
    }
    return RESULT_OK;
}

static void drop_the_rest(struct run *run)
{
    for (size_t i = 0; i < run->config.producer_count; i++)
        if (run->steps[i].state == STEP_WAITING || run->steps[i].state == STEP_RUNNING)
            run->steps[i].state = STEP_DROPPED;
}

/* What can never be started is dropped, so that what is left waiting will run, and procedures with it. */
static bool something_will_run(struct run *run)
{
    for (size_t n = 0; n < run->config.producer_count; n++) {
        struct step *step = &run->steps[run->config.order[n]];
        if (step->state == STEP_WAITING && readiness(run, step) == STEP_NEVER)
            step->state = STEP_DROPPED;
    }
    return count_state(run, STEP_WAITING) > 0;
}

enum result schedule_run(struct run *run, struct error *err)
{
    tell_progress(run);
    enum result r = reuse_known(run, err);
    bool work = r == RESULT_OK && something_will_run(run);
    if (r == RESULT_OK && !work && !run->failed)
        record_note(run, "every producer is covered by evidence; nothing has to run");
    if (work)
        r = run_procedures(run, PROCEDURE_BEFORE, err);
    if (r == RESULT_OK)
        r = run_producers(run, err);
    if (r == RESULT_OK && work)
        r = run_procedures(run, PROCEDURE_AFTER, err);
    drop_the_rest(run);
    sum_up_failures(run, run->config.producer_count - count_state(run, STEP_OUT));
    return r;
}
