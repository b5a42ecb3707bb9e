/*
 * The shared store: a PostgreSQL server, for many machines. Every transition is one call of a function of the
 * schema `tenure` (migrations/postgres), which decides under the row's lock by the server's clock. Nothing is
 * kept in the session, so a pooler in transaction mode may stand between: no SET, no LISTEN, no transaction
 * of several statements but a migration and a publication; and statements are prepared by name only where no
 * pooler stands.
 *
 *     store_postgres.c              opening, closing, the table of functions
 *     store_postgres_libpq.c        libpq, loaded when first needed: it costs 11 ms of start-up
 *     store_postgres_parameters.c   what goes into a statement
 *     store_postgres_address.c      what the URL says, host by host
 *     store_postgres_resolve.c      names of hosts, within a deadline
 *     store_postgres_connection.c   connecting, host by host; waiting; again after a loss
 *     store_postgres_ask.c          one statement and its answer, within a deadline
 *     store_postgres_sqlstate.c     what an SQLSTATE means for the caller: one table
 *     store_postgres_schema.c       migrations, version, identity
 *     store_postgres_rows.c         what comes out: columns, and records from JSON
 *     store_postgres_transitions.c  reserve to cancel
 *     store_postgres_queries.c      looking
 *     store_postgres_evidence.c     evidence and Proofs
 */
#ifndef ATTEMPTS_STORE_POSTGRES_PRIVATE_H
#define ATTEMPTS_STORE_POSTGRES_PRIVATE_H

#include <libpq-fe.h>

#include "attempts/store-private.h"
#include "base/text.h"

#define POSTGRES_STORE_ID_SIZE 33
#define POSTGRES_WAIT_MS       INT64_C(30000) /* the bound of one call when the caller names none */

#define POSTGRES_PREPARED 8 /* statements that one connection may keep */

struct libpq;

/* Statements that came again on this connection. They are kept by name where no pooler stands between; a
 * pooler in transaction mode would give the next one another session. */
struct prepared {
    enum { PATH_UNKNOWN, PATH_DIRECT, PATH_POOLED } path;
    struct {
        char *sql; /* owned */
        int uses;
        bool ready;
    } slots[POSTGRES_PREPARED];
};

struct postgres_store {
    struct store store; /* first: a store is cast to what it is */
    const struct libpq *pq;
    PGconn *connection;       /* NULL: not connected; the next call connects */
    struct prepared prepared; /* of this connection */
    char *url, *printable;    /* as given; without its password */
    enum store_access access;
    struct machine machine;
    char id[POSTGRES_STORE_ID_SIZE];
    int64_t deadline_ms, patience_ms;
    bool (*waiting)(void *context);
    void *waiting_context;
    bool was_connected; /* a server that was there is waited for; one that never was is an error */
    int64_t backoff_ms; /* of the last reconnection; decorrelated jitter grows it, success resets it */
};
struct postgres_store *postgres_of(struct store *store);
/* Not connected, and nothing looked at. */
struct postgres_store *postgres_new(
    const struct store_options *options, const struct libpq *pq, enum store_access access);
void postgres_cleanup(struct postgres_store **store);

/* ---- store_postgres_libpq.c ---- */

/* The functions of libpq that are used here, without their PQ. Source: PostgreSQL manual, chapter 34. */
#define LIBPQ_FUNCTIONS(X)                                                                                   \
    X(conninfoParse)                                                                                         \
    X(conninfoFree)                                                                                          \
    X(conndefaults)                                                                                          \
    X(connectStartParams)                                                                                    \
    X(connectPoll)                                                                                           \
    X(finish)                                                                                                \
    X(status)                                                                                                \
    X(transactionStatus)                                                                                     \
    X(socket)                                                                                                \
    X(user)                                                                                                  \
    X(db)                                                                                                    \
    X(errorMessage)                                                                                          \
    X(setErrorVerbosity)                                                                                     \
    X(setNoticeReceiver)                                                                                     \
    X(setnonblocking)                                                                                        \
    X(sendQuery)                                                                                             \
    X(sendQueryParams)                                                                                       \
    X(sendPrepare)                                                                                           \
    X(sendQueryPrepared)                                                                                     \
    X(backendPID)                                                                                            \
    X(putCopyData)                                                                                           \
    X(putCopyEnd)                                                                                            \
    X(flush)                                                                                                 \
    X(consumeInput)                                                                                          \
    X(isBusy)                                                                                                \
    X(getResult)                                                                                             \
    X(getCancel)                                                                                             \
    X(cancel)                                                                                                \
    X(freeCancel)                                                                                            \
    X(clear)                                                                                                 \
    X(resultStatus)                                                                                          \
    X(cmdStatus)                                                                                             \
    X(resultErrorField)                                                                                      \
    X(ntuples)                                                                                               \
    X(nfields)                                                                                               \
    X(fname)                                                                                                 \
    X(getisnull)                                                                                             \
    X(getlength)                                                                                             \
    X(getvalue)

