/* One turn of the loop, and what is given out after it. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "supervisor/bell-private.h"
#include "supervisor/supervisor-private.h"

#define TIMER_ACCURACY_US 2000

static int on_wake(sd_event_source *source, int fd, uint32_t revents, void *context)
{
    (void)source, (void)revents, (void)context;
    eventfd_clear(fd);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
    (void)source, (void)usec, (void)context;
    return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
    (void)source;
    struct supervisor *supervisor = context;
    switch (info->ssi_signo) {
    case SIGCHLD:
        supervisor->children = true;
        break;
    case SIGTSTP:
        lease_suspend(supervisor);
        break;
    case SIGCONT:
        lease_doubt(supervisor);
        break;
    case SIGUSR2:
        heartbeat_hurry(supervisor->heartbeat);
        break;
    default:
        stop_on_signal(supervisor, (int)info->ssi_signo);
    }
    return 0;
}

static int add_signals(struct supervisor *supervisor)
{
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        if (!signals_handles(&supervisor->signals, signal))
            continue;
        sd_event_source *source;
        int r = sd_event_add_signal(supervisor->event, &source, signal, on_signal, supervisor);
        if (r < 0)
            return r;
        sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
        sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
    }
    return 0;
}

/* The kernel's own CLOCK_BOOTTIME, which is what sd-event wants: in a time namespace not what our clock says.
 */
static uint64_t kernel_boot_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int add_sources(struct supervisor *supervisor)
{
    int r = add_signals(supervisor);
    if (r >= 0)
        r = sd_event_add_io(
            supervisor->event, &supervisor->wake, supervisor->loop_fd, EPOLLIN, on_wake, supervisor);
    if (r >= 0)
        r = sd_event_source_set_priority(supervisor->wake, SD_EVENT_PRIORITY_IMPORTANT);
    if (r >= 0)
        r = sd_event_add_time(supervisor->event, &supervisor->timer, CLOCK_BOOTTIME, UINT64_MAX,
            TIMER_ACCURACY_US, on_timer, supervisor);
    return r;
}

static enum result library_missing(struct error *err)
{
    error_set(err, RESULT_SYSTEM, ELIBACC,
        "libsystemd.so.0 cannot be loaded, and there is no event loop without it");
    return error_remedy(err, "install the package libsystemd0");
}

enum result loop_open(struct supervisor *supervisor, struct error *err)
{
    int r = sd_event_new(&supervisor->event);
    if (r == -ELIBACC)
        return library_missing(err);
    if (r >= 0)
        r = add_sources(supervisor);
    if (r < 0)
        return error_errno(err, -r, "cannot set up the event loop");
    supervisor->turned_boot_ms = supervisor_now(supervisor);
    return RESULT_OK;
}

void loop_close(struct supervisor *supervisor)
{
    sd_event_source_unref(STEAL(supervisor->timer));
    sd_event_source_unref(STEAL(supervisor->wake));
    sd_event_unref(STEAL(supervisor->event));
}

void loop_queue(struct supervisor *supervisor, const struct supervisor_event *event)
{
    mem_grow(
        &supervisor->queue, &supervisor->queue_capacity, supervisor->queue_count, sizeof(*supervisor->queue));
    supervisor->queue[supervisor->queue_count++] = *event;
}

/* Looks at everything; answers when it wants to look again. */
static int64_t look(struct supervisor *supervisor)
{
    int64_t due = NEVER_MS;
    lease_stalled(supervisor);
    int64_t now = supervisor_now(supervisor);
    if (supervisor->children) {
        supervisor->children = false;
        jobs_reap(supervisor);
    }
    lease_look(supervisor, now, &due);
    jobs_look(supervisor, now, &due);
    stop_look(supervisor, now, &due);
    account_look(supervisor, now, &due);
    return due;
}

