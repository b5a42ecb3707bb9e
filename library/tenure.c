#include "include/tenure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "library/claim-private.h"

#define SAME(word) _Static_assert((int)TENURE_##word == (int)RESULT_##word, "one vocabulary")
SAME(OK);
SAME(HELD);
SAME(RETIRED);
SAME(LAPSED);
SAME(CONFLICT);
SAME(BUSY);
SAME(UNREACHABLE);
SAME(UNKNOWN);
SAME(DENIED);
SAME(NEWER);
SAME(CORRUPT);
SAME(ABSENT);
SAME(INVALID);
SAME(SYSTEM);
#undef SAME

const char *tenure_version(void)
{
    return TENURE_VERSION;
}

const char *tenure_result_name(enum tenure_result result)
{
    return result >= TENURE_OK && result <= TENURE_SYSTEM ? result_name((enum result)result) : "unknown";
}

/* ---- answers ---- */

static void forget_error(struct tenure_claim *claim)
{
    error_done(&claim->error);
    free(STEAL(claim->message));
}

static enum tenure_result answer(struct tenure_claim *claim, enum result r)
{
    const struct error *err = &claim->error;

    if (r == RESULT_OK)
        return TENURE_OK;
    claim->message = err->remedy ? mem_format("%s; %s", err->message, err->remedy) : mem_string(err->message);
    return r > RESULT_SYSTEM ? TENURE_SYSTEM : (enum tenure_result)r;
}

static enum tenure_result refuse(struct tenure_claim *claim, const char *why)
{
    return answer(claim, error_set(&claim->error, RESULT_INVALID, 0, "%s", why));
}

/* The child of a fork has a copy of a connection that the parent still talks on. */
static bool is_ours(const struct tenure_claim *claim)
{
    return claim && claim->pid == getpid();
}

/* NULL when the claim can be used; else why not. A child's copy is left alone, its message included. */
static const char *why_not(struct tenure_claim *claim)
{
    forget_error(claim);
    if (!claim->held)
        return "nothing was claimed";
    return claim->ended ? "the claim has ended" : NULL;
}

/* ---- claiming ---- */

static enum result claim_row(
    struct tenure_claim *claim, const struct tenure_row *row, int64_t *ret_sent_ms, struct error *err)
{
    const struct row_source source = {
        .table = row->table, .key = row->key, .value = row->value, .soft_delete = row->soft_delete};
    _cleanup_(attempt_done) struct attempt attempt = {0}, holder = {0};
    struct reservation reservation;
    struct executor executor;
    enum result r = executor_self(&claim->machine, &executor, err);

    if (r != RESULT_OK)
        return r;
    reservation_init(&reservation, claim->options.clock);
    reservation.kind = KIND_PUBLICATION;
    reservation.row = &source;
    reservation.executor = &executor;
    reservation.ttl_ms = claim->renewal.terms.ttl_ms;
    reservation.bind_if_clear = true;
    *ret_sent_ms = claim->options.clock->boot_ms(claim->options.clock);
    r = store_reserve(claim->store, &reservation, &attempt, &holder, err);
    claim->credential = reservation.credential;
    explicit_bzero(&reservation, sizeof reservation);
    claim->held = r == RESULT_OK;
    /* What others left behind on this machine is not for a library to end. */
    if (claim->held && attempt.state == ATTEMPT_PLANNING)
        r = store_bind(claim->store, &claim->credential, NULL, err);
    return r;
}

static enum result begin_claim(
    struct tenure_claim *claim, const struct tenure_row *row, int64_t ttl_ms, struct error *err)
{
    struct lease_terms *terms = &claim->renewal.terms;
    int64_t sent_ms = 0;
    enum result r = RESULT_OK;

    if (!claim->url || !row)
        return error_set(err, RESULT_INVALID, 0, "a claim needs the address of a database and a row");
    *terms = (struct lease_terms){.ttl_ms = ttl_ms};
    r = lease_terms_check(terms, err);
    if (r == RESULT_OK)
        r = machine_read(&claim->machine, err);
    if (r == RESULT_OK)
        r = claim_open(claim, err);
    if (r == RESULT_OK)
        r = claim_row(claim, row, &sent_ms, err);
    return r == RESULT_OK ? renewal_start(claim, sent_ms, err) : r;
}

enum tenure_result tenure_claim(
    const char *url, const struct tenure_row *row, int64_t ttl_ms, struct tenure_claim **ret)
{
    struct tenure_claim *claim = mem_alloc(sizeof *claim);

    claim->pid = getpid();
    claim->url = mem_string(url);
    claim->options = (struct store_options){.url = claim->url,
        .clock = clock_system(),
        .machine = &claim->machine,
        .deadline_ms = CLAIM_STATEMENT_MS};
    *ret = claim;
    return answer(claim, begin_claim(claim, row, ttl_ms, &claim->error));
}

const char *tenure_claim_message(const struct tenure_claim *claim)
{
    return claim && claim->message ? claim->message : "";
}

const char *tenure_claim_attempt(const struct tenure_claim *claim)
{
    return claim && claim->held ? claim->credential.attempt_id : "";
}

int64_t tenure_claim_fence(const struct tenure_claim *claim)
{
    return claim && claim->held ? claim->credential.fence : 0;
}

