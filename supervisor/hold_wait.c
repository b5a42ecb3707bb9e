/*
 * Reserving, and waiting for a holder to go.
 *
 * A waiter looks, and reserves only when the holder ended, was gone or had lapsed at the last look: so a
 * hundred waiters read, and do not stand in the way of the one that must renew. On the same machine it sleeps
 * on the holder's journal and is woken by its end; elsewhere it polls with jitter, and seldom once it has
 * waited for long: a hundred that wait ask a server less than fifty times a second.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "supervisor/hold-private.h"
#include "supervisor/marks.h"
#include "supervisor/verdict-private.h"

#define POLL_LEAST_MS  INT64_C(200)
#define POLL_MOST_MS   INT64_C(4000)
#define LOOK_LOCAL_MS  INT64_C(10000) /* a local holder is looked at so often, though it wakes us */
#define CROWD_MS       INT64_C(50)    /* who are woken together do not all write together */
#define LAPSE_EXTRA_MS INT64_C(5)     /* exactly at its expiry a lease is alive */

void pending_done(struct pending *pending)
{
    free(STEAL(pending->subject));
    witness_done(&pending->witness);
    attempt_done(&pending->holder);
}

/* ---- one try ---- */

static enum owner_verdict probe(void *context, const struct attempt *attempt)
{
    const struct hold *hold = context;
    return verdict_of(&hold->machine, attempt).verdict;
}

static void note_recovery(struct hold *hold, const struct recovery_report *report)
{
    for (size_t i = 0; i < report->retired.count; i++) {
        const struct attempt *attempt = &report->retired.items[i];
        _cleanup_(mem_free) char *owner = executor_text(&attempt->executor);
        hold_note(hold, "retired attempt %s of %s", attempt_name(attempt), owner);
    }
    for (size_t i = 0; i < report->trouble_count; i++)
        hold_note(hold, "%s", report->troubles[i]);
}

static enum result try_reserve(struct hold *hold, struct attempt *ret_holder, struct error *err)
{
    _cleanup_(recovery_report_done) struct recovery_report report = {0};
    hold->sent_boot_ms = hold_now(hold);
    FAILPOINT("hold-before-reserve");
    enum result r = recovery_reserve(
        hold->store, &hold->reservation, probe, hold, &report, &hold->attempt, ret_holder, err);
    FAILPOINT("hold-after-reserve");
    note_recovery(hold, &report);
    return r;
}

/* ---- what is pending ---- */

static const char *held_subject(const struct hold *hold, const struct attempt *holder)
{
    /* Only the store knows how the subject of a row is written. */
    const char *first = hold->options.row != NULL && holder->subject_count > 0 ? holder->subjects[0] : NULL;
    for (size_t i = 0; i < hold->options.subject_count; i++) {
        const char *subject = hold->options.subjects[i];
        if (attempt_holds(holder, subject) && (first == NULL || strcmp(subject, first) < 0))
            first = subject;
    }
    return first;
}

static void fill_pending(struct hold *hold, struct attempt *holder, struct pending *ret)
{
    struct store_time now;
    *ret = (struct pending){
        .subject = mem_string(held_subject(hold, holder)),
        .holder = *holder,
        .verdict = verdict_of(&hold->machine, holder).verdict,
        .inside = mark_is_of(holder->id, store_id(hold->store)),
    };
    *holder = (struct attempt){0};
    witness_look(&hold->machine, &ret->holder, &ret->witness);
    if (store_now(hold->store, &now, NULL) != RESULT_OK)
        return;
    ret->lapses_in_ms = lease_remaining_ms(&ret->holder.lease, &now);
    ret->lapses_wall_ms = lease_lapses_wall_ms(&ret->holder.lease, &now);
}

/* ---- waiting ---- */

struct wait {
    struct hold *hold;
    int64_t until_boot_ms;
    struct attempt holder; /* as last read */
    bool told;
    struct store_time now; /* the store's, when ours was now_boot_ms */
    int64_t now_boot_ms;   /* 0: not known */
    int64_t poll_ms;       /* the last pause between two looks from elsewhere */
};

