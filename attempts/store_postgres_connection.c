/*
 * libpq's own time-outs do not hold for a connection that is made step by step, and only what it times out by
 * itself makes it go on to the next host: so each host is tried on its own, with a deadline of ours. Source:
 * PostgreSQL manual, 34.1 and 34.4, PQconnectStartParams; src/interfaces/libpq/fe-connect.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/duration.h"
#include "base/memory.h"
#include "base/text.h"

#define WAIT_SLICE_MS INT64_C(10)
#define PAUSE_MIN_MS  INT64_C(50)
#define PAUSE_MAX_MS  INT64_C(2000)

/* ---- waiting ---- */

int64_t real_ms(void)
{
    return clock_system()->boot_ms(clock_system());
}

enum wait_end postgres_wait(struct postgres_store *store, int fd, short events, int64_t until_ms)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        int64_t left_ms = until_ms - real_ms(), slice_ms = store->waiting ? WAIT_SLICE_MS : PAUSE_MAX_MS;
        int ready = 0;

        if (left_ms <= 0)
            return WAIT_EXPIRED;
        ready = poll(&one, 1, (int)(left_ms < slice_ms ? left_ms : slice_ms));
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return WAIT_READY; /* libpq finds out what is wrong with it */
        if (store->waiting && !store->waiting(store->waiting_context))
            return WAIT_ENDED;
    }
}

enum wait_end postgres_back_off(struct postgres_store *store, int64_t until_ms)
{
    int64_t least_ms = PAUSE_MIN_MS, most_ms = store->backoff_ms * 3, pause_until_ms = 0;
    uint32_t dice = 0;
    enum wait_end end = WAIT_EXPIRED;

    most_ms = most_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : most_ms > least_ms ? most_ms : least_ms;
    random_bytes(&dice, sizeof dice);
    store->backoff_ms = least_ms + dice % (most_ms - least_ms + 1);
    pause_until_ms = real_ms() + store->backoff_ms;
    if (pause_until_ms >= until_ms)
        return WAIT_EXPIRED;
    end = postgres_wait(store, -1, 0, pause_until_ms);
    return end == WAIT_ENDED ? WAIT_ENDED : WAIT_READY;
}

int64_t postgres_try_until(const struct postgres_store *store, int64_t until_ms)
{
    int64_t try_ms = real_ms() + store->deadline_ms;

    return try_ms < until_ms ? try_ms : until_ms;
}

enum result postgres_fail_ended(const struct postgres_store *store, struct error *err)
{
    return error_set(err, RESULT_BUSY, 0, "%s: the wait for its answer was ended", store->printable);
}

void postgres_disconnect(struct postgres_store *store)
{
    for (size_t i = 0; i < POSTGRES_PREPARED; i++)
        free(store->prepared.slots[i].sql);
    store->prepared = (struct prepared){0};
    if (store->connection)
        store->pq->finish(STEAL(store->connection));
}

/* ---- one host ---- */

static void ignore_notice(void *context _unused_, const PGresult *notice _unused_) {}

static enum result fail_connection(
    const struct postgres_store *store, const char *message, bool *ret_again, struct error *err)
{
    char sqlstate[6];
    const char *text = NULL;
    _cleanup_(text_done) struct text line = {0};

    if (sqlstate_find(message, sqlstate, &text)) {
        enum result r = postgres_fail(store, sqlstate, text, err);
        enum remedy remedy = sqlstate_look_up(sqlstate)->remedy;
        *ret_again = remedy != REMEDY_NONE;
        if (strcmp(sqlstate, "42501") != 0)
            return r;
        return postgres_advise(
            store, "let its owner run: GRANT CONNECT ON DATABASE {database} TO {role}", err);
    }
    *ret_again = store->was_connected;
    text_add_printable(&line, message, strcspn(message, "\n"), false);
    error_set(err, RESULT_UNREACHABLE, 0, "%s: %s", store->printable, line.bytes);
    return error_remedy(err, "start the server, or name another store with --store or TENURE_STORE");
}

static enum result fail_silent(
    const struct postgres_store *store, int64_t waited_ms, bool *ret_again, struct error *err)
{
    char waited[DURATION_TEXT_SIZE];

    duration_format(waited_ms, waited);
    *ret_again = true;
    error_set(
        err, RESULT_UNREACHABLE, 0, "%s: the server did not answer within %s", store->printable, waited);
    return error_remedy(err, "check the address, the server and the network between");
}

/* libpq says which way it wants the socket; the socket may change from step to step. */
static enum wait_end connection_poll(
    struct postgres_store *store, int64_t until_ms, PostgresPollingStatusType *ret)
{
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;
    enum wait_end end = WAIT_READY;

