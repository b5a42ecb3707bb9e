/*
 * Matching of input globs over the candidate's tree, as git's ":(glob)" pathspecs do: `*` and `?` stop at a
 * slash, `**` between slashes crosses them, a glob without special characters that names a directory takes
 * all below it, `[...]` classes, `\` takes the next character as it is, and a leading "!" (or ":!", ":^")
 * excludes. Compared with git itself by the tests. Bytes, whatever the locale. Source: gitglossary(7),
 * pathspec. Thread-safe.
 */
#ifndef COMPLETION_DEMAND_PATHSPEC_H
#define COMPLETION_DEMAND_PATHSPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "completion/demand/config.h"

/* Whether the glob itself matches; an excluding mark is passed over. */
bool pathspec_match(const char *glob, const char *path);
/* Whether the glob bears an excluding mark. */
bool pathspec_excludes(const char *glob);

/* Indices of the entries that match any of the globs and none of the excluding ones; none given: all. Owned.
 */
void pathspec_select(
    const struct candidate *candidate, const struct strings *globs, size_t **ret_indices, size_t *ret_count);

#endif