static void arm(struct supervisor *supervisor, int64_t due)
{
    supervisor->due_boot_ms = due;
    if (due == NEVER_MS) {
        sd_event_source_set_enabled(supervisor->timer, SD_EVENT_OFF);
        return;
    }
    int64_t left = due - supervisor_now(supervisor);
    uint64_t left_us = left > 0 ? (uint64_t)left * 1000 : 0;
    sd_event_source_set_time(supervisor->timer, kernel_boot_us() + left_us);
    sd_event_source_set_enabled(supervisor->timer, SD_EVENT_ONESHOT);
}

/* A loop that did not turn, or turned late, may belong to a process that was stopped or suspended. */
static int64_t late_ms(const struct supervisor *supervisor)
{
    int64_t quarter = supervisor->options.terms.heartbeat_ms / 4;
    return quarter > 500 ? quarter : 500;
}

static void notice_lateness(struct supervisor *supervisor, int64_t since_boot_ms)
{
    if (since_boot_ms != NEVER_MS && supervisor_now(supervisor) - since_boot_ms > late_ms(supervisor))
        lease_doubt(supervisor);
}

/* Everything that is ready, but for a bounded time: a producer that never falls silent is no reason not to
 * look. */
static int dispatch(struct supervisor *supervisor, uint64_t timeout_us)
{
    int r = sd_event_run(supervisor->event, timeout_us);
    for (int i = 0; r > 0 && i < 16; i++)
        r = sd_event_run(supervisor->event, 0);
    return r;
}

/* Whether whoever waits for events may find something that was not there at the start of the turn. */
static bool something_new(const struct supervisor *supervisor, size_t queued, bool withheld)
{
    return supervisor->queue_count > queued || (withheld && !lease_withholds(supervisor));
}

enum result loop_turn(struct supervisor *supervisor, int64_t wait_ms, struct error *err)
{
    size_t queued = supervisor->queue_count;
    bool withheld = lease_withholds(supervisor);
    notice_lateness(supervisor, supervisor->turned_boot_ms);
    int64_t due = look(supervisor);
    if (wait_ms != NEVER_MS)
        due_at(&due, supervisor_now(supervisor) + wait_ms);
    bool at_once = wait_ms == 0 || something_new(supervisor, queued, withheld);
    arm(supervisor, at_once ? NEVER_MS : due);
    int r = dispatch(supervisor, at_once ? 0 : UINT64_MAX);
    if (r < 0)
        return error_errno(err, -r, "the event loop failed");
    notice_lateness(supervisor, supervisor->due_boot_ms);
    supervisor->turned_boot_ms = supervisor_now(supervisor);
    heartbeat_turned(supervisor->heartbeat);
    look(supervisor);
    return RESULT_OK;
}

void supervisor_turn(struct supervisor *supervisor)
{
    enum result r = loop_turn(supervisor, 0, NULL);
    (void)r; /* supervisor_next() reports a broken loop */
}

static bool take_event(struct supervisor *supervisor, struct supervisor_event *ret)
{
    if (supervisor->queue_count == 0 || lease_withholds(supervisor))
        return false;
    *ret = supervisor->queue[0];
    supervisor->queue_count--;
    for (size_t i = 0; i < supervisor->queue_count; i++)
        supervisor->queue[i] = supervisor->queue[i + 1];
    return true;
}

static bool is_idle(const struct supervisor *supervisor)
{
    return supervisor->job_count == 0 && supervisor->queue_count == 0 && !lease_withholds(supervisor);
}

enum result supervisor_next(struct supervisor *supervisor, struct supervisor_event *ret, struct error *err)
{
    notice_lateness(supervisor, supervisor->turned_boot_ms);
    supervisor->children = true; /* one that ended while the caller was busy is told at once */
    for (;;) {
        look(supervisor);
        if (take_event(supervisor, ret))
            return RESULT_OK;
        if (is_idle(supervisor)) {
            *ret = (struct supervisor_event){.kind = SUPERVISOR_IDLE};
            return RESULT_OK;
        }
        enum result r = loop_turn(supervisor, NEVER_MS, err);
        if (r != RESULT_OK)
            return r;
    }
}
