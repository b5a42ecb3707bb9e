#include "attempts/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store-private.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#define SUBJECT_LIMIT_BYTES 4096

/* ---- opening ---- */

static const struct kind {
    const char *scheme;
    enum result (*open)(const struct store_options *options, const char *location, enum store_access access,
        struct store **ret, struct error *err);
} KINDS[] = {
    {"sqlite:", store_sqlite_open},
    {"postgresql://", store_postgres_open},
    {"postgres://", store_postgres_open},
};

static enum result open_default(
    const struct store_options *options, enum store_access access, struct store **ret, struct error *err)
{
    _cleanup_(mem_free) char *directory = NULL, *path = NULL;
    enum result r = directory_state(&directory, err);

    if (r != RESULT_OK)
        return r;
    path = mem_format("%s/" STORE_FILE_NAME, directory);
    return store_sqlite_open(options, path, access, ret, err);
}

enum result store_open(
    const struct store_options *options, enum store_access access, struct store **ret, struct error *err)
{
    _cleanup_(mem_free) char *printable = NULL;

    if (!options->url)
        return open_default(options, access, ret, err);
    for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++) {
        size_t length = strlen(KINDS[i].scheme);
        if (strncmp(options->url, KINDS[i].scheme, length) == 0)
            return KINDS[i].open(options, options->url + length, access, ret, err);
    }
    printable = store_url_printable(options->url);
    error_set(err, RESULT_INVALID, 0, "\"%s\" names no kind of store that this program has", printable);
    return error_remedy(err, "write sqlite:PATH or postgresql://HOST/DATABASE");
}

bool store_is_server(const char *url)
{
    return url && strncmp(url, "postgres", strlen("postgres")) == 0;
}

enum result store_check_rows(const char *url, struct error *err)
{
    bool embedded = !url || strncmp(url, "sqlite:", strlen("sqlite:")) == 0;

    return embedded ? store_fail_rows(err) : RESULT_OK;
}

char *store_locker(const char *url)
{
    static const char SCHEME[] = "sqlite:";
    _cleanup_(mem_free) char *directory = NULL, *path = NULL;

    if (url)
        return strncmp(url, SCHEME, strlen(SCHEME)) == 0 ? locker_of(url + strlen(SCHEME)) : NULL;
    if (directory_state(&directory, NULL) != RESULT_OK)
        return NULL;
    path = mem_format("%s/" STORE_FILE_NAME, directory);
    return locker_of(path);
}

void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

void store_cleanup(struct store **store)
{
    store_close(*store);
    *store = NULL;
}

/* ---- what is wrong for every store ---- */

/* One line of UTF-8: stores keep subjects one a line, and people read them. */
static enum result subject_check(const char *subject, struct error *err)
{
    size_t length = subject ? strlen(subject) : 0;

    if (length == 0 || length > SUBJECT_LIMIT_BYTES)
        return error_set(err, RESULT_INVALID, 0, "a subject must have 1 to %d bytes", SUBJECT_LIMIT_BYTES);
    if (text_utf8_prefix(subject, length) != length)
        return error_set(err, RESULT_INVALID, 0, "a subject is not valid UTF-8");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)subject[i] < 0x20 || subject[i] == 0x7f)
            return error_set(err, RESULT_INVALID, 0, "a subject holds a control character");
    return RESULT_OK;
}