bool tenure_claim_is_live(const struct tenure_claim *claim)
{
    /* Only the lock inside is written. */
    struct renewal_thread *renewal = (struct renewal_thread *)(uintptr_t)(claim ? &claim->renewal : NULL);

    return is_ours(claim) && claim->renewal.started && renewal_is_live(renewal);
}

/* ---- publishing ---- */

static enum result begin_publication(struct tenure_claim *claim, struct error *err)
{
    int64_t sent_ms = claim->options.clock->boot_ms(claim->options.clock);
    enum result r = claim_open(claim, err);

    if (r == RESULT_OK)
        r = publication_begin(claim->store, &claim->credential, &claim->publication, err);
    if (r == RESULT_OK)
        claim->deadline_before_ms = renewal_set_deadline(
            &claim->renewal, lease_own_deadline_ms(sent_ms, claim->renewal.terms.ttl_ms));
    return r;
}

enum tenure_result tenure_publication_begin(struct tenure_claim *claim)
{
    const char *why = is_ours(claim) ? why_not(claim) : NULL;
    enum result r = RESULT_OK;

    if (!is_ours(claim))
        return TENURE_INVALID;
    if (why || claim->publication)
        return refuse(claim, why ? why : "a publication is open already");
    renewal_pause(&claim->renewal);
    r = begin_publication(claim, &claim->error);
    if (r != RESULT_OK)
        renewal_resume(&claim->renewal);
    return answer(claim, r);
}

static int64_t counts_sum(const struct publication_counts *counts)
{
    return counts->inserted + counts->updated + counts->deleted + counts->merged + counts->copied;
}

enum tenure_result tenure_publication_query(
    struct tenure_claim *claim, const char *sql, const char *const *values, size_t count, int64_t *rows)
{
    const struct publication_statement statement = {.sql = sql, .values = values, .value_count = count};
    struct publication_counts counts = {0};
    enum result r = RESULT_OK;

    if (!is_ours(claim))
        return TENURE_INVALID;
    forget_error(claim);
    if (!claim->publication || !sql)
        return refuse(claim, sql ? "no publication is open" : "there is no statement");
    r = publication_query(claim->publication, &statement, &counts, &claim->error);
    if (r == RESULT_OK && rows)
        *rows = counts_sum(&counts);
    return answer(claim, r);
}

static void end_claim(struct tenure_claim *claim)
{
    claim->ended = true;
    renewal_stop(&claim->renewal);
}

/* The lease is again what it was before; a renewal follows at once. */
static void go_on(struct tenure_claim *claim)
{
    renewal_set_deadline(&claim->renewal, claim->deadline_before_ms);
    renewal_resume(&claim->renewal);
}

enum tenure_result tenure_publication_commit(struct tenure_claim *claim)
{
    struct settlement settlement;
    enum result r = RESULT_OK;

    if (!is_ours(claim))
        return TENURE_INVALID;
    forget_error(claim);
    if (!claim->publication)
        return refuse(claim, "no publication is open");
    settlement_init(&settlement, ATTEMPT_PASSED);
    settlement.reason_code = "passed";
    r = publication_commit(&claim->publication, &settlement, &claim->error);
    if (r == RESULT_UNKNOWN) {
        error_done(&claim->error);
        r = claim_ask(claim, &settlement, &claim->error);
    }
    if (r == RESULT_OK || r == RESULT_RETIRED)
        end_claim(claim);
    else
        go_on(claim);
    return answer(claim, r);
}

void tenure_publication_abort(struct tenure_claim *claim)
{
    if (!is_ours(claim) || !claim->publication)
        return;
    publication_abort(&claim->publication);
    go_on(claim);
}

/* ---- ending ---- */

static enum tenure_result settle(
    struct tenure_claim *claim, enum attempt_state state, const char *code, const char *text)
{
    struct settlement settlement;
    const char *why = is_ours(claim) ? why_not(claim) : NULL;
    enum result r = RESULT_OK;

    if (!is_ours(claim))
        return TENURE_INVALID;
    if (why)
        return refuse(claim, why);
    publication_abort(&claim->publication);
    renewal_stop(&claim->renewal);
    settlement_init(&settlement, state);
    settlement.reason_code = code;
    settlement.reason_text = text;
    r = claim_settle(claim, &settlement, &claim->error);
    claim->ended = r == RESULT_OK || r == RESULT_RETIRED;
    return answer(claim, r);
}

enum tenure_result tenure_claim_fail(struct tenure_claim *claim, const char *why)
{
    return settle(claim, ATTEMPT_FAILED, "failed", why);
}

enum tenure_result tenure_claim_release(struct tenure_claim *claim)
{
    return settle(claim, ATTEMPT_CANCELLED, "released", NULL);
}

void tenure_claim_free(struct tenure_claim *claim)
{
    if (!is_ours(claim)) /* the parent's connection would be told good-bye */
        return;
    publication_abort(&claim->publication);
    renewal_stop(&claim->renewal);
    if (claim->renewal.credential) {
        pthread_cond_destroy(&claim->renewal.wake);
        pthread_mutex_destroy(&claim->renewal.lock);
    }
    store_close(claim->store);
    forget_error(claim);
    if (claim->url)
        explicit_bzero(claim->url, strlen(claim->url));
    free(claim->url);
    explicit_bzero(claim, sizeof *claim);
    free(claim);
}