struct libpq {
#define LIBPQ_POINTER(name) __typeof__(PQ##name) *name; /* NOLINT(bugprone-macro-parentheses) */
    LIBPQ_FUNCTIONS(LIBPQ_POINTER)
#undef LIBPQ_POINTER
};
/* Loads libpq once; thread-safe. UNREACHABLE with the package's name when it is not installed. */
_must_use_ enum result libpq_load(const struct libpq **ret, struct error *err);
/* _cleanup_(result_cleanup) PGresult *result = NULL; */
void result_cleanup(PGresult **result);

/* ---- store_postgres_sqlstate.c ---- */

/* What the caller of a statement does about an SQLSTATE. */
enum remedy {
    REMEDY_NONE,      /* it is the answer: `result` */
    REMEDY_REPEAT,    /* nothing happened: the same statement again until the deadline, then `result` */
    REMEDY_RECONNECT, /* nothing happened, this server cannot: connect anew, then the same statement again */
    REMEDY_LOST,      /* the connection ends here: whether the statement was committed is not known */
};
struct sqlstate_meaning {
    const char *prefix; /* five characters, or a class of two */
    enum result result;
    enum remedy remedy;
    const char *advice; /* the remedy of the error, with {role} and {database} in it; NULL */
};
/* The longest entry that fits. Never NULL: one fits all. Source: PostgreSQL manual, appendix A. */
const struct sqlstate_meaning *sqlstate_look_up(const char *sqlstate);

/* The SQLSTATE in a verbose message of a connection that failed, "FATAL:  28000: no such user": libpq gives
 * it in no other way. NULL when there is none; `ret_text` (may be NULL) is what stands behind it. */
const char *sqlstate_find(const char *message, char ret[6], const char **ret_text);

/* Fills in {role} and {database} as quoted identifiers. Owned by the caller. */
char *advice_fill(const char *advice, const char *role, const char *database);

/* An error that the server reported: one sentence that names the server and the SQLSTATE, and its remedy. */
enum result postgres_fail(
    const struct postgres_store *store, const char *sqlstate, const char *text, struct error *err);

/* Sets the remedy of an error, filled in for this connection. */
enum result postgres_advise(const struct postgres_store *store, const char *advice, struct error *err);

/* ---- store_postgres_parameters.c ---- */

enum parameter_kind { PARAMETER_NULL, PARAMETER_TEXT, PARAMETER_BYTES };

/* A parameter of a statement: text, or bytes as they are. Never part of the statement's text, which servers
 * log and show. */
