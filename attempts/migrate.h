/*
 * The schema's versions, from the embedded files migrations/KIND/NNNN_name.sql: NNNN is the version that the
 * file brings about, 1 upwards without a gap. Each store runs them in a transaction of its own kind.
 * Thread-safe.
 */
#ifndef ATTEMPTS_MIGRATE_H
#define ATTEMPTS_MIGRATE_H

#include <stdint.h>

/* The version that this program knows; `kind` is the folder ("sqlite"). 0 when there is none. */
int64_t migration_newest(const char *kind);

/* The SQL that turns version - 1 into `version`; NULL when there is none. */
const char *migration_text(const char *kind, int64_t version);

#endif
