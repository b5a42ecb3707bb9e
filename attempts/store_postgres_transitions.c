#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "attempts/publication-private.h"
#include "base/json_table.h"
#include "base/memory.h"
#include "base/text.h"
#include "generated/attempts_sql.h"

/* ---- reserve ---- */

/* The first in the order of the store, of those asked for. */
static const char *subject_held(const struct reservation *reservation, const struct attempt *holder)
{
    const char *first = reservation->row && holder->subject_count ? holder->subjects[0] : NULL;

    for (size_t i = 0; i < reservation->subject_count; i++) {
        const char *subject = reservation->subjects[i];
        if (attempt_holds(holder, subject) && (!first || strcmp(subject, first) < 0))
            first = subject;
    }
    return first ? first : "a subject";
}

static enum result reserve_answer(const struct postgres_store *store, const PGresult *result, enum result r,
    struct reservation *reservation, struct attempt *ret, struct attempt *ret_holder, struct error *err)
{
    struct answer answer = {.pq = store->pq, .result = result, .next = 2};
    _cleanup_(attempt_done) struct attempt attempt = {0};
    struct attempt *to = r == RESULT_HELD ? ret_holder : ret;
    enum result read = answer_record(&answer, &attempt, err);

    if (read != RESULT_OK)
        return read;
    if (r == RESULT_HELD)
        store_fail_held(&attempt, subject_held(reservation, &attempt), err);
    else
        reservation->credential.fence = attempt.fence;
    if (to) {
        *to = attempt;
        attempt = (struct attempt){0};
    }
    return r;
}

enum result postgres_reserve(struct store *base, struct reservation *reservation, struct attempt *ret,
    struct attempt *ret_holder, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    const struct credential *credential = &reservation->credential;
    _cleanup_(text_done) struct text subjects = {0};
    _cleanup_(json_cleanup) struct json_object *executor = executor_to_json(reservation->executor);
    _cleanup_(mem_free) char *ttl = mem_format("%" PRId64 " milliseconds", reservation->ttl_ms);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = RESULT_OK;

    for (size_t i = 0; i < reservation->subject_count; i++)
        array_add(&subjects, reservation->subjects[i]);
    if (reservation->row)
        r = postgres_claim(store, reservation, &result, err);
    else
        r = POSTGRES_WRITE("reserve", store,
            postgres_call(store, REPEATABLE, SQL_POSTGRES_RESERVE,
                PARAMETERS(parameter_schema(), parameter_text(credential->attempt_id),
                    parameter_bytes(credential->token, TOKEN_BYTES),
                    parameter_text(attempt_kind_name(reservation->kind)),
                    parameter_text(array_text(&subjects)),
                    parameter_text(json_object_to_json_string_ext(executor, JSON_C_TO_STRING_PLAIN)),
                    parameter_text(reservation->repository), parameter_text(reservation->journal_handle),
                    parameter_text(reservation->executor->host), parameter_text(reservation->journal_path),
                    parameter_text(ttl), parameter_boolean(reservation->bind_if_clear)),
                &result, err),
            err);
    if (r != RESULT_OK && r != RESULT_HELD)
        return r;
    return reserve_answer(store, result, r, reservation, ret, ret_holder, err);
}

/* ---- bind ---- */

enum result postgres_bind(
    struct store *base, const struct credential *credential, const char *demand, struct error *err)
{
    struct postgres_store *store = postgres_of(base);

    return POSTGRES_WRITE("bind", store,
        postgres_call(store, ONCE, SQL_POSTGRES_BIND,
            PARAMETERS(parameter_schema(), parameter_text(credential->attempt_id),
                parameter_bytes(credential->token, TOKEN_BYTES), parameter_text(demand)),
            NULL, err),
        err);
}

/* ---- renew ---- */

/* The columns of the request, one array each. */
struct renewal_arrays {
    struct text ids, tokens, phases, done, total;
};

static void renewal_arrays_done(struct renewal_arrays *arrays)
{
    if (arrays->tokens.bytes)
        explicit_bzero(arrays->tokens.bytes, arrays->tokens.length);
    text_done(&arrays->ids);
    text_done(&arrays->tokens);
    text_done(&arrays->phases);
    text_done(&arrays->done);
    text_done(&arrays->total);
}

static void array_add_integer(struct text *array, int64_t integer)
{
    struct parameter digits = parameter_integer(integer);

    array_add(array, digits.digits);
}

static void renewal_arrays_add(struct renewal_arrays *arrays, const struct renewal *renewal)
{
    const struct progress *progress = renewal->progress;
    char token[2 + 2 * TOKEN_BYTES + 1] = "\\x";

    hex_encode(renewal->credential->token, TOKEN_BYTES, token + 2);
    array_add(&arrays->ids, renewal->credential->attempt_id);
    array_add(&arrays->tokens, token);
    explicit_bzero(token, sizeof token);
    array_add(&arrays->phases, progress ? progress->phase : NULL);
    if (progress) {
        array_add_integer(&arrays->done, progress->done);
        array_add_integer(&arrays->total, progress->total);
    } else {
        array_add(&arrays->done, NULL);
        array_add(&arrays->total, NULL);
    }
}

static enum result renewal_read(struct answer *answer, struct renewal *renewal, struct error *err)
{
    char word[32] = "";
    struct reason reason = {0};
    bool cancel_requested = false;
    enum result r = RESULT_OK;

    answer_buffer(answer, word, sizeof word);
    reason.code = answer_text_or_null(answer);
    reason.text = answer_text_or_null(answer);
    reason.by_attempt = answer_text_or_null(answer);
    cancel_requested = answer_boolean(answer);
    r = answer_check(answer, "a renewal", err);
    renewal->result = r == RESULT_OK ? result_of_word(word) : r;
    renewal->cancel_requested = r == RESULT_OK && cancel_requested;
    if (renewal->result == RESULT_RETIRED) {
        reason_done(&renewal->reason);
        renewal->reason = reason;
    } else {
        reason_done(&reason);
    }
    return r;
}

