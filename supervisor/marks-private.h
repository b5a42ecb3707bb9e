/*
 * Looking for processes by their mark (marks.h).
 *
 * A scan looks at every process that can be seen, once. It never signals this process or one of its
 * ancestors. Loop thread only.
 */
#ifndef SUPERVISOR_MARKS_PRIVATE_H
#define SUPERVISOR_MARKS_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/marks.h"

struct mark_scan {
    const char *store_id, *attempt_id;
    int signal;                  /* for all that bear the mark */
    int64_t attempt_start_ticks; /* what began earlier cannot be of the attempt; 0: not known */

    size_t found;       /* in the last run, kin excepted */
    size_t kin;         /* in the last run: this process and ancestors that bear the mark */
    size_t signalled;   /* different processes, over all runs */
    size_t denied;      /* in the last run: may not be signalled */
    struct text named;  /* "pid 4711 (sleep), ...": each process that was found, once */
    struct text unseen; /* of this user, younger than the attempt, and not to be looked at */

    pid_t *known; /* those that are named already */
    size_t known_count, known_capacity;
    pid_t *ancestors; /* and this process */
    size_t ancestor_count, ancestor_capacity;
};

void mark_scan_init(struct mark_scan *scan, const char *store_id, const char *attempt_id, int signal);
void mark_scan_run(struct mark_scan *scan);
void mark_scan_done(struct mark_scan *scan);
bool mark_scan_is_kin(const struct mark_scan *scan, pid_t pid);

#endif
