/*
 * The directory of journals, as the writer and retention see it: names, where it lies, and how one goes.
 */
#ifndef JOURNAL_PLACE_PRIVATE_H
#define JOURNAL_PLACE_PRIVATE_H

#include "base/error.h"

#define JOURNAL_FILE_NAME   "journal"
#define JOURNAL_OUT_NAME    "out"
#define JOURNAL_NEW_PREFIX  ".new-"  /* a directory that is being made */
#define JOURNAL_GONE_PREFIX ".gone-" /* a directory that is being removed */

/* `root` made absolute, or journals/ in the state directory when it is NULL. Owned by the caller. */
_must_use_ enum result journal_root(const char *root, char **ret, struct error *err);

/* Takes <root>/<handle> out of sight in one step, then removes it. ABSENT when it is gone already. */
_must_use_ enum result journal_remove(const char *root, int root_fd, const char *handle, struct error *err);

/* error_errno() for a path, with DENIED and ABSENT told from other failures. */
enum result journal_error(struct error *err, int errnum, const char *doing, const char *path);

#endif
