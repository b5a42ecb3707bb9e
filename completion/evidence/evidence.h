/*
 * Evidence: the immutable record of one producer's outcome for one applicability.
 *
 * The store keeps it as an opaque payload; this room knows what is in it. Verdict words are those of
 * job_verdict_name and those of this room. Only "passed" is a pass. One thread.
 */
#ifndef COMPLETION_EVIDENCE_EVIDENCE_H
#define COMPLETION_EVIDENCE_EVIDENCE_H

#include "attempts/store.h"
#include "completion/demand/applicability.h"
#include "supervisor/supervisor.h"

#define VERDICT_OUTPUT_MISSING "output-missing" /* exited 0 without a declared output or artifact */
#define VERDICT_INPUTS_CHANGED "inputs-changed" /* of the record alone: no evidence is kept */
#define VERDICT_OUTPUT_UNFIT   "output-unfit"   /* exited 0 and left something there that cannot be kept */

/* A declared output or artifact as it was found after the run. */
struct output_state {
    char *path;
    uint32_t mode;                /* type and permission bits; 0: missing */
    char digest[DIGEST_HEX_SIZE]; /* of the bytes, of the link's target, or of a directory's sorted content */
};
struct output_states {
    struct output_state *items;
    size_t count;
};
void output_states_done(struct output_states *states);

/* Looks at the paths below top_fd, following no link: the last component may be one, and then its target's
 * text is digested; a link in the middle is INVALID, and so are a device, a FIFO, a socket, a path that
 * leaves the tree, and directories more than 100 levels deep. Missing ones have mode 0. `runner` (may be
 * NULL) is ticked. */
_must_use_ enum result outputs_look(int top_fd, const struct strings *paths, struct runner *runner,
    struct output_states *ret, struct error *err);
/* One digest over all states, in order of path: what enters the key of those who need it. */
void outputs_digest(const struct output_states *states, char ret[DIGEST_HEX_SIZE]);
bool outputs_equal(const struct output_states *a, const struct output_states *b);

struct evidence {
    int64_t sequence; /* 0 until stored */
    char attempt_id[UUID_TEXT_SIZE];
    char *producer;
    struct applicability applicability;
    char *verdict;
    bool passed, reusable;
    int exit_code, signal;
    int64_t duration_ms, frozen_ms;
    char *log; /* absolute path at the time */
    char *log_digest;
    int64_t log_bytes, dropped_bytes;
    struct output_states outputs, artifacts;
    char *handle, *host; /* whose run it was */
    char *commit, *tree;
    char *text;
    int64_t wall_ms;
};
void evidence_done(struct evidence *evidence);

/* The evidence of a finished job. `reusable` only for a completed outcome of a clean run: passed, failed,
 * signalled on its own, timed out, quiet. Left for the caller to fill: sequence, attempt_id, log (the outcome
 * knows only the name), outputs, artifacts, handle, host, commit, tree, wall_ms. */
void evidence_from_outcome(
    const struct job_outcome *outcome, const struct applicability *applicability, struct evidence *ret);

/* To and from the store's row; machine_id is left empty. What is not UTF-8 in a string becomes visible as
 * \xNN. CORRUPT when the payload cannot be read, NEWER when its format is of a later version. */
void evidence_to_row(const struct evidence *evidence, const char *repository, struct evidence_row *ret);
_must_use_ enum result evidence_from_row(
    const struct evidence_row *row, struct evidence *ret, struct error *err);

#endif
