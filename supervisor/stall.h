/*
 * Whether this process stood still: stopped, suspended with its machine, or without a processor.
 *
 *     stall_init(&stall, clock, margin_ms);
 *     stall_look(&stall);                     // every thread that lives, whenever it does
 *     gap_ms = stall_take(&stall);            // one of them gives account
 *
 * The kernel tells nobody that he was stopped. But the guard wakes at least every stall_tick_ms(), so a
 * longer silence of all threads is a time in which none of them could run. Whoever looks first after it
 * counts it, as the time between the last sign of life and this one; so no outcome that is taken after the
 * silence can miss it: who takes waits for whoever is about to count, a few instructions. A silence of more
 * than two margins is counted for certain, less than that never.
 *
 * Any thread; stall_look() never waits. CLOCK_BOOTTIME, because it goes on while the machine is suspended.
 */
#ifndef SUPERVISOR_STALL_H
#define SUPERVISOR_STALL_H

#include <stdatomic.h>

#include "base/clock.h"

struct stall {
    const struct clock *clock;
    int64_t bound_ms;
    _Atomic int64_t seen_boot_ms; /* the last sign of life */
    _Atomic int64_t gap_ms;       /* counted and not taken yet */
    _Atomic int looking;          /* how many may be about to count */
};

void stall_init(struct stall *stall, const struct clock *clock, int64_t margin_ms);
/* How long the guard may sleep at most. */
int64_t stall_tick_ms(int64_t margin_ms);
/* A sign of life. True when it ended a silence. */
bool stall_look(struct stall *stall);
/* What was counted since it was last taken; 0: nothing. One thread. */
int64_t stall_take(struct stall *stall);

#endif
