/*
 * `tenure init`: a tenure.json that fits what the tree holds (make, cmake, meson, npm, cargo, go, python,
 * shell). Never overwrites. One thread.
 */
#ifndef COMPLETION_DEMAND_STARTER_H
#define COMPLETION_DEMAND_STARTER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct starter {
    struct text config; /* of tenure.json */
    const char *kind;   /* what was found ("cmake"), or "none" with a producer that the user has to fill in */
    bool ignores;       /* chores are about .gitignore, too */
    struct text chores; /* what else is to be done before the first run, in words; empty: nothing */
};
void starter_done(struct starter *starter);

/* Looks at the files that git has, or would have after `git add`. Fails as git does. */
_must_use_ enum result starter_make(int top_fd, struct starter *ret, struct error *err);

#endif
