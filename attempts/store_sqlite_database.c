#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "attempts/migrate.h"
#include "attempts/store_sqlite-private.h"
#include "base/duration.h"
#include "base/memory.h"

#define WAIT_SLICE_MS 10

/* ---- waiting for a lock ---- */

/* Waits are bounded by real time even when a test holds the store's clock still. */
static int64_t real_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Short and uneven, so that many who wait for one lock do not come back together. */
static int64_t wait_slice_ms(int64_t left_ms)
{
    uint8_t dice = 0;
    int64_t slice_ms = 0;

    random_bytes(&dice, sizeof dice);
    slice_ms = 1 + dice % WAIT_SLICE_MS;
    return slice_ms < left_ms ? slice_ms : left_ms;
}

static int wait_for_lock(void *context, int calls _unused_)
{
    struct sqlite_store *store = context;
    int64_t left_ms = store->wait_from_ms + store->deadline_ms - real_ms();

    if (left_ms <= 0)
        return 0;
    if (store->waiting && !store->waiting(store->waiting_context)) {
        store->wait_ended = true;
        return 0;
    }
    sleep_ms(wait_slice_ms(left_ms));
    return 1;
}

void database_set_wait(struct sqlite_store *store)
{
    sqlite3_busy_handler(store->db, wait_for_lock, store);
}

/* ---- results ---- */

static enum result fail_busy(struct sqlite_store *store, struct error *err)
{
    if (store->wait_ended)
        return error_set(err, RESULT_BUSY, 0, "%s: the wait for its lock was ended", store->path);
    char waited[DURATION_TEXT_SIZE];
    _cleanup_(mem_free) char *locker = locker_of(store->path);

    duration_format((real_ms() - store->wait_from_ms + 500) / 1000 * 1000, waited);
    error_set(err, RESULT_BUSY, 0, "%s: locked by %s for %s", store->path,
        locker ? locker : "another process", waited);
    return error_remedy(err, "try again; \"fuser %s\" names who has it open", store->path);
}

static enum result fail_denied(struct sqlite_store *store, int code, struct error *err)
{
    if (code == SQLITE_READONLY_DBMOVED)
        return error_set(
            err, RESULT_UNREACHABLE, 0, "%s: the file was moved or deleted while open", store->path);
    error_set(err, RESULT_DENIED, 0,
        "%s: the store cannot be written: the file or its directory is read-only", store->path);
    return error_remedy(err, "make %s and its directory writable for this user", store->path);
}

static enum result fail_full(struct sqlite_store *store, struct error *err)
{
    error_set(
        err, RESULT_UNREACHABLE, ENOSPC, "%s: the file system is full, nothing was written", store->path);
    return error_remedy(err, "make room and run the command again");
}

static enum result fail_system(struct sqlite_store *store, struct error *err)
{
    int errnum = sqlite3_system_errno(store->db);

    if (errnum == EACCES || errnum == EPERM || errnum == EROFS)
        return fail_denied(store, SQLITE_READONLY, err);
    if (errnum == ENOSPC || errnum == EDQUOT)
        return fail_full(store, err);
    return error_set(err, RESULT_UNREACHABLE, errnum, "%s: %s%s%s", store->path, sqlite3_errmsg(store->db),
        errnum ? ": " : "", errnum ? strerrordesc_np(errnum) : "");
}

enum result database_fail(struct sqlite_store *store, int code, struct error *err)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return fail_busy(store, err);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return fail_denied(store, code, err);
    case SQLITE_FULL:
        return fail_full(store, err);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return fail_system(store, err);
    case SQLITE_NOMEM:
        return error_set(err, RESULT_UNREACHABLE, ENOMEM, "%s: out of memory", store->path);
    case SQLITE_NOTADB:
        error_set(err, RESULT_CORRUPT, 0, "%s: this is no store: the file is not a database", store->path);
        return error_remedy(
            err, "name another with --store or TENURE_STORE, or restore this one from a copy");
    case SQLITE_CORRUPT:
        error_set(err, RESULT_CORRUPT, 0, "%s: %s", store->path, sqlite3_errmsg(store->db));
        return error_remedy(err, "restore it from a copy, or move it away: the next run makes a new one");
    default:
        return error_set(err, RESULT_CORRUPT, 0, "%s: %s", store->path, sqlite3_errmsg(store->db));
    }
}

/* ---- statements ---- */

struct value value_integer(int64_t integer)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = integer};
}

struct value value_text(const char *text)
{
    if (!text)
        return (struct value){.kind = VALUE_NULL};
    return (struct value){.kind = VALUE_TEXT, .bytes = text, .length = strlen(text)};
}

struct value value_blob(const void *bytes, size_t length)
{
    return (struct value){.kind = VALUE_BLOB, .bytes = bytes, .length = length};
}

