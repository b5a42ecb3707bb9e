#include <stdlib.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_postgres-private.h"
#include "base/memory.h"
#include "base/text.h"
#include "generated/attempts_sql.h"

enum result postgres_now(struct store *base, struct store_time *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    struct store_time now = {0};
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_NOW, PARAMETERS(parameter_schema()), &result, err);

    if (r != RESULT_OK)
        return r;
    answer.result = result;
    now.ms = now.wall_ms = answer_integer(&answer);
    r = answer_check(&answer, store->printable, err);
    if (r == RESULT_OK)
        *ret = now;
    return r;
}

/* ---- attempts ---- */

static enum result attempts_read(
    const struct postgres_store *store, const PGresult *result, struct attempt_list *list, struct error *err)
{
    size_t count = (size_t)store->pq->ntuples(result);

    list->items = count ? mem_alloc(count * sizeof *list->items) : NULL;
    while (list->count < count) {
        struct answer answer = {.pq = store->pq, .result = result, .row = (int)list->count};
        enum result r = answer_record(&answer, &list->items[list->count], err);
        if (r != RESULT_OK)
            return r;
        list->count++;
    }
    return RESULT_OK;
}

enum result postgres_list(
    struct store *base, const struct attempt_query *query, struct attempt_list *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(attempt_list_done) struct attempt_list list = {0};
    _cleanup_(text_done) struct text subjects = {0};
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = RESULT_OK;

    for (size_t i = 0; i < query->subject_count; i++)
        array_add(&subjects, query->subjects[i]);
    r = postgres_ask(store, ASKS,
        query->unfinished_only ? SQL_POSTGRES_LIST_UNFINISHED : SQL_POSTGRES_LIST_ALL,
        PARAMETERS(parameter_schema(), parameter_text(query->repository),
            parameter_text(query->subject_count ? array_text(&subjects) : NULL),
            query->limit ? parameter_integer((int64_t)query->limit) : parameter_text(NULL)),
        &result, err);
    if (r == RESULT_OK)
        r = attempts_read(store, result, &list, err);
    if (r != RESULT_OK)
        return r;
    *ret = list;
    list = (struct attempt_list){0};
    return RESULT_OK;
}

enum result postgres_find(
    struct store *base, const char *id_or_handle, struct attempt *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_ATTEMPT_FIND,
        PARAMETERS(parameter_schema(), parameter_text(id_or_handle)), &result, err);

    if (r != RESULT_OK)
        return r;
    if (store->pq->ntuples(result) == 0)
        return error_set(err, RESULT_ABSENT, 0, "there is no attempt %s", id_or_handle);
    answer.result = result;
    return answer_record(&answer, ret, err);
}

/* ---- leftovers ---- */

static void leftover_take(struct attempt *attempt, struct leftover *ret)
{
    *ret = (struct leftover){
        .executor = attempt->executor,
        .journal_path = STEAL(attempt->journal_path),
        .subjects = STEAL(attempt->subjects),
        .subject_count = attempt->subject_count,
    };
    memcpy(ret->attempt_id, attempt->id, sizeof ret->attempt_id);
    attempt->subject_count = 0;
}

/* No process survives a boot: what an earlier one left is forgotten by the way, unless only to be read. With
 * an id that another machine may have, another boot is not an earlier one. */
static enum result leftovers_ask(struct postgres_store *store, PGresult **ret, struct error *err)
{
    bool forget = store->access != STORE_READ && !store->machine.named_by_host;

    return postgres_ask(store, store->access == STORE_READ ? ASKS : REPEATABLE, SQL_POSTGRES_LEFTOVERS,
        PARAMETERS(parameter_schema(), parameter_text(store->machine.machine_id),
            parameter_text(store->machine.boot_id), parameter_boolean(forget)),
        ret, err);
}

enum result postgres_leftovers(struct store *base, struct leftover_list *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(attempt_list_done) struct attempt_list attempts = {0};
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = store->access == STORE_READ
                        ? leftovers_ask(store, &result, err)
                        : POSTGRES_WRITE("leftovers", store, leftovers_ask(store, &result, err), err);

    if (r == RESULT_OK)
        r = attempts_read(store, result, &attempts, err);
    if (r != RESULT_OK)
        return r;
    *ret = (struct leftover_list){0};
    ret->items = attempts.count ? mem_alloc(attempts.count * sizeof *ret->items) : NULL;
    for (; ret->count < attempts.count; ret->count++)
        leftover_take(&attempts.items[ret->count], &ret->items[ret->count]);
    return RESULT_OK;
}

enum result postgres_leftover_delete(struct store *base, const char *attempt_id, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;

    return POSTGRES_WRITE("leftover-delete", store,
        postgres_ask(store, REPEATABLE, SQL_POSTGRES_LEFTOVER_DELETE,
            PARAMETERS(parameter_schema(), parameter_text(attempt_id)), &result, err),
        err);
}

/* ---- history and status ---- */

static enum result event_read(struct answer *answer, struct history_event *event, struct error *err)
{
    *event = (struct history_event){.sequence = answer_integer(answer)};
    answer_buffer(answer, event->attempt_id, sizeof event->attempt_id);
    event->event = answer_text(answer);
    event->detail = answer_text_or_null(answer);
    event->wall_ms = answer_integer(answer);
    return answer_check(answer, "a row of history", err);
}

static enum result history_read(
    const struct postgres_store *store, const PGresult *result, struct history *history, struct error *err)
{
    size_t count = (size_t)store->pq->ntuples(result);
    enum result r = RESULT_OK;

    history->items = count ? mem_alloc(count * sizeof *history->items) : NULL;
    while (r == RESULT_OK && history->count < count) {
        struct answer answer = {.pq = store->pq, .result = result, .row = (int)history->count};
        r = event_read(&answer, &history->items[history->count++], err);
    }
    return r;
}

enum result postgres_history(
    struct store *base, const char *attempt_id, struct history *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    _cleanup_(history_done) struct history history = {0};
    enum result r = postgres_ask(store, ASKS, SQL_POSTGRES_HISTORY_LIST,
        PARAMETERS(parameter_schema(), parameter_text(attempt_id)), &result, err);

    if (r == RESULT_OK)
        r = history_read(store, result, &history, err);
    if (r != RESULT_OK)
        return r;
    *ret = history;
    history = (struct history){0};
    return RESULT_OK;
}

enum result postgres_status(struct store *base, struct store_status *ret, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    struct answer answer = {.pq = store->pq};
    struct store_status status = {.newest_version = migration_newest("postgres")};
    enum result r =
        postgres_ask(store, ASKS, SQL_POSTGRES_STATUS, PARAMETERS(parameter_schema()), &result, err);

    if (r != RESULT_OK)
        return r;
    answer.result = result;
    status.schema_version = answer_integer(&answer);
    status.unfinished = answer_integer(&answer);
    status.ended = answer_integer(&answer);
    status.evidence = answer_integer(&answer);
    status.proofs = answer_integer(&answer);
    r = answer_check(&answer, store->printable, err);
    if (r != RESULT_OK)
        return r;
    status.location = mem_string(store->printable);
    *ret = status;
    return RESULT_OK;
}
