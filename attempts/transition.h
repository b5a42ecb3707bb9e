/*
 * The states of an attempt and what may change them: one constant table, read by the stores, the tests, the
 * documentation and the check of the SQL.
 *
 *     state \ event   bind      renew      settle passed  settle failed  settle cancelled  retire
 *     planning        running   (same)     -              failed         cancelled         cancelled
 *     running         -         (same)     passed         failed         cancelled         cancelled
 *     terminal        -         -          -              -              -                 -
 *
 * transition_decide() is the whole of a store's judgement: the store locks the row, reads the clock, asks,
 * and writes or does not. Pure; thread-safe.
 */
#ifndef ATTEMPTS_TRANSITION_H
#define ATTEMPTS_TRANSITION_H

#include <stdbool.h>

#include "attempts/attempt.h"

enum attempt_event {
    EVENT_BIND,
    EVENT_RENEW,
    EVENT_SETTLE_PASSED,
    EVENT_SETTLE_FAILED,
    EVENT_SETTLE_CANCELLED,
    EVENT_RETIRE,
    ATTEMPT_EVENT_MAX
};

enum transition_by {
    BY_NOBODY, /* the cell is empty: refused */
    BY_OWNER,  /* needs the token */
    BY_OTHER,  /* no token: rev as read, and owner gone or lease lapsed */
};

struct transition {
    enum transition_by by;
    enum attempt_state to;
    bool strict_needs_lease; /* strict kinds: also not lapsed */
    bool needs_proof;        /* kind `done`: its Proof in the same transaction */
};

extern const struct transition TRANSITIONS[ATTEMPT_STATE_MAX][ATTEMPT_EVENT_MAX];

const char *attempt_event_name(enum attempt_event event); /* "bind", "settle passed", ... */

/* What the one who asks brings along. */
struct transition_request {
    enum attempt_event event;
    const uint8_t *token_digest; /* BY_OWNER: digest of the token shown, TOKEN_DIGEST_BYTES */
    int64_t rev;                 /* BY_OTHER: as read */
    bool owner_gone;             /* BY_OTHER: proven by the journal */
    bool with_proof;
};

/* May `request` change `attempt`, as locked and read just now, at `now`? RESULT_OK with the next state;
 * RETIRED when the attempt is finished or bears another token; LAPSED for a strict kind out of time; CONFLICT
 * when `rev` moved or the owner is neither gone nor lapsed; INVALID when the table has no such cell for an
 * unfinished attempt or a Proof is missing or out of place. */
_must_use_ enum result transition_decide(const struct attempt *attempt,
    const struct transition_request *request, const struct store_time *now, enum attempt_state *ret_to,
    struct error *err);

/* May the bearer of `token_digest` write data that depends on the attempt (evidence) without changing its
 * state? RETIRED when the attempt is finished or bears another token. */
_must_use_ enum result transition_check_owner(
    const struct attempt *attempt, const uint8_t *token_digest, struct error *err);

#endif
