/*
 * The spawn gate: the one lock between the guard, which closes it at the deadline, and those who start or
 * thaw work.
 *
 *     gate_enter(gate);
 *     if (gate_may_run(gate)) { spawn or thaw; if (!gate_may_run(gate)) stop it again; }
 *     gate_leave(gate);
 *
 * The deadline is CLOCK_BOOTTIME. A confirmation only moves it; it permits nothing by itself. Held only for
 * what is bounded (a pass over the work; a start, until the exec or the deadline), so that the guard never
 * waits long: whoever may have to wait for a file system does so before. Thread-safe.
 */
#ifndef SUPERVISOR_GATE_H
#define SUPERVISOR_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct gate {
    pthread_mutex_t mutex;
    const struct clock *clock;
    _Atomic int64_t deadline_boot_ms;
    _Atomic bool closed; /* by the guard; opened by whoever thaws */
};

void gate_init(struct gate *gate, const struct clock *clock, int64_t deadline_boot_ms);
void gate_done(struct gate *gate);
void gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);
bool gate_may_run(const struct gate *gate); /* open, and the deadline lies ahead. Looks at the clock */
void gate_move(struct gate *gate, int64_t deadline_boot_ms); /* never backwards */
int64_t gate_deadline(const struct gate *gate);

#endif
