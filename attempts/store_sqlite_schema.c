#include <inttypes.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_sqlite-private.h"
#include "generated/attempts_sql.h"

enum result schema_version(struct sqlite_store *store, int64_t *ret, struct error *err)
{
    return database_integer(store, "PRAGMA user_version", NO_VALUES, ret, err);
}

static enum result fail_foreign(struct sqlite_store *store, struct error *err)
{
    error_set(err, RESULT_INVALID, 0, "%s: the database of another program", store->path);
    return error_remedy(err, "name a file that does not exist yet, or a store");
}

enum result schema_look(struct sqlite_store *store, int64_t *ret_version, struct error *err)
{
    int64_t application = 0, version = 0, tables = 0, newest = migration_newest("sqlite");
    enum result r = database_integer(store, "PRAGMA application_id", NO_VALUES, &application, err);

    if (r == RESULT_OK)
        r = schema_version(store, &version, err);
    if (r == RESULT_OK)
        r = database_integer(store, "SELECT count(*) FROM sqlite_schema", NO_VALUES, &tables, err);
    if (r != RESULT_OK)
        return r;
    if (application != SQLITE_APPLICATION_ID && (application != 0 || version != 0 || tables != 0))
        return fail_foreign(store, err);
    if (application == SQLITE_APPLICATION_ID && version < 1)
        return error_set(err, RESULT_CORRUPT, 0, "%s: its schema version cannot be read", store->path);
    if (version > newest)
        return store_fail_newer(store->path, version, newest, err);
    *ret_version = version;
    return RESULT_OK;
}

/* Statement by statement: each of them is a place at which a crash must leave nothing behind. */
static enum result script_run(struct sqlite_store *store, const char *script, struct error *err)
{
    while (*script) {
        _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(store->db, script, -1, &statement, &script);
        if (code == SQLITE_OK && !statement)
            continue;
        FAILPOINT("migrate-statement");
        while (code == SQLITE_OK || code == SQLITE_ROW)
            code = sqlite3_step(statement);
        if (code != SQLITE_DONE)
            return database_fail(store, code, err);
    }
    return RESULT_OK;
}

static enum result meta_set(
    struct sqlite_store *store, const char *name, const char *value, struct error *err)
{
    return database_run(
        store, SQL_SQLITE_META_INSERT, VALUES(value_text(name), value_text(value)), NULL, err);
}

static enum result identity_make(struct sqlite_store *store, struct error *err)
{
    uint8_t bytes[(SQLITE_STORE_ID_SIZE - 1) / 2];
    char id[SQLITE_STORE_ID_SIZE];
    enum result r = RESULT_OK;

    random_bytes(bytes, sizeof bytes);
    hex_encode(bytes, sizeof bytes, id);
    r = meta_set(store, "store_id", id, err);
    return r == RESULT_OK ? meta_set(store, "machine_id", store->machine.machine_id, err) : r;
}

static enum result migrate_to(struct sqlite_store *store, int64_t version, struct error *err)
{
    int64_t reached = 0;
    enum result r = script_run(store, migration_text("sqlite", version), err);

    if (r == RESULT_OK && version == 1)
        r = identity_make(store, err);
    if (r == RESULT_OK)
        r = schema_version(store, &reached, err);
    if (r == RESULT_OK && reached != version)
        return error_set(err, RESULT_CORRUPT, 0, "%s: migration %" PRId64 " led to schema %" PRId64,
            store->path, version, reached);
    return r;
}

enum result schema_migrate(struct sqlite_store *store, struct error *err)
{
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    int64_t version = 0, newest = migration_newest("sqlite");
    enum result r = RESULT_OK;

    if (store->access != STORE_WRITE)
        return error_set(err, RESULT_DENIED, 0, "%s: opened for reading only", store->path);
    FAILPOINT("migrate-before-begin");
    r = database_run(store, "BEGIN IMMEDIATE", NO_VALUES, NULL, err);
    if (r != RESULT_OK)
        return r;
    open = store;
    /* Looked at again: of many who start at once, all but the first find it done. */
    r = schema_look(store, &version, err);
    if (r != RESULT_OK || version == newest)
        return r;
    while (r == RESULT_OK && version < newest)
        r = migrate_to(store, ++version, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("migrate", store, err) : r;
}

static enum result meta_get(
    struct sqlite_store *store, const char *name, char *ret, size_t size_bytes, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    bool found = false;
    enum result r = database_start(store, SQL_SQLITE_META_READ, VALUES(value_text(name)), &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found)
        return error_set(err, RESULT_CORRUPT, 0, "%s: its %s is missing", store->path, name);
    struct row row = {.statement = statement};
    row_buffer(&row, ret, size_bytes);
    return row_check(&row, store->path, err);
}

enum result schema_identity(struct sqlite_store *store, struct error *err)
{
    char machine_id[MACHINE_ID_SIZE] = "";
    enum result r = meta_get(store, "store_id", store->id, sizeof store->id, err);

    if (r == RESULT_OK)
        r = meta_get(store, "machine_id", machine_id, sizeof machine_id, err);
    if (r != RESULT_OK || store->access == STORE_READ || strcmp(machine_id, store->machine.machine_id) == 0)
        return r;
    error_set(err, RESULT_INVALID, 0, "%s: the embedded store of another machine", store->path);
    return error_remedy(err,
        "use a store at postgresql:// to share attempts between machines; where there is no "
        "machine-id, another host name makes another machine");
}
