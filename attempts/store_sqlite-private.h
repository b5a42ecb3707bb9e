/*
 * The embedded store, seen by its own files only.
 *
 *     store_sqlite.c              open and close; the table of functions
 *     store_sqlite_place.c        where the file may lie, and making it
 *     store_sqlite_schema.c       identity, schema version, migrations
 *     store_sqlite_database.c     statements, waiting, transactions, error codes
 *     store_sqlite_rows.c         rows read strictly into records
 *     store_sqlite_reserve.c      reserve
 *     store_sqlite_transitions.c  bind, renew, settle, retire, cancel
 *     store_sqlite_evidence.c     evidence and Proofs
 *     store_sqlite_queries.c      list, find, leftovers, history, status
 *
 * One file, a rollback journal, synchronous=EXTRA: the commit is the unlink of the journal, and EXTRA syncs
 * the directory after it, without which a commit (a fence) could come undone by a loss of power. Every write
 * runs in BEGIN IMMEDIATE: the database's write lock is the row lock of the protocol. Nobody but SQLite ever
 * opens the file, since closing any descriptor of it would drop the locks of this process (fcntl(2)). Source:
 * https://www.sqlite.org/pragma.html#pragma_synchronous, https://www.sqlite.org/lockingv3.html
 */
#ifndef ATTEMPTS_STORE_SQLITE_PRIVATE_H
#define ATTEMPTS_STORE_SQLITE_PRIVATE_H

#include <sqlite3.h>

#include "attempts/store-private.h"

#define SQLITE_STORE_ID_SIZE   33 /* 16 random bytes in hex */
#define SQLITE_APPLICATION_ID  0x54454e55
#define SQLITE_DEFAULT_WAIT_MS INT64_C(30000)

struct sqlite_store {
    struct store store; /* first: a store is cast to what it is */
    sqlite3 *db;
    char *path;
    enum store_access access;
    const struct clock *clock;
    struct machine machine;
    char id[SQLITE_STORE_ID_SIZE];
    int64_t deadline_ms;
    bool (*waiting)(void *context);
    void *waiting_context;
    int64_t wait_from_ms; /* when the operation in progress began; by the kernel's clock */
    bool wait_ended;      /* by the caller's `waiting` */
};

struct sqlite_store *sqlite_of(struct store *store);
struct store_time sqlite_now(const struct sqlite_store *store);

/* ---- store_sqlite_place.c ---- */

/* Refuses what cannot be a store's place; with STORE_WRITE makes the directory (0700) and an empty file
 * (0600). ABSENT when there is nothing to read. */
_must_use_ enum result place_prepare(const char *path, enum store_access access, struct error *err);

/* ---- store_sqlite_schema.c ---- */

/* Whose file is it, and how new? Reads only, within the transaction that is open. `ret_version` 0: an empty
 * database. */
_must_use_ enum result schema_look(struct sqlite_store *store, int64_t *ret_version, struct error *err);
_must_use_ enum result schema_migrate(struct sqlite_store *store, struct error *err);
/* Reads the store's id; another machine's store may be read, not written. */
_must_use_ enum result schema_identity(struct sqlite_store *store, struct error *err);
_must_use_ enum result schema_version(struct sqlite_store *store, int64_t *ret, struct error *err);

/* ---- store_sqlite_database.c ---- */

enum value_kind { VALUE_NULL, VALUE_INTEGER, VALUE_TEXT, VALUE_BLOB };

/* A typed parameter. The bytes are borrowed until the statement ends. */
struct value {
    enum value_kind kind;
    int64_t integer;
    const void *bytes;
    size_t length;
};
struct value value_integer(int64_t integer);
struct value value_text(const char *text); /* NULL gives null */
struct value value_blob(const void *bytes, size_t length);

/* The values of a statement, counted by the compiler: VALUES(value_text(id), value_integer(rev)). */
#define VALUES(...)                                                                                          \
    (const struct value[]){__VA_ARGS__}, sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define NO_VALUES NULL, 0

void database_set_wait(struct sqlite_store *store);

/* Prepares and binds; the statement must take exactly `count` parameters. */
_must_use_ enum result database_start(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, sqlite3_stmt **ret, struct error *err);
/* Steps to the next row. */
_must_use_ enum result database_next(
    struct sqlite_store *store, sqlite3_stmt *statement, bool *ret_row, struct error *err);
/* Runs to the end; rows are ignored. `ret_constraint` (may be NULL) takes a violated constraint as an answer
 * instead of an error. */
_must_use_ enum result database_run(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, bool *ret_constraint, struct error *err);
/* The one integer of the one row. */
_must_use_ enum result database_integer(struct sqlite_store *store, const char *sql,
    const struct value *values, size_t count, int64_t *ret, struct error *err);
enum result database_fail(struct sqlite_store *store, int code, struct error *err);
void statement_cleanup(sqlite3_stmt **statement);

/* Which schema a transaction accepts. What runs must be able to end after a migration by a newer program. */
enum schema_need { SCHEMA_THIS, SCHEMA_OR_NEXT };

