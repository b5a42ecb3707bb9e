#include "supervisor/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/supervisor-private.h"

int64_t supervisor_now(const struct supervisor *supervisor)
{
    return supervisor->options.clock->boot_ms(supervisor->options.clock);
}

const struct stop *supervisor_stop_of(const struct supervisor *supervisor)
{
    return &supervisor->stop;
}

/* ---- start and free ---- */

/* Many jobs take more descriptors than the soft limit usually allows. The work keeps it: select(2) relies on
 * it. */
static void files_raise(struct supervisor *supervisor)
{
    if (getrlimit64(RLIMIT_NOFILE, &supervisor->files) != 0)
        return;
    struct rlimit64 raised = {.rlim_cur = supervisor->files.rlim_max, .rlim_max = supervisor->files.rlim_max};
    (void)!setrlimit64(RLIMIT_NOFILE, &raised);
}

static void files_restore(const struct supervisor *supervisor)
{
    if (supervisor->files.rlim_max != 0)
        (void)!setrlimit64(RLIMIT_NOFILE, &supervisor->files);
}

static enum result start_guard(struct supervisor *supervisor, struct error *err)
{
    const struct supervisor_options *options = &supervisor->options;
    struct guard_options guard = {
        .clock = options->clock,
        .gate = &supervisor->gate,
        .containment = supervisor->containment,
        .policy = options->on_lapse,
        .margin_ms = lease_margin_ms(options->terms.ttl_ms),
        .stall = &supervisor->stall,
        .notify_fd = supervisor->loop_fd,
    };
    return guard_start(&guard, &supervisor->guard, err);
}

static enum result start_heartbeat(struct supervisor *supervisor, struct error *err)
{
    const struct supervisor_options *options = &supervisor->options;
    struct heartbeat_options heartbeat = {
        .store = options->store,
        .open_store = options->open_store,
        .clock = options->clock,
        .credential = options->credential,
        .terms = options->terms,
        .sent_boot_ms = options->sent_boot_ms,
        .guard = supervisor->guard,
        .loop_fd = supervisor->loop_fd,
    };
    return heartbeat_start(&heartbeat, &supervisor->heartbeat, err);
}

static enum result start_all(struct supervisor *supervisor, struct error *err)
{
    supervisor->loop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (supervisor->loop_fd < 0)
        return error_errno(err, errno, "cannot create an event descriptor");
    enum result r = loop_open(supervisor, err);
    if (r == RESULT_OK)
        r = containment_open(supervisor->options.clock, &supervisor->containment, err);
    if (r == RESULT_OK)
        r = start_guard(supervisor, err);
    if (r == RESULT_OK)
        r = start_heartbeat(supervisor, err);
    return r;
}

enum result supervisor_start(
    const struct supervisor_options *options, struct supervisor **ret, struct error *err)
{
    struct supervisor *supervisor = mem_alloc(sizeof(*supervisor));
    supervisor->options = *options;
    supervisor->loop_fd = -1;
    supervisor->confirmed_boot_ms = options->sent_boot_ms;
    gate_init(&supervisor->gate, options->clock,
        lease_own_deadline_ms(options->sent_boot_ms, options->terms.ttl_ms));
    stall_init(&supervisor->stall, options->clock, lease_margin_ms(options->terms.ttl_ms));
    signals_begin(&supervisor->signals, SIGNALS_ALL);
    files_raise(supervisor);
    runner_init(supervisor);
    enum result r = start_all(supervisor, err);
    if (r != RESULT_OK) {
        supervisor_free(supervisor);
        return r;
    }
    *ret = supervisor;
    return RESULT_OK;
}

void supervisor_free(struct supervisor *supervisor)
{
    if (supervisor == NULL)
        return;
    heartbeat_stop(supervisor->heartbeat);
    guard_stop(supervisor->guard);
    while (supervisor->job_count > 0)
        job_free(supervisor->jobs[--supervisor->job_count]);
    for (size_t i = 0; i < supervisor->queue_count; i++)
        job_outcome_done(&supervisor->queue[i].outcome);
    if (supervisor->containment != NULL)
        containment_close(supervisor->containment);
    loop_close(supervisor);
    fd_close(supervisor->loop_fd);
    files_restore(supervisor);
    signals_end(&supervisor->signals);
    gate_done(&supervisor->gate);
    reason_done(&supervisor->stop.reason);
    free(supervisor->jobs);
    free(supervisor->queue);
    free(supervisor);
}

/* ---- the end of the heartbeat ---- */

/* Jobs that ended well when nobody asked any more. */
static void judge_the_rest(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->queue_count; i++)
        supervisor_judge(supervisor, &supervisor->queue[i].outcome, NULL, NULL);
}

enum result supervisor_drain(struct supervisor *supervisor, struct error *err)
{
    judge_the_rest(supervisor);
    if (!supervisor->drained) {
        struct heartbeat_news news;
        heartbeat_drain(supervisor->heartbeat, &news);
        lease_take_news(supervisor, &news);
        supervisor->drained = true;
    }
    if (!supervisor->lost)
        return RESULT_OK;
    const struct reason *reason = &supervisor->stop.reason;
    return error_set(err, RESULT_RETIRED, 0, "this attempt was ended by another: %s",
        reason->text != NULL   ? reason->text
        : reason->code != NULL ? reason->code
                               : "no reason was left");
}