static enum result renewals_read(const struct postgres_store *store, const PGresult *result,
    struct renewal *renewals, size_t count, struct error *err)
{
    struct answer answer = {.pq = store->pq, .result = result};
    enum result r = RESULT_OK;

    if ((size_t)store->pq->ntuples(result) != count)
        return error_set(err, RESULT_CORRUPT, 0, "%s: %d renewals were answered instead of %zu",
            store->printable, store->pq->ntuples(result), count);
    for (size_t i = 0; r == RESULT_OK && i < count; i++) {
        answer.row = (int)i;
        answer.next = 0;
        r = renewal_read(&answer, &renewals[i], err);
    }
    return r;
}

/* A renewal whose answer did not come proves nothing: neither that it stands nor a loss. */
static enum result renewals_unconfirm(struct renewal *renewals, size_t count, enum result why)
{
    for (size_t i = 0; i < count; i++)
        renewals[i].result = why;
    return why;
}

static enum result renew_many(struct postgres_store *store, const struct renewal *renewals, size_t count,
    PGresult **ret, struct error *err)
{
    _cleanup_(renewal_arrays_done) struct renewal_arrays arrays = {0};

    for (size_t i = 0; i < count; i++)
        renewal_arrays_add(&arrays, &renewals[i]);
    return POSTGRES_WRITE("renew", store,
        postgres_ask(store, ONCE, SQL_POSTGRES_RENEW,
            PARAMETERS(parameter_schema_or_next(), parameter_text(array_text(&arrays.ids)),
                parameter_text(array_text(&arrays.tokens)), parameter_text(array_text(&arrays.phases)),
                parameter_text(array_text(&arrays.done)), parameter_text(array_text(&arrays.total))),
            ret, err),
        err);
}

static enum result renew_one(
    struct postgres_store *store, const struct renewal *renewal, PGresult **ret, struct error *err)
{
    const struct progress *progress = renewal->progress;
    const struct parameter none = parameter_text(NULL);

    return POSTGRES_WRITE("renew", store,
        postgres_ask(store, ONCE, SQL_POSTGRES_RENEW_ONE,
            PARAMETERS(parameter_schema_or_next(), parameter_text(renewal->credential->attempt_id),
                parameter_bytes(renewal->credential->token, TOKEN_BYTES),
                progress ? parameter_text(progress->phase) : none,
                progress ? parameter_integer(progress->done) : none,
                progress ? parameter_integer(progress->total) : none),
            ret, err),
        err);
}

enum result postgres_renew(struct store *base, struct renewal *renewals, size_t count, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    _cleanup_(result_cleanup) PGresult *result = NULL;
    enum result r = count == 1 ? renew_one(store, renewals, &result, err)
                               : renew_many(store, renewals, count, &result, err);

    if (r == RESULT_OK)
        r = renewals_read(store, result, renewals, count, err);
    return r == RESULT_OK ? r : renewals_unconfirm(renewals, count, r);
}

/* ---- settle ---- */

enum result postgres_settle(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    struct postgres_store *store = postgres_of(base);
    const struct proof_row none = {0}, *proof = settlement->proof ? settlement->proof : &none;

    return POSTGRES_WRITE("settle", store,
        postgres_call(store, ONCE, SQL_POSTGRES_SETTLE,
            PARAMETERS(parameter_schema_or_next(), parameter_text(credential->attempt_id),
                parameter_bytes(credential->token, TOKEN_BYTES),
                parameter_text(attempt_state_name(settlement->state)), parameter_text(settlement->nonce),
                parameter_text(settlement->reason_code), parameter_text(settlement->reason_text),
                parameter_text(settlement->proof ? proof->id : NULL),
                settlement->proof ? parameter_bytes(proof->envelope, proof->envelope_length)
                                  : parameter_text(NULL),
                parameter_text(proof->commit), parameter_text(proof->tree), parameter_text(proof->demand),
                parameter_text(proof->key_id), parameter_text(proof->repository)),
            NULL, err),
        err);
}

enum result postgres_settle_ask(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    struct postgres_store *store = postgres_of(base);

    FAILPOINT("settle-ask-before-begin");
    return postgres_call(store, ASKS, SQL_POSTGRES_SETTLE_ASK,
        PARAMETERS(parameter_schema_or_next(), parameter_text(credential->attempt_id),
            parameter_bytes(credential->token, TOKEN_BYTES), parameter_text(settlement->nonce)),
        NULL, err);
}

/* ---- by others ---- */

enum result postgres_retire(struct store *base, const struct retirement *retirement, struct error *err)
{
    struct postgres_store *store = postgres_of(base);

    return POSTGRES_WRITE("retire", store,
        postgres_call(store, ONCE, SQL_POSTGRES_RETIRE,
            PARAMETERS(parameter_schema_or_next(), parameter_text(retirement->attempt_id),
                parameter_integer(retirement->rev), parameter_boolean(retirement->owner_gone),
                parameter_text(retirement->reason_code), parameter_text(retirement->reason_text),
                parameter_text(retirement->by_attempt)),
            NULL, err),
        err);
}

enum result postgres_request_cancel(
    struct store *base, const char *attempt_id, const char *by, struct error *err)
{
    struct postgres_store *store = postgres_of(base);

    return POSTGRES_WRITE("cancel", store,
        postgres_call(store, REPEATABLE, SQL_POSTGRES_CANCEL,
            PARAMETERS(parameter_schema(), parameter_text(attempt_id), parameter_text(by)), NULL, err),
        err);
}
