/* The story of `done`, in order. */
#include "completion/completion.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"
#include "completion/completion-private.h"
#include "completion/proof/keys.h"
#include "supervisor/marks.h"

/* ---- 1. what is to be proved ---- */

static enum result look_at_tree(struct run *run, struct error *err)
{
    const char *directory = run->options->directory ? run->options->directory : ".";
    _cleanup_(error_done) struct error why = {0};
    enum result r = candidate_look(run->runner, directory, &run->candidate, &why);
    if (r == RESULT_CONFLICT) { /* nothing has begun: refused like a tree that is not clean */
        error_set(err, RESULT_INVALID, 0, "%s", why.message);
        return error_remedy(err, "leave the repository alone while it is looked at, and run it again");
    }
    if (r != RESULT_OK)
        return error_move(err, &why);
    run->result->commit = mem_string(run->candidate.commit);
    run->result->tree = mem_string(run->candidate.tree);
    return RESULT_OK;
}

static void prepare_steps(struct run *run)
{
    run->steps = mem_alloc((run->config.producer_count + 1) * sizeof *run->steps);
    for (size_t i = 0; i < run->config.producer_count; i++) {
        run->steps[i].producer = &run->config.producers[i];
        run->steps[i].state = run->demanded[i] ? STEP_WAITING : STEP_OUT;
        run->partial |= !run->demanded[i];
    }
}

static enum result read_demand(struct run *run, struct error *err)
{
    enum result r = config_read(run->candidate.top_fd, &run->config, NULL, err);
    if (r == RESULT_OK)
        r = config_demand(&run->config, run->options->names, run->options->name_count, &run->demanded, err);
    if (r == RESULT_OK && !run->options->dirty)
        r = config_check_clean(&run->config, &run->candidate, err);
    if (r == RESULT_OK && !run->options->dirty)
        r = config_check_committed(&run->candidate, err);
    if (r == RESULT_OK)
        r = demand_digest(&run->config, run->demanded, &run->candidate, &run->surroundings, run->demand, err);
    if (r != RESULT_OK)
        return r;
    prepare_steps(run);
    run->store_url = run->options->store_url ? run->options->store_url : run->config.store_url;
    run->repository = candidate_repository(&run->candidate, run->config.repository);
    run->result->repository = mem_string(run->repository);
    run->result->partial = run->partial;
    run->result->trial = run->options->dirty;
    return RESULT_OK;
}

/* ---- 2. is it proved already? ---- */

static enum result open_to_look(struct run *run, struct store **ret, struct error *err)
{
    struct machine machine;
    enum result r = machine_read(&machine, err);
    if (r != RESULT_OK)
        return r;
    struct store_options options = {.url = run->store_url, .clock = run->clock, .machine = &machine};
    return store_open(&options, STORE_READ, ret, err);
}

static void tell_already(struct run *run, const struct proof *proof)
{
    struct completion_result *result = run->result;
    result->already = true;
    result->outcome = OUTCOME_DONE;
    result->state = ATTEMPT_PASSED;
    result->proof_id = mem_string(proof->id);
    result->key_id = mem_string(proof->key_id);
    free(result->attempt_id); /* there is one when we hold an attempt ourselves */
    free(STEAL(result->handle));
    result->attempt_id = mem_string(proof->attempt_id);
    result->fence = proof->fence;
    result->sentence = mem_format("%s is proved already; nothing to do", run->repository);
}

/* `done` inside a `done` of the same store would wait for itself. Inside `tenure run` it is welcome. */
static enum result refuse_nesting(struct store *store, struct error *err)
{
    const char *mark = getenv("TENURE_ATTEMPT");
    if (mark == NULL || !mark_is_inside(store_id(store)))
        return RESULT_OK;
    _cleanup_(mem_free) char *ids = mem_string(mark);
    char *rest = ids;
    for (char *id; (id = strsep(&rest, ":")) != NULL;) {
        struct attempt outer = {0};
        _cleanup_(error_done) struct error ignored = {0};
        bool completes = store_find(store, id, &outer, &ignored) == RESULT_OK && outer.kind != KIND_COMMAND &&
                         attempt_is_unfinished(&outer);
        if (completes)
            error_set(err, RESULT_INVALID, 0, "`tenure done` was called by a producer of attempt %s",
                attempt_name(&outer));
        attempt_done(&outer);
        if (!completes)
            continue;
        return error_remedy(err, "call the checks themselves in that producer, or use a store of its own");
    }
    return RESULT_OK;
}

