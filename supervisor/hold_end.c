/* Ending an attempt: its work, its heartbeat, its record, its journal. In this order, and in every case. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "supervisor/hold-private.h"
#include "supervisor/supervisor-private.h"

/* For a store that is busy or away, though the lease be nearly over. */
#define SETTLE_LEAST_MS INT64_C(5000)
/* For the answer to a commit that was lost. */
#define SETTLE_ASK_MS    INT64_C(10000)
#define SETTLE_SILENT_MS INT64_C(1000)

void hold_result_done(struct hold_result *result)
{
    reason_done(&result->reason);
}

/* ---- what is to be written ---- */

struct verdict {
    struct settlement settlement;
    int exit_code, signal;
    bool lost;
    bool by_caller; /* settled by the ending's own function */
    char *told;     /* owns a text of the settlement; NULL */
};

static void verdict_done(struct verdict *verdict)
{
    free(STEAL(verdict->told));
}

int hold_exit(const struct hold *hold, enum outcome outcome)
{
    const struct exit_row *row = &EXITS[outcome];
    return hold->options.kind == KIND_COMMAND ? row->run_status : row->status;
}

static void wanted_verdict(const struct hold_ending *ending, struct verdict *ret)
{
    *ret = (struct verdict){.exit_code = ending->exit_code, .by_caller = ending->settle != NULL};
    settlement_init(&ret->settlement, ending->state);
    ret->settlement.reason_code = ending->reason_code;
    ret->settlement.reason_text = ending->reason_text;
    ret->settlement.proof = ending->proof;
}

/* Who asked for the end, as the record has it. NULL when that cannot be read. */
static char *who_cancelled(struct hold *hold)
{
    _cleanup_(attempt_done) struct attempt attempt = {0};
    char at[CLOCK_TEXT_SIZE];
    bool read = hold->store != NULL || hold_reopen(hold, NULL) == RESULT_OK;
    if (!read || store_find(hold->store, hold->attempt.id, &attempt, NULL) != RESULT_OK ||
        attempt.cancel_by == NULL)
        return NULL;
    clock_format_people(attempt.cancel_wall_ms, at);
    return mem_format("by %s, at %s", attempt.cancel_by, at);
}

/* What stopped the run overrides what the caller wants, also when it came after the work had ended. */
static void override_verdict(struct hold *hold, struct verdict *verdict)
{
    const struct stop *stop = supervisor_stop_of(hold->supervisor);
    if (stop->cause == STOP_NONE)
        return;
    verdict->by_caller = false;
    verdict->settlement.state = ATTEMPT_CANCELLED;
    verdict->settlement.reason_code = stop->reason.code;
    free(STEAL(verdict->told));
    verdict->told = stop->cause == STOP_CANCELLED ? who_cancelled(hold) : NULL;
    verdict->settlement.reason_text = verdict->told != NULL ? verdict->told : stop->reason.text;
    verdict->settlement.proof = NULL;
    verdict->lost = stop->cause != STOP_SIGNAL;
    verdict->signal = verdict->lost ? 0 : stop->signal;
    verdict->exit_code = verdict->lost ? hold_exit(hold, OUTCOME_LOST) : EXIT_SIGNAL_BASE + stop->signal;
}

static void lapsed_verdict(const struct hold *hold, struct verdict *verdict, const struct error *why)
{
    verdict->settlement.state = ATTEMPT_CANCELLED;
    verdict->settlement.reason_code = "lease-lost";
    verdict->settlement.reason_text = "the lease ran out before the attempt could be settled";
    if (verdict->by_caller && why->message != NULL)
        verdict->settlement.reason_text = verdict->told = mem_string(why->message);
    verdict->by_caller = false;
    verdict->settlement.proof = NULL;
    verdict->lost = true;
    verdict->signal = 0;
    verdict->exit_code = hold_exit(hold, OUTCOME_LOST);
}

/* What the caller's own transaction could not do. Nothing of it stayed. */
static void failed_verdict(
    const struct hold *hold, struct verdict *verdict, enum result r, const struct error *why)
{
    verdict->by_caller = false;
    verdict->settlement.state = ATTEMPT_FAILED;
    verdict->settlement.reason_code = r == RESULT_ABSENT ? "row-gone" : "refused";
    verdict->settlement.reason_text = verdict->told = mem_string(why->message);
    verdict->exit_code = hold_exit(hold, OUTCOME_NEGATIVE);
}

/* ---- settling ---- */

struct settling {
    struct hold *hold;
    const struct hold_ending *ending;
    struct verdict *verdict;
    int64_t begun_boot_ms;
    int64_t until_boot_ms; /* the whole patience; a lost answer adds to it once */
    bool told;             /* that it takes time, and why */
    bool unknown;          /* a commit was sent, and its answer lost */
    bool asking;
};

static enum result settle_by_caller(struct settling *settling, struct error *err)
{
    struct hold *hold = settling->hold;
    hold->settling = true;
    enum result r = settling->ending->settle(settling->ending->settle_context, hold->store,
        &hold->reservation.credential, &settling->verdict->settlement, err);
    hold->settling = false;
    return r;
}

