/*
 * Looking at attempts from outside: what `status`, `attach` and `cancel` need. Never holds anything.
 * Each function opens what it needs; one thread per call.
 */
#ifndef SUPERVISOR_OVERVIEW_H
#define SUPERVISOR_OVERVIEW_H

#include "attempts/store.h"
#include "base/machine.h"
#include "supervisor/witness.h"

struct overview_entry {
    struct attempt attempt;
    enum owner_verdict verdict;
    const char *verdict_why; /* constant sentence */
    struct witness witness;
    bool lapsed;
    int64_t lapses_in_ms;   /* 0 when lapsed */
    int64_t lapses_wall_ms; /* effective expiry, for people */
};
struct overview {
    struct overview_entry *items; /* newest first */
    size_t count;
    struct store_time now;
    char *absent; /* why there is none at all: no such store yet; else NULL */
};
void overview_done(struct overview *overview);

/* A store that does not exist yet is an empty overview that says so. */
_must_use_ enum result overview_read(
    const char *store_url, const struct attempt_query *query, struct overview *ret, struct error *err);

/* Finds one attempt by id, handle as typed, or unique prefix of an id; ABSENT names near handles. */
_must_use_ enum result overview_find(
    const char *store_url, const char *typed, struct overview_entry *ret, struct error *err);
void overview_entry_done(struct overview_entry *entry);

enum cancel_outcome {
    CANCEL_ASKED,   /* the owner lives: it was asked, and ended within the bound */
    CANCEL_PENDING, /* asked; it had not ended within the bound */
    CANCEL_RETIRED, /* the owner was gone or lapsed: retired here */
    CANCEL_ENDED,   /* it had ended already */
};
/* Asks a running attempt to stop, or retires a dead one. Waits up to `wait_ms` for the end; `ret` is the
 * record as it stands then. On the owner's own kernel and in its pid namespace the answer is hastened:
 * SIGUSR2, which a supervisor takes as `renew now`, goes by pidfd to the process whose start time the record
 * has and whose journal is locked. */
struct cancel_request {
    const char *store_url; /* NULL: default */
    const char *typed;     /* handle, id, or the beginning of an id */
    const char *by;        /* who asks, for the record */
    int64_t wait_ms;
    /* Called once when the end has not come within a second: how long it is waited for from now on. May be
     * NULL. */
    void (*waiting)(void *context, const struct attempt *attempt, int64_t left_ms);
    void *context;
};
_must_use_ enum result cancel_attempt(const struct cancel_request *request, enum cancel_outcome *ret_outcome,
    struct attempt *ret, struct error *err);

#endif
