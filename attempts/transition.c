#include "attempts/transition.h"

#include <sodium.h>
#include <string.h>

#include "base/mutant.h"

_Static_assert(ATTEMPT_STATE_MAX == 5, "a new state needs a row in the table");
_Static_assert(ATTEMPT_EVENT_MAX == 6, "a new event needs a column in the table");
_Static_assert(BY_NOBODY == 0, "an empty cell refuses");

const struct transition TRANSITIONS[ATTEMPT_STATE_MAX][ATTEMPT_EVENT_MAX] = {
    [ATTEMPT_PLANNING] =
        {
            [EVENT_BIND] = {.by = BY_OWNER, .to = ATTEMPT_RUNNING},
            [EVENT_RENEW] = {.by = BY_OWNER, .to = ATTEMPT_PLANNING, .strict_needs_lease = true},
            [EVENT_SETTLE_FAILED] = {.by = BY_OWNER, .to = ATTEMPT_FAILED},
            [EVENT_SETTLE_CANCELLED] = {.by = BY_OWNER, .to = ATTEMPT_CANCELLED},
            [EVENT_RETIRE] = {.by = BY_OTHER, .to = ATTEMPT_CANCELLED},
        },
    [ATTEMPT_RUNNING] =
        {
            [EVENT_RENEW] = {.by = BY_OWNER, .to = ATTEMPT_RUNNING, .strict_needs_lease = true},
            [EVENT_SETTLE_PASSED] =
                {.by = BY_OWNER, .to = ATTEMPT_PASSED, .strict_needs_lease = true, .needs_proof = true},
            [EVENT_SETTLE_FAILED] = {.by = BY_OWNER, .to = ATTEMPT_FAILED},
            [EVENT_SETTLE_CANCELLED] = {.by = BY_OWNER, .to = ATTEMPT_CANCELLED},
            [EVENT_RETIRE] = {.by = BY_OTHER, .to = ATTEMPT_CANCELLED},
        },
};

_Static_assert(sizeof TRANSITIONS / sizeof TRANSITIONS[0][0] == ATTEMPT_STATE_MAX * ATTEMPT_EVENT_MAX,
    "one cell for each state and event");

static const char *const EVENT_NAMES[] = {
    [EVENT_BIND] = "bind",
    [EVENT_RENEW] = "renew",
    [EVENT_SETTLE_PASSED] = "settle passed",
    [EVENT_SETTLE_FAILED] = "settle failed",
    [EVENT_SETTLE_CANCELLED] = "settle cancelled",
    [EVENT_RETIRE] = "retire",
};
_Static_assert(ARRAY_SIZE(EVENT_NAMES) == ATTEMPT_EVENT_MAX, "one name for each event");

const char *attempt_event_name(enum attempt_event event)
{
    return event < ATTEMPT_EVENT_MAX ? EVENT_NAMES[event] : "unknown";
}

static bool token_matches(const struct attempt *attempt, const uint8_t *token_digest)
{
    return token_digest && sodium_memcmp(attempt->token_digest, token_digest, TOKEN_DIGEST_BYTES) == 0;
}

static enum result refuse_finished(const struct attempt *attempt, struct error *err)
{
    const struct reason *reason = &attempt->reason;

    if (reason->text)
        return error_set(
            err, RESULT_RETIRED, 0, "attempt %s was retired: %s", attempt_name(attempt), reason->text);
    if (reason->by_attempt)
        return error_set(err, RESULT_RETIRED, 0, "attempt %s was retired (%s) by attempt %s",
            attempt_name(attempt), reason->code ? reason->code : "no reason recorded", reason->by_attempt);
    return error_set(err, RESULT_RETIRED, 0, "attempt %s has ended: %s (%s)", attempt_name(attempt),
        attempt_state_name(attempt->state), reason->code ? reason->code : "no reason recorded");
}