static enum result ask_now(struct wait *wait)
{
    enum result r = store_now(wait->hold->store, &wait->now, NULL);
    wait->now_boot_ms = r == RESULT_OK ? hold_now(wait->hold) : 0;
    return r;
}

/* The store's time without asking it, which is a guess: whatever is made of it is decided by the store's own.
 */
static struct store_time guess_now(const struct wait *wait)
{
    int64_t passed_ms = hold_now(wait->hold) - wait->now_boot_ms;
    struct store_time now = wait->now;
    now.ms += passed_ms;
    now.wall_ms += passed_ms;
    return now;
}

/* A guess that it has lapsed is confirmed: else who is refused would try at once again. */
static bool has_lapsed(struct wait *wait, const struct lease *lease)
{
    if (wait->now_boot_ms != 0) {
        struct store_time now = guess_now(wait);
        if (!lease_lapsed(lease, &now))
            return false;
    }
    return ask_now(wait) != RESULT_OK || lease_lapsed(lease, &wait->now);
}

static void tell_waiting(struct wait *wait, const struct store_time *now)
{
    const struct hold_options *options = &wait->hold->options;
    const struct attempt *holder = &wait->holder;
    char since[CLOCK_TEXT_SIZE];
    _cleanup_(mem_free) char *owner = executor_text(&holder->executor);
    clock_format_people(holder->acquired_wall_ms, since);
    hold_note(wait->hold, "waiting for %s, held by %s, since %s", attempt_name(holder), owner, since);
    if (options->waiting != NULL)
        options->waiting(options->context, &wait->holder, now);
}

static void take_holder(struct wait *wait, struct attempt *holder)
{
    bool another = !wait->told || strcmp(wait->holder.id, holder->id) != 0;
    attempt_done(&wait->holder);
    wait->holder = *holder;
    *holder = (struct attempt){0};
    if (!another)
        return;
    if (ask_now(wait) == RESULT_OK) {
        wait->told = true;
        tell_waiting(wait, &wait->now);
    }
}

static bool pending_signal(struct hold *hold, int *ret_signal)
{
    struct signalfd_siginfo info;
    if (read(hold->signal_fd, &info, sizeof(info)) != sizeof(info))
        return false;
    *ret_signal = (int)info.ssi_signo;
    return true;
}

