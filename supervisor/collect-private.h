/* What both runners (collect.c, runner.c) do alike for a program that is run for its output. */
#ifndef SUPERVISOR_COLLECT_PRIVATE_H
#define SUPERVISOR_COLLECT_PRIVATE_H

#include "supervisor/collect.h"

#define COLLECT_LIMIT_DEFAULT_BYTES   ((size_t)1 << 30)
#define COLLECT_COMPLAINT_LIMIT_BYTES ((size_t)64 * 1024)

/* The program's input as a file in memory: nothing to feed, nobody to wait for, and no SIGPIPE from a program
 * that reads less than it is given. -1 when there is none. */
_must_use_ enum result collect_input_open(const struct collect *collect, int *ret_fd, struct error *err);

/* The caller's own environment without GIT_*: a hook's settings must not reach the git that we ask. The list
 * is owned by the caller, its strings are not. */
const char **collect_environment(void);

/* How long the program may take, and the error of one that took longer (SYSTEM). */
int64_t collect_bound_ms(const struct collect *collect);
_must_use_ enum result collect_overdue(const struct collect *collect, struct error *err);

#endif
