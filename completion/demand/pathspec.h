/*
 * Matching of input globs over the candidate's tree, as git's ":(glob)" pathspecs do: `*` and `?` stop at a
 * slash,
 * `**` between slashes crosses them, a glob that names a directory takes all below it, `[...]` classes, a
 * leading "!" (or ":!") excludes. Compared with git itself by the tests. Source: gitglossary(7), pathspec.
 * Thread-safe.
 */
#ifndef COMPLETION_DEMAND_PATHSPEC_H
#define COMPLETION_DEMAND_PATHSPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "completion/demand/config.h"

bool pathspec_match(const char *glob, const char *path);

/* Indices of the entries that match any of the globs and none of the excluding ones; none given: all. Owned.
 */
void pathspec_select(
    const struct candidate *candidate, const struct strings *globs, size_t **ret_indices, size_t *ret_count);

#endif
