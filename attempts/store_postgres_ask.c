#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/duration.h"
#include "base/memory.h"
#include "base/text.h"

#define LAST_WORD_MS INT64_C(500) /* for the answer to a cancellation */
#define READ_LIMIT   16           /* of what came unasked: notices, an end */
#define USES_TO_KEEP 3            /* a statement is prepared when it comes for the third time */
#define NAME_SIZE    16

struct statement {
    const char *sql;
    const struct parameter *parameters;
    size_t count;
    enum { SEND_ONE, SEND_SCRIPT, SEND_PREPARE, SEND_PREPARED } form; /* a script has no parameters */
    char name[NAME_SIZE];                                             /* of a prepared one */
};

/* ---- sending ---- */

static int send_by_form(struct postgres_store *store, const struct statement *statement,
    const char *const *values, const int *lengths, const int *formats)
{
    int count = (int)statement->count;

    switch (statement->form) {
    case SEND_SCRIPT:
        return store->pq->sendQuery(store->connection, statement->sql);
    case SEND_PREPARE:
        return store->pq->sendPrepare(store->connection, statement->name, statement->sql, count, NULL);
    case SEND_PREPARED:
        return store->pq->sendQueryPrepared(
            store->connection, statement->name, count, values, lengths, formats, 0);
    case SEND_ONE:
        break;
    }
    return store->pq->sendQueryParams(
        store->connection, statement->sql, count, NULL, values, lengths, formats, 0);
}

static bool statement_send(struct postgres_store *store, const struct statement *statement)
{
    size_t count = statement->count;
    const char **values = mem_alloc((count + 1) * sizeof *values);
    int *lengths = mem_alloc((count + 1) * sizeof *lengths);
    int *formats = mem_alloc((count + 1) * sizeof *formats), sent = 0;

    for (size_t i = 0; statement->parameters && i < count; i++) {
        const struct parameter *parameter = &statement->parameters[i];
        if (parameter->kind == PARAMETER_NULL)
            continue;
        values[i] = parameter->bytes ? parameter->bytes : parameter->digits;
        lengths[i] = (int)parameter->length; /* libpq looks at it for bytes only */
        formats[i] = parameter->kind == PARAMETER_BYTES;
    }
    sent = send_by_form(store, statement, values, lengths, formats);
    free(values);
    free(lengths);
    free(formats);
    return sent == 1;
}

/* A server may have gone while nothing was asked: what it said last is read before anything is sent, so that
 * a statement which cannot arrive is not taken for one whose answer was lost. */
static bool connection_lives(struct postgres_store *store)
{
    for (int i = 0; i < READ_LIMIT; i++) {
        struct pollfd socket = {.fd = store->pq->socket(store->connection), .events = POLLIN};
        if (poll(&socket, 1, 0) <= 0)
            return true;
        if (!store->pq->consumeInput(store->connection) || store->pq->isBusy(store->connection) ||
            store->pq->status(store->connection) != CONNECTION_OK)
            return false;
    }
    return false;
}

/* ---- receiving ---- */

static enum wait_end await_flush(struct postgres_store *store, int64_t until_ms, bool *ret_lost)
{
    int left = 1;

    while ((left = store->pq->flush(store->connection)) == 1) {
        enum wait_end end =
            postgres_wait(store, store->pq->socket(store->connection), POLLIN | POLLOUT, until_ms);
        if (end != WAIT_READY)
            return end;
        if (!store->pq->consumeInput(store->connection))
            break;
    }
    *ret_lost = left != 0;
    return WAIT_READY;
}

static enum wait_end await_input(struct postgres_store *store, int64_t until_ms, bool *ret_lost)
{
    while (store->pq->isBusy(store->connection)) {
        enum wait_end end = postgres_wait(store, store->pq->socket(store->connection), POLLIN, until_ms);
        if (end != WAIT_READY)
            return end;
        if (!store->pq->consumeInput(store->connection)) {
            *ret_lost = true;
            break;
        }
    }
    return WAIT_READY;
}

