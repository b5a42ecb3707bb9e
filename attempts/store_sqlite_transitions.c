#include <string.h>

#include "attempts/store_sqlite-private.h"
#include "attempts/transition.h"
#include "base/memory.h"
#include "generated/attempts_sql.h"

static const enum attempt_event SETTLE_EVENTS[ATTEMPT_STATE_MAX] = {
    [ATTEMPT_PASSED] = EVENT_SETTLE_PASSED,
    [ATTEMPT_FAILED] = EVENT_SETTLE_FAILED,
    [ATTEMPT_CANCELLED] = EVENT_SETTLE_CANCELLED,
};

enum result history_add(struct sqlite_store *store, const char *attempt_id, const char *event,
    const char *detail, int64_t wall_ms, struct error *err)
{
    return database_run(store, SQL_SQLITE_HISTORY_INSERT,
        VALUES(value_text(attempt_id), value_text(event), value_text(detail), value_integer(wall_ms)), NULL,
        err);
}

/* What a decision was made of, and what came out. */
struct decision {
    struct attempt attempt;
    struct store_time now;
    enum attempt_state to;
};

static void decision_done(struct decision *decision)
{
    attempt_done(&decision->attempt);
}

/* The write lock is held: reads the record, then the clock, then decides. A clock read before the wait for
 * the lock would be stale. */
static enum result decide(struct sqlite_store *store, const char *attempt_id,
    const struct transition_request *request, struct decision *decision, struct error *err)
{
    enum result r = attempt_load(store, attempt_id, &decision->attempt, err);

    if (r != RESULT_OK)
        return r;
    decision->now = sqlite_now(store);
    return transition_decide(&decision->attempt, request, &decision->now, &decision->to, err);
}

/* ---- bind ---- */

