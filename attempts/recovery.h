/*
 * Recovery and reservation: what happens before any work starts.
 *
 *     1. read every unfinished attempt of the repository and every holder of a wanted subject
 *     2. ask for each owner's verdict (the caller's probe; this room does not know journals)
 *     3. retire by compare-and-swap, one transaction each: whose owner is gone; of the lapsed ones only
 * holders of a wanted subject. On conflict read again, up to RECOVERY_TRIES times. What cannot be written
 * stays
 *     4. reserve; a subject still held is reported as held, and nothing is written
 *
 * Recovery never fails the run: its own troubles are reported as texts. Not thread-safe.
 */
#ifndef ATTEMPTS_RECOVERY_H
#define ATTEMPTS_RECOVERY_H

#include "attempts/store.h"

#define RECOVERY_TRIES 5

/* Verdict about the owner of `attempt`. Must not block. */
typedef enum owner_verdict (*owner_probe_fn)(void *context, const struct attempt *attempt);

struct recovery_report {
    struct attempt_list retired; /* as they were when read */
    char **troubles;             /* sentences about what could not be retired, and why */
    size_t trouble_count;
    enum owner_verdict holder_verdict; /* about the holder, when HELD */
};
void recovery_report_done(struct recovery_report *report);

/* Steps 1 to 3 on their own, for `cancel`, tests, and a service that recovers at login. `by_attempt` may be
 * NULL. */
_must_use_ enum result recovery_run(struct store *store, const struct attempt_query *query,
    const char *by_attempt, owner_probe_fn probe, void *context, struct recovery_report *report,
    struct error *err);

/* Steps 1 to 4. Results as store_reserve. Costs one transaction when nobody is in the way. */
_must_use_ enum result recovery_reserve(struct store *store, struct reservation *reservation,
    owner_probe_fn probe, void *context, struct recovery_report *report, struct attempt *ret,
    struct attempt *ret_holder, struct error *err);

#endif