/* OK and *ret_proved, or an error. A store that does not exist yet proves nothing. */
static enum result look_for_proof(struct run *run, struct store *store, bool *ret_proved, struct error *err)
{
    if (run->options->rerun || run->options->dirty)
        return RESULT_OK;
    struct proof proof = {0};
    enum result r = proving_find(run, store, &proof, err);
    if (r == RESULT_OK) {
        tell_already(run, &proof);
        *ret_proved = true;
    }
    proof_done(&proof);
    if (r == RESULT_ABSENT) {
        error_done(err);
        return RESULT_OK;
    }
    return r;
}

static bool still_wanted(void *context)
{
    struct run *run = context;
    _cleanup_(error_done) struct error ignored = {0};
    _cleanup_(store_cleanup) struct store *store = NULL;
    bool proved = false;
    if (open_to_look(run, &store, &ignored) == RESULT_OK)
        (void)!look_for_proof(run, store, &proved, &ignored);
    return !proved;
}

/* ---- 3. a plan only ---- */

static enum result plan_only(struct run *run, struct store *store, struct error *err)
{
    enum result r = config_check_inputs(&run->config, &run->candidate, err);
    if (r == RESULT_OK)
        r = plan_make(run, store, err);
    if (r != RESULT_OK)
        return r;
    size_t runs = 0, reused = 0;
    for (size_t i = 0; i < run->config.producer_count; i++)
        if (run->steps[i].state != STEP_OUT)
            *(run->steps[i].reuse ? &reused : &runs) += 1;
    run->result->outcome = OUTCOME_DONE;
    run->result->sentence = mem_format("%zu would run, %zu would be reused", runs, reused);
    return RESULT_OK;
}

/* ---- 4. the work, under the lease ---- */

/* The hold has one context for both of its questions: ours. */
static void pass_on_waiting(void *context, const struct attempt *holder, const struct store_time *now)
{
    struct run *run = context;
    if (run->options->waiting)
        run->options->waiting(run->options->context, holder, now);
}

