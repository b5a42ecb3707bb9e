/* What runs, what is reused, and why: decided before anything is spawned, refined when needs have ended. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/completion-private.h"
#include "completion/demand/pathspec.h"

static const struct step *need_of(const struct run *run, const struct step *step, size_t need)
{
    return &run->steps[step->producer->need_indices[need]];
}

static bool needs_are_reused(const struct run *run, const struct step *step)
{
    for (size_t i = 0; i < step->producer->needs.count; i++)
        if (!need_of(run, step, i)->reuse)
            return false;
    return true;
}

static const char *first_running_need(const struct run *run, const struct step *step)
{
    for (size_t i = 0; i < step->producer->needs.count; i++)
        if (!need_of(run, step, i)->reuse)
            return step->producer->needs.items[i];
    return NULL;
}

static enum result key_compute(struct run *run, struct step *step, struct error *err)
{
    size_t count = step->producer->needs.count;
    _cleanup_(mem_free) char(*digests)[DIGEST_HEX_SIZE] = mem_alloc((count + 1) * sizeof *digests);
    _cleanup_(mem_free) const char **pointers = mem_alloc((count + 1) * sizeof *pointers);
    for (size_t i = 0; i < count; i++) {
        outputs_digest(&need_of(run, step, i)->evidence.outputs, digests[i]);
        pointers[i] = digests[i];
    }
    return applicability_compute(&run->config, (size_t)(step - run->steps), &run->candidate,
        &run->surroundings, pointers, &step->applicability, err);
}

static void set_reason(struct step *step, char *reason)
{
    free(step->reason);
    step->reason = reason;
}

/* ---- the reason why something runs: what differs from the last time ---- */

static char *changed_input(struct run *run, const struct step *step, const struct evidence *last)
{
    if (last->tree == NULL)
        return mem_string("its inputs changed");
    _cleanup_(error_done) struct error ignored = {0};
    char **paths = NULL;
    size_t count = 0;
    const struct strings *globs = &step->producer->inputs;
    char *reason = NULL;
    if (candidate_changed(run->runner, &run->candidate, last->tree, (const char *const *)globs->items,
            globs->count, 1, &paths, &count, &ignored) == RESULT_OK &&
        count > 0) {
        _cleanup_(text_done) struct text name = {0};
        text_add_printable(&name, paths[0], strlen(paths[0]), false);
        reason = mem_format("input %s changed since %.10s", name.bytes, last->commit ? last->commit : "");
    }
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return reason ? reason : mem_string("its inputs changed");
}

static char *difference(struct run *run, const struct step *step, const struct evidence *last)
{
    static const char *const WORDS[COMPONENT_MAX] = {
        [COMPONENT_COMMAND] = "its command changed",
        [COMPONENT_NEEDS] = "the outputs that it needs changed",
        [COMPONENT_ENV] = "a declared variable changed",
        [COMPONENT_TOOLS] = "a declared tool changed",
        [COMPONENT_PLATFORM] = "it ran on another platform",
    };
    for (int c = 0; c < COMPONENT_MAX; c++) {
        if (strcmp(step->applicability.components[c], last->applicability.components[c]) == 0)
            continue;
        return c == COMPONENT_INPUTS ? changed_input(run, step, last) : mem_string(WORDS[c]);
    }
    return last->passed ? mem_string("no completed outcome for this key")
                        : mem_format("it failed on %s", last->host ? last->host : "another machine");
}

static enum result latest_evidence(
    struct run *run, struct store *store, const struct step *step, struct evidence *ret, struct error *err)
{
    struct evidence_row row = {0};
    enum result r = store_evidence_latest(store, run->repository, step->producer->name, &row, err);
    if (r == RESULT_OK)
        r = evidence_from_row(&row, ret, err);
    evidence_row_done(&row);
    return r;
}

/* ---- one step ---- */

static enum result look_up(
    struct store *store, const struct step *step, struct evidence *ret, struct error *err)
{
    struct evidence_row row = {0};
    enum result r = store_evidence_find(store, step->applicability.key, &row, err);
    if (r == RESULT_OK)
        r = evidence_from_row(&row, ret, err);
    evidence_row_done(&row);
    return r;
}

static void plan_reuse(struct step *step, struct evidence *evidence)
{
    evidence_done(&step->evidence);
    step->evidence = *evidence;
    *evidence = (struct evidence){0};
    step->reuse = true;
    set_reason(step, mem_format("same key as %s",
                         step->evidence.handle ? step->evidence.handle : step->evidence.attempt_id));
}