enum result sqlite_bind(
    struct store *base, const struct credential *credential, const char *demand, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(decision_done) struct decision decision = {0};
    uint8_t digest[TOKEN_DIGEST_BYTES];
    const struct transition_request request = {.event = EVENT_BIND, .token_digest = digest};
    enum result r = TRANSACTION_BEGIN("bind", store, SCHEMA_THIS, &open, err);

    token_digest(credential->token, digest);
    if (r == RESULT_OK)
        r = decide(store, credential->attempt_id, &request, &decision, err);
    if (r == RESULT_OK)
        r = database_run(store, SQL_SQLITE_ATTEMPT_BIND,
            VALUES(value_text(credential->attempt_id), value_text(attempt_state_name(decision.to)),
                value_text(demand)),
            NULL, err);
    if (r == RESULT_OK)
        r = history_add(store, credential->attempt_id, "bound", demand, decision.now.wall_ms, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("bind", store, err) : r;
}

/* ---- renew ---- */

static enum result renewal_write(
    struct sqlite_store *store, const struct renewal *renewal, struct decision *decision, struct error *err)
{
    const struct progress *progress = renewal->progress;
    const struct value none = value_text(NULL);
    char renewed[CLOCK_TEXT_SIZE], expires[CLOCK_TEXT_SIZE];
    struct lease *lease = &decision->attempt.lease;

    lease_renew(lease, &decision->now);
    return database_run(store, SQL_SQLITE_ATTEMPT_RENEW,
        VALUES(value_text(decision->attempt.id), value_lease_time(lease, lease->renewed_ms, renewed),
            value_lease_time(lease, lease->expires_ms, expires), value_integer(decision->now.wall_ms),
            progress ? value_text(progress->phase) : none, progress ? value_integer(progress->done) : none,
            progress ? value_integer(progress->total) : none),
        NULL, err);
}

static void renewal_note(struct renewal *renewal, struct attempt *attempt)
{
    renewal->cancel_requested = attempt->cancel_by != NULL;
    if (renewal->result != RESULT_RETIRED)
        return;
    reason_done(&renewal->reason);
    renewal->reason = attempt->reason;
    attempt->reason = (struct reason){0};
}

/* One attempt of the round. Its own refusal is its own result; what is returned concerns the whole round. */
static enum result renew_one(
    struct sqlite_store *store, struct renewal *renewal, bool *written, struct error *err)
{
    _cleanup_(decision_done) struct decision decision = {0};
    _cleanup_(error_done) struct error refusal = {0};
    uint8_t digest[TOKEN_DIGEST_BYTES];
    const struct transition_request request = {.event = EVENT_RENEW, .token_digest = digest};
    enum result r = RESULT_OK;

    token_digest(renewal->credential->token, digest);
    renewal->result = decide(store, renewal->credential->attempt_id, &request, &decision, &refusal);
    if (renewal->result == RESULT_OK && !lease_same_clock(&decision.attempt.lease, &decision.now))
        renewal->result = RESULT_CONFLICT;
    if (renewal->result == RESULT_OK) {
        r = renewal_write(store, renewal, &decision, err);
        *written = true;
    }
    renewal_note(renewal, &decision.attempt);
    return r;
}

/* What was read inside a transaction that then failed proves a loss all the same; a renewal does not stand.
 */
static void renewals_unconfirm(struct renewal *renewals, size_t count, enum result why)
{
    for (size_t i = 0; i < count; i++)
        if (renewals[i].result == RESULT_OK)
            renewals[i].result = why;
}

enum result sqlite_renew(struct store *base, struct renewal *renewals, size_t count, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    bool written = false;
    enum result r = RESULT_OK;

    for (size_t i = 0; i < count; i++)
        renewals[i].result = RESULT_OK;
    r = TRANSACTION_BEGIN("renew", store, SCHEMA_OR_NEXT, &open, err);
    for (size_t i = 0; r == RESULT_OK && i < count; i++)
        r = renew_one(store, &renewals[i], &written, err);
    if (r == RESULT_OK && written)
        r = TRANSACTION_COMMIT("renew", store, err);
    if (r != RESULT_OK)
        renewals_unconfirm(renewals, count, r);
    return r;
}

/* ---- settle ---- */

struct ending {
    const char *reason_code, *reason_text, *by_attempt, *nonce;
    const char *event; /* in the history */
};

/* Ends the attempt and frees its subjects, in one transaction. */
static enum result attempt_end(struct sqlite_store *store, const struct decision *decision,
    const struct ending *ending, struct error *err)
{
    const char *id = decision->attempt.id;
    _cleanup_(mem_free) char *detail = mem_format("%s%s%s%s%s", attempt_state_name(decision->to),
        ending->reason_code ? ": " : "", ending->reason_code ? ending->reason_code : "",
        ending->by_attempt ? ", by " : "", ending->by_attempt ? ending->by_attempt : "");
    enum result r = database_run(store, SQL_SQLITE_ATTEMPT_END,
        VALUES(value_text(id), value_text(attempt_state_name(decision->to)), value_text(ending->reason_code),
            value_text(ending->reason_text), value_text(ending->by_attempt),
            value_integer(decision->now.wall_ms), value_text(ending->nonce)),
        NULL, err);

    if (r == RESULT_OK)
        r = database_run(store, SQL_SQLITE_SUBJECT_RELEASE, VALUES(value_text(id)), NULL, err);
    return r == RESULT_OK ? history_add(store, id, ending->event, detail, decision->now.wall_ms, err) : r;
}

/* Where a settlement stands. OK: settled by this very nonce. RETIRED: ended otherwise, or not ours. CONFLICT:
 * not ended. */
static enum result settlement_standing(
    const struct attempt *attempt, const uint8_t *digest, const char *nonce, struct error *err)
{
    bool ours = memcmp(attempt->token_digest, digest, TOKEN_DIGEST_BYTES) == 0;

    if (ours && attempt_state_is_terminal(attempt->state) && strcmp(attempt->settle_nonce, nonce) == 0)
        return RESULT_OK;
    if (ours && attempt_is_unfinished(attempt))
        return error_set(err, RESULT_CONFLICT, 0, "attempt %s is not settled yet", attempt_name(attempt));
    return error_set(err, RESULT_RETIRED, 0, "attempt %s has ended, or is another's: %s",
        attempt_name(attempt), attempt->reason.code ? attempt->reason.code : "no reason recorded");
}

static enum result settle_locked(struct sqlite_store *store, const struct credential *credential,
    const struct settlement *settlement, bool *ret_already, struct error *err)
{
    _cleanup_(decision_done) struct decision decision = {0};
    uint8_t digest[TOKEN_DIGEST_BYTES];
    const struct transition_request request = {
        .event = SETTLE_EVENTS[settlement->state],
        .token_digest = digest,
        .with_proof = settlement->proof != NULL,
    };
    const struct ending ending = {
        .reason_code = settlement->reason_code,
        .reason_text = settlement->reason_text,
        .nonce = settlement->nonce,
        .event = "settled",
    };
    enum result r = RESULT_OK;

    token_digest(credential->token, digest);
    r = decide(store, credential->attempt_id, &request, &decision, err);
    *ret_already = r == RESULT_RETIRED && decision.attempt.state == settlement->state &&
                   settlement_standing(&decision.attempt, digest, settlement->nonce, NULL) == RESULT_OK;
    if (*ret_already)
        return RESULT_OK;
    if (r == RESULT_OK)
        r = attempt_end(store, &decision, &ending, err);
    if (r == RESULT_OK && settlement->proof)
        r = proof_add(store, &decision.attempt, settlement->proof, decision.now.wall_ms, err);
    return r;
}

enum result sqlite_settle(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(error_done) struct error refusal = {0};
    bool already = false;
    enum result r = TRANSACTION_BEGIN("settle", store, SCHEMA_OR_NEXT, &open, err);

    if (r != RESULT_OK)
        return r;
    r = settle_locked(store, credential, settlement, &already, &refusal);
    if (r != RESULT_OK)
        return error_move(err, &refusal);
    return already ? RESULT_OK : TRANSACTION_COMMIT("settle", store, err);
}

/* Takes the write lock: a commit that is still under way has landed, or never will, once it is ours. */
enum result sqlite_settle_ask(struct store *base, const struct credential *credential,
    const struct settlement *settlement, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(attempt_done) struct attempt attempt = {0};
    uint8_t digest[TOKEN_DIGEST_BYTES];
    enum result r = TRANSACTION_BEGIN("settle-ask", store, SCHEMA_OR_NEXT, &open, err);

    if (r == RESULT_OK)
        r = attempt_load(store, credential->attempt_id, &attempt, err);
    if (r != RESULT_OK)
        return r;
    token_digest(credential->token, digest);
    return settlement_standing(&attempt, digest, settlement->nonce, err);
}

/* ---- by others ---- */

enum result sqlite_retire(struct store *base, const struct retirement *retirement, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(decision_done) struct decision decision = {0};
    const struct transition_request request = {
        .event = EVENT_RETIRE,
        .rev = retirement->rev,
        .owner_gone = retirement->owner_gone,
    };
    const struct ending ending = {
        .reason_code = retirement->reason_code,
        .reason_text = retirement->reason_text,
        .by_attempt = retirement->by_attempt,
        .event = "retired",
    };
    enum result r = TRANSACTION_BEGIN("retire", store, SCHEMA_OR_NEXT, &open, err);

    if (r == RESULT_OK)
        r = decide(store, retirement->attempt_id, &request, &decision, err);
    if (r == RESULT_OK)
        r = attempt_end(store, &decision, &ending, err);
    if (r == RESULT_OK)
        r = database_run(
            store, SQL_SQLITE_LEFTOVER_INSERT, VALUES(value_text(retirement->attempt_id)), NULL, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("retire", store, err) : r;
}

enum result sqlite_request_cancel(
    struct store *base, const char *attempt_id, const char *by, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(attempt_done) struct attempt attempt = {0};
    int64_t wall_ms = 0;
    enum result r = TRANSACTION_BEGIN("cancel", store, SCHEMA_THIS, &open, err);

    if (r == RESULT_OK)
        r = attempt_load(store, attempt_id, &attempt, err);
    if (r != RESULT_OK)
        return r;
    if (!attempt_is_unfinished(&attempt))
        return error_set(err, RESULT_RETIRED, 0, "attempt %s has ended: %s", attempt_id,
            attempt_state_name(attempt.state));
    if (attempt.cancel_by)
        return RESULT_OK;
    wall_ms = sqlite_now(store).wall_ms;
    by = by ? by : "somebody";
    r = database_run(store, SQL_SQLITE_ATTEMPT_CANCEL,
        VALUES(value_text(attempt_id), value_text(by), value_integer(wall_ms)), NULL, err);
    if (r == RESULT_OK)
        r = history_add(store, attempt_id, "cancel-requested", by, wall_ms, err);
    return r == RESULT_OK ? TRANSACTION_COMMIT("cancel", store, err) : r;
}
