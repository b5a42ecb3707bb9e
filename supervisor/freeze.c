/* The lease as the loop sees it: news of the heartbeat, frozen and thawed work, doubt, Ctrl-Z. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "supervisor/supervisor-private.h"

/* ---- doubt: after a suspend, a stop or a stall, first renew ---- */

static int64_t doubt_bound_ms(const struct supervisor *supervisor)
{
    if (supervisor->stop.cause != STOP_NONE)
        return MS_PER_S;
    int64_t heartbeat_ms = supervisor->options.terms.heartbeat_ms;
    return heartbeat_ms > MS_PER_S ? heartbeat_ms : MS_PER_S;
}

void lease_doubt(struct supervisor *supervisor)
{
    if (supervisor->drained || supervisor->lost || supervisor->doubtful)
        return;
    supervisor->doubtful = true;
    supervisor->doubt_boot_ms = supervisor_now(supervisor);
    heartbeat_hurry(supervisor->heartbeat);
}

static void doubt_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    const struct lease_terms *terms = &supervisor->options.terms;
    int64_t age = now - supervisor->confirmed_boot_ms;
    if (age > terms->heartbeat_ms + lease_margin_ms(terms->ttl_ms) / 2 && !supervisor->doubt_spent)
        lease_doubt(supervisor);
    if (!supervisor->doubtful)
        return;
    int64_t until = supervisor->doubt_boot_ms + doubt_bound_ms(supervisor);
    bool answered = supervisor->confirmed_boot_ms >= supervisor->doubt_boot_ms || supervisor->lost;
    /* Frozen work is bounded by the patience instead, unless the run is being stopped anyway. */
    bool bounded = !supervisor->frozen || supervisor->stop.cause != STOP_NONE;
    if (answered || (bounded && now >= until)) {
        supervisor->doubtful = false;
        supervisor->doubt_spent = !answered;
        return;
    }
    if (bounded)
        due_at(due, until);
}

bool lease_withholds(const struct supervisor *supervisor)
{
    if (supervisor->drained || supervisor->lost)
        return false;
    return supervisor->doubtful || (supervisor->frozen && supervisor->stop.cause == STOP_NONE);
}

/* ---- frozen and thawed ---- */

int64_t lease_frozen_ms(const struct supervisor *supervisor, int64_t now)
{
    return supervisor->frozen_total_ms + (supervisor->frozen ? now - supervisor->frozen_boot_ms : 0);
}

/* What could not be frozen in time was killed. Whatever job it belonged to is no witness any more: a compiler
 * that we killed must not become the verdict of a build. */
static void stop_when_killed(struct supervisor *supervisor, const struct containment_report *report)
{
    if (report->killed == 0)
        return;
    struct reason reason =
        reason_make("lease-lost", "the work could not be frozen in time, and some of it was killed: %s",
            report->named.length > 0 ? report->named.bytes : "a process without a name");
    stop_run(supervisor, STOP_LAPSED, 0, &reason);
}

static void enter_frozen(struct supervisor *supervisor, int64_t now, const char *why)
{
    struct containment_report report;
    stall_look(&supervisor->stall); /* what comes later lies within the frozen time */
    supervisor->frozen = true;
    supervisor->frozen_boot_ms = now;
    guard_take_report(supervisor->guard, &report);
    struct journal_event event = {.kind = JOURNAL_FROZEN, .text = why};
    tell(supervisor, &event, JOURNAL_DURABLE);
    stop_when_killed(supervisor, &report);
    tell_report(supervisor, &report);
    heartbeat_hurry(supervisor->heartbeat);
}

static void leave_frozen(struct supervisor *supervisor, int64_t now)
{
    int64_t frozen_ms = now - supervisor->frozen_boot_ms;
    supervisor->frozen = false;
    supervisor->frozen_total_ms += frozen_ms;
    jobs_thawed(supervisor, frozen_ms);
    struct journal_event event = {.kind = JOURNAL_THAWED, .duration_ms = frozen_ms};
    tell(supervisor, &event, JOURNAL_DURABLE);
    loop_queue(supervisor, &(struct supervisor_event){.kind = SUPERVISOR_THAWED});
}

/* A stop while the work is frozen, as by Ctrl-Z, is part of the frozen time. */
static bool stalled_within_frozen(const struct supervisor *supervisor, int64_t now, int64_t gap_ms)
{
    return supervisor->frozen && now - supervisor->frozen_boot_ms >= gap_ms;
}

void lease_stalled(struct supervisor *supervisor)
{
    if (supervisor->drained)
        return;
    stall_look(&supervisor->stall);
    int64_t gap_ms = stall_take(&supervisor->stall);
    if (gap_ms == 0 || stalled_within_frozen(supervisor, supervisor_now(supervisor), gap_ms))
        return;
    supervisor->frozen_total_ms += gap_ms;
    jobs_thawed(supervisor, gap_ms);
    struct journal_event event = {
        .kind = JOURNAL_GAP,
        .duration_ms = gap_ms,
        .text = "this run was stopped, suspended or held up",
    };
    tell(supervisor, &event, JOURNAL_DURABLE);
    lease_doubt(supervisor);
}

static bool store_is_embedded(const struct supervisor *supervisor)
{
    const char *url = supervisor->options.store->url;
    return url == NULL || strncmp(url, "sqlite:", strlen("sqlite:")) == 0;
}

/* Frozen work may hold the very lock that the renewal waits for: a nested program in the middle of a write.
 */