static enum result settle_once(struct settling *settling, struct error *err)
{
    struct hold *hold = settling->hold;
    const struct credential *credential = &hold->reservation.credential;
    hold->store_asked_boot_ms = 0; /* another wait, with a time of its own */
    if (hold->store == NULL) {
        enum result r = store_open(&hold->store_options, STORE_WRITE, &hold->store, err);
        if (r != RESULT_OK)
            return r;
    }
    if (settling->asking)
        return store_settle_ask(hold->store, credential, &settling->verdict->settlement, err);
    FAILPOINT("hold-before-settle");
    enum result r = settling->verdict->by_caller
                        ? settle_by_caller(settling, err)
                        : store_settle(hold->store, credential, &settling->verdict->settlement, err);
    FAILPOINT("hold-after-settle");
    return r;
}

static void settle_unknown(struct settling *settling)
{
    int64_t ask_until = hold_now(settling->hold) + SETTLE_ASK_MS;
    if (!settling->unknown && settling->until_boot_ms < ask_until)
        settling->until_boot_ms = ask_until;
    settling->unknown = settling->asking = true;
}

/* True when the same is to be done again after a pause. */
static bool settle_again(struct settling *settling, enum result r)
{
    if (r == RESULT_UNKNOWN || r == RESULT_UNREACHABLE)
        store_close(STEAL(settling->hold->store));
    if (r == RESULT_UNKNOWN)
        settle_unknown(settling);
    if (r == RESULT_CONFLICT)
        settling->asking = false; /* not settled: settle anew, with the same nonce */
    bool trouble = r == RESULT_BUSY || r == RESULT_UNREACHABLE || r == RESULT_UNKNOWN || r == RESULT_CONFLICT;
    return trouble && hold_now(settling->hold) < settling->until_boot_ms;
}

/* Said once: a run whose work is over and that does not end looks dead. */
static void tell_settling(struct settling *settling, const struct error *why)
{
    struct hold *hold = settling->hold;
    int64_t now = hold_now(hold);
    if (settling->told || now - settling->begun_boot_ms < SETTLE_SILENT_MS)
        return;
    settling->told = true;
    char until[CLOCK_TEXT_SIZE];
    clock_format_people(hold->clock->wall_ms(hold->clock) + settling->until_boot_ms - now, until);
    hold_note(hold, "how this attempt ended cannot be recorded yet, tried again until %s: %s", until,
        why->message != NULL ? why->message : result_name(why->code));
}

/* True when the ending that was wanted cannot be any more, and the attempt is to end in another way. */
static bool settle_otherwise(struct settling *settling, enum result r, const struct error *why)
{
    struct verdict *verdict = settling->verdict;
    if (r == RESULT_UNKNOWN || r == RESULT_RETIRED || settling->asking)
        return false;
    if (r == RESULT_LAPSED && !verdict->lost) {
        lapsed_verdict(settling->hold, verdict, why);
        return true;
    }
    if (!verdict->by_caller)
        return false;
    if (supervisor_stop_of(settling->hold->supervisor)->cause != STOP_NONE) {
        override_verdict(settling->hold, verdict);
        return true;
    }
    bool again = r == RESULT_BUSY || r == RESULT_UNREACHABLE || r == RESULT_CONFLICT;
    if (again && hold_now(settling->hold) < settling->until_boot_ms)
        return false;
    failed_verdict(settling->hold, verdict, r, why);
    settling->until_boot_ms = hold_now(settling->hold) + SETTLE_LEAST_MS;
    return true;
}

static enum result settle(
    struct hold *hold, const struct hold_ending *ending, struct verdict *verdict, struct error *err)
{
    int64_t least = hold_now(hold) + SETTLE_LEAST_MS;
    int64_t own = gate_deadline(&hold->supervisor->gate);
    struct settling settling = {
        .hold = hold,
        .ending = ending,
        .verdict = verdict,
        .begun_boot_ms = hold_now(hold),
        .until_boot_ms = own > least ? own : least,
    };
    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = settle_once(&settling, &why);
        if (r == RESULT_OK)
            return RESULT_OK;
        if (settle_otherwise(&settling, r, &why)) {
            if (r == RESULT_UNREACHABLE)
                store_close(STEAL(hold->store));
            continue;
        }
        if (settle_again(&settling, r)) {
            tell_settling(&settling, &why);
            hold_pause(hold, hold_jitter_ms(20, 200));
            continue;
        }
        error_move(err, &why);
        /* A commit was sent once and nobody could say what became of it. */
        bool unknown = settling.unknown && r != RESULT_RETIRED;
        return unknown
                   ? error_set(err, RESULT_UNKNOWN, 0, "the store did not say whether attempt %s was settled",
                         journal_handle(hold->journal))
                   : r;
    }
}

/* ---- what came of it ---- */

static void copy_reason(const struct reason *from, struct reason *ret)
{
    *ret = (struct reason){
        .code = mem_string(from->code),
        .text = mem_string(from->text),
        .by_attempt = mem_string(from->by_attempt),
    };
}