static int value_bind(sqlite3_stmt *statement, int index, const struct value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        return sqlite3_bind_int64(statement, index, value->integer);
    case VALUE_TEXT:
        return sqlite3_bind_text64(statement, index, value->bytes, value->length, SQLITE_STATIC, SQLITE_UTF8);
    case VALUE_BLOB:
        return sqlite3_bind_blob64(statement, index, value->bytes, value->length, SQLITE_STATIC);
    case VALUE_NULL:
    default:
        return sqlite3_bind_null(statement, index);
    }
}

void statement_cleanup(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

/* One bound for the whole operation, not one for each of its statements. */
static void wait_begin(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        return;
    store->wait_from_ms = real_ms();
    store->wait_ended = false;
}

enum result database_start(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, sqlite3_stmt **ret, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    int code = SQLITE_OK;

    wait_begin(store);
    code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return database_fail(store, code, err);
    if ((size_t)sqlite3_bind_parameter_count(statement) != count)
        return error_set(err, RESULT_INVALID, 0, "a statement was given %zu values instead of %d", count,
            sqlite3_bind_parameter_count(statement));
    for (size_t i = 0; i < count; i++) {
        code = value_bind(statement, (int)i + 1, &values[i]);
        if (code != SQLITE_OK)
            return database_fail(store, code, err);
    }
    *ret = STEAL(statement);
    return RESULT_OK;
}

enum result database_next(
    struct sqlite_store *store, sqlite3_stmt *statement, bool *ret_row, struct error *err)
{
    int code = sqlite3_step(statement);

    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return database_fail(store, code, err);
    *ret_row = code == SQLITE_ROW;
    return RESULT_OK;
}

enum result database_run(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, bool *ret_constraint, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    int code = SQLITE_ROW;
    enum result r = database_start(store, sql, values, count, &statement, err);

    if (r != RESULT_OK)
        return r;
    while (code == SQLITE_ROW)
        code = sqlite3_step(statement);
    if (ret_constraint) {
        *ret_constraint = (code & 0xff) == SQLITE_CONSTRAINT;
        if (*ret_constraint)
            return RESULT_OK;
    }
    return code == SQLITE_DONE ? RESULT_OK : database_fail(store, code, err);
}

enum result database_integer(struct sqlite_store *store, const char *sql, const struct value *values,
    size_t count, int64_t *ret, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    bool found = false;
    enum result r = database_start(store, sql, values, count, &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found || sqlite3_column_type(statement, 0) != SQLITE_INTEGER)
        return error_set(err, RESULT_CORRUPT, 0, "%s: a number is missing", store->path);
    *ret = sqlite3_column_int64(statement, 0);
    return RESULT_OK;
}

/* ---- transactions ---- */

void transaction_cleanup(struct sqlite_store **open)
{
    if (*open && !sqlite3_get_autocommit((*open)->db))
        sqlite3_exec((*open)->db, "ROLLBACK", NULL, NULL, NULL);
}

static enum result schema_accept(struct sqlite_store *store, enum schema_need need, struct error *err)
{
    int64_t version = 0, newest = migration_newest("sqlite");
    enum result r = schema_version(store, &version, err);

    if (r != RESULT_OK)
        return r;
    if (version == newest || (need == SCHEMA_OR_NEXT && version == newest + 1))
        return RESULT_OK;
    if (version < newest)
        return error_set(
            err, RESULT_CORRUPT, 0, "%s: its schema went back to version %" PRId64, store->path, version);
    return store_fail_newer(store->path, version, newest, err);
}

enum result transaction_begin(
    struct sqlite_store *store, enum schema_need need, struct sqlite_store **ret_open, struct error *err)
{
    enum result r = RESULT_OK;

    if (store->access != STORE_WRITE)
        return error_set(err, RESULT_DENIED, 0, "%s: opened for reading only", store->path);
    r = database_run(store, "BEGIN IMMEDIATE", NO_VALUES, NULL, err);
    if (r != RESULT_OK)
        return r;
    *ret_open = store;
    return schema_accept(store, need, err);
}

enum result transaction_begin_read(
    struct sqlite_store *store, struct sqlite_store **ret_open, struct error *err)
{
    enum result r = database_run(store, "BEGIN", NO_VALUES, NULL, err);

    if (r == RESULT_OK)
        *ret_open = store;
    return r;
}

enum result transaction_lose(struct sqlite_store *store, struct error *err)
{
    return store_fail_unknown(store->path, err);
}

enum result transaction_commit(struct sqlite_store *store, struct error *err)
{
    _cleanup_(error_done) struct error cause = {0};
    enum result r = database_run(store, "COMMIT", NO_VALUES, NULL, &cause);
    bool input_output = (sqlite3_extended_errcode(store->db) & 0xff) == SQLITE_IOERR;

    if (r == RESULT_OK)
        return r;
    /* The commit is one unlink: an error around it leaves open on which side of it the file stands. */
    return input_output ? transaction_lose(store, err) : error_move(err, &cause);
}
