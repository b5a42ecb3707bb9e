#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_sqlite-private.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

/* ---- attempts ---- */

struct id {
    char text[UUID_TEXT_SIZE];
};

struct ids {
    struct id *items;
    size_t count, capacity;
};

static void ids_done(struct ids *ids)
{
    free(ids->items);
}

static struct json_object *subjects_to_json(const struct attempt_query *query)
{
    struct json_object *array = query->subject_count ? json_object_new_array() : NULL;

    for (size_t i = 0; i < query->subject_count; i++)
        json_object_array_add(array, json_object_new_string(query->subjects[i]));
    return array;
}

static enum result ids_collect(
    struct sqlite_store *store, sqlite3_stmt *statement, struct ids *ids, struct error *err)
{
    for (;;) {
        struct row row = {.statement = statement};
        bool found = false;
        enum result r = database_next(store, statement, &found, err);
        if (r != RESULT_OK || !found)
            return r;
        mem_grow(&ids->items, &ids->capacity, ids->count, sizeof *ids->items);
        row_buffer(&row, ids->items[ids->count++].text, UUID_TEXT_SIZE);
        r = row_check(&row, "an attempt", err);
        if (r != RESULT_OK)
            return r;
    }
}

static enum result ids_query(
    struct sqlite_store *store, const struct attempt_query *query, struct ids *ids, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    _cleanup_(json_cleanup) struct json_object *subjects = subjects_to_json(query);
    const char *sql = query->unfinished_only ? SQL_SQLITE_LIST_UNFINISHED : SQL_SQLITE_LIST_ALL;
    enum result r = database_start(store, sql,
        VALUES(value_text(query->repository),
            value_text(subjects ? json_object_to_json_string_ext(subjects, JSON_C_TO_STRING_PLAIN) : NULL),
            value_integer(query->limit ? (int64_t)query->limit : -1)),
        &statement, err);

    return r == RESULT_OK ? ids_collect(store, statement, ids, err) : r;
}

enum result sqlite_list(
    struct store *base, const struct attempt_query *query, struct attempt_list *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(attempt_list_done) struct attempt_list list = {0};
    _cleanup_(ids_done) struct ids ids = {0};
    enum result r = transaction_begin_read(store, &open, err);

    if (r == RESULT_OK)
        r = ids_query(store, query, &ids, err);
    if (r != RESULT_OK)
        return r;
    list.items = ids.count ? mem_alloc(ids.count * sizeof *list.items) : NULL;
    while (list.count < ids.count) {
        r = attempt_load(store, ids.items[list.count].text, &list.items[list.count], err);
        if (r != RESULT_OK)
            return r;
        list.count++;
    }
    *ret = list;
    list = (struct attempt_list){0};
    return RESULT_OK;
}

enum result sqlite_find(struct store *base, const char *id_or_handle, struct attempt *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    _cleanup_(ids_done) struct ids ids = {0};
    enum result r = transaction_begin_read(store, &open, err);

    if (r == RESULT_OK)
        r = database_start(store, SQL_SQLITE_ATTEMPT_FIND, VALUES(value_text(id_or_handle)), &statement, err);
    if (r == RESULT_OK)
        r = ids_collect(store, statement, &ids, err);
    if (r != RESULT_OK)
        return r;
    if (!ids.count)
        return error_set(err, RESULT_ABSENT, 0, "there is no attempt %s", id_or_handle);
    return attempt_load(store, ids.items[0].text, ret, err);
}

/* ---- leftovers ---- */

static enum result leftover_read(sqlite3_stmt *statement, struct leftover *leftover, struct error *err)
{
    struct row row = {.statement = statement};

    *leftover = (struct leftover){0};
    row_buffer(&row, leftover->attempt_id, sizeof leftover->attempt_id);
    leftover->journal_path = row_text_or_null(&row);
    leftover->subjects = row_lines(&row, &leftover->subject_count);
    row_executor(&row, true, &leftover->executor);
    return row_check(&row, "a leftovers row", err);
}