static int64_t least(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* Decorrelated jitter: the first looks come soon, later ones seldom. */
static int64_t next_poll_ms(struct wait *wait)
{
    int64_t most_ms = least(POLL_MOST_MS, 2 * wait->poll_ms + POLL_LEAST_MS);
    wait->poll_ms = hold_jitter_ms((most_ms + POLL_LEAST_MS) / 3, most_ms);
    return wait->poll_ms;
}

/* Sleeps until something about the holder may have changed. */
static void sleep_on_holder(struct wait *wait, int64_t remaining_ms)
{
    struct hold *hold = wait->hold;
    int64_t bound = least(remaining_ms + LAPSE_EXTRA_MS, wait->until_boot_ms - hold_now(hold));
    if (bound <= 0)
        return;
    struct liveness_question question = verdict_question(&hold->machine, &wait->holder);
    bool wakes = verdict_is_local(&hold->machine, &wait->holder) &&
                 verdict_of(&hold->machine, &wait->holder).verdict == OWNER_RUNNING;
    if (!wakes) {
        hold_pause(hold, least(bound, next_poll_ms(wait)));
        return;
    }
    liveness_wait(&question, least(bound, LOOK_LOCAL_MS), hold->signal_fd);
    hold_pause(hold, hold_jitter_ms(0, CROWD_MS));
}

/* True when a reserve may succeed: the holder ended, is gone, or lapsed; or nobody can tell. */
static bool may_have_gone(struct wait *wait, int64_t *ret_remaining_ms)
{
    struct hold *hold = wait->hold;
    struct attempt holder = {0};
    if (store_find(hold->store, wait->holder.id, &holder, NULL) != RESULT_OK)
        return true;
    bool ended = !attempt_is_unfinished(&holder);
    bool gone = verdict_of(&hold->machine, &holder).verdict == OWNER_GONE;
    bool lapsed = !ended && !gone && has_lapsed(wait, &holder.lease);
    if (!ended && !gone && !lapsed) {
        struct store_time now = guess_now(wait);
        *ret_remaining_ms = lease_remaining_ms(&holder.lease, &now);
        take_holder(wait, &holder);
    }
    attempt_done(&holder);
    return ended || gone || lapsed;
}

/* OK: try again. HELD: the time is over. */
static enum result wait_for_holder(struct wait *wait, int *ret_signal, struct error *err)
{
    struct hold *hold = wait->hold;
    for (;;) {
        int64_t remaining_ms = 0;
        if (pending_signal(hold, ret_signal))
            return error_set(
                err, RESULT_INTERRUPTED, 0, "the wait was ended by SIG%s", sigabbrev_np(*ret_signal));
        if (may_have_gone(wait, &remaining_ms))
            return RESULT_OK;
        if (hold_now(hold) >= wait->until_boot_ms)
            return error_set(err, RESULT_HELD, 0, "attempt %s still holds %s", attempt_name(&wait->holder),
                held_subject(hold, &wait->holder));
        sleep_on_holder(wait, remaining_ms);
    }
}

static enum result still_wanted(struct hold *hold, struct error *err)
{
    const struct hold_options *options = &hold->options;
    if (options->wanted == NULL || options->wanted(options->context))
        return RESULT_OK;
    return error_set(err, RESULT_ABSENT, 0, "what was waited for is not wanted any more");
}

/* After a try that was not answered OK. OK: try again; anything else is the answer. */
static enum result after_try(struct wait *wait, enum result r, struct attempt *holder, int64_t busy_until,
    int *ret_signal, struct error *err)
{
    struct hold *hold = wait->hold;
    int64_t now = hold_now(hold);
    if (pending_signal(hold, ret_signal))
        return error_set(
            err, RESULT_INTERRUPTED, 0, "the wait was ended by SIG%s", sigabbrev_np(*ret_signal));
    bool ends = r == RESULT_HELD && !mark_is_of(holder->id, store_id(hold->store));
    if (ends && now < wait->until_boot_ms) {
        take_holder(wait, holder);
        r = wait_for_holder(wait, ret_signal, err);
        return r == RESULT_OK ? still_wanted(hold, err) : r;
    }
    bool again = r == RESULT_BUSY || r == RESULT_CONFLICT || r == RESULT_UNKNOWN;
    if (!again || (now >= busy_until && now >= wait->until_boot_ms))
        return r;
    hold_pause(hold, hold_jitter_ms(20, POLL_LEAST_MS));
    return RESULT_OK;
}

static void prepare_reservation(struct hold *hold)
{
    const struct hold_options *options = &hold->options;
    struct reservation *reservation = &hold->reservation;
    reservation_init(reservation, hold->clock);
    reservation->kind = options->kind;
    reservation->repository = options->repository;
    reservation->subjects = options->subjects;
    reservation->subject_count = options->subject_count;
    reservation->row = options->row;
    reservation->executor = &hold->executor;
    reservation->journal_handle = journal_handle(hold->journal);
    reservation->journal_path = journal_path(hold->journal);
    reservation->ttl_ms = options->terms.ttl_ms;
    reservation->bind_if_clear = options->bind_now;
}

enum result hold_reserve(struct hold *hold, struct pending *ret_pending, int *ret_signal, struct error *err)
{
    int64_t busy_until = hold_now(hold) + HOLD_BUSY_MS;
    struct wait wait = {.hold = hold, .until_boot_ms = hold_now(hold) + hold->options.wait_ms};
    struct error why = {0};
    bool reserved;
    enum result r;
    prepare_reservation(hold);
    do {
        struct attempt holder = {0};
        error_done(&why);
        r = try_reserve(hold, &holder, &why);
        reserved = r == RESULT_OK;
        if (!reserved)
            r = after_try(&wait, r, &holder, busy_until, ret_signal, &why);
        if (r == RESULT_HELD)
            fill_pending(hold, holder.id[0] != '\0' ? &holder : &wait.holder, ret_pending);
        attempt_done(&holder);
    } while (r == RESULT_OK && !reserved);
    attempt_done(&wait.holder);
    if (r != RESULT_OK)
        return error_move(err, &why);
    error_done(&why);
    return RESULT_OK;
}
