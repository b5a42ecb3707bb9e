/* The claim of a row; and which database this is. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "attempts/publication-private.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

/* The remedy of the table is about the store's own functions; the right that is missing may be one on the
 * table. */
static enum result claim_denied(
    const struct postgres_store *store, const struct row_source *row, struct error *err)
{
    const char *dot = strrchr(row->table, '.'), *name = dot ? dot + 1 : row->table;
    _cleanup_(mem_free) char *schema = dot ? mem_copy(row->table, (size_t)(dot - row->table)) : NULL;
    _cleanup_(mem_free) char *advice = NULL;

    if (!store->connection || !err || !err->message)
        return RESULT_DENIED;
    if (schema && strcmp(schema, "tenure") != 0 && strstr(err->message, "schema") &&
        strstr(err->message, schema))
        advice = mem_format("let its owner run: GRANT USAGE ON SCHEMA %s TO {role}", schema);
    else if (strstr(err->message, name))
        advice = mem_format("let its owner run: GRANT SELECT, UPDATE ON %s TO {role}", row->table);
    else
        return RESULT_DENIED;
    return postgres_advise(store, advice, err);
}

enum result postgres_claim(
    struct postgres_store *store, const struct reservation *reservation, PGresult **ret, struct error *err)
{
    const struct credential *credential = &reservation->credential;
    const struct row_source *row = reservation->row;
    _cleanup_(json_cleanup) struct json_object *executor = executor_to_json(reservation->executor);
    _cleanup_(mem_free) char *ttl = mem_format("%" PRId64 " milliseconds", reservation->ttl_ms);
    enum result r = POSTGRES_WRITE("reserve", store,
        postgres_call(store, REPEATABLE, SQL_POSTGRES_CLAIM_ROW,
            PARAMETERS(parameter_schema(), parameter_text(credential->attempt_id),
                parameter_bytes(credential->token, TOKEN_BYTES), parameter_text(row->table),
                parameter_text(row->key), parameter_text(row->value), parameter_text(row->soft_delete),
                parameter_text(json_object_to_json_string_ext(executor, JSON_C_TO_STRING_PLAIN)),
                parameter_text(reservation->repository), parameter_text(reservation->journal_handle),
                parameter_text(reservation->executor->host), parameter_text(reservation->journal_path),
                parameter_text(ttl), parameter_boolean(reservation->bind_if_clear)),
            ret, err),
        err);

    return r == RESULT_DENIED ? claim_denied(store, row, err) : r;
}

static bool is_postgres(const char *url)
{
    return url && (strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0);
}

enum result publication_database(const struct store_options *options, char **ret, struct error *err)
{
    _cleanup_(postgres_cleanup) struct postgres_store *store = NULL;
    _cleanup_(result_cleanup) PGresult *result = NULL;
    const struct libpq *pq = NULL;
    enum result r = RESULT_OK;

    if (!is_postgres(options->url))
        return store_fail_rows(err);
    r = libpq_load(&pq, err);
    if (r != RESULT_OK)
        return r;
    store = postgres_new(options, pq, STORE_READ);
    r = postgres_ask(store, ASKS, SQL_POSTGRES_DATABASE, NULL, 0, &result, err);
    if (r != RESULT_OK)
        return r;
    if (pq->ntuples(result) != 1)
        return error_set(
            err, RESULT_CORRUPT, 0, "%s: the server does not say which database this is", store->printable);
    *ret = mem_string(pq->getvalue(result, 0, 0));
    return RESULT_OK;
}