static bool is_copy(const struct postgres_store *store, const PGresult *result)
{
    ExecStatusType status = store->pq->resultStatus(result);

    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

static bool is_failure(const struct postgres_store *store, const PGresult *result)
{
    ExecStatusType status = store->pq->resultStatus(result);

    return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY &&
           !is_copy(store, result);
}

/* Takes all results up to the end of the statement, and keeps the first that failed, or the last. */
static enum wait_end await_results(
    struct postgres_store *store, int64_t until_ms, PGresult **kept, bool *ret_lost)
{
    for (;;) {
        PGresult *next = NULL;
        enum wait_end end = await_input(store, until_ms, ret_lost);
        if (end != WAIT_READY || *ret_lost)
            return end;
        next = store->pq->getResult(store->connection);
        if (!next)
            return WAIT_READY;
        if (*kept && is_failure(store, *kept)) {
            result_cleanup(&next);
            continue;
        }
        result_cleanup(kept);
        *kept = next;
        if (is_copy(store, next)) /* it is answered so until the COPY is over */
            return WAIT_READY;
    }
}

/* ---- giving up ---- */

/* libpq's cancellation blocks, as long as the network likes: nobody waits for this thread. */
static void *cancel_main(void *argument)
{
    const struct libpq *pq = NULL;
    char ignored[256];

    if (libpq_load(&pq, NULL) == RESULT_OK) {
        pq->cancel(argument, ignored, (int)sizeof ignored);
        pq->freeCancel(argument);
    }
    return NULL;
}

static void statement_cancel(struct postgres_store *store)
{
    PGcancel *cancel = store->pq->getCancel(store->connection);
    pthread_attr_t attributes;
    pthread_t thread;

    if (!cancel)
        return;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, cancel_main, cancel) != 0)
        store->pq->freeCancel(cancel);
    pthread_attr_destroy(&attributes);
}

/* A cancelled statement is known not to have been committed, so its last word is worth a short wait. Success
 * is not believed: a commit that waits for a synchronous standby is cancelled into one that no standby has.
 */
static bool last_word(struct postgres_store *store, PGresult **kept)
{
    bool (*waiting)(void *context) = store->waiting;
    bool lost = false;
    enum wait_end end = WAIT_READY;

    statement_cancel(store);
    store->waiting = NULL;
    end = await_results(store, real_ms() + LAST_WORD_MS, kept, &lost);
    store->waiting = waiting;
    return end == WAIT_READY && !lost && *kept && is_failure(store, *kept);
}

/* ---- one exchange ---- */

const char *postgres_sqlstate(const struct postgres_store *store, const PGresult *result)
{
    return is_failure(store, result) ? store->pq->resultErrorField(result, PG_DIAG_SQLSTATE) : "00000";
}

/* After a cancellation the connection is not used again: a late one would hit the next statement. */
static enum exchange exchange_end(struct postgres_store *store, enum wait_end end, bool lost, PGresult **kept)
{
    bool given_up = end != WAIT_READY;

    if (given_up && !last_word(store, kept)) {
        postgres_disconnect(store);
        return end == WAIT_ENDED ? EXCHANGE_ENDED : EXCHANGE_SILENT;
    }
    /* libpq makes a result of its own, without an SQLSTATE, of a connection that broke. */
    lost = lost || !*kept || !postgres_sqlstate(store, *kept);
    if (lost || given_up)
        postgres_disconnect(store);
    return lost ? EXCHANGE_LOST : EXCHANGE_ANSWERED;
}

/* The deadline holds the last word, too, unless it is too short for both. */
static int64_t patience_until(const struct postgres_store *store, int64_t until_ms)
{
    return store->deadline_ms > 8 * LAST_WORD_MS ? until_ms - LAST_WORD_MS : until_ms;
}

static enum exchange exchange(
    struct postgres_store *store, const struct statement *statement, int64_t until_ms, PGresult **ret)
{
    _cleanup_(result_cleanup) PGresult *kept = NULL;
    bool lost = !statement_send(store, statement);
    enum wait_end end = WAIT_READY;
    enum exchange done = EXCHANGE_LOST;

    until_ms = patience_until(store, until_ms);
    if (!lost)
        end = await_flush(store, until_ms, &lost);
    if (end == WAIT_READY && !lost)
        end = await_results(store, until_ms, &kept, &lost);
    done = exchange_end(store, end, lost, &kept);
    if (done == EXCHANGE_ANSWERED)
        *ret = STEAL(kept);
    return done;
}

enum exchange postgres_exchange(struct postgres_store *store, const char *sql,
    const struct parameter *parameters, size_t count, int64_t until_ms, PGresult **ret)
{
    const struct statement statement = {.sql = sql, .parameters = parameters, .count = count};

    return exchange(store, &statement, until_ms, ret);
}

enum exchange postgres_flush(struct postgres_store *store, int64_t until_ms)
{
    bool lost = false;
    enum wait_end end = await_flush(store, until_ms, &lost);

    if (end == WAIT_READY && !lost)
        return EXCHANGE_ANSWERED;
    if (end != WAIT_READY)
        statement_cancel(store);
    postgres_disconnect(store);
    return lost ? EXCHANGE_LOST : end == WAIT_ENDED ? EXCHANGE_ENDED : EXCHANGE_SILENT;
}