static void plan_run(struct run *run, struct step *step, const struct evidence *last)
{
    evidence_done(&step->evidence); /* what an earlier look had found may be there no more */
    step->reuse = false;
    step->expected_ms = last ? last->duration_ms : 0;
    set_reason(step, last ? difference(run, step, last) : mem_string("it has not run before"));
}

static enum result plan_keyed(struct run *run, struct store *store, struct step *step, struct error *err)
{
    enum result r = key_compute(run, step, err);
    if (r != RESULT_OK)
        return r;
    if (store == NULL) {
        plan_run(run, step, NULL);
        return RESULT_OK;
    }
    struct evidence found = {0}, last = {0};
    bool reusable = !run->options->rerun && !run->options->dirty;
    if (reusable && (r = look_up(store, step, &found, err)) == RESULT_OK) {
        plan_reuse(step, &found);
        return RESULT_OK;
    }
    if (reusable && r != RESULT_ABSENT)
        return r;
    r = latest_evidence(run, store, step, &last, err);
    if (r != RESULT_OK && r != RESULT_ABSENT)
        return r;
    error_done(err);
    plan_run(run, step, r == RESULT_OK ? &last : NULL);
    if (!reusable)
        set_reason(step, mem_string(run->options->dirty ? "--dirty runs everything" : "--rerun"));
    evidence_done(&last);
    return RESULT_OK;
}

static enum result plan_unkeyed(struct run *run, struct store *store, struct step *step, struct error *err)
{
    struct evidence last = {0};
    enum result r = store ? latest_evidence(run, store, step, &last, err) : RESULT_ABSENT;
    if (r != RESULT_OK && r != RESULT_ABSENT)
        return r;
    error_done(err);
    step->reuse = false;
    step->expected_ms = last.duration_ms;
    set_reason(step, mem_format("it needs %s, which runs", first_running_need(run, step)));
    evidence_done(&last);
    return RESULT_OK;
}

/* ---- outputs that somebody who runs will need must be there as recorded ---- */

static bool somebody_who_runs_needs(const struct run *run, size_t index)
{
    for (size_t i = 0; i < run->config.producer_count; i++) {
        const struct step *step = &run->steps[i];
        if (step->state == STEP_OUT || step->state == STEP_ENDED || step->reuse)
            continue;
        for (size_t n = 0; n < step->producer->needs.count; n++)
            if (step->producer->need_indices[n] == index)
                return true;
    }
    return false;
}

/* What cannot be kept any more differs, whatever it was. */
static enum result outputs_as_recorded(struct run *run, const struct step *step, bool *ret, struct error *err)
{
    struct output_states now = {0};
    _cleanup_(error_done) struct error why = {0};
    enum result r = outputs_look(run->candidate.top_fd, &step->producer->outputs, run->runner, &now, &why);
    if (r != RESULT_OK && r != RESULT_INVALID)
        return error_move(err, &why);
    *ret = r == RESULT_OK && outputs_equal(&now, &step->evidence.outputs);
    output_states_done(&now);
    return RESULT_OK;
}

static const char *first_difference(const struct output_states *now, const struct output_states *recorded)
{
    for (size_t i = 0; i < now->count; i++)
        for (size_t j = 0; j < recorded->count; j++)
            if (strcmp(now->items[i].path, recorded->items[j].path) == 0 &&
                (now->items[i].mode != recorded->items[j].mode ||
                    strcmp(now->items[i].digest, recorded->items[j].digest) != 0))
                return now->items[i].path;
    return "one of them";
}

static enum result check_need(
    struct run *run, const struct step *need, const struct step *step, struct error *err)
{
    struct output_states now = {0};
    _cleanup_(error_done) struct error unfit = {0};
    enum result r = outputs_look(run->candidate.top_fd, &need->producer->outputs, run->runner, &now, &unfit);
    if (r == RESULT_INVALID) {
        error_set(err, RESULT_CONFLICT, 0, "the tree moved while it was being proved: %s", unfit.message);
    } else if (r != RESULT_OK) {
        return error_move(err, &unfit);
    } else if (!outputs_equal(&now, &need->evidence.outputs)) {
        _cleanup_(text_done) struct text name = {0};
        const char *path = first_difference(&now, &need->evidence.outputs);
        text_add_printable(&name, path, strlen(path), false);
        r = error_set(err, RESULT_CONFLICT, 0,
            "the tree moved while it was being proved: %s, an output of %s that %s needs, was changed",
            name.bytes, need->producer->name, step->producer->name);
    }
    output_states_done(&now);
    return r == RESULT_OK
               ? r
               : error_remedy(err, "declare as outputs only what no other producer writes, and run it again");
}

