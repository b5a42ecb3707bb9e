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

enum result postgres_fail_ended(const struct postgres_store *store, struct error *err)
{
    return error_set(err, RESULT_BUSY, 0, "%s: the wait for its answer was ended", store->printable);
}

void postgres_disconnect(struct postgres_store *store)
{
    if (store->connection)
        store->pq->finish(STEAL(store->connection));
}

/* ---- the address ---- */

/* What the address says, and of the environment what it leaves open. */
struct address {
    const struct libpq *pq;
    PQconninfoOption *given, *defaults;
    size_t given_count;
};

static void address_done(struct address *address)
{
    if (address->given)
        address->pq->conninfoFree(address->given);
    if (address->defaults)
        address->pq->conninfoFree(address->defaults);
}

/* libpq's own words are not used: they would quote the address with its password. */
static enum result address_read(const struct postgres_store *store, struct address *ret, struct error *err)
{
    ret->pq = store->pq;
    ret->given = store->pq->conninfoParse(store->url, NULL);
    if (!ret->given) {
        error_set(err, RESULT_INVALID, 0, "%s: not an address that PostgreSQL understands", store->printable);
        return error_remedy(err, "write postgresql://[USER@]HOST[:PORT]/DATABASE[?PARAMETER=VALUE], with "
                                 "special characters as %%XX");
    }
    ret->defaults = store->pq->conndefaults();
    while (ret->given[ret->given_count].keyword)
        ret->given_count++;
    return RESULT_OK;
}

static const char *option_value(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (strcmp(option->keyword, keyword) == 0 && option->val && option->val[0])
            return option->val;
    return NULL;
}

static const char *address_value(const struct address *address, const char *keyword)
{
    const char *given = option_value(address->given, keyword);

    return given ? given : option_value(address->defaults, keyword);
}

static size_t list_count(const char *list)
{
    size_t count = 1;

    for (const char *at = list; at && *at; at++)
        count += *at == ',';
    return count;
}

/* Of "a,,c"; one that stands alone is everybody's. NULL for an empty one: libpq's default. */
static char *list_item(const char *list, size_t index)
{
    size_t length = 0;

    if (!list)
        return NULL;
    if (list_count(list) == 1)
        index = 0;
    for (; index && *list; index--)
        list += strcspn(list, ",") + 1;
    length = strcspn(list, ",");
    return length ? mem_format("%.*s", (int)length, list) : NULL;
}

/* A pass over all hosts that comes back to the first cannot be cut into single ones. */
static size_t address_hosts(const struct address *address)
{
    const char *wish = address_value(address, "target_session_attrs");
    size_t names = list_count(address_value(address, "host"));
    size_t numbers = list_count(address_value(address, "hostaddr"));

    if (wish && strcmp(wish, "prefer-standby") == 0)
        return 1;
    return names > numbers ? names : numbers;
}

/* ---- one host ---- */

struct settings {
    const char **keywords, **values;
    size_t count;
    char *owned[3]; /* host, hostaddr, port */
};

static void settings_done(struct settings *settings)
{
    free(settings->keywords);
    free(settings->values);
    for (size_t i = 0; i < ARRAY_SIZE(settings->owned); i++)
        free(settings->owned[i]);
}

static void settings_add(struct settings *settings, const char *keyword, const char *value)
{
    if (!value)
        return;
    settings->keywords[settings->count] = keyword;
    settings->values[settings->count++] = value;
}

/* What the address does not say. A dead peer is noticed within half a minute also while nothing is asked;
 * `options` is not used, which poolers refuse. */
static const struct {
    const char *keyword, *value;
} OURS[] = {
    {"fallback_application_name", "tenure"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "10000"},
};

/* Given once for each host. */
static const char *const LISTS[] = {"host", "hostaddr", "port"};

static bool is_list(const char *keyword)
{
    for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
        if (strcmp(keyword, LISTS[i]) == 0)
            return true;
    return false;
}

static void settings_make(const struct postgres_store *store, const struct address *address, size_t index,
    size_t hosts, struct settings *ret)
{
    size_t room = address->given_count + ARRAY_SIZE(OURS) + ARRAY_SIZE(LISTS) + 3;

    ret->keywords = mem_alloc(room * sizeof *ret->keywords);
    ret->values = mem_alloc(room * sizeof *ret->values);
    for (size_t i = 0; i < address->given_count; i++)
        if (hosts == 1 || !is_list(address->given[i].keyword))
            settings_add(ret, address->given[i].keyword, address->given[i].val);
    for (size_t i = 0; hosts > 1 && i < ARRAY_SIZE(LISTS); i++) {
        ret->owned[i] = list_item(address_value(address, LISTS[i]), index);
        settings_add(ret, LISTS[i], ret->owned[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(OURS); i++)
        if (!address_value(address, OURS[i].keyword))
            settings_add(ret, OURS[i].keyword, OURS[i].value);
    settings_add(ret, "client_encoding", "UTF8");
    if (!address_value(address, "target_session_attrs"))
        settings_add(ret, "target_session_attrs", store->access == STORE_READ ? "any" : "read-write");
}

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

static enum result host_connect(struct postgres_store *store, const struct address *address, size_t index,
    size_t hosts, int64_t until_ms, bool *ret_again, struct error *err)
{
    _cleanup_(settings_done) struct settings settings = {0};
    PostgresPollingStatusType step = PGRES_POLLING_FAILED;
    int64_t from_ms = real_ms();
    enum wait_end end = WAIT_READY;
    enum result r = RESULT_OK;

    settings_make(store, address, index, hosts, &settings);
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

/* ---- all of them ---- */

/* What the address itself grants a host, in whole seconds; 0: nothing is said. */
static int64_t address_patience_ms(const struct address *address)
{
    const char *seconds = address_value(address, "connect_timeout");
    int64_t parsed = 0;

    return seconds && text_parse_int(seconds, 1, INT32_MAX, &parsed) ? parsed * MS_PER_S : 0;
}

static enum result hosts_connect(struct postgres_store *store, const struct address *address,
    int64_t until_ms, bool *ret_again, struct error *err)
{
    size_t hosts = address_hosts(address);
    int64_t patience_ms = address_patience_ms(address);
    enum result r = RESULT_UNREACHABLE;
    bool again = false;

    *ret_again = false;
    for (size_t i = 0; i < hosts; i++) {
        int64_t now_ms = real_ms(), share_ms = (until_ms - now_ms) / (int64_t)(hosts - i);
        if (patience_ms && share_ms > patience_ms)
            share_ms = patience_ms;
        r = host_connect(store, address, i, hosts, now_ms + share_ms, &again, err);
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
        if (hosts_connect(store, &address, until_ms, &again, &why) == RESULT_OK)
            break;
        if (again)
            end = postgres_back_off(store, until_ms);
        if (end != WAIT_READY)
            return end == WAIT_ENDED ? postgres_fail_ended(store, err) : error_move(err, &why);
    }
    store->was_connected |= r == RESULT_OK;
    return r;
}
