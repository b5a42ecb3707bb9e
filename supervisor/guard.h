/*
 * The lapse guard: the work never outruns the fence.
 *
 * A thread that holds the own deadline and does nothing else: no database, no journal, no lock but the gate.
 * Loop and heartbeat may both hang; it may not. At the deadline it closes the gate, then stops the work:
 * LAPSE_FREEZE freezes the whole tree (what cannot be frozen within half a margin is killed and named);
 * LAPSE_ABORT sends TERM one margin before the deadline and KILL at it. It then tells the loop through an
 * eventfd. Guard functions are thread-safe.
 */
#ifndef SUPERVISOR_GUARD_H
#define SUPERVISOR_GUARD_H

#include "supervisor/containment.h"
#include "supervisor/gate.h"
#include "supervisor/stall.h"

enum lapse_policy {
    LAPSE_FREEZE,
    LAPSE_ABORT,
};

enum guard_state {
    GUARD_WATCHING,
    GUARD_FROZEN,   /* the work is frozen; guard_resume() after a confirmation */
    GUARD_ABORTING, /* LAPSE_ABORT: TERM was sent one margin before the deadline; there is no way back */
    GUARD_ABORTED,  /* the work was killed at the deadline */
};

struct guard;

struct guard_options {
    const struct clock *clock;
    struct gate *gate;
    struct containment *containment;
    enum lapse_policy policy;
    int64_t margin_ms;
    struct stall *stall; /* shown a sign of life at least every stall_tick_ms(); NULL: nobody asks */
    int notify_fd;       /* eventfd, written at every change of state */
};
_must_use_ enum result guard_start(
    const struct guard_options *options, struct guard **ret, struct error *err);
void guard_stop(struct guard *guard); /* joins; NULL is allowed */

enum guard_state guard_state(const struct guard *guard);
/* A renewal was confirmed: the deadline moves to what lease_own_deadline_ms gives for the time it was sent.
 */
void guard_confirm(struct guard *guard, int64_t deadline_boot_ms);
/* Thaws inside the gate when the deadline lies ahead, and looks again right after. True when the work runs.
 */
bool guard_resume(struct guard *guard);
/* Closes the gate and freezes the work now, whatever the deadline says: before this process stops itself
 * (Ctrl-Z). Only while watching; otherwise nothing happens. */
void guard_freeze(struct guard *guard);
/* What the last freeze or abort had to kill, for the journal; copies and clears. */
void guard_take_report(struct guard *guard, struct containment_report *ret);

#endif
