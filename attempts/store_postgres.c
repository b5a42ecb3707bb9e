#include <stdlib.h>
#include <string.h>

#include "attempts/publication-private.h"
#include "base/memory.h"

struct postgres_store *postgres_of(struct store *store)
{
    return (struct postgres_store *)store;
}

static void postgres_close(struct store *base)
{
    struct postgres_store *store = postgres_of(base);

    postgres_disconnect(store);
    if (store->url)
        explicit_bzero(store->url, strlen(store->url));
    free(store->url);
    free(store->printable);
    free(store);
}

void postgres_cleanup(struct postgres_store **store)
{
    if (*store)
        postgres_close(&(*store)->store);
}

static const char *postgres_id(const struct store *base)
{
    return ((const struct postgres_store *)base)->id;
}

static enum result postgres_migrate(struct store *base, struct error *err)
{
    return postgres_schema_migrate(postgres_of(base), err);
}

static const struct store_ops POSTGRES_OPS = {
    .close = postgres_close,
    .id = postgres_id,
    .now = postgres_now,
    .status = postgres_status,
    .migrate = postgres_migrate,
    .reserve = postgres_reserve,
    .bind = postgres_bind,
    .renew = postgres_renew,
    .settle = postgres_settle,
    .settle_ask = postgres_settle_ask,
    .retire = postgres_retire,
    .request_cancel = postgres_request_cancel,
    .list = postgres_list,
    .find = postgres_find,
    .leftovers = postgres_leftovers,
    .leftover_delete = postgres_leftover_delete,
    .evidence_put = postgres_evidence_put,
    .evidence_find = postgres_evidence_find,
    .evidence_latest = postgres_evidence_latest,
    .proof_find = postgres_proof_find,
    .history = postgres_history,
    .publication_begin = postgres_publication_begin,
};

struct postgres_store *postgres_new(
    const struct store_options *options, const struct libpq *pq, enum store_access access)
{
    struct postgres_store *store = mem_alloc(sizeof *store);

    *store = (struct postgres_store){
        .store = {.ops = &POSTGRES_OPS},
        .pq = pq,
        .url = mem_string(options->url),
        .printable = store_url_printable(options->url),
        .access = access,
        .machine = *options->machine,
        .deadline_ms = options->deadline_ms ? options->deadline_ms : POSTGRES_WAIT_MS,
        .patience_ms = options->patience_ms,
        .was_connected = options->known,
        .waiting = options->waiting,
        .waiting_context = options->waiting_context,
    };
    return store;
}

enum result store_postgres_open(const struct store_options *options, const char *location _unused_,
    enum store_access access, struct store **ret, struct error *err)
{
    _cleanup_(postgres_cleanup) struct postgres_store *store = NULL;
    const struct libpq *pq = NULL;
    enum result r = libpq_load(&pq, err);

    if (r != RESULT_OK)
        return r;
    store = postgres_new(options, pq, access);
    r = postgres_schema_open(store, err);
    if (r == RESULT_OK)
        *ret = &STEAL(store)->store;
    return r;
}
