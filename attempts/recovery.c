#include "attempts/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct recovery {
    struct store *store;
    const struct attempt_query *query;
    const char *by_attempt;
    const char *by; /* the same for people; NULL */
    owner_probe_fn probe;
    void *context;
    struct recovery_report *report;
    size_t retired_capacity, trouble_capacity;
};

void recovery_report_done(struct recovery_report *report)
{
    attempt_list_done(&report->retired);
    for (size_t i = 0; i < report->trouble_count; i++)
        free(report->troubles[i]);
    free(report->troubles);
    *report = (struct recovery_report){0};
}

static void report_retired(struct recovery *recovery, const struct attempt *attempt)
{
    struct attempt_list *retired = &recovery->report->retired;

    mem_grow(&retired->items, &recovery->retired_capacity, retired->count, sizeof *retired->items);
    attempt_copy(attempt, &retired->items[retired->count++]);
}

/* `attempt` NULL: none could even be read. */
static void report_trouble(struct recovery *recovery, const struct attempt *attempt, const char *why)
{
    struct recovery_report *report = recovery->report;

    mem_grow(&report->troubles, &recovery->trouble_capacity, report->trouble_count, sizeof *report->troubles);
    report->troubles[report->trouble_count++] =
        attempt ? mem_format("attempt %s could not be retired: %s", attempt_name(attempt), why)
                : mem_format("earlier attempts could not be read: %s", why);
}

/* The first wanted subject that it holds; NULL when it is in nobody's way. */
static const char *wanted_held(const struct recovery *recovery, const struct attempt *attempt)
{
    for (size_t i = 0; i < recovery->query->subject_count; i++)
        if (attempt_holds(attempt, recovery->query->subjects[i]))
            return recovery->query->subjects[i];
    return NULL;
}

/* Lapsed attempts that are in nobody's way stay: they may be frozen and about to be confirmed. */
static const char *reason_to_retire(const struct recovery *recovery, const struct attempt *attempt)
{
    struct store_time now = {0};

    if (recovery->probe && recovery->probe(recovery->context, attempt) == OWNER_GONE)
        return "owner-gone";
    if (wanted_held(recovery, attempt) && store_now(recovery->store, &now, NULL) == RESULT_OK &&
        lease_lapsed(&attempt->lease, &now))
        return "lapsed";
    return NULL;
}

/* What the retired one will read in its own record. */
static char *retirement_text(
    const struct recovery *recovery, const struct attempt *attempt, const struct retirement *retirement)
{
    const char *subject = wanted_held(recovery, attempt);
    const char *why = retirement->owner_gone ? "its owner was gone" : "its lease had lapsed";

    if (!recovery->by)
        return NULL;
    return subject ? mem_format("%s took %s over: %s", recovery->by, subject, why)
                   : mem_format("%s ended it: %s", recovery->by, why);
}

/* Looks, decides and retires once. CONFLICT: it changed in between; anything else is final. */
static enum result retire_once(struct recovery *recovery, const struct attempt *attempt, struct error *err)
{
    const char *reason = reason_to_retire(recovery, attempt);
    struct retirement retirement = {
        .attempt_id = attempt->id,
        .rev = attempt->rev,
        .owner_gone = reason && strcmp(reason, "owner-gone") == 0,
        .reason_code = reason,
        .by_attempt = recovery->by_attempt,
    };
    _cleanup_(mem_free) char *text = retirement_text(recovery, attempt, &retirement);
    enum result r = RESULT_OK;

    if (!reason)
        return RESULT_OK;
    retirement.reason_text = text;
    r = store_retire(recovery->store, &retirement, err);
    if (r == RESULT_OK)
        report_retired(recovery, attempt);
    return r;
}

static enum result retire_with_retries(
    struct recovery *recovery, const struct attempt *read, struct error *err)
{
    _cleanup_(attempt_done) struct attempt attempt = {0};
    enum result r = RESULT_CONFLICT;

    attempt_copy(read, &attempt);
    for (int i = 0; i < RECOVERY_TRIES && r == RESULT_CONFLICT; i++) {
        if (i > 0) {
            attempt_done(&attempt);
            r = store_find(recovery->store, read->id, &attempt, err);
            if (r != RESULT_OK || !attempt_is_unfinished(&attempt))
                return r;
        }
        r = retire_once(recovery, &attempt, err);
    }
    return r;
}

static void recover_one(struct recovery *recovery, const struct attempt *attempt)
{
    _cleanup_(error_done) struct error err = {0};
    enum result r = RESULT_OK;

    /* A reserve that is repeated meets its own row. */
    if (recovery->by_attempt && strcmp(recovery->by_attempt, attempt->id) == 0)
        return;
    r = retire_with_retries(recovery, attempt, &err);
    /* Ended or gone meanwhile: nothing is in the way any more. */
    if (r != RESULT_OK && r != RESULT_RETIRED && r != RESULT_ABSENT)
        report_trouble(recovery, attempt, err.message);
}

