#include <inttypes.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_postgres-private.h"
#include "base/memory.h"
#include "base/text.h"
#include "generated/attempts_sql.h"

#define VERSION_UNREADABLE INT64_C(-1)

/* ---- looking ---- */

struct schema {
    bool exists, is_store, has_others;
    int64_t version; /* 0: no schema */
};

static enum result look_read(
    const struct postgres_store *store, const PGresult *result, struct schema *ret, struct error *err)
{
    struct answer answer = {.pq = store->pq, .result = result};

    if (store->pq->ntuples(result) != 1)
        return error_set(err, RESULT_CORRUPT, 0, "%s: the server gave no answer", store->printable);
    ret->exists = answer_boolean(&answer);
    ret->is_store = answer_boolean(&answer);
    ret->has_others = answer_boolean(&answer);
    return answer_check(&answer, store->printable, err);
}

static int64_t version_of(const struct postgres_store *store, const PGresult *result, int column)
{
    int64_t version = VERSION_UNREADABLE;

    if (store->pq->ntuples(result) != 1 ||
        !text_parse_int(store->pq->getvalue(result, 0, column), 1, INT32_MAX, &version))
        return VERSION_UNREADABLE;
    return version;
}

/* Whose schema is it, and may this program use it? Before anything is written. */
static enum result schema_judge(
    const struct postgres_store *store, const struct schema *schema, struct error *err)
{
    int64_t newest = migration_newest("postgres");

    if (schema->exists && !schema->is_store) {
        error_set(err, RESULT_INVALID, 0, "%s: its schema \"tenure\" is another program's", store->printable);
        return error_remedy(err, "use another database");
    }
    if (schema->version == VERSION_UNREADABLE) {
        error_set(err, RESULT_CORRUPT, 0, "%s: its schema version cannot be read", store->printable);
        return error_remedy(err, "restore tenure.meta from a backup");
    }
    return schema->version > newest ? store_fail_newer(store->printable, schema->version, newest, err)
                                    : RESULT_OK;
}

static enum result identity_ask(struct postgres_store *store, struct schema *schema, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_IDENTITY, NULL, 0, &result, err);

    if (r != RESULT_OK)
        return r;
    schema->version = version_of(store, result, 1);
    answer.result = result;
    answer_buffer(&answer, store->id, sizeof store->id);
    return answer_check(&answer, store->printable, err);
}

static enum result schema_look(struct postgres_store *store, struct schema *ret, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_SCHEMA_LOOK, NULL, 0, &result, err);

    if (r == RESULT_OK)
        r = look_read(store, result, ret, err);
    if (r == RESULT_OK && ret->is_store)
        r = identity_ask(store, ret, err);
    return r == RESULT_OK ? schema_judge(store, ret, err) : r;
}

/* ---- migrating ---- */

/* In the transaction that is open, after its lock. */
static enum result locked_look(
    struct postgres_store *store, int64_t until_ms, struct schema *ret, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *look = NULL, *version = NULL;
    enum result r = postgres_step(store, SQL_POSTGRES_SCHEMA_LOOK, until_ms, &look, err);

    if (r == RESULT_OK)
        r = look_read(store, look, ret, err);
    if (r == RESULT_OK && ret->is_store)
        r = postgres_step(store, SQL_POSTGRES_MIGRATE_VERSION, until_ms, &version, err);
    if (r != RESULT_OK)
        return r;
    if (ret->is_store)
        ret->version = version_of(store, version, 0);
    return schema_judge(store, ret, err);
}

static enum result fail_not_migrated(
    const struct postgres_store *store, const struct schema *schema, struct error *err)
{
    if (schema->exists)
        error_set(err, RESULT_INVALID, 0,
            "%s: the store has schema %" PRId64 ", older than this program's %" PRId64, store->printable,
            schema->version, migration_newest("postgres"));
    else
        error_set(err, RESULT_INVALID, 0, "%s: there is no store in this database, which holds other tables",
            store->printable);
    return error_remedy(err, "run: tenure store migrate");
}

/* Only a database that nobody else uses is given a schema without being asked. */
static bool may_migrate(const struct postgres_store *store, const struct schema *schema)
{
    return store->access == STORE_MIGRATE || (!schema->exists && !schema->has_others);
}

