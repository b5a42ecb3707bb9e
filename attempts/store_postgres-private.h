/*
 * The shared store: a PostgreSQL server, for many machines. Every transition is one call of a function of the schema
 * `tenure` (migrations/postgres), which decides under the row's lock by the server's clock. Nothing is kept in the
 * session, so a pooler in transaction mode may stand between: no named prepared statement, no SET, no LISTEN, no
 * transaction of several statements but a migration.
 *
 *     store_postgres.c              opening, closing, the table of functions
 *     store_postgres_libpq.c        libpq, loaded when first needed: it costs 11 ms of start-up
 *     store_postgres_connection.c   connecting, asking, answers; deadlines; again after a loss
 *     store_postgres_sqlstate.c     what an SQLSTATE means for the caller: one table
 *     store_postgres_schema.c       migrations, version, identity
 *     store_postgres_rows.c         records, from JSON and from columns
 *     store_postgres_transitions.c  reserve to cancel
 *     store_postgres_queries.c      looking
 *     store_postgres_evidence.c     evidence and Proofs
 */
#ifndef ATTEMPTS_STORE_POSTGRES_PRIVATE_H
#define ATTEMPTS_STORE_POSTGRES_PRIVATE_H

#include <libpq-fe.h>

#include "attempts/store-private.h"
#include "base/failpoint.h"

#define POSTGRES_STORE_ID_SIZE 33
#define POSTGRES_WAIT_MS       INT64_C(30000) /* the bound of one call when the caller names none */

struct postgres_store {
    struct store store;     /* first: a store is cast to what it is */
    PGconn *connection;     /* NULL: not connected; the next call connects */
    char *url, *printable;  /* as given; without its password */
    enum store_access access;
    const struct clock *clock; /* bounds waits only: nothing is decided by it */
    struct machine machine;
    char id[POSTGRES_STORE_ID_SIZE];
    int64_t deadline_ms;
    bool (*waiting)(void *context);
    void *waiting_context;
    int64_t backoff_ms; /* of the last reconnection; decorrelated jitter grows it, success resets it */
};
struct postgres_store *postgres_of(struct store *store);

/* ---- store_postgres_libpq.c ---- */

/* Pointers to the functions of libpq that are used here, by their names without PQ. */
struct libpq;
/* Loads libpq once; thread-safe. UNREACHABLE with the package's name when it is not installed. */
_must_use_ enum result libpq_load(const struct libpq **ret, struct error *err);

/* ---- store_postgres_sqlstate.c ---- */

/* What the caller of a statement does about an SQLSTATE. */
enum remedy {
    REMEDY_NONE,      /* it is the answer: `result` */
    REMEDY_REPEAT,    /* nothing happened: the same statement again */
    REMEDY_RECONNECT, /* this server cannot: connect anew, then the same statement again if nothing happened */
    REMEDY_WAIT,      /* somebody's lock: again until the deadline, then `result` */
};
struct sqlstate_meaning {
    const char *prefix; /* five characters, or a class of two */
    enum result result;
    enum remedy remedy;
    const char *advice; /* the remedy of the error; NULL */
};
/* Never NULL: the last entry fits all. Source: PostgreSQL manual, appendix A. */
const struct sqlstate_meaning *sqlstate_look_up(const char *sqlstate);

/* ---- store_postgres_connection.c ---- */

enum parameter_kind { PARAMETER_NULL, PARAMETER_TEXT, PARAMETER_BYTES };

/* A parameter of a statement, in the text form, or bytes. Never part of the statement, so never in a server's log. */
struct parameter {
    enum parameter_kind kind;
    const void *bytes; /* borrowed until the call returns, unless `digits` */
    size_t length;
    char digits[24];
};
struct parameter parameter_text(const char *text); /* NULL gives null */
struct parameter parameter_integer(int64_t integer);
struct parameter parameter_boolean(bool value);
struct parameter parameter_bytes(const void *bytes, size_t length); /* bytea */
#define PARAMETERS(...)                                                                                      \
    (const struct parameter[]){__VA_ARGS__},                                                                 \
        sizeof((const struct parameter[]){__VA_ARGS__}) / sizeof(struct parameter)

/* May a statement be sent again when its answer was lost? */
enum repetition {
    REPEATABLE, /* it reads, or answers the same again: asked anew on a new connection until the deadline */
    ONCE,       /* its commit may have landed: RESULT_UNKNOWN */
};

/* One statement in a transaction of its own, answered within the store's deadline, whatever the network does. While it
 * waits the caller's `waiting` is called about every 10 ms; false ends it: BUSY. UNREACHABLE: it was not sent. The
 * other results are those of the table of SQLSTATEs. `ret` is cleared by the caller (PQclear through libpq). */
_must_use_ enum result postgres_ask(struct postgres_store *store, enum repetition repetition, const char *sql,
    const struct parameter *parameters, size_t count, PGresult **ret, struct error *err);

/* The first two columns of the one row are a word of the vocabulary and a sentence (null when ok): the answer of every
 * function that decides. `ret` (may be NULL) is filled on OK and on HELD. */
_must_use_ enum result postgres_call(struct postgres_store *store, enum repetition repetition, const char *sql,
    const struct parameter *parameters, size_t count, PGresult **ret, struct error *err);

/* As the embedded store's points: before the call is sent ("NAME-before-begin"), at its commit ("NAME-before-commit") and
 * after it ("NAME-after-commit"); an error injected at one of the last two is an answer that was lost. Every function
 * that writes is called through this. */
#define POSTGRES_CALL(name, store, repetition, sql, parameters, count, ret, err) /* to be written */

void postgres_disconnect(struct postgres_store *store);
/* The word as a result; RESULT_CORRUPT for a word that is none. */
enum result result_of_word(const char *word);

/* ---- store_postgres_schema.c ---- */

/* Statements lie in sql/postgres/. Each that calls a function of the schema does it beside tenure.fail_newer($1), which
 * undoes the whole when the schema is newer: $1 is the version of this program, or one more for renew, settle and
 * retire: what runs must be able to end after a migration by a newer program. */

/* Looks whose schema it is and how new, migrates an empty database (STORE_WRITE), reads the store's id. */
_must_use_ enum result postgres_schema_open(struct postgres_store *store, struct error *err);
_must_use_ enum result postgres_schema_migrate(struct postgres_store *store, struct error *err);

#endif