    while (end == WAIT_READY && step != PGRES_POLLING_OK && step != PGRES_POLLING_FAILED) {
        end = postgres_wait(store, store->pq->socket(store->connection),
            step == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms);
        if (end == WAIT_READY)
            step = store->pq->connectPoll(store->connection);
    }
    *ret = step;
    return end;
}

static enum result number_connect(struct postgres_store *store, const struct address *address,
    const struct host *host, int64_t until_ms, bool *ret_again, struct error *err)
{
    _cleanup_(postgres_settings_done) struct postgres_settings settings = {0};
    PostgresPollingStatusType step = PGRES_POLLING_FAILED;
    int64_t from_ms = real_ms();
    enum wait_end end = WAIT_READY;
    enum result r = RESULT_OK;

    postgres_settings_make(address, host, store->access, &settings);
    store->connection = store->pq->connectStartParams(settings.keywords, settings.values, 0);
    store->pq->setErrorVerbosity(store->connection, PQERRORS_VERBOSE);
    store->pq->setNoticeReceiver(store->connection, ignore_notice, NULL);
    if (store->pq->status(store->connection) != CONNECTION_BAD)
        end = connection_poll(store, until_ms, &step);
    *ret_again = false;
    if (end == WAIT_ENDED)
        r = postgres_fail_ended(store, err);
    else if (end == WAIT_EXPIRED)
        r = fail_silent(store, real_ms() - from_ms, ret_again, err);
    else if (step != PGRES_POLLING_OK || store->pq->setnonblocking(store->connection, 1) != 0)
        r = fail_connection(store, store->pq->errorMessage(store->connection), ret_again, err);
    if (r != RESULT_OK)
        postgres_disconnect(store);
    return r;
}

static int64_t share_until(int64_t until_ms, size_t left)
{
    int64_t now_ms = real_ms();

    return now_ms + (until_ms - now_ms) / (int64_t)left;
}

/* A name may stand for several numbers: each is tried, in the resolver's order. */
static enum result host_connect(struct postgres_store *store, const struct address *address,
    struct host *host, int64_t until_ms, bool *ret_again, struct error *err)
{
    _cleanup_(numbers_done) struct numbers numbers = {0};
    bool again = false;
    enum result r = host_resolve(store, host, until_ms, &numbers, ret_again, err);

    if (r != RESULT_OK)
        return r;
    if (numbers.count == 0)
        return number_connect(store, address, host, until_ms, ret_again, err);
    for (size_t i = 0; i < numbers.count; i++) {
        free(host->number);
        host->number = mem_string(numbers.items[i]);
        r = number_connect(store, address, host, share_until(until_ms, numbers.count - i), &again, err);
        if (r == RESULT_OK || r == RESULT_BUSY)
            return r;
        *ret_again |= again;
    }
    return r;
}

/* ---- all of them ---- */

static enum result hosts_connect(struct postgres_store *store, const struct address *address,
    int64_t until_ms, bool *ret_again, struct error *err)
{
    size_t hosts = address_hosts(address);
    int64_t patience_ms = address_patience_ms(address);
    enum result r = RESULT_UNREACHABLE;

    for (size_t i = 0; i < hosts; i++) {
        _cleanup_(host_done) struct host host = {0};
        int64_t share_ms = share_until(until_ms, hosts - i), now_ms = real_ms();
        bool again = false;
        if (patience_ms && share_ms > now_ms + patience_ms)
            share_ms = now_ms + patience_ms;
        address_host(address, i, &host);
        r = host_connect(store, address, &host, share_ms, &again, err);
        if (r == RESULT_OK || r == RESULT_BUSY)
            return r;
        *ret_again |= again;
    }
    return r;
}

enum result postgres_connect(struct postgres_store *store, int64_t until_ms, struct error *err)
{
    _cleanup_(address_done) struct address address = {0};
    enum result r = RESULT_OK;

    if (store->connection && store->pq->status(store->connection) == CONNECTION_OK)
        return RESULT_OK;
    postgres_disconnect(store);
    r = address_read(store, &address, err);
    while (r == RESULT_OK) {
        _cleanup_(error_done) struct error why = {0};
        enum wait_end end = WAIT_EXPIRED;
        bool again = false;
        if (hosts_connect(store, &address, postgres_try_until(store, until_ms), &again, &why) == RESULT_OK)
            break;
        if (again)
            end = postgres_back_off(store, until_ms);
        if (end != WAIT_READY)
            return end == WAIT_ENDED ? postgres_fail_ended(store, err) : error_move(err, &why);
    }
    store->was_connected |= r == RESULT_OK;
    return r;
}
