/*
 * libtenure: claim a row of your PostgreSQL database under a lease with a fencing token, collect for as long
 * as it takes, and publish in one short transaction that only the holder of the claim can commit.
 *
 *     struct tenure_claim *claim = NULL;
 *     struct tenure_row row = {
 *         .table = "app.source", .key = "id", .value = "42", .soft_delete = "deleted_at"};
 *     enum tenure_result r = tenure_claim("postgresql:///app", &row, 180000, &claim);
 *     if (r != TENURE_OK)
 *         ... TENURE_HELD: somebody has it; TENURE_ABSENT: the row is gone; tenure_claim_message(claim)
 *     ... collect; the claim renews itself on a thread and a connection of its own ...
 *     tenure_publication_begin(claim);
 *     tenure_publication_query(claim, "INSERT INTO app.reading VALUES ($1, $2)", values, 2, &rows);
 *     tenure_publication_commit(claim);             // TENURE_OK: published, and the claim is over
 *     tenure_claim_free(claim);
 *
 * A claim belongs to one thread at a time. tenure_claim_is_live() may be called from any: stop collecting
 * when it is false. Nothing here prints, exits, installs a signal handler or forks. In a child of fork() a
 * claim cannot be used: every function answers TENURE_INVALID there, and freeing it does nothing.
 */
#ifndef TENURE_H
#define TENURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENURE_VERSION_MAJOR 0
#define TENURE_VERSION_MINOR 1

/* The words of the protocol, tenure(7). Values never change. */
enum tenure_result {
    TENURE_OK = 0,
    TENURE_HELD = 1,        /* another claim holds the row */
    TENURE_RETIRED = 2,     /* the claim is not, or no longer, yours */
    TENURE_LAPSED = 3,      /* the lease ran out before the write */
    TENURE_CONFLICT = 4,    /* changed meanwhile: again from the start */
    TENURE_BUSY = 5,        /* locked by somebody for now: again */
    TENURE_UNREACHABLE = 6, /* the server cannot be reached or cannot write */
    TENURE_UNKNOWN = 7,     /* the commit was sent and its answer lost, and asking did not help */
    TENURE_DENIED = 8,      /* the server does not permit it; the message has the GRANT */
    TENURE_NEWER = 9,       /* the schema is newer than this library */
    TENURE_CORRUPT = 10,
    TENURE_ABSENT = 11,  /* the row does not exist or is soft-deleted */
    TENURE_INVALID = 12, /* wrong arguments, or the server refused a statement */
    TENURE_SYSTEM = 13,  /* a system call failed */
};

struct tenure_row {
    const char *table;       /* as in SQL: schema.table, quoted where it must be */
    const char *key;         /* name of a column that identifies the row */
    const char *value;       /* its value, as text */
    const char *soft_delete; /* column: true, or not null, means gone; NULL: rows are only ever deleted */
};

struct tenure_claim;

const char *tenure_version(void);
const char *tenure_result_name(enum tenure_result result);

/* Claims the row; a thread renews every third of `ttl_ms` (2000 to 3600000), at least every 20 s. `ret` is
 * set whatever the result, for its message, and must be freed. Without memory the process is aborted. */
enum tenure_result tenure_claim(
    const char *url, const struct tenure_row *row, int64_t ttl_ms, struct tenure_claim **ret);

/* One sentence about the last failure; "" when there was none. Lives until the next call. */
const char *tenure_claim_message(const struct tenure_claim *claim);
const char *tenure_claim_attempt(const struct tenure_claim *claim); /* its id, for logs and tenure log */
int64_t tenure_claim_fence(const struct tenure_claim *claim);       /* for third parties to compare */
bool tenure_claim_is_live(const struct tenure_claim *claim); /* confirmed, and within our own deadline */

/* Locks the claim and the row, renews, sees that the row lives. TENURE_RETIRED, LAPSED, ABSENT: do not
 * publish. */
enum tenure_result tenure_publication_begin(struct tenure_claim *claim);
/* One statement with text parameters, none that begins or ends a transaction, within what is left of the
 * lease; `rows` (may be NULL) is the number of rows changed. */
enum tenure_result tenure_publication_query(
    struct tenure_claim *claim, const char *sql, const char *const *values, size_t count, int64_t *rows);
/* TENURE_OK: published, and the claim is over. TENURE_UNKNOWN: whether it is could not be learned. Any other:
 * nothing was published, and unless it is TENURE_RETIRED the claim stays. */
enum tenure_result tenure_publication_commit(struct tenure_claim *claim);
void tenure_publication_abort(struct tenure_claim *claim); /* undoes all; the claim stays */

/* Ends the claim without publishing: failed, with `why` kept for people; or given back. */
enum tenure_result tenure_claim_fail(struct tenure_claim *claim, const char *why);
enum tenure_result tenure_claim_release(struct tenure_claim *claim);

/* Aborts what is open and stops the thread. A claim that was not ended is left to lapse. */
void tenure_claim_free(struct tenure_claim *claim);

#ifdef __cplusplus
}
#endif

#endif
