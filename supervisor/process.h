/*
 * A process is never a bare pid: the pid, a pidfd that the kernel ties to this very process, and its start
 * time. Signals go through the pidfd, so that a pid that was used again is never hit.
 */
#ifndef SUPERVISOR_PROCESS_H
#define SUPERVISOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct process {
    pid_t pid;
    int pidfd; /* -1 when closed */
    int64_t start_ticks;
};

/* Opens a running process and checks that its start time is `start_ticks` (0: any). ABSENT when it is gone.
 */
_must_use_ enum result process_open(pid_t pid, int64_t start_ticks, struct process *ret, struct error *err);
/* ABSENT when gone, DENIED when it is another user's. */
_must_use_ enum result process_signal(const struct process *process, int signal, struct error *err);
/* Signals every process of the group that `leader` leads or led; the number must not have been given away
 * since, so only inside the gate for a leader that was not reaped. INVALID, and nothing is signalled, for a
 * number up to 1 or the group of this process: kill(2) takes some of these for everything that it may reach.
 * ABSENT when the group is empty. */
enum result process_signal_group(pid_t leader, int signal);
bool process_is_gone(const struct process *process); /* dead, or a zombie */
void process_close(struct process *process);

#endif
