/*
 * Which journals are there, and which may go: finished ones older than 14 days or beyond the newest 200,
 * oldest first. Running and unreadable ones never. Thread-safe.
 */
#ifndef JOURNAL_RETENTION_H
#define JOURNAL_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/machine.h"
#include "journal/handle.h"
#include "journal/liveness.h"

#define RETENTION_AGE_DEFAULT_MS (INT64_C(14) * 24 * 3600 * 1000)
#define RETENTION_KEEP_DEFAULT   200

struct journal_entry {
    char handle[HANDLE_SIZE];
    char *path;
    struct liveness liveness;
    int64_t created_wall_ms;
};
struct journal_index {
    struct journal_entry *items; /* newest first */
    size_t count;
};
void journal_index_done(struct journal_index *index);

/* root NULL: the state directory's journals/. A missing root is an empty index. */
_must_use_ enum result journal_index_read(
    const char *root, const struct machine *machine, struct journal_index *ret, struct error *err);
/* ABSENT with the nearest known handles in the remedy. `handle` as normalised by handle_parse. */
_must_use_ enum result journal_locate(
    const char *root, const char *handle, char **ret_path, struct error *err);

struct retention {
    int64_t age_ms;
    size_t keep;
    bool dry_run;
    /* Is shown each that goes, oldest first. May be NULL. */
    void (*removed)(void *context, const struct journal_entry *entry, int64_t bytes);
    void *context;
};
/* Removes what may go; *ret_removed counts, *ret_bytes says how much. */
_must_use_ enum result retention_prune(const char *root, const struct machine *machine,
    const struct clock *clock, const struct retention *retention, size_t *ret_removed, int64_t *ret_bytes,
    struct error *err);

#endif