static enum result migrate_to(
    struct postgres_store *store, int64_t version, int64_t until_ms, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = RESULT_OK;
    int64_t reached = 0;

    FAILPOINT("migrate-statement");
    r = postgres_step(store, migration_text("postgres", version), until_ms, NULL, err);
    if (r == RESULT_OK)
        r = postgres_step(store, SQL_POSTGRES_MIGRATE_VERSION, until_ms, &result, err);
    if (r != RESULT_OK)
        return r;
    reached = version_of(store, result, 0);
    if (reached != version)
        return error_set(err, RESULT_CORRUPT, 0, "%s: migration %" PRId64 " led to schema %" PRId64,
            store->printable, version, reached);
    return RESULT_OK;
}

static enum result migrate_commit(struct postgres_store *store, int64_t until_ms, struct error *err)
{
    _cleanup_(error_done) struct error why = {0};

    if (postgres_step(store, "COMMIT", until_ms, NULL, &why) == RESULT_OK)
        return RESULT_OK;
    return store->connection ? error_move(err, &why) : postgres_lose(store, err);
}

static enum result fail_not_owner(struct error *err)
{
    return error_remedy(err, "run tenure store migrate as the owner of the schema tenure");
}

static enum result migrate_locked(struct postgres_store *store, int64_t until_ms, struct error *err)
{
    struct schema schema = {0};
    int64_t newest = migration_newest("postgres");
    enum result r = locked_look(store, until_ms, &schema, err);

    if (r == RESULT_DENIED)
        return fail_not_owner(err);
    if (r != RESULT_OK || schema.version == newest)
        return r;
    if (!may_migrate(store, &schema))
        return fail_not_migrated(store, &schema, err);
    for (int64_t version = schema.version; r == RESULT_OK && version < newest;)
        r = migrate_to(store, ++version, until_ms, err);
    if (r == RESULT_DENIED && schema.version == 0)
        return postgres_advise(
            store, "let its owner run: GRANT CREATE ON DATABASE {database} TO {role}", err);
    if (r == RESULT_DENIED)
        return fail_not_owner(err);
    return r == RESULT_OK
               ? STORE_COMMIT("migrate", migrate_commit(store, until_ms, err), postgres_lose(store, err))
               : r;
}

enum result postgres_schema_migrate(struct postgres_store *store, struct error *err)
{
    int64_t until_ms = real_ms() + store->deadline_ms;
    enum result r = postgres_check_writer(store, err);

    if (r != RESULT_OK)
        return r;
    FAILPOINT("migrate-before-begin");
    r = postgres_connect(store, until_ms, err);
    if (r == RESULT_OK)
        r = postgres_step(store, SQL_POSTGRES_MIGRATE_BEGIN, until_ms, NULL, err);
    if (r == RESULT_OK)
        r = migrate_locked(store, until_ms, err);
    /* Whatever is still open ends here; of a transaction that has ended the server only says so. */
    if (store->connection && postgres_step(store, "ROLLBACK", until_ms, NULL, NULL) != RESULT_OK)
        postgres_disconnect(store);
    return r;
}

/* ---- opening ---- */

static enum result fail_empty(
    const struct postgres_store *store, const struct schema *schema, struct error *err)
{
    error_set(err, RESULT_ABSENT, 0, "%s: there is no store in this database", store->printable);
    return error_remedy(
        err, schema->has_others ? "run: tenure store migrate" : "any command that writes makes one");
}

enum result postgres_schema_open(struct postgres_store *store, struct error *err)
{
    struct schema schema = {0};
    enum result r = schema_look(store, &schema, err);

    if (r != RESULT_OK || schema.version == migration_newest("postgres"))
        return r;
    if (store->access == STORE_READ && !schema.exists)
        return fail_empty(store, &schema, err);
    if (store->access == STORE_READ || !may_migrate(store, &schema))
        return fail_not_migrated(store, &schema, err);
    r = postgres_schema_migrate(store, err);
    return r == RESULT_OK ? schema_look(store, &schema, err) : r;
}
