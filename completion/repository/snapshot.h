/*
 * A snapshot of files by statx: inode, size, ctime and mtime of every input of a producer, taken around its
 * run. It catches what git cannot see: an edit that was reverted. Cheap: one statx per file. One thread.
 */
#ifndef COMPLETION_REPOSITORY_SNAPSHOT_H
#define COMPLETION_REPOSITORY_SNAPSHOT_H

#include <stddef.h>

#include "completion/repository/candidate.h"

struct snapshot;

/* Of the candidate's entries with these indices (NULL: all), relative to top_fd, not following links; the
 * directories of submodules are left out, their files are entries of their own. The candidate is borrowed
 * until snapshot_free(). */
_must_use_ enum result snapshot_take(const struct candidate *candidate, const size_t *indices, size_t count,
    struct snapshot **ret, struct error *err);
/* CONFLICT with the files named when anything differs now. */
_must_use_ enum result snapshot_check(const struct snapshot *snapshot, struct error *err);
/* NULL is allowed. */
void snapshot_free(struct snapshot *snapshot);

#endif
