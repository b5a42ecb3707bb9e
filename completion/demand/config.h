/*
 * tenure.json: what must be established for a tree. Read by the strict scanner and field tables; every
 * refusal names file, line and column, and what to write instead. Also tenure.json(5) and the JSON Schema
 * beside it.
 *
 * A configuration is immutable once read; thread-safe for readers.
 */
#ifndef COMPLETION_DEMAND_CONFIG_H
#define COMPLETION_DEMAND_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attempts/lease.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json_scan.h"
#include "completion/repository/candidate.h"
#include "supervisor/guard.h"

#define CONFIG_NAME "tenure.json"

struct strings {
    char **items; /* NULL behind the last, as execve(2) wants it */
    size_t count;
};

/* Where something stands in the file; 1-based, columns count characters. */
struct config_place {
    int line, column;
};

struct command_line {
    bool shell;           /* a string: /bin/sh -c */
    struct strings words; /* one word when shell */
};

struct producer {
    char *name;
    struct command_line run;
    struct strings inputs;                                /* git pathspec globs; empty: the whole tree */
    struct strings outputs, artifacts, needs, env, tools; /* paths without ".", "//" and a final "/" */
    int64_t timeout_ms, quiet_ms;                         /* 0: none */
    size_t *need_indices;                                 /* into the configuration's producers */
    size_t line;                                          /* where it stands */
    struct config_place *input_places;                    /* of each glob */
};

enum procedure_when {
    PROCEDURE_BEFORE,
    PROCEDURE_AFTER,
};
struct procedure {
    char *name;
    struct command_line run;
    enum procedure_when when;
    int64_t timeout_ms;
};

struct config {
    char *repository; /* NULL: derived */
    char *store_url;  /* NULL: default */
    struct lease_terms terms;
    enum lapse_policy on_lapse;
    int64_t lapse_patience_ms;
    struct producer *producers; /* in order of the file */
    size_t producer_count;
    size_t *order; /* producers so that needs come first */
    struct procedure *procedures;
    size_t procedure_count;
    char digest[DIGEST_HEX_SIZE]; /* of the file's bytes */
};
void config_done(struct config *config);

/* Parses `length` bytes. INVALID with "tenure.json:LINE:COLUMN: ..."; a cycle is spelled out as a path. A
 * carriage return is refused although JSON allows it: the twin of the file with other line ends would have
 * another digest, and git is asked not to see the difference. Extractors and standards are checked for form
 * and refused as not in this version. */
_must_use_ enum result config_parse(const char *bytes, size_t length, struct config *ret, struct error *err);

/* Reads it from the root of the work tree; ABSENT with the remedy `tenure init`. `ret_bytes` may be NULL. */
_must_use_ enum result config_read(int top_fd, struct config *ret, struct text *ret_bytes, struct error *err);

/* candidate_check_clean; when the refusal is about untracked files, the remedy names the lines that
 * .gitignore lacks, and lock files that belong into the commit. */
_must_use_ enum result config_check_clean(
    const struct config *config, const struct candidate *candidate, struct error *err);

/* INVALID when the tree holds no tenure.json: what is ignored lies in the work tree and demands nothing of
 * the commit. */
_must_use_ enum result config_check_committed(const struct candidate *candidate, struct error *err);

/* Appends what to do about what producers left behind untracked: the lines that .gitignore lacks, quoted, for
 * outputs and for directories and files that nobody declares, and the lock files to be committed. False:
 * there is nothing. */
bool config_left_behind(const struct config *config, const struct candidate *candidate, struct text *ret);

/* Refuses an input glob that matches none of the candidate's files, with its position. */
_must_use_ enum result config_check_inputs(
    const struct config *config, const struct candidate *candidate, struct error *err);

/* Index of a producer; SIZE_MAX when there is none. */
size_t config_producer(const struct config *config, const char *name);

/* The demanded producers: all, or the named ones and what they need. `ret` has producer_count flags, owned by
 * the caller. INVALID: unknown name, the nearest suggested. */
_must_use_ enum result config_demand(
    const struct config *config, const char *const *names, size_t count, bool **ret, struct error *err);

#endif