static enum result leftovers_read(struct sqlite_store *store, struct leftover_list *list, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    size_t capacity = 0;
    bool found = true;
    enum result r = database_start(store, SQL_SQLITE_LEFTOVER_LIST,
        VALUES(value_text(store->machine.machine_id), value_text(store->machine.boot_id)), &statement, err);

    while (r == RESULT_OK) {
        r = database_next(store, statement, &found, err);
        if (r != RESULT_OK || !found)
            break;
        mem_grow(&list->items, &capacity, list->count, sizeof *list->items);
        r = leftover_read(statement, &list->items[list->count++], err);
    }
    return r;
}

/* No process survives a boot: what an earlier one left is gone. With an id that another machine may have,
 * another boot is not an earlier one. */
static enum result leftovers_forget_earlier(struct sqlite_store *store, struct error *err)
{
    if (store->machine.named_by_host)
        return RESULT_OK;
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    int64_t count = 0;
    enum result r = database_integer(store, SQL_SQLITE_LEFTOVER_COUNT_EARLIER,
        VALUES(value_text(store->machine.machine_id), value_text(store->machine.boot_id)), &count, err);

    if (r != RESULT_OK || count == 0 || store->access == STORE_READ)
        return r;
    r = TRANSACTION_BEGIN("leftovers", store, SCHEMA_THIS, &open, err);
    if (r == RESULT_OK)
        r = database_run(store, SQL_SQLITE_LEFTOVER_DELETE_EARLIER,
            VALUES(value_text(store->machine.machine_id), value_text(store->machine.boot_id)), NULL, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("leftovers", store, err) : r;
}

enum result sqlite_leftovers(struct store *base, struct leftover_list *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(leftover_list_done) struct leftover_list list = {0};
    enum result r = leftovers_forget_earlier(store, err);

    if (r == RESULT_OK)
        r = leftovers_read(store, &list, err);
    if (r != RESULT_OK)
        return r;
    *ret = list;
    list = (struct leftover_list){0};
    return RESULT_OK;
}

enum result sqlite_leftover_delete(struct store *base, const char *attempt_id, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    enum result r = TRANSACTION_BEGIN("leftover-delete", store, SCHEMA_THIS, &open, err);

    if (r == RESULT_OK)
        r = database_run(store, SQL_SQLITE_LEFTOVER_DELETE, VALUES(value_text(attempt_id)), NULL, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("leftover-delete", store, err) : r;
}

/* ---- history and status ---- */

static enum result event_read(sqlite3_stmt *statement, struct history_event *event, struct error *err)
{
    struct row row = {.statement = statement};

    *event = (struct history_event){.sequence = row_integer(&row)};
    row_buffer(&row, event->attempt_id, sizeof event->attempt_id);
    event->event = row_text(&row);
    event->detail = row_text_or_null(&row);
    event->wall_ms = row_integer(&row);
    return row_check(&row, "a row of history", err);
}

enum result sqlite_history(struct store *base, const char *attempt_id, struct history *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    _cleanup_(history_done) struct history history = {0};
    size_t capacity = 0;
    bool found = true;
    enum result r =
        database_start(store, SQL_SQLITE_HISTORY_LIST, VALUES(value_text(attempt_id)), &statement, err);

    while (r == RESULT_OK) {
        r = database_next(store, statement, &found, err);
        if (r != RESULT_OK || !found)
            break;
        mem_grow(&history.items, &capacity, history.count, sizeof *history.items);
        r = event_read(statement, &history.items[history.count++], err);
    }
    if (r != RESULT_OK)
        return r;
    *ret = history;
    history = (struct history){0};
    return RESULT_OK;
}

enum result sqlite_status(struct store *base, struct store_status *ret, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    struct store_status status = {.newest_version = migration_newest("sqlite")};
    bool found = false;
    enum result r = schema_version(store, &status.schema_version, err);

    if (r == RESULT_OK)
        r = database_start(store, SQL_SQLITE_STATUS, NO_VALUES, &statement, err);
    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    struct row row = {.statement = statement};
    status.unfinished = row_integer(&row);
    status.ended = row_integer(&row);
    status.evidence = row_integer(&row);
    status.proofs = row_integer(&row);
    r = row_check(&row, store->path, err);
    if (r != RESULT_OK)
        return r;
    status.location = mem_format("sqlite:%s", store->path);
    *ret = status;
    return RESULT_OK;
}
