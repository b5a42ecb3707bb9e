/* The guard's judgement, as a pure function of the time: for the guard, and for tests with a hand-moved
 * clock. */
#ifndef SUPERVISOR_GUARD_PRIVATE_H
#define SUPERVISOR_GUARD_PRIVATE_H

#include "supervisor/guard.h"

enum guard_act {
    GUARD_WAIT,   /* for `wait_ms`; negative: until woken */
    GUARD_FREEZE, /* close the gate, freeze the work */
    GUARD_TERM,   /* close the gate, ask the work to end */
    GUARD_KILL,   /* close the gate, kill the work */
};

struct guard_step {
    enum guard_act act;
    int64_t wait_ms;
};

struct guard_step guard_decide(enum lapse_policy policy, enum guard_state state, int64_t now_boot_ms,
    int64_t deadline_boot_ms, int64_t margin_ms);

#endif