enum exchange postgres_results(struct postgres_store *store, int64_t until_ms, PGresult **ret)
{
    _cleanup_(result_cleanup) PGresult *kept = NULL;
    bool lost = false;
    enum wait_end end = await_results(store, patience_until(store, until_ms), &kept, &lost);
    enum exchange done = exchange_end(store, end, lost, &kept);

    if (done == EXCHANGE_ANSWERED)
        *ret = STEAL(kept);
    return done;
}

/* ---- what became of it ---- */

enum result postgres_lose(struct postgres_store *store, struct error *err)
{
    postgres_disconnect(store);
    return store_fail_unknown(store->printable, err);
}

enum result postgres_fail_lost(
    const struct postgres_store *store, enum exchange exchange, int64_t from_ms, struct error *err)
{
    char waited[DURATION_TEXT_SIZE];

    duration_format(real_ms() - from_ms, waited);
    if (exchange == EXCHANGE_ENDED)
        return postgres_fail_ended(store, err);
    if (exchange == EXCHANGE_SILENT)
        error_set(err, RESULT_UNREACHABLE, 0, "%s: no answer within %s", store->printable, waited);
    else
        error_set(err, RESULT_UNREACHABLE, 0, "%s: the connection was lost", store->printable);
    return error_remedy(err, "try again; look whether the server runs");
}

static enum result fail_answer(
    const struct postgres_store *store, const PGresult *result, const char *sqlstate, struct error *err)
{
    const char *text = store->pq->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    return postgres_fail(store, sqlstate, text ? text : "an error without a message", err);
}

/* One try. `ret_remedy` NONE: what is returned is final. */
static enum result try_once(struct postgres_store *store, const struct statement *statement, int64_t until_ms,
    PGresult **ret, enum remedy *ret_remedy, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    int64_t from_ms = real_ms();
    enum exchange end = exchange(store, statement, until_ms, &result);
    const char *sqlstate = NULL;
    enum result r = RESULT_OK;

    *ret_remedy = REMEDY_LOST;
    if (end != EXCHANGE_ANSWERED)
        return postgres_fail_lost(store, end, from_ms, err);
    *ret_remedy = REMEDY_NONE;
    if (!is_failure(store, result)) {
        store->backoff_ms = 0;
        *ret = STEAL(result);
        return RESULT_OK;
    }
    sqlstate = postgres_sqlstate(store, result);
    *ret_remedy = sqlstate_look_up(sqlstate)->remedy;
    r = fail_answer(store, result, sqlstate, err);
    if (*ret_remedy == REMEDY_RECONNECT || *ret_remedy == REMEDY_LOST)
        postgres_disconnect(store);
    return r;
}

/* ---- statements that come again ---- */

static bool answered(
    struct postgres_store *store, const struct statement *statement, int64_t until_ms, PGresult **ret)
{
    if (exchange(store, statement, until_ms, ret) == EXCHANGE_ANSWERED && !is_failure(store, *ret))
        return true;
    postgres_disconnect(store);
    return false;
}

/* A pooler makes up the process id of the connection's start. */
static bool path_is_direct(struct postgres_store *store, int64_t until_ms)
{
    static const struct statement WHO = {.sql = "SELECT pg_catalog.pg_backend_pid()"};
    _cleanup_(result_cleanup) PGresult *result = NULL;

    if (store->prepared.path == PATH_UNKNOWN && answered(store, &WHO, until_ms, &result))
        store->prepared.path =
            strtol(store->pq->getvalue(result, 0, 0), NULL, 10) == store->pq->backendPID(store->connection)
                ? PATH_DIRECT
                : PATH_POOLED;
    return store->prepared.path == PATH_DIRECT;
}

static size_t slot_of(const struct prepared *prepared, const char *sql)
{
    size_t slot = 0;

    while (
        slot < POSTGRES_PREPARED && prepared->slots[slot].sql && strcmp(prepared->slots[slot].sql, sql) != 0)
        slot++;
    return slot;
}

/* Fewer words for the server to read and to plan. What goes wrong here leaves no connection, and nothing was
 * sent of the statement itself. */
static void statement_keep(struct postgres_store *store, struct statement *statement, int64_t until_ms)
{
    size_t slot = slot_of(&store->prepared, statement->sql);
    struct statement preparation = {.sql = statement->sql, .count = statement->count, .form = SEND_PREPARE};
    _cleanup_(result_cleanup) PGresult *result = NULL;

    if (slot == POSTGRES_PREPARED)
        return;
    if (!store->prepared.slots[slot].sql)
        store->prepared.slots[slot].sql = mem_string(statement->sql);
    if (++store->prepared.slots[slot].uses < USES_TO_KEEP || !path_is_direct(store, until_ms))
        return;
    snprintf(statement->name, sizeof statement->name, "tenure_%zu", slot);
    memcpy(preparation.name, statement->name, sizeof preparation.name);
    if (!store->prepared.slots[slot].ready && !answered(store, &preparation, until_ms, &result))
        return;
    store->prepared.slots[slot].ready = true;
    statement->form = SEND_PREPARED;
}

