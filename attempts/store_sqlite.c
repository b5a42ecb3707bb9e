#include <stdlib.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_sqlite-private.h"
#include "base/memory.h"

struct sqlite_store *sqlite_of(struct store *store)
{
    return (struct sqlite_store *)store;
}

struct store_time sqlite_now(const struct sqlite_store *store)
{
    struct store_time now = {
        .ms = store->clock->boot_ms(store->clock),
        .wall_ms = store->clock->wall_ms(store->clock),
    };

    memcpy(now.epoch, store->machine.boot_id, sizeof now.epoch);
    return now;
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);

    sqlite3_close_v2(store->db);
    free(store->path);
    free(store);
}

static void sqlite_cleanup(struct sqlite_store **store)
{
    if (*store)
        sqlite_close(&(*store)->store);
}

static const char *sqlite_id(const struct store *base)
{
    return ((const struct sqlite_store *)base)->id;
}

static enum result sqlite_tell_now(struct store *base, struct store_time *ret, struct error *err _unused_)
{
    *ret = sqlite_now(sqlite_of(base));
    return RESULT_OK;
}

static enum result sqlite_migrate(struct store *base, struct error *err)
{
    return schema_migrate(sqlite_of(base), err);
}

static const struct store_ops SQLITE_OPS = {
    .close = sqlite_close,
    .id = sqlite_id,
    .now = sqlite_tell_now,
    .status = sqlite_status,
    .migrate = sqlite_migrate,
    .reserve = sqlite_reserve,
    .bind = sqlite_bind,
    .renew = sqlite_renew,
    .settle = sqlite_settle,
    .settle_ask = sqlite_settle_ask,
    .retire = sqlite_retire,
    .request_cancel = sqlite_request_cancel,
    .list = sqlite_list,
    .find = sqlite_find,
    .leftovers = sqlite_leftovers,
    .leftover_delete = sqlite_leftover_delete,
    .evidence_put = sqlite_evidence_put,
    .evidence_find = sqlite_evidence_find,
    .evidence_latest = sqlite_evidence_latest,
    .proof_find = sqlite_proof_find,
    .history = sqlite_history,
};

/* SQLite gives ":memory:" and "" a meaning of its own; with a directory in front they are names. */
static char *path_plain(const char *location)
{
    return location[0] == '/' ? mem_string(location) : mem_format("./%s", location);
}

static struct sqlite_store *sqlite_new(
    const struct store_options *options, const char *location, enum store_access access)
{
    struct sqlite_store *store = mem_alloc(sizeof *store);

    *store = (struct sqlite_store){
        .store = {.ops = &SQLITE_OPS},
        .path = path_plain(location),
        .access = access == STORE_READ ? STORE_READ : STORE_WRITE, /* every writer migrates */
        .clock = options->clock,
        .machine = *options->machine,
        .deadline_ms = options->deadline_ms ? options->deadline_ms : SQLITE_DEFAULT_WAIT_MS,
        .waiting = options->waiting,
        .waiting_context = options->waiting_context,
    };
    return store;
}

/* A reader opens for writing too, where it may, and is then told never to write: only so can it roll back
 * what a killed writer left half done. SQLite itself falls back to reading when the file or the disk is
 * read-only. */
static enum result database_open(struct sqlite_store *store, struct error *err)
{
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    int code = sqlite3_open_v2(store->path, &store->db, flags, NULL);

    if (code != SQLITE_OK)
        return database_fail(store, code, err);
    database_set_wait(store);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (store->access == STORE_WRITE && sqlite3_db_readonly(store->db, "main") == 1)
        return database_fail(store, SQLITE_READONLY, err);
    return RESULT_OK;
}

/* Sets what durability and isolation rest upon, and believes only what is read back. */
static enum result database_configure(struct sqlite_store *store, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    const char *mode = NULL;
    bool found = false;
    int64_t synchronous = 0;
    enum result r = database_start(store, "PRAGMA journal_mode = DELETE", NO_VALUES, &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    mode = found ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (!mode || strcmp(mode, "delete") != 0)
        return error_set(err, RESULT_UNREACHABLE, 0, "%s: no rollback journal: its journal mode is \"%s\"",
            store->path, mode ? mode : "unknown");
    r = database_run(store, "PRAGMA synchronous = EXTRA", NO_VALUES, NULL, err);
    if (r == RESULT_OK)
        r = database_run(store, "PRAGMA temp_store = MEMORY", NO_VALUES, NULL, err);
    if (r == RESULT_OK)
        r = database_run(store, "PRAGMA foreign_keys = ON", NO_VALUES, NULL, err);
    if (r == RESULT_OK)
        r = database_integer(store, "PRAGMA synchronous", NO_VALUES, &synchronous, err);
    if (r == RESULT_OK && synchronous != 3)
        return error_set(err, RESULT_UNREACHABLE, 0, "%s: synchronous=EXTRA did not take", store->path);
    return r;
}

/* In one read transaction: between its questions somebody else may be making the store. */
static enum result database_look(struct sqlite_store *store, int64_t *ret_version, struct error *err)
{
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    enum result r = transaction_begin_read(store, &open, err);

    return r == RESULT_OK ? schema_look(store, ret_version, err) : r;
}

/* Nothing is set, and so nothing can be written, before the file is known to be ours and not newer. */
static enum result database_enter(struct sqlite_store *store, struct error *err)
{
    int64_t version = 0;
    enum result r = database_run(store, "PRAGMA query_only = ON", NO_VALUES, NULL, err);

    if (r == RESULT_OK)
        r = database_look(store, &version, err);
    if (r != RESULT_OK)
        return r;
    if (store->access == STORE_READ && version == 0)
        return error_set(err, RESULT_ABSENT, 0, "%s: the store is empty", store->path);
    if (store->access == STORE_READ && version < migration_newest("sqlite")) {
        error_set(err, RESULT_INVALID, 0, "%s: the store is older than this program", store->path);
        return error_remedy(err, "any command that writes brings it up to date");
    }
    if (store->access == STORE_READ)
        return schema_identity(store, err);
    r = database_run(store, "PRAGMA query_only = OFF", NO_VALUES, NULL, err);
    if (r == RESULT_OK)
        r = database_configure(store, err);
    if (r == RESULT_OK && version < migration_newest("sqlite"))
        r = schema_migrate(store, err);
    return r == RESULT_OK ? schema_identity(store, err) : r;
}

enum result store_sqlite_open(const struct store_options *options, const char *location,
    enum store_access access, struct store **ret, struct error *err)
{
    _cleanup_(sqlite_cleanup) struct sqlite_store *store = NULL;
    enum result r = RESULT_OK;

    if (!location[0])
        return error_set(err, RESULT_INVALID, 0, "\"sqlite:\" lacks the path of the store");
    if (clock_is_shifted()) {
        error_set(err, RESULT_INVALID, 0, "this process is in a time namespace with a shifted boot clock");
        return error_remedy(err, "run it outside of that namespace, or use a store at postgresql://");
    }
    store = sqlite_new(options, location, access);
    r = place_prepare(store->path, access, err);
    if (r == RESULT_OK)
        r = database_open(store, err);
    if (r == RESULT_OK)
        r = database_enter(store, err);
    if (r == RESULT_OK)
        *ret = &STEAL(store)->store;
    return r;
}