static enum result begin(struct run *run, struct error *err)
{
    _cleanup_(mem_free) char *checkout = NULL;
    enum result r = candidate_checkout(&run->candidate, &checkout, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(mem_free) char *place = mem_format("checkout:%s", checkout);
    _cleanup_(mem_free) char *subject = mem_format("candidate:%s@%s", run->repository, run->candidate.tree);
    const char *subjects[] = {place, subject};
    struct hold_options options = {
        .store_url = run->store_url,
        .kind = run->options->dirty ? KIND_TRIAL : KIND_DONE,
        .repository = run->repository,
        .commit = run->candidate.commit,
        .tree = run->candidate.tree,
        .what = run->options->what,
        .subjects = subjects,
        .subject_count = run->options->dirty ? 1 : ARRAY_SIZE(subjects),
        .terms = run->config.terms,
        .on_lapse = run->config.on_lapse,
        .lapse_patience_ms = run->config.lapse_patience_ms,
        .wait_ms = run->options->wait_ms,
        .tap = run->options->tap,
        .tap_context = run->options->context,
        .waiting = pass_on_waiting,
        .wanted = still_wanted,
        .context = run,
    };
    r = hold_begin(&options, &run->hold, &run->result->pending, &run->result->signal, err);
    if (r != RESULT_OK)
        return r;
    const struct attempt *attempt = hold_attempt(run->hold);
    run->result->attempt_id = mem_string(attempt->id);
    run->result->handle = mem_string(attempt->journal_handle);
    run->result->fence = attempt->fence;
    run->runner = run->candidate.runner = supervisor_runner(hold_supervisor(run->hold));
    return RESULT_OK;
}

/* It was read from the work tree, between two looks: another one may have lain there at that moment. */
static enum result check_demand(struct run *run, struct error *err)
{
    if (run->options->dirty)
        return RESULT_OK;
    _cleanup_(text_done) struct text bytes = {0};
    char digest[DIGEST_HEX_SIZE];
    enum result r = candidate_contents(&run->candidate, CONFIG_NAME, &bytes, err);
    if (r != RESULT_OK)
        return r;
    digest_hex(bytes.bytes ? bytes.bytes : "", bytes.length, digest);
    if (strcmp(digest, run->config.digest) == 0)
        return RESULT_OK;
    run->moved = true;
    error_set(err, RESULT_CONFLICT, 0,
        "the tree moved while it was being proved: " CONFIG_NAME " was another one when it was read");
    return error_remedy(err, "leave the work tree alone, and run it again");
}

static enum result work(struct run *run, struct error *err)
{
    supervisor_progress(hold_supervisor(run->hold), "planning", 0, 0);
    enum result r = plan_make(run, hold_store(run->hold), err);
    if (r == RESULT_OK)
        r = plan_record(run, err);
    if (r == RESULT_OK)
        r = hold_bind(run->hold, run->demand, err);
    /* The plan speaks of the candidate, not of the work tree; planning and the store may take their time. */
    if (r == RESULT_OK)
        r = schedule_look(run, err);
    if (r == RESULT_OK)
        r = check_demand(run, err);
    if (r == RESULT_OK)
        r = schedule_run(run, err);
    if (r == RESULT_OK && !run->failed &&
        supervisor_stop_of(hold_supervisor(run->hold))->cause == STOP_NONE) {
        run->looked = false;
        r = schedule_look(run, err);
    }
    return r;
}

/* ---- 5. the end: one settlement, whatever happened ---- */

static bool has_run(const struct run *run)
{
    for (size_t i = 0; i < run->config.producer_count; i++)
        if (run->steps[i].inputs != NULL || (run->steps[i].state == STEP_ENDED && !run->steps[i].reuse))
            return true;
    return false;
}

/* To be refused means that nothing ran. What shows later, a tool or the key that is there no more, is a
 * verdict: this tree could not be proved. */
static enum outcome outcome_of_work(const struct run *run, enum result work_result)
{
    enum outcome outcome = outcome_of_result(work_result);
    return outcome == OUTCOME_REFUSED && has_run(run) ? OUTCOME_NEGATIVE : outcome;
}

static const char *code_of_trouble(enum outcome outcome)
{
    return outcome == OUTCOME_LOST ? "lease-lost" : outcome == OUTCOME_NEGATIVE ? "not-proved" : "internal";
}

static struct hold_ending ending_of(struct run *run, enum result work_result, const struct error *trouble)
{
    if (run->moved)
        return (struct hold_ending){.state = ATTEMPT_FAILED,
            .reason_code = "tree-moved",
            .reason_text = trouble->message,
            .exit_code = EXITS[OUTCOME_MOVED].status};
    if (work_result != RESULT_OK) {
        enum outcome outcome = outcome_of_work(run, work_result);
        return (struct hold_ending){.state = ATTEMPT_FAILED,
            .reason_code = code_of_trouble(outcome),
            .reason_text = trouble->message,
            .exit_code = EXITS[outcome].status};
    }
    if (run->failed)
        return (struct hold_ending){.state = ATTEMPT_FAILED,
            .reason_code = "producer-failed",
            .reason_text = run->failure,
            .exit_code = EXITS[OUTCOME_NEGATIVE].status};
    return (struct hold_ending){
        .state = ATTEMPT_PASSED, .reason_code = "passed", .exit_code = EXITS[OUTCOME_DONE].status};
}

static char *passed_sentence(const struct run *run, const struct signed_proof *proof)
{
    if (run->options->dirty)
        return mem_string("every producer passed on this dirty tree; no Proof, no evidence");
    return mem_format(
        "%s is proved at %.12s by Proof %.12s", run->repository, run->candidate.commit, proof->row.id);
}

/* The supervisor's runner ends with the hold; whoever asks git afterwards asks by the plain one. */
static enum result let_go(
    struct run *run, const struct hold_ending *ending, struct hold_result *ret, struct error *err)
{
    enum result r = hold_end(STEAL(run->hold), ending, ret, err);
    run->runner = run->candidate.runner = collect_runner();
    return r;
}

static void tell_signal(struct completion_result *result, int signal)
{
    result->signal = signal;
    result->sentence = mem_format("cancelled by signal %d (%s)", signal, strsignal(signal));
}

/* `end` knows what the record says; a signal or a loss may have come after the work had ended. */
static void tell_end(struct run *run, const struct hold_result *end, const struct hold_ending *ending,
    const struct signed_proof *proof)
{
    struct completion_result *result = run->result;
    result_fill_hold(run, end);
    if (end->lost) {
        result->outcome = OUTCOME_LOST;
        const char *why = end->reason.text ? end->reason.text : end->reason.code;
        bool asked = end->reason.code && strcmp(end->reason.code, "cancel-requested") == 0;
        result->sentence = mem_format("%s: %s", asked ? "cancelled" : "lost", why);
    } else if (end->signal) {
        tell_signal(result, end->signal);
    } else if (end->state == ATTEMPT_PASSED) {
        result->outcome = OUTCOME_DONE;
        result->sentence = passed_sentence(run, proof);
        if (proof->envelope.length > 0)
            result->proof_id = mem_string(proof->row.id);
    } else {
        result->outcome = run->moved ? OUTCOME_MOVED : OUTCOME_NEGATIVE;
        result->sentence =
            run->options->dirty && !run->moved
                ? mem_format("%s (on this dirty tree; not kept as evidence)", ending->reason_text)
                : mem_string(ending->reason_text);
    }
}

static void tell_unsettled(
    struct run *run, const struct hold_result *end, const struct hold_ending *ending, struct error *err)
{
    struct completion_result *result = run->result;
    result_fill_hold(run, end);
    result->outcome = run->moved ? OUTCOME_MOVED : OUTCOME_NEGATIVE;
    result->sentence = mem_format("%s; the store could not record it: %s", ending->reason_text, err->message);
    error_done(err);
}

/* The run's own error comes first; a settlement's trouble never hides it. */
static enum result finish(struct run *run, enum result work_result, struct error *trouble, struct error *err)
{
    struct signed_proof proof = {0};
    if (run->failed && outcome_of_result(work_result) == OUTCOME_STORE)
        work_result = RESULT_OK; /* what failed, failed, whether or not the store could take it down */
    bool stopped = supervisor_stop_of(hold_supervisor(run->hold))->cause != STOP_NONE;
    if (!stopped && work_result == RESULT_OK && !run->failed && !run->options->dirty)
        work_result = proving_sign(run, &proof, trouble);
    struct hold_ending ending = ending_of(run, work_result, trouble);
    if (proof.envelope.length > 0)
        ending.proof = &proof.row;

