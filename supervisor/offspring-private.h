/*
 * Ending programs that are not jobs, together with everything that they started: what collect.c runs shares
 * our session and process group, so there is no group of its own to signal, and no mark to go by.
 *
 * Each signal goes through a pidfd that was opened before the process was looked at again. While this runs,
 * the process is a subreaper (prctl(2)): whoever loses its parent meanwhile is found among our own children.
 * Other children of ours, and what those started, are left alone. So is a daemon that had gone its own way
 * before.
 */
#ifndef SUPERVISOR_OFFSPRING_PRIVATE_H
#define SUPERVISOR_OFFSPRING_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kills the programs, children of ours that were not reaped, and all that descends from them; waits until
 * nothing of it runs, but no longer than `bound_ms`: what hangs in the kernel is left to it. The programs are
 * the caller's to reap; orphans are reaped. */
void offspring_end(const pid_t *programs, size_t count, int64_t bound_ms);

#endif
