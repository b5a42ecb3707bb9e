/*
 * Ending what retired attempts left behind, under the own lease, before bind and before anything is spawned.
 *
 * For every leftovers row of this machine and boot, whoever retired it: its supervisor, if that still holds
 * its journal's lock, gets TERM and CONT by pidfd (so that it sees the retirement, ends its work and exits 4)
 * and KILL after the grace; then everything that bears its mark gets KILL, by pidfd with the start time
 * checked, again until nothing is found; then the row is deleted. Never the caller itself or one of its
 * ancestors.
 *
 * Marks are described in marks.h. Loop thread only; may take up to the grace per row, calling `tick`
 * meanwhile.
 */
#ifndef SUPERVISOR_LEFTOVERS_H
#define SUPERVISOR_LEFTOVERS_H

#include "attempts/store.h"
#include "base/machine.h"
#include "base/text.h"

struct leftovers_options {
    struct store *store;
    const struct machine *machine;
    const struct clock *clock;
    const char *attempt_id;      /* the new attempt: a row of its own says that it was retired, and stays */
    const char *const *subjects; /* of it */
    size_t subject_count;
    int64_t grace_ms;
    void (*tick)(void *context);
    void *context;
};

struct leftovers_report {
    size_t ended;
    struct text notes; /* one line per attempt: what was ended, what could not be seen */
    bool blocked;      /* something lives that shares a subject and could not be ended */
    struct text named; /* what lives, when blocked */
};
void leftovers_report_done(struct leftovers_report *report);

/* OK whether or not something remained; the report tells. Store results otherwise. */
_must_use_ enum result leftovers_end(
    const struct leftovers_options *options, struct leftovers_report *report, struct error *err);

#endif
