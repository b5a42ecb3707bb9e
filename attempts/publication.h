/*
 * Fenced publication: the claim of one row of the application, and the one short transaction that publishes
 * what was collected for it. On the connection of the store that holds the claim, so the two can never be of
 * two databases.
 *
 *     store_reserve(store, &reservation, ...)      // kind KIND_PUBLICATION, with reservation.row
 *     ... minutes of collecting; the heartbeat renews on a handle of its own ...
 *     publication_begin(store, &credential, &publication, err);
 *     publication_query(publication, &statement, &counts, err);        // as often as wanted
 *     publication_commit(&publication, &settlement, err);              // or publication_abort(&publication)
 *
 * begin locks the attempt and the row to the end of the transaction, renews, and sees that the row lives;
 * from there the lock stands for the lease, for at most the ttl: every later statement is bounded by what is
 * left of that. Whatever fails undoes everything that was written, and the claim stays: end it with
 * store_settle(), which keeps the reason.
 *
 * While a publication is open nothing else may use its store. One thread. Only the PostgreSQL store can do
 * this; others answer INVALID.
 */
#ifndef ATTEMPTS_PUBLICATION_H
#define ATTEMPTS_PUBLICATION_H

#include "attempts/store.h"

struct publication;

/* RETIRED, LAPSED (the claim is lost), ABSENT (the row is gone or soft-deleted), BUSY, UNREACHABLE, DENIED:
 * no transaction is open. */
_must_use_ enum result publication_begin(
    struct store *store, const struct credential *credential, struct publication **ret, struct error *err);

/* INVALID, naming the word, when the first word of a statement is one that begins or ends a transaction,
 * which a publication is. Anything else that is wrong with it the server says. */
_must_use_ enum result publication_check(const char *sql, struct error *err);

/* Rows changed, by command. SELECT INTO and CREATE TABLE AS change none; MERGE says how many, not which way.
 */
struct publication_counts {
    int64_t inserted, updated, deleted, merged, copied;
};

struct publication_statement {
    const char *sql;           /* exactly one statement, none that ends or begins a transaction */
    const char *const *values; /* of $1, $2, ..., as text; NULL is null; borrowed */
    size_t value_count;
    const char *file; /* where it stands, for the errors about it; NULL: not told */
    int64_t line;     /* of its first one there */
};
/* Adds to `counts`. INVALID: the server's own words and the line, or a statement about transactions. BUSY,
 * UNREACHABLE: the whole publication can be tried again. LAPSED: it took longer than the lease. After any
 * failure only abort is possible. */
_must_use_ enum result publication_query(struct publication *publication,
    const struct publication_statement *statement, struct publication_counts *counts, struct error *err);

/* Feeds `COPY ... FROM STDIN` with what `read` gives until it answers 0 (end) or less (an errno, negative).
 */
_must_use_ enum result publication_copy(struct publication *publication, const char *sql,
    int64_t (*read)(void *context, void *buffer, size_t size_bytes), void *context,
    struct publication_counts *counts, struct error *err);

/* Ends the attempt and commits, in one. OK: published. UNKNOWN: the answer was lost; ask store_settle_ask()
 * on a new handle, never repeat. Anything else: nothing was published. Frees in every case. */
_must_use_ enum result publication_commit(
    struct publication **publication, const struct settlement *settlement, struct error *err);

/* Undoes all; NULL inside is allowed. */
void publication_abort(struct publication **publication);

/* Which database an address leads to: two lead to the same one when this is equal. No store need be there.
 * Owned by the caller. INVALID for the address of an embedded store, which is in no such database. */
_must_use_ enum result publication_database(
    const struct store_options *options, char **ret, struct error *err);

#endif