/* What is said once there is no time for another try. */
static enum result give_up(struct postgres_store *store, bool unknown, struct error *why, struct error *err)
{
    return unknown ? postgres_lose(store, err) : error_move(err, why);
}

enum result postgres_connect_alive(struct postgres_store *store, int64_t until_ms, struct error *err)
{
    if (store->connection && !connection_lives(store))
        postgres_disconnect(store);
    return postgres_connect(store, until_ms, err);
}

enum result postgres_ask(struct postgres_store *store, enum repetition repetition, const char *sql,
    const struct parameter *parameters, size_t count, PGresult **ret, struct error *err)
{
    int64_t begun_ms = real_ms(), busy_until_ms = begun_ms + store->deadline_ms;
    int64_t until_ms =
        store->patience_ms > store->deadline_ms ? begun_ms + store->patience_ms : busy_until_ms;
    bool unknown = false; /* what was sent in this call may have been committed */

    for (;;) {
        _cleanup_(error_done) struct error why = {0};
        struct statement statement = {.sql = sql, .parameters = parameters, .count = count};
        enum remedy remedy = REMEDY_NONE;
        enum result r = RESULT_OK;
        r = postgres_connect_alive(store, until_ms, &why);
        if (r == RESULT_OK)
            statement_keep(store, &statement, postgres_try_until(store, until_ms));
        if (r == RESULT_OK)
            r = postgres_connect(store, until_ms, &why);
        if (r == RESULT_OK)
            r = try_once(store, &statement, postgres_try_until(store, until_ms), ret, &remedy, &why);
        if (r == RESULT_OK)
            return r;
        unknown |= remedy == REMEDY_LOST && repetition != ASKS;
        if (remedy == REMEDY_NONE || (unknown && repetition == ONCE) ||
            postgres_back_off(store, remedy == REMEDY_REPEAT ? busy_until_ms : until_ms) != WAIT_READY)
            return give_up(store, unknown, &why, err);
    }
}

enum result postgres_check_writer(const struct postgres_store *store, struct error *err)
{
    if (store->access != STORE_READ)
        return RESULT_OK;
    return error_set(err, RESULT_DENIED, 0, "%s: opened for reading only", store->printable);
}

enum result postgres_step(
    struct postgres_store *store, const char *sql, int64_t until_ms, PGresult **ret, struct error *err)
{
    const struct statement statement = {.sql = sql, .form = SEND_SCRIPT};
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum remedy remedy = REMEDY_NONE;
    enum result r = RESULT_OK;

    if (!store->connection)
        return error_set(err, RESULT_UNREACHABLE, 0, "%s: the connection was lost", store->printable);
    r = try_once(store, &statement, until_ms, &result, &remedy, err);
    if (r == RESULT_OK && ret)
        *ret = STEAL(result);
    return r;
}

/* ---- words ---- */

enum result result_of_word(const char *word)
{
    for (enum result r = RESULT_OK; r <= RESULT_INVALID; r++)
        if (strcmp(word, result_name(r)) == 0)
            return r;
    return RESULT_CORRUPT;
}

static enum result fail_word(
    const struct postgres_store *store, enum result r, const char *sentence, struct error *err)
{
    _cleanup_(text_done) struct text line = {0};

    text_add_printable(&line, sentence, strlen(sentence), false);
    if (!line.length)
        return error_set(err, RESULT_CORRUPT, 0, "%s: the store gave no answer", store->printable);
    error_set(err, r, 0, "%s", line.bytes);
    return r == RESULT_NEWER ? error_remedy(err, "install the newer version") : r;
}

enum result postgres_call(struct postgres_store *store, enum repetition repetition, const char *sql,
    const struct parameter *parameters, size_t count, PGresult **ret, struct error *err)
{
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = postgres_ask(store, repetition, sql, parameters, count, &result, err);

    if (r != RESULT_OK)
        return r;
    if (store->pq->ntuples(result) != 1 || store->pq->nfields(result) < 2)
        return error_set(err, RESULT_CORRUPT, 0, "%s: the store gave no answer", store->printable);
    r = result_of_word(store->pq->getvalue(result, 0, 0));
    if (r != RESULT_OK && r != RESULT_HELD)
        return fail_word(store, r, store->pq->getvalue(result, 0, 1), err);
    if (ret)
        *ret = STEAL(result);
    return r;
}