/* A record of the repository that cannot be read must not keep the wanted subjects held for ever: then their
 * holders alone are looked at. */
static enum result recovery_list(struct recovery *recovery, struct attempt_list *ret, struct error *err)
{
    _cleanup_(error_done) struct error broken = {0};
    struct attempt_query holders = *recovery->query;
    enum result r = store_list(recovery->store, recovery->query, ret, &broken);

    if ((r != RESULT_CORRUPT && r != RESULT_NEWER) || !holders.repository || !holders.subject_count)
        return r == RESULT_OK ? r : error_move(err, &broken);
    report_trouble(recovery, NULL, broken.message);
    holders.repository = NULL;
    return store_list(recovery->store, &holders, ret, err);
}

static enum result recovery_walk(struct recovery *recovery, struct error *err)
{
    _cleanup_(attempt_list_done) struct attempt_list list = {0};
    enum result r = recovery_list(recovery, &list, err);

    for (size_t i = 0; r == RESULT_OK && i < list.count; i++)
        recover_one(recovery, &list.items[i]);
    return r;
}

enum result recovery_run(struct store *store, const struct attempt_query *query, const char *by_attempt,
    owner_probe_fn probe, void *context, struct recovery_report *report, struct error *err)
{
    struct attempt_query unfinished = *query;
    struct recovery recovery = {
        .store = store,
        .query = &unfinished,
        .by_attempt = by_attempt,
        .probe = probe,
        .context = context,
        .report = report,
    };

    unfinished.unfinished_only = true;
    *report = (struct recovery_report){0};
    return recovery_walk(&recovery, err);
}

static enum result recover_for(struct store *store, const struct attempt_query *query,
    const struct reservation *reservation, owner_probe_fn probe, void *context,
    struct recovery_report *report, struct error *err)
{
    const char *id = reservation->credential.attempt_id;
    _cleanup_(mem_free) char *by =
        mem_format("%s of %s on %s", reservation->journal_handle ? reservation->journal_handle : id,
            reservation->executor->user, reservation->executor->host);
    struct recovery recovery = {
        .store = store,
        .query = query,
        .by_attempt = id,
        .by = by,
        .probe = probe,
        .context = context,
        .report = report,
    };

    return recovery_walk(&recovery, err);
}

/* How the subject of a row is written only the store knows: its holder was not among those looked at before.
 */
static enum result reserve_after(struct store *store, struct reservation *reservation, owner_probe_fn probe,
    void *context, struct recovery_report *report, struct attempt *ret, struct attempt *ret_holder,
    struct error *err)
{
    const struct attempt_query query = {
        .subjects = (const char *const *)ret_holder->subjects,
        .subject_count = ret_holder->subject_count,
        .unfinished_only = true,
    };
    size_t before = report->retired.count;
    _cleanup_(error_done) struct error trouble = {0};

    if (recover_for(store, &query, reservation, probe, context, report, &trouble) != RESULT_OK ||
        report->retired.count == before)
        return RESULT_HELD;
    attempt_done(ret_holder);
    if (err)
        error_done(err);
    return store_reserve(store, reservation, ret, ret_holder, err);
}

enum result recovery_reserve(struct store *store, struct reservation *reservation, owner_probe_fn probe,
    void *context, struct recovery_report *report, struct attempt *ret, struct attempt *ret_holder,
    struct error *err)
{
    const struct attempt_query query = {
        .repository = reservation->repository,
        .subjects = reservation->subjects,
        .subject_count = reservation->subject_count,
        .unfinished_only = true,
    };
    _cleanup_(error_done) struct error trouble = {0};
    enum result r = RESULT_OK;

    /* With neither there is nothing to look for; an empty query would mean everything. */
    *report = (struct recovery_report){0};
    if (query.repository || query.subject_count)
        r = recover_for(store, &query, reservation, probe, context, report, &trouble);
    if (r != RESULT_OK) {
        struct recovery failed = {.report = report, .trouble_capacity = report->trouble_count};
        report_trouble(&failed, NULL, trouble.message);
    }
    r = store_reserve(store, reservation, ret, ret_holder, err);
    if (r == RESULT_HELD && probe && ret_holder && reservation->row)
        r = reserve_after(store, reservation, probe, context, report, ret, ret_holder, err);
    if (r == RESULT_HELD && probe && ret_holder)
        report->holder_verdict = probe(context, ret_holder);
    return r;
}