static int64_t frozen_limit(const struct supervisor *supervisor, bool *ret_busy)
{
    int64_t limit = supervisor->frozen_boot_ms + supervisor->options.lapse_patience_ms;
    *ret_busy = false;
    if (supervisor->busy_boot_ms == 0 || !store_is_embedded(supervisor))
        return limit;
    int64_t since = supervisor->busy_boot_ms > supervisor->frozen_boot_ms ? supervisor->busy_boot_ms
                                                                          : supervisor->frozen_boot_ms;
    int64_t busy_limit = since + supervisor->options.terms.ttl_ms;
    *ret_busy = busy_limit < limit;
    return *ret_busy ? busy_limit : limit;
}

static struct reason lapse_reason(const struct supervisor *supervisor, int64_t now, bool busy)
{
    char waited[DURATION_TEXT_SIZE];
    duration_format(now - supervisor->frozen_boot_ms, waited);
    if (!busy)
        return reason_make(
            "lease-lost", "the lease could not be renewed for %s while the work was frozen", waited);
    const char *url = supervisor->options.store->url;
    _cleanup_(mem_free) char *store = url ? store_url_printable(url) : mem_string("on this machine");
    return reason_make("lease-lost",
        "the store %s stayed locked by another program while the work was frozen for %s", store, waited);
}

static void frozen_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    bool confirmed =
        supervisor->confirmed_boot_ms >= supervisor->resume_boot_ms && gate_deadline(&supervisor->gate) > now;
    bool stopping = supervisor->stop.cause != STOP_NONE;
    if (confirmed && !stopping && guard_resume(supervisor->guard)) {
        leave_frozen(supervisor, supervisor_now(supervisor));
        return;
    }
    if (stopping)
        return;
    bool busy;
    int64_t limit = frozen_limit(supervisor, &busy);
    if (now < limit) {
        due_at(due, limit);
        return;
    }
    struct reason reason = lapse_reason(supervisor, now, busy);
    stop_run(supervisor, STOP_LAPSED, 0, &reason);
}

/* Ctrl-Z: the work stands still before we do, and starts again only after a renewal that was sent later. */
void lease_suspend(struct supervisor *supervisor)
{
    if (supervisor->drained)
        return;
    guard_freeze(supervisor->guard);
    if (!supervisor->frozen && guard_state(supervisor->guard) == GUARD_FROZEN)
        enter_frozen(supervisor, supervisor_now(supervisor), "stopped from the terminal");
    FAILPOINT("supervisor-before-suspend");
    /* The signal itself, not SIGSTOP: in an orphaned process group, where nobody could continue us, the
     * kernel does not stop. */
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    raise(SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    supervisor->resume_boot_ms = supervisor_now(supervisor);
    lease_doubt(supervisor);
    heartbeat_hurry(supervisor->heartbeat);
}

/* ---- news of the heartbeat and the guard ---- */

static void tell_trouble(struct supervisor *supervisor, const struct heartbeat_news *news)
{
    if (news->trouble == RESULT_OK) {
        supervisor->in_trouble = false;
        return;
    }
    if (supervisor->in_trouble || news->trouble_text == NULL)
        return;
    supervisor->in_trouble = true;
    struct journal_event event = {
        .kind = JOURNAL_RENEWAL_TROUBLE,
        .text = news->trouble_text,
        .result = result_name(news->trouble),
    };
    tell(supervisor, &event, JOURNAL_LAZY);
}

static void take_loss(struct supervisor *supervisor, struct reason *reason)
{
    supervisor->lost = true;
    struct journal_event event = {
        .kind = JOURNAL_RETIRED,
        .reason = reason->code,
        .text = reason->text,
        .by_attempt = reason->by_attempt,
    };
    tell(supervisor, &event, JOURNAL_DURABLE);
    stop_run(supervisor, STOP_RETIRED, 0, reason);
}

void lease_take_news(struct supervisor *supervisor, struct heartbeat_news *news)
{
    if (news->confirmed_sent_boot_ms > supervisor->confirmed_boot_ms) {
        supervisor->confirmed_boot_ms = news->confirmed_sent_boot_ms;
        supervisor->doubt_spent = false;
    }
    supervisor->busy_boot_ms = news->busy_since_boot_ms;
    tell_trouble(supervisor, news);
    if (news->lost && !supervisor->lost)
        take_loss(supervisor, &news->reason);
    if (news->cancel_requested && supervisor->stop.cause == STOP_NONE) {
        struct reason reason = reason_make("cancel-requested", "somebody asked for this run to be cancelled");
        stop_run(supervisor, STOP_CANCELLED, 0, &reason);
    }
    heartbeat_news_done(news);
}

static void guard_look(struct supervisor *supervisor, int64_t now)
{
    enum guard_state state = guard_state(supervisor->guard);
    if (state == GUARD_FROZEN && !supervisor->frozen)
        enter_frozen(supervisor, now, "the lease could not be renewed in time");
    bool aborted = state == GUARD_ABORTING || state == GUARD_ABORTED;
    if (!aborted || supervisor->stop.cause != STOP_NONE)
        return;
    struct containment_report report;
    guard_take_report(supervisor->guard, &report);
    tell_report(supervisor, &report);
    struct reason reason = reason_make("lease-lost", "the lease could not be renewed in time");
    stop_run(supervisor, STOP_LAPSED, 0, &reason);
}

void lease_look(struct supervisor *supervisor, int64_t now, int64_t *due)
{
    if (supervisor->drained)
        return;
    struct heartbeat_news news;
    heartbeat_take(supervisor->heartbeat, &news);
    lease_take_news(supervisor, &news);
    guard_look(supervisor, now);
    if (supervisor->frozen)
        frozen_look(supervisor, now, due);
    doubt_look(supervisor, now, due);
}
