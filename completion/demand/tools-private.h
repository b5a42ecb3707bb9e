/* Environments as lists of "NAME=VALUE", and the programs that a PATH leads to. Thread-safe. */
#ifndef COMPLETION_DEMAND_TOOLS_PRIVATE_H
#define COMPLETION_DEMAND_TOOLS_PRIVATE_H

#include "base/digest.h"
#include "base/error.h"

/* The value of `name`, borrowed; NULL when it is not there. The first one counts, as for getenv(3). */
const char *environment_value(const char *const *environment, const char *name);

/* Digest of the bytes of a program's file, links followed. Without a slash it is looked up on `path` (NULL:
 * the system's own), of which relative parts start at `top_fd`, as they would for a producer. INVALID: not
 * found, not executable, not readable. */
_must_use_ enum result tool_digest(
    int top_fd, const char *path, const char *tool, char ret[DIGEST_HEX_SIZE], struct error *err);

#endif
