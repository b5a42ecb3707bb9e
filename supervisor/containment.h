/*
 * Containment: the place in which an attempt's work lives, so that it can be frozen and ended as a whole.
 *
 * This version has the plain level: this process is a subreaper (prctl(2)), each producer leads a session and
 * process group of its own, and everything that was orphaned comes back to us as a child. Freezing: SIGSTOP
 * to each known process group first, then down the children lists (/proc/PID/task/TID/children) until two
 * passes in a row find nothing new, nothing running, and no orphan was reaped in between. Jobs that were
 * stopped before the freeze stay stopped after the thaw. When no child is left (waitid answers ECHILD)
 * nothing of the work lives.
 *
 * Thread rules: the gate's mutex is held by the caller for every function here (guard and loop share one
 * object). Reaping happens inside the gate too, so that no pid or group is signalled after it was reaped.
 */
#ifndef SUPERVISOR_CONTAINMENT_H
#define SUPERVISOR_CONTAINMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/text.h"
#include "supervisor/process.h"

enum containment_level { CONTAINMENT_PLAIN, CONTAINMENT_LEVEL_MAX };
const char *containment_level_name(enum containment_level level);

struct containment;

/* Makes this process a subreaper and takes it as the root of the work. */
_must_use_ enum result containment_open(
    const struct clock *clock, struct containment **ret, struct error *err);
void containment_close(struct containment *containment);
enum containment_level containment_level(const struct containment *containment);

/* A spawned producer's process group joins; it leaves by itself once it is reaped. */
void containment_add(struct containment *containment, pid_t group_leader);

struct containment_report {
    size_t frozen, killed;
    struct text named; /* "pid 4711 (sleep)" and so on: what had to be killed, or could not be signalled */
};
void containment_report_done(struct containment_report *report);

/* Stops everything. What is still running at `deadline_boot_ms` (or 200 ms from now, when that is later) is
 * killed and named. Until all stands still it allocates nothing and takes no lock; it never waits for the
 * loop.
 */
void containment_freeze(
    struct containment *containment, int64_t deadline_boot_ms, struct containment_report *report);
/* Continues what the freeze stopped, leaves first. */
void containment_thaw(struct containment *containment);
bool containment_is_frozen(const struct containment *containment);

/* One pass: sends `signal` to everything that lives (SIGKILL: repeated passes until nothing new is found). */
void containment_signal(struct containment *containment, int signal, struct containment_report *report);

/* Reaps one child that has ended: true with its pid and wait status; orphans included. False when none has.
 */
bool containment_reap(struct containment *containment, pid_t *ret_pid, int *ret_status);
/* True when no child of any kind is left. */
bool containment_is_empty(struct containment *containment);
/* A child that stopped itself (SIGTTIN, SIGSTOP ...) and was not continued. Meaningless while frozen. Needs
 * no gate. */
bool containment_is_stopped(pid_t pid);
/* Names what is left of the work, for messages; empty text when nothing is. */
void containment_name_survivors(struct containment *containment, struct text *ret);

#endif