static enum result subjects_check(const char *const *subjects, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        enum result r = subject_check(subjects[i], err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static enum result id_check(const char *id, struct error *err)
{
    if (!id || !uuid_is_valid(id))
        return error_set(err, RESULT_INVALID, 0, "\"%s\" is not the id of an attempt", id ? id : "");
    return RESULT_OK;
}

static enum result row_check(const struct reservation *reservation, struct error *err)
{
    const struct row_source *row = reservation->row;

    if (reservation->kind != KIND_PUBLICATION || reservation->subject_count)
        return error_set(err, RESULT_INVALID, 0, "only a publication claims a row, and nothing beside it");
    if (!row->table || !row->table[0] || !row->key || !row->key[0] || !row->value)
        return error_set(err, RESULT_INVALID, 0, "a row is named by its table, a column and a value");
    return RESULT_OK;
}

static enum result reservation_check(const struct reservation *reservation, struct error *err)
{
    struct lease_terms terms = {.ttl_ms = reservation->ttl_ms};
    enum result r = id_check(reservation->credential.attempt_id, err);

    if (r == RESULT_OK)
        r = lease_terms_check(&terms, err);
    if (r == RESULT_OK && !reservation->executor)
        return error_set(err, RESULT_INVALID, 0, "a reservation needs its executor");
    if (r == RESULT_OK && reservation->kind >= ATTEMPT_KIND_MAX)
        return error_set(err, RESULT_INVALID, 0, "a reservation needs its kind");
    if (r == RESULT_OK && reservation->row)
        r = row_check(reservation, err);
    return r == RESULT_OK ? subjects_check(reservation->subjects, reservation->subject_count, err) : r;
}

static enum result settlement_check(const struct settlement *settlement, struct error *err)
{
    uint8_t nonce[(SETTLE_NONCE_SIZE - 1) / 2];

    if (settlement->state >= ATTEMPT_STATE_MAX || !attempt_state_is_terminal(settlement->state))
        return error_set(err, RESULT_INVALID, 0, "an attempt cannot be settled as %s",
            attempt_state_name(settlement->state));
    if (!hex_decode(settlement->nonce, nonce, sizeof nonce))
        return error_set(err, RESULT_INVALID, 0, "a settlement needs its nonce");
    if (settlement->proof && (!settlement->proof->envelope || !settlement->proof->id[0]))
        return error_set(err, RESULT_INVALID, 0, "a Proof needs its id and its envelope");
    return RESULT_OK;
}

/* ---- the interface ---- */

const char *store_id(const struct store *store)
{
    return store->ops->id(store);
}

enum result store_now(struct store *store, struct store_time *ret, struct error *err)
{
    return store->ops->now(store, ret, err);
}

enum result store_status(struct store *store, struct store_status *ret, struct error *err)
{
    return store->ops->status(store, ret, err);
}

enum result store_migrate(struct store *store, struct error *err)
{
    return store->ops->migrate(store, err);
}

enum result store_reserve(struct store *store, struct reservation *reservation, struct attempt *ret,
    struct attempt *ret_holder, struct error *err)
{
    enum result r = reservation_check(reservation, err);

    if (r == RESULT_OK && reservation->row && !store->ops->publication_begin)
        return store_fail_rows(err);
    return r == RESULT_OK ? store->ops->reserve(store, reservation, ret, ret_holder, err) : r;
}

enum result store_bind(
    struct store *store, const struct credential *credential, const char *demand, struct error *err)
{
    return store->ops->bind(store, credential, demand, err);
}

enum result store_renew(struct store *store, struct renewal *renewals, size_t count, struct error *err)
{
    return count ? store->ops->renew(store, renewals, count, err) : RESULT_OK;
}

enum result store_settle(struct store *store, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    enum result r = settlement_check(settlement, err);

    return r == RESULT_OK ? store->ops->settle(store, credential, settlement, err) : r;
}

enum result store_settle_ask(struct store *store, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    enum result r = settlement_check(settlement, err);

    return r == RESULT_OK ? store->ops->settle_ask(store, credential, settlement, err) : r;
}

enum result store_retire(struct store *store, const struct retirement *retirement, struct error *err)
{
    enum result r = id_check(retirement->attempt_id, err);

    if (r == RESULT_OK && (!retirement->reason_code || !retirement->reason_code[0]))
        return error_set(err, RESULT_INVALID, 0, "a retirement needs its reason");
    return r == RESULT_OK ? store->ops->retire(store, retirement, err) : r;
}

enum result store_request_cancel(
    struct store *store, const char *attempt_id, const char *by, struct error *err)
{
    enum result r = id_check(attempt_id, err);

    return r == RESULT_OK ? store->ops->request_cancel(store, attempt_id, by, err) : r;
}

enum result store_list(
    struct store *store, const struct attempt_query *query, struct attempt_list *ret, struct error *err)
{
    enum result r = subjects_check(query->subjects, query->subject_count, err);

    return r == RESULT_OK ? store->ops->list(store, query, ret, err) : r;
}

enum result store_find(struct store *store, const char *id_or_handle, struct attempt *ret, struct error *err)
{
    return store->ops->find(store, id_or_handle, ret, err);
}

enum result store_leftovers(struct store *store, struct leftover_list *ret, struct error *err)
{
    return store->ops->leftovers(store, ret, err);
}

enum result store_leftover_delete(struct store *store, const char *attempt_id, struct error *err)
{
    return store->ops->leftover_delete(store, attempt_id, err);
}

enum result store_evidence_put(
    struct store *store, const struct credential *credential, struct evidence_row *row, struct error *err)
{
    if (!row->producer || !row->verdict || !row->key[0])
        return error_set(err, RESULT_INVALID, 0, "evidence needs its producer, its key and its verdict");
    return store->ops->evidence_put(store, credential, row, err);
}

enum result store_evidence_find(
    struct store *store, const char *key, struct evidence_row *ret, struct error *err)
{
    return store->ops->evidence_find(store, key, ret, err);
}

enum result store_evidence_latest(struct store *store, const char *repository, const char *producer,
    struct evidence_row *ret, struct error *err)
{
    return store->ops->evidence_latest(store, repository, producer, ret, err);
}

enum result store_proof_find(
    struct store *store, const struct proof_query *query, struct proof *ret, struct error *err)
{
    return store->ops->proof_find(store, query, ret, err);
}

enum result store_history(struct store *store, const char *attempt_id, struct history *ret, struct error *err)
{
    return store->ops->history(store, attempt_id, ret, err);
}