static void result_of_settlement(const struct verdict *verdict, struct hold_result *ret)
{
    ret->state = verdict->settlement.state;
    ret->exit_code = verdict->exit_code;
    ret->signal = verdict->signal;
    ret->lost = verdict->lost;
    ret->reason = (struct reason){
        .code = mem_string(verdict->settlement.reason_code),
        .text = mem_string(verdict->settlement.reason_text),
    };
}

/* The record says one thing for ever; what another wrote there is what counts. */
static void result_of_loss(struct hold *hold, struct hold_result *ret)
{
    _cleanup_(attempt_done) struct attempt attempt = {0};
    ret->lost = true;
    ret->state = ATTEMPT_CANCELLED;
    ret->exit_code = hold_exit(hold, OUTCOME_LOST);
    bool read = hold->store != NULL || hold_reopen(hold, NULL) == RESULT_OK;
    if (read && store_find(hold->store, hold->attempt.id, &attempt, NULL) == RESULT_OK) {
        ret->state = attempt.state;
        copy_reason(&attempt.reason, &ret->reason);
    } else {
        copy_reason(&supervisor_stop_of(hold->supervisor)->reason, &ret->reason);
    }
}

static void tell_loss(struct hold *hold, const struct hold_result *result)
{
    if (hold->supervisor->lost) /* told when the heartbeat learned of it */
        return;
    struct journal_event event = {
        .kind = JOURNAL_RETIRED,
        .reason = result->reason.code,
        .text = result->reason.text,
        .by_attempt = result->reason.by_attempt,
    };
    hold_tell(hold, &event, JOURNAL_DURABLE);
}

static void tell_settled(struct hold *hold, const struct hold_result *result, const struct verdict *verdict)
{
    const struct proof_row *proof = result->state == ATTEMPT_PASSED ? verdict->settlement.proof : NULL;
    struct journal_event event = {
        .kind = JOURNAL_SETTLED,
        .state = attempt_state_name(result->state),
        .reason = result->reason.code,
        .text = result->reason.text,
        .by_attempt = result->reason.by_attempt,
        .exit_code = result->exit_code,
        .proof = proof != NULL ? proof->id : NULL,
        .duration_ms = result->duration_ms,
    };
    FAILPOINT("hold-before-settled-record");
    hold_tell(hold, &event, JOURNAL_DURABLE);
    FAILPOINT("hold-after-settled-record");
}

/* The store was removed or replaced under us: after the work nothing can be refused any more. */
static enum result store_trouble(const struct hold *hold, enum result r, struct error *err)
{
    if (outcome_of_result(r) != OUTCOME_REFUSED)
        return r;
    error_wrap(
        err, "the store that attempt %s was begun in is there no more: ", journal_handle(hold->journal));
    return err->code = RESULT_UNREACHABLE;
}

static void result_of_trouble(
    struct hold *hold, enum result r, const struct error *err, struct hold_result *ret)
{
    ret->state = hold->attempt.state;
    ret->unknown = r == RESULT_UNKNOWN;
    ret->exit_code = hold_exit(hold, outcome_of_result(r));
    hold_note(hold, "the attempt could not be settled: %s", err->message);
}

/* ---- the end ---- */

static enum result end_and_drain(struct hold *hold, struct error *err)
{
    struct text named = {0};
    enum result r = supervisor_end_work(hold->supervisor, false, &named, err);
    text_done(&named);
    if (r != RESULT_OK) /* nothing may be settled while the work lives: the lease has to run out */
        return r;
    FAILPOINT("hold-before-drain");
    return supervisor_drain(hold->supervisor, err);
}

static enum result conclude(
    struct hold *hold, const struct hold_ending *ending, struct hold_result *ret, struct error *err)
{
    _cleanup_(verdict_done) struct verdict verdict;
    wanted_verdict(ending, &verdict);
    hold->ending = true;
    enum result r = end_and_drain(hold, err);
    override_verdict(hold, &verdict);
    if (r == RESULT_OK)
        r = settle(hold, ending, &verdict, err);
    ret->duration_ms = hold_now(hold) - hold->begun_boot_ms;
    ret->frozen_ms = lease_frozen_ms(hold->supervisor, hold_now(hold));
    if (r == RESULT_RETIRED) {
        result_of_loss(hold, ret);
        tell_loss(hold, ret);
    } else if (r == RESULT_OK) {
        result_of_settlement(&verdict, ret);
    } else {
        r = store_trouble(hold, r, err);
        result_of_trouble(hold, r, err, ret);
        return r;
    }
    tell_settled(hold, ret, &verdict);
    return r;
}

enum result hold_end(
    struct hold *hold, const struct hold_ending *ending, struct hold_result *ret, struct error *err)
{
    struct error why = {0};
    *ret = (struct hold_result){0};
    enum result r = conclude(hold, ending, ret, &why);
    hold_free(hold);
    if (r != RESULT_OK)
        return error_move(err, &why);
    error_done(&why);
    return RESULT_OK;
}
