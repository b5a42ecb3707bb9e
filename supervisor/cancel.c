/* Asking a running attempt to stop, and retiring one that cannot answer. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "attempts/recovery.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "supervisor/overview-private.h"
#include "supervisor/process.h"
#include "supervisor/verdict-private.h"

#define LOOK_INTERVAL_MS INT64_C(50)
#define SILENT_MS        INT64_C(1000) /* then it is said who is waited for */

static enum owner_verdict probe(void *context, const struct attempt *attempt)
{
    const struct look *look = context;
    return verdict_of(&look->machine, attempt).verdict;
}

/* SIGUSR2 makes a supervisor renew now, and the renewal brings it the request. Only to the very process that
 * the record names, and only where its pid means the same: a wrong one would be killed by it. */
static void hasten(const struct look *look, const struct attempt *attempt)
{
    const struct executor *executor = &attempt->executor;
    const struct machine *machine = &look->machine;
    struct process process;
    if (strcmp(executor->machine_id, machine->machine_id) != 0 ||
        strcmp(executor->boot_id, machine->boot_id) != 0 ||
        executor->pid_namespace != machine->pid_namespace || executor->start_ticks <= 0 ||
        verdict_of(machine, attempt).verdict != OWNER_RUNNING)
        return;
    if (process_open((pid_t)executor->pid, executor->start_ticks, &process, NULL) != RESULT_OK)
        return;
    enum result r = process_signal(&process, SIGUSR2, NULL);
    (void)r; /* without it the answer comes with the next renewal */
    process_close(&process);
}

static enum result read_again(struct look *look, struct attempt *attempt, struct error *err)
{
    struct attempt fresh = {0};
    enum result r = store_find(look->store, attempt->id, &fresh, err);
    if (r != RESULT_OK)
        return r;
    attempt_done(attempt);
    *attempt = fresh;
    return RESULT_OK;
}

/* Its owner is gone, or its lease has lapsed: nobody will answer. */
static enum result retire_dead(
    struct look *look, struct attempt *attempt, const struct cancel_request *request, struct error *err)
{
    bool gone = verdict_of(&look->machine, attempt).verdict == OWNER_GONE;
    _cleanup_(mem_free) char *text =
        mem_format("by %s: %s", request->by, gone ? "its owner was gone" : "its lease had lapsed");
    struct retirement retirement = {
        .attempt_id = attempt->id,
        .rev = attempt->rev,
        .owner_gone = gone,
        .reason_code = gone ? "owner-gone" : "lapsed",
        .reason_text = text,
    };
    FAILPOINT("cancel-before-retire");
    return store_retire(look->store, &retirement, err);
}

static bool is_dead(struct look *look, const struct attempt *attempt)
{
    struct store_time now;
    return probe(look, attempt) == OWNER_GONE ||
           (store_now(look->store, &now, NULL) == RESULT_OK && lease_lapsed(&attempt->lease, &now));
}

static enum result take_over(struct look *look, struct attempt *attempt, const struct cancel_request *request,
    enum cancel_outcome *ret_outcome, struct error *err)
{
    _cleanup_(error_done) struct error why = {0};
    enum result r = retire_dead(look, attempt, request, &why);
    if (r != RESULT_OK && r != RESULT_CONFLICT && r != RESULT_RETIRED)
        return error_move(err, &why);
    if (r == RESULT_OK)
        *ret_outcome = CANCEL_RETIRED;
    return read_again(look, attempt, err);
}

static void pause_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

/* Until it has ended or the time is over. One that dies meanwhile is retired here. */
static enum result wait_for_end(struct look *look, struct attempt *attempt,
    const struct cancel_request *request, enum cancel_outcome *ret_outcome, struct error *err)
{
    const struct clock *clock = clock_system();
    int64_t begun = clock->boot_ms(clock), until = begun + request->wait_ms;
    bool told = request->waiting == NULL;
    *ret_outcome = CANCEL_PENDING;
    for (;;) {
        enum result r = read_again(look, attempt, err);
        if (r == RESULT_OK && attempt_is_unfinished(attempt) && is_dead(look, attempt))
            r = take_over(look, attempt, request, ret_outcome, err);
        if (r != RESULT_OK)
            return r;
        if (!attempt_is_unfinished(attempt)) {
            if (*ret_outcome == CANCEL_PENDING)
                *ret_outcome = CANCEL_ASKED;
            return RESULT_OK;
        }
        int64_t now = clock->boot_ms(clock);
        if (now >= until)
            return RESULT_OK;
        if (!told && now - begun >= SILENT_MS)
            request->waiting(request->context, attempt, until - now);
        told |= now - begun >= SILENT_MS;
        pause_ms(LOOK_INTERVAL_MS);
    }
}

static enum result ask(struct look *look, struct attempt *attempt, const struct cancel_request *request,
    enum cancel_outcome *ret_outcome, struct error *err)
{
    _cleanup_(error_done) struct error why = {0};
    FAILPOINT("cancel-before-request");
    enum result r = store_request_cancel(look->store, attempt->id, request->by, &why);
    FAILPOINT("cancel-after-request");
    if (r == RESULT_RETIRED) {
        *ret_outcome = CANCEL_ENDED;
        return read_again(look, attempt, err);
    }
    if (r != RESULT_OK)
        return error_move(err, &why);
    hasten(look, attempt);
    return wait_for_end(look, attempt, request, ret_outcome, err);
}

static enum result cancel_found(struct look *look, struct attempt *attempt,
    const struct cancel_request *request, enum cancel_outcome *ret_outcome, struct error *err)
{
    *ret_outcome = CANCEL_ENDED;
    if (!attempt_is_unfinished(attempt))
        return RESULT_OK;
    if (is_dead(look, attempt)) {
        enum result r = take_over(look, attempt, request, ret_outcome, err);
        if (r != RESULT_OK || !attempt_is_unfinished(attempt))
            return r;
    }
    return ask(look, attempt, request, ret_outcome, err); /* it was renewed in between */
}

enum result cancel_attempt(const struct cancel_request *request, enum cancel_outcome *ret_outcome,
    struct attempt *ret, struct error *err)
{
    _cleanup_(look_close) struct look look = {0};
    _cleanup_(attempt_done) struct attempt attempt = {0};
    enum cancel_outcome outcome;
    enum result r = look_open(request->store_url, STORE_WRITE, &look, err);
    if (r == RESULT_OK)
        r = look_find(&look, request->typed, &attempt, err);
    if (r == RESULT_OK)
        r = cancel_found(&look, &attempt, request, &outcome, err);
    if (r != RESULT_OK)
        return r;
    *ret_outcome = outcome;
    *ret = attempt;
    attempt = (struct attempt){0};
    return RESULT_OK;
}
