#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/store_sqlite-private.h"
#include "attempts/transition.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "generated/attempts_sql.h"

static int compare_strings(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Bytewise order, each name once. */
static void subjects_take(const struct reservation *reservation, struct attempt *attempt)
{
    size_t count = 0;
    const char **sorted = mem_alloc((reservation->subject_count + 1) * sizeof *sorted);

    for (size_t i = 0; i < reservation->subject_count; i++)
        sorted[i] = reservation->subjects[i];
    qsort(sorted, reservation->subject_count, sizeof *sorted, compare_strings);
    attempt->subjects = mem_alloc((reservation->subject_count + 1) * sizeof *attempt->subjects);
    for (size_t i = 0; i < reservation->subject_count; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0)
            attempt->subjects[count++] = mem_string(sorted[i]);
    attempt->subject_count = count;
    free(sorted);
}

static void attempt_make(
    const struct reservation *reservation, const struct store_time *now, struct attempt *ret)
{
    *ret = (struct attempt){
        .kind = reservation->kind,
        .state = ATTEMPT_PLANNING,
        .repository = mem_string(reservation->repository),
        .executor = *reservation->executor,
        .journal_handle = mem_string(reservation->journal_handle),
        .journal_host = mem_string(reservation->executor->host),
        .journal_path = mem_string(reservation->journal_path),
        .acquired_wall_ms = now->wall_ms,
        .renewed_wall_ms = now->wall_ms,
        .settled_wall_ms = LEASE_TIME_NONE,
        .rev = 1,
        .record_version = ATTEMPT_RECORD_VERSION,
        .cancel_wall_ms = LEASE_TIME_NONE,
    };
    memcpy(ret->id, reservation->credential.attempt_id, sizeof ret->id);
    token_digest(reservation->credential.token, ret->token_digest);
    subjects_take(reservation, ret);
    lease_begin(&ret->lease, reservation->ttl_ms, now);
}

/* RESULT_HELD with the holder, or why it cannot be read. */
static enum result holder_load(
    struct sqlite_store *store, const char *subject, struct attempt *ret_holder, struct error *err)
{
    _cleanup_(statement_cleanup) sqlite3_stmt *statement = NULL;
    _cleanup_(attempt_done) struct attempt holder = {0};
    char id[UUID_TEXT_SIZE] = "";
    bool found = false;
    enum result r =
        database_start(store, SQL_SQLITE_SUBJECT_HOLDER, VALUES(value_text(subject)), &statement, err);

    if (r == RESULT_OK)
        r = database_next(store, statement, &found, err);
    if (r != RESULT_OK)
        return r;
    if (!found)
        return error_set(err, RESULT_CORRUPT, 0, "%s: %s is held by nobody", store->path, subject);
    struct row row = {.statement = statement};
    row_buffer(&row, id, sizeof id);
    r = row_check(&row, subject, err);
    if (r == RESULT_OK)
        r = attempt_load(store, id, &holder, err);
    if (r != RESULT_OK)
        return r;
    r = store_fail_held(&holder, subject, err);
    if (ret_holder) {
        *ret_holder = holder;
        holder = (struct attempt){0};
    }
    return r;
}

/* One row a subject; the primary key is what excludes. */
static enum result subjects_hold(
    struct sqlite_store *store, const struct attempt *attempt, struct attempt *ret_holder, struct error *err)
{
    for (size_t i = 0; i < attempt->subject_count; i++) {
        bool held = false;
        const char *subject = attempt->subjects[i];
        enum result r = database_run(store, SQL_SQLITE_SUBJECT_INSERT,
            VALUES(value_text(subject), value_text(attempt->id)), &held, err);
        if (r == RESULT_OK && held && !MUTANT("subject"))
            r = holder_load(store, subject, ret_holder, err);
        if (r != RESULT_OK)
            return r;
    }
    return RESULT_OK;
}

static char *subjects_join(const struct attempt *attempt)
{
    _cleanup_(text_done) struct text lines = {0};

    for (size_t i = 0; i < attempt->subject_count; i++)
        text_addf(&lines, "%s%s", i ? "\n" : "", attempt->subjects[i]);
    return text_steal(&lines);
}

static enum result attempt_insert(
    struct sqlite_store *store, const struct attempt *attempt, struct error *err)
{
    _cleanup_(mem_free) char *subjects = subjects_join(attempt);
    const struct executor *executor = &attempt->executor;
    const struct lease *lease = &attempt->lease;

    return database_run(store, SQL_SQLITE_ATTEMPT_INSERT,
        VALUES(value_text(attempt->id), value_integer(attempt->record_version), value_integer(attempt->fence),
            value_blob(attempt->token_digest, sizeof attempt->token_digest),
            value_text(attempt_kind_name(attempt->kind)), value_text(attempt_state_name(attempt->state)),
            value_text(attempt->repository), value_text(subjects), value_text(executor->machine_id),
            value_text(executor->boot_id), value_text(executor->host), value_text(executor->user),
            value_text(executor->incarnation), value_integer((int64_t)executor->pid_namespace),
            value_integer(executor->pid), value_integer(executor->start_ticks), value_integer(executor->uid),
            value_text(attempt->journal_handle), value_text(attempt->journal_host),
            value_text(attempt->journal_path), value_integer(lease->ttl_ms), value_text(lease->epoch),
            value_integer(lease->acquired_ms), value_integer(lease->renewed_ms),
            value_integer(lease->expires_ms), value_integer(attempt->acquired_wall_ms),
            value_integer(attempt->renewed_wall_ms)),
        NULL, err);
}

static enum result fence_draw(
    struct sqlite_store *store, const struct store_time *now, int64_t *ret, struct error *err)
{
    return database_integer(
        store, SQL_SQLITE_FENCE_DRAW, VALUES(value_integer(now->wall_ms * 1000)), ret, err);
}

/* Nothing may be spawned before the leftovers of this machine are ended, so those who meet some bind later.
 */
static enum result bind_if_clear(
    struct sqlite_store *store, struct attempt *attempt, const struct store_time *now, struct error *err)
{
    int64_t leftovers = 0;
    const struct transition_request request = {.event = EVENT_BIND, .token_digest = attempt->token_digest};
    enum attempt_state to = attempt->state;
    enum result r = database_integer(store, SQL_SQLITE_LEFTOVER_COUNT,
        VALUES(value_text(store->machine.machine_id), value_text(store->machine.boot_id)), &leftovers, err);

    if (r != RESULT_OK || leftovers)
        return r;
    r = transition_decide(attempt, &request, now, &to, err);
    attempt->state = to;
    return r;
}

static enum result history_add_reserved(struct sqlite_store *store, const struct attempt *attempt,
    const struct store_time *now, struct error *err)
{
    _cleanup_(mem_free) char *detail = mem_format("fence %" PRId64, attempt->fence);
    enum result r = history_add(store, attempt->id, "reserved", detail, now->wall_ms, err);

    if (r == RESULT_OK && attempt->state == ATTEMPT_RUNNING)
        r = history_add(store, attempt->id, "bound", NULL, now->wall_ms, err);
    return r;
}

static enum result attempt_reserve(struct sqlite_store *store, const struct reservation *reservation,
    struct attempt *attempt, struct attempt *ret_holder, struct error *err)
{
    struct store_time now = sqlite_now(store);
    enum result r = RESULT_OK;

    attempt_make(reservation, &now, attempt);
    r = subjects_hold(store, attempt, ret_holder, err);
    if (r == RESULT_OK)
        r = fence_draw(store, &now, &attempt->fence, err);
    if (r == RESULT_OK && reservation->bind_if_clear)
        r = bind_if_clear(store, attempt, &now, err);
    if (r == RESULT_OK)
        r = attempt_insert(store, attempt, err);
    return r == RESULT_OK ? history_add_reserved(store, attempt, &now, err) : r;
}

/* A reserve whose answer was lost is asked by repeating it. ABSENT: it is a new one. */
static enum result reserved_already(struct sqlite_store *store, const struct reservation *reservation,
    struct attempt *attempt, struct error *err)
{
    uint8_t digest[TOKEN_DIGEST_BYTES];
    enum result r = attempt_load(store, reservation->credential.attempt_id, attempt, err);

    if (r != RESULT_OK)
        return r;
    token_digest(reservation->credential.token, digest);
    return transition_check_owner(attempt, digest, err);
}

enum result sqlite_reserve(struct store *base, struct reservation *reservation, struct attempt *ret,
    struct attempt *ret_holder, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    _cleanup_(transaction_cleanup) struct sqlite_store *open = NULL;
    _cleanup_(attempt_done) struct attempt attempt = {0};
    _cleanup_(error_done) struct error absent = {0};
    enum result r = TRANSACTION_BEGIN("reserve", store, SCHEMA_THIS, &open, err);

    if (r != RESULT_OK)
        return r;
    r = reserved_already(store, reservation, &attempt, &absent);
    if (r != RESULT_OK && r != RESULT_ABSENT)
        return error_move(err, &absent);
    if (r == RESULT_ABSENT) {
        r = attempt_reserve(store, reservation, &attempt, ret_holder, err);
        if (r == RESULT_OK)
            r = TRANSACTION_COMMIT("reserve", store, err);
        if (r != RESULT_OK)
            return r;
    }
    reservation->credential.fence = attempt.fence;
    *ret = attempt;
    attempt = (struct attempt){0};
    return RESULT_OK;
}