/* A transaction that is rolled back unless committed:
 *
 *     _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
 *     r = TRANSACTION_BEGIN("bind", store, SCHEMA_THIS, &open, err);
 *     ...
 *     return TRANSACTION_COMMIT("bind", store, err);
 */
_must_use_ enum result transaction_begin(
    struct sqlite_store *store, enum schema_need need, struct sqlite_store **ret_open, struct error *err);
_must_use_ enum result transaction_begin_read(
    struct sqlite_store *store, struct sqlite_store **ret_open, struct error *err);
_must_use_ enum result transaction_commit(struct sqlite_store *store, struct error *err);
/* As if the answer of the commit had been lost: UNKNOWN. */
enum result transaction_lose(struct sqlite_store *store, struct error *err);
void transaction_cleanup(struct sqlite_store **open);

#define TRANSACTION_BEGIN(name, store, need, ret_open, err)                                                  \
    __extension__({                                                                                          \
        FAILPOINT(name "-before-begin");                                                                     \
        transaction_begin(store, need, ret_open, err);                                                       \
    })
#define TRANSACTION_COMMIT(name, store, err)                                                                 \
    STORE_COMMIT(name, transaction_commit(store, err), transaction_lose(store, err))

/* ---- store_sqlite_rows.c ---- */

/* Reads a row's columns one after the other. What is not of the type asked for marks the row as broken; the
 * first such column is remembered. */
struct row {
    sqlite3_stmt *statement;
    int next;
    const char *broken; /* name of the column; lives as long as the statement */
};
int64_t row_integer(struct row *row);
int64_t row_integer_or(struct row *row, int64_t absent);
char *row_text(struct row *row); /* required; owned by the caller, never NULL */
char *row_text_or_null(struct row *row);
void row_buffer(struct row *row, char *ret, size_t size_bytes); /* required */
void row_buffer_or_empty(struct row *row, char *ret, size_t size_bytes);
void row_blob(struct row *row, void *ret, size_t size_bytes); /* exactly that long */
char *row_bytes(struct row *row, size_t *ret_length);         /* text or blob, owned by the caller */
void row_executor(struct row *row, bool lenient, struct executor *ret);
char **row_lines(struct row *row, size_t *ret_count); /* text of one name a line */

/* RESULT_CORRUPT naming the column when the row is broken. */
_must_use_ enum result row_check(const struct row *row, const char *what, struct error *err);

/* The record with this id. ABSENT, CORRUPT, or NEWER for a record that a newer program wrote. */
_must_use_ enum result attempt_load(
    struct sqlite_store *store, const char *id, struct attempt *ret, struct error *err);
/* A time of a lease in the form of its record. `text` keeps the bytes alive. */
struct value value_lease_time(const struct lease *lease, int64_t time_ms, char text[CLOCK_TEXT_SIZE]);

/* ---- store_sqlite_reserve.c ---- */
enum result sqlite_reserve(struct store *base, struct reservation *reservation, struct attempt *ret,
    struct attempt *ret_holder, struct error *err);

/* ---- store_sqlite_transitions.c ---- */
enum result sqlite_bind(
    struct store *base, const struct credential *credential, const char *demand, struct error *err);
enum result sqlite_renew(struct store *base, struct renewal *renewals, size_t count, struct error *err);
enum result sqlite_settle(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err);
enum result sqlite_settle_ask(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err);
enum result sqlite_retire(struct store *base, const struct retirement *retirement, struct error *err);
enum result sqlite_request_cancel(
    struct store *base, const char *attempt_id, const char *by, struct error *err);
/* Appends to the history, in the transaction that is open. */
_must_use_ enum result history_add(struct sqlite_store *store, const char *attempt_id, const char *event,
    const char *detail, int64_t wall_ms, struct error *err);

/* ---- store_sqlite_evidence.c ---- */
enum result sqlite_evidence_put(
    struct store *base, const struct credential *credential, struct evidence_row *row, struct error *err);
enum result sqlite_evidence_find(
    struct store *base, const char *key, struct evidence_row *ret, struct error *err);
enum result sqlite_evidence_latest(struct store *base, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err);
enum result sqlite_proof_find(
    struct store *base, const struct proof_query *query, struct proof *ret, struct error *err);
/* Writes the Proof of a settlement, in the transaction that is open. */
_must_use_ enum result proof_add(struct sqlite_store *store, const struct attempt *attempt,
    const struct proof_row *proof, int64_t wall_ms, struct error *err);

/* ---- store_sqlite_queries.c ---- */
enum result sqlite_status(struct store *base, struct store_status *ret, struct error *err);
enum result sqlite_list(
    struct store *base, const struct attempt_query *query, struct attempt_list *ret, struct error *err);
enum result sqlite_find(struct store *base, const char *id_or_handle, struct attempt *ret, struct error *err);
enum result sqlite_leftovers(struct store *base, struct leftover_list *ret, struct error *err);
enum result sqlite_leftover_delete(struct store *base, const char *attempt_id, struct error *err);
enum result sqlite_history(
    struct store *base, const char *attempt_id, struct history *ret, struct error *err);

#endif