static enum result refuse_stranger(const struct attempt *attempt, struct error *err)
{
    return error_set(
        err, RESULT_RETIRED, 0, "attempt %s is owned under another token", attempt_name(attempt));
}

/* The guard that keeps an ended attempt as it is can be removed for one event at a time. */
static bool unfinished_guard_removed(enum attempt_event event)
{
    switch (event) {
    case EVENT_RENEW:
        return MUTANT("unfinished-renew");
    case EVENT_SETTLE_PASSED:
    case EVENT_SETTLE_FAILED:
    case EVENT_SETTLE_CANCELLED:
        return MUTANT("unfinished-settle");
    case EVENT_BIND:
    case EVENT_RETIRE:
    case ATTEMPT_EVENT_MAX:
        break;
    }
    return false;
}

static enum result decide_owner(const struct attempt *attempt, const struct transition_request *request,
    const struct transition *cell, const struct store_time *now, struct error *err)
{
    bool proof_wanted = cell->needs_proof && attempt->kind == KIND_DONE;

    if (cell->strict_needs_lease && attempt_kind_is_strict(attempt->kind) && !MUTANT("strict-expiry") &&
        lease_lapsed(&attempt->lease, now))
        return error_set(err, RESULT_LAPSED, 0, "the lease of attempt %s has lapsed", attempt_name(attempt));
    if (!MUTANT("proof-iff-passed") && proof_wanted != request->with_proof)
        return error_set(err, RESULT_INVALID, 0,
            proof_wanted ? "attempt %s cannot pass without its Proof" : "attempt %s cannot end with a Proof",
            attempt_name(attempt));
    return RESULT_OK;
}

static enum result decide_other(const struct attempt *attempt, const struct transition_request *request,
    const struct store_time *now, struct error *err)
{
    if (!MUTANT("rev") && request->rev != attempt->rev)
        return error_set(
            err, RESULT_CONFLICT, 0, "attempt %s changed since it was read", attempt_name(attempt));
    if (!MUTANT("expiry") && !request->owner_gone && !lease_lapsed(&attempt->lease, now))
        return error_set(err, RESULT_CONFLICT, 0,
            "attempt %s still has a living lease, and its owner is not known to be gone",
            attempt_name(attempt));
    return RESULT_OK;
}

enum result transition_decide(const struct attempt *attempt, const struct transition_request *request,
    const struct store_time *now, enum attempt_state *ret_to, struct error *err)
{
    bool finished = attempt_state_is_terminal(attempt->state);
    /* An ended attempt gets this far only with its guard removed: then it is taken for a running one. */
    const struct transition *cell = &TRANSITIONS[finished ? ATTEMPT_RUNNING : attempt->state][request->event];
    enum result r = RESULT_OK;

    if (request->event != EVENT_RETIRE && !MUTANT("token") && !token_matches(attempt, request->token_digest))
        return refuse_stranger(attempt, err);
    if (finished && !unfinished_guard_removed(request->event))
        return refuse_finished(attempt, err);
    if (cell->by == BY_NOBODY)
        return error_set(err, RESULT_INVALID, 0, "attempt %s is %s: %s is not possible",
            attempt_name(attempt), attempt_state_name(attempt->state), attempt_event_name(request->event));
    r = cell->by == BY_OWNER ? decide_owner(attempt, request, cell, now, err)
                             : decide_other(attempt, request, now, err);
    if (r == RESULT_OK)
        *ret_to = request->event == EVENT_RENEW ? attempt->state : cell->to;
    return r;
}

enum result transition_check_owner(
    const struct attempt *attempt, const uint8_t *token_digest, struct error *err)
{
    if (!MUTANT("token") && !token_matches(attempt, token_digest))
        return refuse_stranger(attempt, err);
    if (!MUTANT("unfinished-evidence") && attempt_state_is_terminal(attempt->state))
        return refuse_finished(attempt, err);
    return RESULT_OK;
}