enum result plan_check_needs(struct run *run, const struct step *step, struct error *err)
{
    enum result r = RESULT_OK;
    for (size_t i = 0; i < step->producer->needs.count && r == RESULT_OK; i++)
        r = check_need(run, need_of(run, step, i), step, err);
    return r;
}

static void plan_again(struct step *step, char *reason)
{
    step->reuse = false;
    step->expected_ms = step->evidence.duration_ms;
    evidence_done(&step->evidence);
    set_reason(step, reason);
}

/* Turns steps whose outputs are needed but gone into steps that run; *ret_changed when there was one. */
static enum result demand_outputs(struct run *run, bool *ret_changed, struct error *err)
{
    for (size_t i = 0; i < run->config.producer_count; i++) {
        struct step *step = &run->steps[i];
        if (step->state != STEP_WAITING || !step->reuse || !step->evidence.passed ||
            !somebody_who_runs_needs(run, i))
            continue;
        bool same = false;
        enum result r = outputs_as_recorded(run, step, &same, err);
        if (r != RESULT_OK)
            return r;
        if (same)
            continue;
        plan_again(step, mem_string("an output that another producer needs is missing or differs"));
        *ret_changed = true;
    }
    return RESULT_OK;
}

/* Steps planned for reuse although a need of theirs runs after all: their key is open again. */
static bool reopen_dependents(struct run *run)
{
    bool changed = false;
    for (size_t n = 0; n < run->config.producer_count; n++) {
        struct step *step = &run->steps[run->config.order[n]];
        if (step->state != STEP_WAITING || !step->reuse || needs_are_reused(run, step))
            continue;
        plan_again(step, mem_format("it needs %s, which runs", first_running_need(run, step)));
        changed = true;
    }
    return changed;
}

enum result plan_make(struct run *run, struct store *store, struct error *err)
{
    for (size_t n = 0; n < run->config.producer_count; n++) {
        struct step *step = &run->steps[run->config.order[n]];
        if (step->state == STEP_OUT)
            continue;
        enum result r = needs_are_reused(run, step) ? plan_keyed(run, store, step, err)
                                                    : plan_unkeyed(run, store, step, err);
        if (r != RESULT_OK)
            return r;
    }
    for (bool changed = true; changed;) {
        changed = false;
        enum result r = demand_outputs(run, &changed, err);
        if (r != RESULT_OK)
            return r;
        changed |= reopen_dependents(run);
    }
    return RESULT_OK;
}

enum result plan_resolve(struct run *run, struct store *store, size_t index, struct error *err)
{
    struct step *step = &run->steps[index];
    char *planned = STEAL(step->reason);
    int64_t expected_ms = step->expected_ms;
    enum result r = plan_keyed(run, store, step, err);
    bool same = true;
    if (r == RESULT_OK && step->reuse && step->evidence.passed && somebody_who_runs_needs(run, index))
        r = outputs_as_recorded(run, step, &same, err);
    if (r != RESULT_OK || (step->reuse && same)) {
        free(planned);
        return r;
    }
    if (step->reuse)
        evidence_done(&step->evidence);
    step->reuse = false;
    step->expected_ms = expected_ms;
    set_reason(step, planned);
    return RESULT_OK;
}

enum result plan_record(struct run *run, struct error *err)
{
    _cleanup_(mem_free) struct journal_plan_step *steps =
        mem_alloc((run->config.producer_count + 1) * sizeof *steps);
    size_t count = 0;
    for (size_t n = 0; n < run->config.producer_count; n++) {
        const struct step *step = &run->steps[run->config.order[n]];
        if (step->state == STEP_OUT)
            continue;
        steps[count++] = (struct journal_plan_step){.producer = step->producer->name,
            .reason = step->reason,
            .reuse = step->reuse,
            .expected_ms = step->expected_ms};
    }
    struct journal_event event = {
        .kind = JOURNAL_PLAN, .plan = steps, .plan_count = count, .total = (int64_t)count};
    return journal_append(hold_journal(run->hold), &event, JOURNAL_LAZY, err);
}
