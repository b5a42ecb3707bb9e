/*
 * Holding an attempt from its first breath to its settlement: the sequence that `done`, `run` and `measure`
 * share.
 *
 *     hold_begin   journal created, store opened, recovery, reserve (or wait), supervisor started, leftovers
 *                  ended under the own lease, bound when asked for
 *     hold_bind    planning -> running; from here the caller may spawn through hold_supervisor()
 *     hold_end     work ended, heartbeat drained, settled, journal closed
 *
 * hold_begin answers OK, HELD, INTERRUPTED, ABSENT (not wanted any more, or no such row), DENIED (leftovers
 * that cannot be ended), or what the store says.
 *
 * This is where journal/ and attempts/ meet: the verdict of the one is brought to the other as a plain value.
 * One thread.
 */
#ifndef SUPERVISOR_HOLD_H
#define SUPERVISOR_HOLD_H

#include "attempts/recovery.h"
#include "supervisor/supervisor.h"
#include "supervisor/witness.h"

#define WAIT_NONE       INT64_C(0)
#define WAIT_DEFAULT_MS (INT64_C(24) * 3600 * 1000)

struct hold;

struct hold_options {
    const char *store_url; /* NULL: default */
    enum attempt_kind kind;
    const char *repository, *commit, *tree; /* NULL outside a repository */
    const char *what;                       /* for people: the command line */
    const char *const *subjects;
    size_t subject_count;
    const struct row_source *row; /* KIND_PUBLICATION: claimed instead of subjects; NULL */
    struct lease_terms terms;
    enum lapse_policy on_lapse;
    int64_t lapse_patience_ms, grace_ms; /* 0: defaults */
    bool bind_now;   /* the demand is fixed already: reserve and bind in one transaction */
    int64_t wait_ms; /* WAIT_NONE: held is answered at once */
    /* Is shown every event. Once something is held, and before all else but notes about waiting, a
     * JOURNAL_HEADER with `text` its handle and `log` its directory (absolute; out/ lies below). */
    journal_tap_fn tap;
    void *tap_context;
    /* While waiting: called when it begins, and whenever the holder changes. May be NULL. */
    void (*waiting)(void *context, const struct attempt *holder, const struct store_time *now);
    /* After each wake, before the next try: false ends the wait with ABSENT. May be NULL. */
    bool (*wanted)(void *context);
    void *context;
};

/* The one cause of a held run: who is in the way. */
struct pending {
    char *subject;
    struct attempt holder;
    enum owner_verdict verdict;
    struct witness witness;
    bool inside;          /* this process is part of the holder's work: it will not go while we wait */
    int64_t lapses_in_ms; /* at the latest */
    int64_t lapses_wall_ms;
};
void pending_done(struct pending *pending);

_must_use_ enum result hold_begin(const struct hold_options *options, struct hold **ret,
    struct pending *ret_pending, int *ret_signal, struct error *err);

_must_use_ enum result hold_bind(struct hold *hold, const char *demand, struct error *err);

struct supervisor *hold_supervisor(struct hold *hold);
struct store *hold_store(struct hold *hold);
struct journal *hold_journal(struct hold *hold);
const struct attempt *hold_attempt(const struct hold *hold);
const struct credential *hold_credential(const struct hold *hold);
/* Environment entries that mark work of this attempt: TENURE_ATTEMPT, TENURE_STORE, TENURE_FENCE.
 * NULL-terminated, lives as long as the hold. */
const char *const *hold_marks(const struct hold *hold);
/* Runs one job to its end: our own environment with the marks in it, the directory where we are. The
 * request's own are not looked at. Leaves `ret` as it was when the run was stopped before the job began. */
_must_use_ enum result hold_run_job(
    struct hold *hold, const struct job_request *request, struct job_outcome *ret, struct error *err);
/* Looks at the deadline before evidence and Proof are made: false while frozen or out of time. */
bool hold_is_confirmed(struct hold *hold);

struct hold_ending {
    enum attempt_state state; /* what the caller wants; a loss or a signal overrides it */
    const char *reason_code, *reason_text;
    const struct proof_row *proof;
    /* Settles instead of store_settle(), and as it answers: the same nonce, in one transaction with what else
     * it writes. Called again after BUSY, UNREACHABLE and a commit that did not land, so it starts anew each
     * time; not called when something overrides `state`. What it cannot do (any other result) ends the
     * attempt as failed, with its sentence and exit status 1. NULL: store_settle(). */
    enum result (*settle)(void *context, struct store *store, const struct credential *credential,
        const struct settlement *settlement, struct error *err);
    void *settle_context;
    int exit_code; /* for the journal's last record, so that an attached terminal exits alike */
};
struct hold_result {
    enum attempt_state state; /* as it stands in the store */
    struct reason reason;
    bool lost;     /* ended by another */
    bool unknown;  /* the outcome could not be learned; exit 5 */
    int signal;    /* that ended the run, also at the very last; 0: none did */
    int exit_code; /* of the ending, or what replaced it */
    int64_t duration_ms;
    int64_t frozen_ms; /* how long it stood still meanwhile: the work frozen, or we stopped */
};
void hold_result_done(struct hold_result *result);

/* Ends work, drains, settles once (asks again by nonce when the answer is lost), closes and frees in every
 * case. The result code is about the settlement: OK, RETIRED, UNKNOWN, UNREACHABLE. */
_must_use_ enum result hold_end(
    struct hold *hold, const struct hold_ending *ending, struct hold_result *ret, struct error *err);

#endif
