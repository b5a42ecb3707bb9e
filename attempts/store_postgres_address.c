/* What an address says, host by host. Source: PostgreSQL manual, 34.1 Database Connection Control Functions.
 */
#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/memory.h"

/* Given once for each host. */
static const char *const LISTS[] = {"host", "hostaddr", "port"};

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

/* ---- reading ---- */

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

/* Whether it or the environment says which servers will do: libpq's default, which it gives like a value, is
 * any. */
static bool has_wish(const struct address *address)
{
    const char *wish = option_value(address->defaults, "target_session_attrs");

    return option_value(address->given, "target_session_attrs") || (wish && strcmp(wish, "any") != 0);
}

/* A pass over all hosts that comes back to the first cannot be cut into single ones, and what a service file
 * says is known to libpq alone. */
static bool is_whole(const struct address *address)
{
    const char *wish = address_value(address, "target_session_attrs");

    return address_value(address, "service") || (wish && strcmp(wish, "prefer-standby") == 0);
}

/* libpq's own words are not used: they would quote the address with its password. */
enum result address_read(const struct postgres_store *store, struct address *ret, struct error *err)
{
    ret->pq = store->pq;
    ret->given = store->pq->conninfoParse(store->url, NULL);
    if (!ret->given) {
        error_set(err, RESULT_INVALID, 0, "%s: not an address that PostgreSQL understands", store->printable);
        return error_remedy(err, "write postgresql://[USER@]HOST[:PORT]/DATABASE[?PARAMETER=VALUE], with "
                                 "special characters as %%XX");
    }
    ret->defaults = store->pq->conndefaults();
    ret->whole = is_whole(ret);
    while (ret->given[ret->given_count].keyword)
        ret->given_count++;
    return RESULT_OK;
}

void address_done(struct address *address)
{
    if (address->given)
        address->pq->conninfoFree(address->given);
    if (address->defaults)
        address->pq->conninfoFree(address->defaults);
}

int64_t address_patience_ms(const struct address *address)
{
    const char *seconds = address_value(address, "connect_timeout");
    int64_t parsed = 0;

    return seconds && text_parse_int(seconds, 1, INT32_MAX, &parsed) ? parsed * MS_PER_S : 0;
}

/* ---- hosts ---- */

size_t list_count(const char *list)
{
    size_t count = 1;

    for (const char *at = list; at && *at; at++)
        count += *at == ',';
    return count;
}

char *list_item(const char *list, size_t index)
{
    size_t length = 0;

    if (list && list_count(list) == 1)
        index = 0;
    for (; list && index; index--) {
        list = strchr(list, ',');
        list += list != NULL;
    }
    length = list ? strcspn(list, ",") : 0;
    return length ? mem_format("%.*s", (int)length, list) : NULL;
}

size_t address_hosts(const struct address *address)
{
    size_t names = list_count(address_value(address, "host"));
    size_t numbers = list_count(address_value(address, "hostaddr"));

    if (address->whole)
        return 1;
    return names > numbers ? names : numbers;
}

void address_host(const struct address *address, size_t index, struct host *ret)
{
    *ret = (struct host){0};
    if (address->whole)
        return;
    ret->name = list_item(address_value(address, "host"), index);
    ret->number = list_item(address_value(address, "hostaddr"), index);
    ret->port = list_item(address_value(address, "port"), index);
}

void host_done(struct host *host)
{
    free(host->name);
    free(host->number);
    free(host->port);
}

/* ---- settings ---- */

void postgres_settings_done(struct postgres_settings *settings)
{
    free(settings->keywords);
    free(settings->values);
}

static void settings_add(struct postgres_settings *settings, const char *keyword, const char *value)
{
    if (!value)
        return;
    settings->keywords[settings->count] = keyword;
    settings->values[settings->count++] = value;
}

static bool is_list(const char *keyword)
{
    for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
        if (strcmp(keyword, LISTS[i]) == 0)
            return true;
    return false;
}

void postgres_settings_make(const struct address *address, const struct host *host, enum store_access access,
    struct postgres_settings *ret)
{
    size_t room = address->given_count + ARRAY_SIZE(OURS) + ARRAY_SIZE(LISTS) + 3;

    ret->keywords = mem_alloc(room * sizeof *ret->keywords);
    ret->values = mem_alloc(room * sizeof *ret->values);
    for (size_t i = 0; i < address->given_count; i++)
        if (address->whole || !is_list(address->given[i].keyword))
            settings_add(ret, address->given[i].keyword, address->given[i].val);
    settings_add(ret, "host", host->name);
    settings_add(ret, "hostaddr", host->number);
    settings_add(ret, "port", host->port);
    for (size_t i = 0; i < ARRAY_SIZE(OURS); i++)
        if (!address_value(address, OURS[i].keyword))
            settings_add(ret, OURS[i].keyword, OURS[i].value);
    settings_add(ret, "client_encoding", "UTF8");
    if (!has_wish(address))
        settings_add(ret, "target_session_attrs", access == STORE_READ ? "any" : "read-write");
}
