/* The values that go in and out of a store: made and freed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store-private.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- printing an address ---- */

/* Copies the query of a URL without the parameters whose name ends in "password". */
static void query_add_printable(struct text *ret, const char *query)
{
    char separator = '?';

    while (*query) {
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
        bool secret = name >= 8 && strncasecmp(query + name - 8, "password", 8) == 0;
        if (!secret) {
            text_append(ret, &separator, 1);
            text_append(ret, query, length);
            separator = '&';
        }
        query += length;
        query += *query == '&';
    }
}

/* Where user and password end: NULL when there are none. A password that should have been percent-encoded may
 * itself hold any of "@/?", so the last @ of all counts: better a garbled address than half a password. */
static const char *authority_user_end(const char *authority)
{
    size_t length = strcspn(authority, "/?");
    const char *colon = memrchr(authority, ':', length);
    bool port = colon && strspn(colon + 1, "0123456789]") == length - (size_t)(colon + 1 - authority);

    if (!memchr(authority, '@', strcspn(authority, "?")) && (!colon || port))
        return NULL;
    return strrchr(authority, '@') ? strrchr(authority, '@') : authority + strlen(authority);
}

char *store_url_printable(const char *url)
{
    _cleanup_(text_done) struct text plain = {0}, printable = {0};
    const char *authority = url ? strstr(url, "://") : NULL, *user_end = NULL, *query = NULL;

    if (!url)
        return mem_string("sqlite:");
    if (!authority || strncmp(url, "sqlite:", 7) == 0) {
        text_add_printable(&printable, url, strlen(url), false);
        return text_steal(&printable);
    }
    authority += 3;
    text_append(&plain, url, (size_t)(authority - url));
    user_end = authority_user_end(authority);
    if (user_end) {
        text_append(&plain, authority, strcspn(authority, ":@"));
        authority = user_end;
    }
    query = strchr(authority, '?');
    text_append(&plain, authority, query ? (size_t)(query - authority) : strlen(authority));
    if (query)
        query_add_printable(&plain, query + 1);
    text_add_printable(&printable, plain.bytes, plain.length, false);
    return text_steal(&printable);
}

/* ---- sentences that every store has ---- */

enum result store_fail_unknown(const char *where, struct error *err)
{
    error_set(err, RESULT_UNKNOWN, EIO, "%s: it is not known whether the last write was committed", where);
    return error_remedy(err, "run the command again: it asks first and repeats nothing");
}

enum result store_fail_held(const struct attempt *holder, const char *subject, struct error *err)
{
    _cleanup_(mem_free) char *owner = executor_text(&holder->executor);

    return error_set(err, RESULT_HELD, 0, "%s is held by %s of %s", subject, attempt_name(holder), owner);
}

enum result store_fail_rows(struct error *err)
{
    error_set(err, RESULT_INVALID, 0, "the embedded store cannot claim rows: it is not in their database");
    return error_remedy(err, "name the database of the row: --store postgresql://HOST/DATABASE");
}

enum result store_fail_newer(const char *where, int64_t version, int64_t known, struct error *err)
{
    error_set(err, RESULT_NEWER, 0,
        "%s: schema %" PRId64 " was made by a newer version; this one knows %" PRId64, where, version, known);
    return error_remedy(err, "install the newer version");
}

/* ---- values ---- */

void reservation_init(struct reservation *reservation, const struct clock *clock)
{
    *reservation = (struct reservation){.kind = KIND_COMMAND, .ttl_ms = LEASE_TTL_DEFAULT_MS};
    uuid_make(clock, reservation->credential.attempt_id);
    random_bytes(reservation->credential.token, TOKEN_BYTES);
}

void settlement_init(struct settlement *settlement, enum attempt_state state)
{
    uint8_t nonce[(SETTLE_NONCE_SIZE - 1) / 2];

    *settlement = (struct settlement){.state = state};
    random_bytes(nonce, sizeof nonce);
    hex_encode(nonce, sizeof nonce, settlement->nonce);
}

void renewal_done(struct renewal *renewal)
{
    reason_done(&renewal->reason);
}

void store_status_done(struct store_status *status)
{
    free(status->location);
    *status = (struct store_status){0};
}

void leftover_list_done(struct leftover_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].journal_path);
        for (size_t j = 0; j < list->items[i].subject_count; j++)
            free(list->items[i].subjects[j]);
        free(list->items[i].subjects);
    }
    free(list->items);
    *list = (struct leftover_list){0};
}

void evidence_row_done(struct evidence_row *row)
{
    free(row->repository);
    free(row->producer);
    free(row->verdict);
    free(row->tree);
    free(row->payload);
    *row = (struct evidence_row){0};
}

void proof_done(struct proof *proof)
{
    free(proof->commit);
    free(proof->tree);
    free(proof->demand);
    free(proof->key_id);
    free(proof->envelope);
    *proof = (struct proof){0};
}

void history_done(struct history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        free(history->items[i].event);
        free(history->items[i].detail);
    }
    free(history->items);
    *history = (struct history){0};
}