struct parameter {
    enum parameter_kind kind;
    const void *bytes; /* borrowed until the call returns; NULL: `digits` */
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

/* An array in the text form, element by element: array_add() ..., then array_text(). */
void array_add(struct text *array, const char *element); /* NULL gives null */
const char *array_text(struct text *array);              /* closes it; lives as long as the text */

/* ---- store_postgres_address.c ---- */

/* What the URL says, and of the environment what it leaves open. */
struct address {
    const struct libpq *pq;
    PQconninfoOption *given, *defaults;
    size_t given_count;
    bool whole; /* left to libpq in one piece, however many hosts it names */
};
_must_use_ enum result address_read(
    const struct postgres_store *store, struct address *ret, struct error *err);
void address_done(struct address *address);
size_t address_hosts(const struct address *address);
/* What the address itself grants a host (connect_timeout); 0 when it says nothing. */
int64_t address_patience_ms(const struct address *address);

/* One host; NULL is libpq's default. */
struct host {
    char *name, *number, *port;
};
void address_host(const struct address *address, size_t index, struct host *ret);
void host_done(struct host *host);

/* "a,,c" has three items, of which the second is NULL; one that stands alone is everybody's. */
size_t list_count(const char *list);
char *list_item(const char *list, size_t index); /* owned by the caller */

/* The parameters of one connection, in libpq's form; they borrow from address and host. */
struct postgres_settings {
    const char **keywords, **values;
    size_t count;
};
void postgres_settings_make(const struct address *address, const struct host *host, enum store_access access,
    struct postgres_settings *ret);
void postgres_settings_done(struct postgres_settings *settings);

/* ---- store_postgres_resolve.c ---- */

struct numbers {
    char **items;
    size_t count;
};
/* The addresses of a host, none when libpq needs no help with it. UNREACHABLE; `ret_again`: worth another
 * try. */
_must_use_ enum result host_resolve(struct postgres_store *store, const struct host *host, int64_t until_ms,
    struct numbers *ret, bool *ret_again, struct error *err);
void numbers_done(struct numbers *numbers);

/* ---- store_postgres_connection.c ---- */

enum wait_end { WAIT_READY, WAIT_EXPIRED, WAIT_ENDED };
int64_t real_ms(void); /* the kernel's clock: waits are bounded even when a test holds another clock still */
/* Waits for the socket (-1: only for the time); calls the caller's `waiting` about every 10 ms. */
enum wait_end postgres_wait(struct postgres_store *store, int fd, short events, int64_t until_ms);
/* One try, at a host or a statement, has the store's deadline, however long the call is patient. */
int64_t postgres_try_until(const struct postgres_store *store, int64_t until_ms);
enum result postgres_fail_ended(const struct postgres_store *store, struct error *err);

/* Connects when nothing is connected, trying each host of the address in turn, each with its share of the
 * time that is left; again with growing pauses while it makes sense. */
_must_use_ enum result postgres_connect(struct postgres_store *store, int64_t until_ms, struct error *err);
void postgres_disconnect(struct postgres_store *store);
/* Waits before the next try: base 50 ms, at most 2 s. Source: M. Brooker, "Exponential backoff and jitter".
 */
enum wait_end postgres_back_off(struct postgres_store *store, int64_t until_ms);

/* ---- store_postgres_ask.c ---- */

/* May a statement be sent again when its answer was lost? */
enum repetition {
    ASKS,       /* it writes nothing: asked anew on a new connection until the deadline */
    REPEATABLE, /* it answers the same again: likewise, and then RESULT_UNKNOWN */
    ONCE,       /* its commit may have landed: RESULT_UNKNOWN */
};

/* One statement in a transaction of its own, answered within the store's deadline, whatever the network does.
 * While it waits the caller's `waiting` is called about every 10 ms; false ends it: BUSY. UNREACHABLE: it was
 * not sent, or asks only. The other results are those of the table of SQLSTATEs. */
_must_use_ enum result postgres_ask(struct postgres_store *store, enum repetition repetition, const char *sql,
    const struct parameter *parameters, size_t count, PGresult **ret, struct error *err);

/* The first two columns of the one row are a word of the vocabulary and a sentence (null when ok): the answer
 * of every function that decides. `ret` (may be NULL) is filled on OK and on HELD, whose sentence is left to
 * the caller. */
_must_use_ enum result postgres_call(struct postgres_store *store, enum repetition repetition,
    const char *sql, const struct parameter *parameters, size_t count, PGresult **ret, struct error *err);

/* A statement, or a script of several without parameters, on the connection as it is, once: for the steps of
 * a transaction. A connection that is lost, or does not answer in time, ends with it. */
_must_use_ enum result postgres_step(
    struct postgres_store *store, const char *sql, int64_t until_ms, PGresult **ret, struct error *err);

/* How an exchange ended. LOST, SILENT and ENDED: whether the statement was committed is not known, and the
 * connection is gone. */
enum exchange {
    EXCHANGE_ANSWERED, /* also by a failure: postgres_sqlstate() tells */
    EXCHANGE_LOST,     /* the connection */
    EXCHANGE_SILENT,   /* no answer in time, nor to its cancellation */
    EXCHANGE_ENDED,    /* likewise, after the caller ended the wait */
};
/* One statement with its parameters on the connection as it is, once, and its answer as it came. A COPY is
 * answered with the connection in its state. */
enum exchange postgres_exchange(struct postgres_store *store, const char *sql,
    const struct parameter *parameters, size_t count, int64_t until_ms, PGresult **ret);
/* Connects, also when a connection that was there has gone while nothing was asked. */
_must_use_ enum result postgres_connect_alive(
    struct postgres_store *store, int64_t until_ms, struct error *err);
/* Sends what libpq holds; takes the results of what was sent before, as postgres_exchange() does. */
enum exchange postgres_flush(struct postgres_store *store, int64_t until_ms);
enum exchange postgres_results(struct postgres_store *store, int64_t until_ms, PGresult **ret);
/* "00000" when it is no failure. */
const char *postgres_sqlstate(const struct postgres_store *store, const PGresult *result);
/* What is said of an exchange that was not answered: UNREACHABLE, or BUSY when the caller ended the wait. */
enum result postgres_fail_lost(
    const struct postgres_store *store, enum exchange exchange, int64_t from_ms, struct error *err);

/* As if the answer of the commit had been lost: UNKNOWN, and the connection is gone. */
enum result postgres_lose(struct postgres_store *store, struct error *err);

/* DENIED when the store was opened for reading. */
_must_use_ enum result postgres_check_writer(const struct postgres_store *store, struct error *err);

/* A call that writes, with its points for tests: before it ("NAME-before-begin"), at its commit and after it.
 */
#define POSTGRES_WRITE(name, store, call, err)                                                               \
    __extension__({                                                                                          \
        FAILPOINT(name "-before-begin");                                                                     \
        enum result may_ = postgres_check_writer(store, err);                                                \
        may_ == RESULT_OK ? STORE_COMMIT(name, call, postgres_lose(store, err)) : may_;                      \
    })

/* The word as a result; RESULT_CORRUPT for a word that is none. */
enum result result_of_word(const char *word);

/* ---- store_postgres_schema.c ---- */

/* Statements lie in sql/postgres/. Each that calls a function of the schema does it under the condition
 * tenure.fail_newer($1), which fails the whole when the schema is newer: $1 is the version of this program,
 * or one more for renew, settle and retire: what runs must be able to end after a migration by a newer
 * program. */
struct parameter parameter_schema(void);
struct parameter parameter_schema_or_next(void);

/* Looks whose schema it is and how new, migrates an empty database (STORE_WRITE) or any (STORE_MIGRATE),
 * reads the store's id. */
_must_use_ enum result postgres_schema_open(struct postgres_store *store, struct error *err);
_must_use_ enum result postgres_schema_migrate(struct postgres_store *store, struct error *err);

/* ---- store_postgres_rows.c ---- */

/* Reads a row's columns one after the other. What is not of the type asked for marks the row as broken; the
 * first such column is remembered. */
struct answer {
    const struct libpq *pq;
    const PGresult *result;
    int row, next;
    const char *broken; /* name of the column; lives as long as the result */
};
int64_t answer_integer(struct answer *answer);
bool answer_boolean(struct answer *answer);
char *answer_text(struct answer *answer); /* required; owned by the caller, never NULL */
char *answer_text_or_null(struct answer *answer);
void answer_buffer(struct answer *answer, char *ret, size_t size_bytes); /* required */
char *answer_bytes(struct answer *answer, size_t *ret_length);           /* hex digits; owned by the caller */
/* RESULT_CORRUPT naming the column when the row is broken. */
_must_use_ enum result answer_check(const struct answer *answer, const char *what, struct error *err);

/* A record as tenure.record() gives it. CORRUPT naming the field, or NEWER for one that a newer program
 * wrote. */
_must_use_ enum result record_read(const char *json, struct attempt *ret, struct error *err);
/* The next column as a record. */
_must_use_ enum result answer_record(struct answer *answer, struct attempt *ret, struct error *err);

/* ---- store_postgres_transitions.c ---- */
enum result postgres_reserve(struct store *base, struct reservation *reservation, struct attempt *ret,
    struct attempt *ret_holder, struct error *err);
enum result postgres_bind(
    struct store *base, const struct credential *credential, const char *demand, struct error *err);
enum result postgres_renew(struct store *base, struct renewal *renewals, size_t count, struct error *err);
enum result postgres_settle(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err);
enum result postgres_settle_ask(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err);
enum result postgres_retire(struct store *base, const struct retirement *retirement, struct error *err);
enum result postgres_request_cancel(
    struct store *base, const char *attempt_id, const char *by, struct error *err);

/* ---- store_postgres_evidence.c ---- */
enum result postgres_evidence_put(
    struct store *base, const struct credential *credential, struct evidence_row *row, struct error *err);
enum result postgres_evidence_find(
    struct store *base, const char *key, struct evidence_row *ret, struct error *err);
enum result postgres_evidence_latest(struct store *base, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err);
enum result postgres_proof_find(
    struct store *base, const struct proof_query *query, struct proof *ret, struct error *err);

/* ---- store_postgres_queries.c ---- */
enum result postgres_now(struct store *base, struct store_time *ret, struct error *err);
enum result postgres_status(struct store *base, struct store_status *ret, struct error *err);
enum result postgres_list(
    struct store *base, const struct attempt_query *query, struct attempt_list *ret, struct error *err);
enum result postgres_find(
    struct store *base, const char *id_or_handle, struct attempt *ret, struct error *err);
enum result postgres_leftovers(struct store *base, struct leftover_list *ret, struct error *err);
enum result postgres_leftover_delete(struct store *base, const char *attempt_id, struct error *err);
enum result postgres_history(
    struct store *base, const char *attempt_id, struct history *ret, struct error *err);

#endif