    struct hold_result end = {0};
    enum result settled = let_go(run, &ending, &end, err);
    bool verdict = run->moved || end.lost || end.signal || stopped ||
                   outcome_of_work(run, work_result) == OUTCOME_NEGATIVE;
    if (work_result != RESULT_OK && !verdict)
        settled = error_move(err, trouble);
    else if (settled != RESULT_OK && settled != RESULT_RETIRED && !stopped && (run->failed || run->moved)) {
        tell_unsettled(run, &end, &ending, err);
        settled = RESULT_OK;
    } else if (settled == RESULT_OK || settled == RESULT_RETIRED) {
        if (settled == RESULT_RETIRED)
            error_done(err);
        tell_end(run, &end, &ending, &proof);
        settled = RESULT_OK;
    }
    hold_result_done(&end);
    signed_proof_done(&proof);
    return settled;
}

/* Our own attempt is what a terminal that follows it tells of, so we say the same: the Proof is found by the
 * next run. */
static void tell_signal_instead(
    struct run *run, const struct hold_result *end, const char *id, const char *handle, int64_t fence)
{
    struct completion_result *result = run->result;
    result->already = false;
    free(result->sentence);
    free(STEAL(result->proof_id));
    free(STEAL(result->key_id));
    free(result->attempt_id);
    result->attempt_id = mem_string(id);
    result->handle = mem_string(handle);
    result->fence = fence;
    result_fill_hold(run, end);
    tell_signal(result, end->signal);
}

/* Another proved it between our look and our reserve. That the record of our own attempt could not be ended
 * does not make the Proof less true. */
static void finish_proved(struct run *run)
{
    struct completion_result *result = run->result;
    _cleanup_(mem_free) char *text = mem_format(
        "attempt %s proved the same tree in the meantime; nothing was left to do", result->attempt_id);
    struct hold_ending ending = {
        .state = ATTEMPT_CANCELLED,
        .reason_code = "proved-already",
        .reason_text = text,
        .exit_code = EXITS[OUTCOME_DONE].status,
    };
    const struct attempt *own = hold_attempt(run->hold);
    _cleanup_(mem_free) char *id = mem_string(own->id), *handle = mem_string(own->journal_handle);
    int64_t fence = own->fence;
    struct hold_result end = {0};
    _cleanup_(error_done) struct error trouble = {0};
    enum result r = let_go(run, &ending, &end, &trouble);
    if (r != RESULT_OK && r != RESULT_RETIRED) {
        char *sentence = mem_format(
            "%s; that this attempt is over could not be recorded: %s", result->sentence, trouble.message);
        free(result->sentence);
        result->sentence = sentence;
    } else if (r == RESULT_OK && end.signal) {
        tell_signal_instead(run, &end, id, handle, fence);
    }
    hold_result_done(&end);
}

static enum result tell_held(struct run *run, enum result begun, struct error *err)
{
    struct completion_result *result = run->result;
    if (begun == RESULT_ABSENT && result->already) {
        error_done(err);
        return RESULT_OK;
    }
    if (begun == RESULT_INTERRUPTED) {
        result->sentence =
            mem_format("stopped by signal %d while waiting; nothing was started", result->signal);
        error_done(err);
        return RESULT_OK;
    }
    if (begun != RESULT_HELD)
        return begun;
    result->outcome = OUTCOME_HELD;
    result->sentence = mem_string("held: another attempt is current");
    error_done(err);
    return RESULT_OK;
}

static enum result prove(struct run *run, struct error *err)
{
    enum result r = run->options->dirty ? RESULT_OK : key_check(NULL, err);
    if (r == RESULT_OK)
        r = config_check_inputs(&run->config, &run->candidate, err);
    if (r != RESULT_OK)
        return r;
    r = begin(run, err);
    if (r != RESULT_OK)
        return tell_held(run, r, err);
    _cleanup_(error_done) struct error trouble = {0};
    bool proved = false;
    r = look_for_proof(run, hold_store(run->hold), &proved, &trouble);
    if (proved) {
        finish_proved(run);
        return RESULT_OK;
    }
    if (r == RESULT_OK)
        r = work(run, &trouble);
    return finish(run, r, &trouble, err);
}

static enum result complete(struct run *run, struct error *err)
{
    enum result r = look_at_tree(run, err);
    if (r == RESULT_OK)
        r = read_demand(run, err);
    if (r != RESULT_OK)
        return r;
    _cleanup_(store_cleanup) struct store *store = NULL;
    r = open_to_look(run, &store, err);
    if (r != RESULT_OK && r != RESULT_ABSENT)
        return r;
    error_done(err);
    bool proved = false;
    if (store != NULL) {
        r = refuse_nesting(store, err);
        if (r == RESULT_OK)
            r = look_for_proof(run, store, &proved, err);
        if (r != RESULT_OK || proved)
            return r;
    }
    if (run->options->dry_run)
        return plan_only(run, store, err);
    store_close(STEAL(store));
    return prove(run, err);
}

static void run_done(struct run *run)
{
    for (size_t i = 0; run->steps && i < run->config.producer_count; i++) {
        free(run->steps[i].reason);
        snapshot_free(run->steps[i].ahead);
        snapshot_free(run->steps[i].inputs);
        evidence_done(&run->steps[i].evidence);
    }
    free(run->steps);
    free(run->demanded);
    free(run->repository);
    free(run->failure);
    text_done(&run->failed_names);
    config_done(&run->config);
    candidate_done(&run->candidate);
}

enum result completion_run(
    const struct completion_options *options, struct completion_result *ret, struct error *err)
{
    struct utsname platform = {0};
    uname(&platform);
    struct run run = {
        .options = options,
        .result = ret,
        .clock = clock_system(),
        .surroundings = {.environment = (const char *const *)environ,
            .system = platform.sysname,
            .architecture = platform.machine},
        .runner = collect_runner(),
        .candidate = {.top_fd = -1},
    };
    *ret = (struct completion_result){0};
    enum result r = complete(&run, err);
    result_fill_producers(&run);
    run_done(&run);
    return r;
}
