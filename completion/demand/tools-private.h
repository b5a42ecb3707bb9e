/* The programs that a demand names as its tools. Thread-safe. */
#ifndef COMPLETION_DEMAND_TOOLS_PRIVATE_H
#define COMPLETION_DEMAND_TOOLS_PRIVATE_H

#include "base/digest.h"
#include "base/error.h"

/* Digest of the bytes of a program's file, links followed. Without a slash it is looked up on `path` (NULL:
 * the system's own), of which relative parts start at `top_fd`, as they would for a producer. INVALID: not
 * found, not executable, not readable. */
_must_use_ enum result tool_digest(
    int top_fd, const char *path, const char *tool, char ret[DIGEST_HEX_SIZE], struct error *err);

#endif
