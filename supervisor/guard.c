#include "supervisor/guard.h"

#include <signal.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "supervisor/bell-private.h"
#include "supervisor/guard-private.h"

struct guard {
    struct guard_options options;
    struct bell bell;
    pthread_t thread;
    _Atomic bool stopping;
    _Atomic int state;                /* enum guard_state; changed inside the gate only */
    struct containment_report report; /* inside the gate */
};

struct guard_step guard_decide(enum lapse_policy policy, enum guard_state state, int64_t now_boot_ms,
    int64_t deadline_boot_ms, int64_t margin_ms)
{
    const struct guard_step sleep = {.act = GUARD_WAIT, .wait_ms = -1};
    if (state == GUARD_FROZEN || state == GUARD_ABORTED)
        return sleep;
    if (now_boot_ms >= deadline_boot_ms)
        return (struct guard_step){.act = policy == LAPSE_FREEZE ? GUARD_FREEZE : GUARD_KILL};
    int64_t warning = deadline_boot_ms - margin_ms;
    if (policy == LAPSE_FREEZE || state == GUARD_ABORTING)
        return (struct guard_step){.act = GUARD_WAIT, .wait_ms = deadline_boot_ms - now_boot_ms};
    if (now_boot_ms >= warning)
        return (struct guard_step){.act = GUARD_TERM};
    return (struct guard_step){.act = GUARD_WAIT, .wait_ms = warning - now_boot_ms};
}

static int64_t guard_now(const struct guard *guard)
{
    return guard->options.clock->boot_ms(guard->options.clock);
}

static struct guard_step guard_next(const struct guard *guard)
{
    return guard_decide(guard->options.policy, guard_state(guard), guard_now(guard),
        gate_deadline(guard->options.gate), guard->options.margin_ms);
}

/* All of these: inside the gate. */
static void guard_do_freeze(struct guard *guard)
{
    guard->options.gate->closed = true;
    containment_freeze(
        guard->options.containment, guard_now(guard) + guard->options.margin_ms / 2, &guard->report);
    guard->state = GUARD_FROZEN;
}

static void guard_do_signal(struct guard *guard, int signal, enum guard_state state)
{
    guard->options.gate->closed = true;
    containment_signal(guard->options.containment, signal, &guard->report);
    guard->state = state;
}

static void guard_do(struct guard *guard, enum guard_act act)
{
    switch (act) {
    case GUARD_FREEZE:
        guard_do_freeze(guard);
        break;
    case GUARD_TERM:
        guard_do_signal(guard, SIGTERM, GUARD_ABORTING);
        break;
    case GUARD_KILL:
        guard_do_signal(guard, SIGKILL, GUARD_ABORTED);
        break;
    case GUARD_WAIT:
        return;
    }
    eventfd_poke(guard->options.notify_fd);
}

/* A confirmation may have moved the deadline while the gate was waited for: the last look is inside it. */
static void guard_act_inside(struct guard *guard)
{
    gate_enter(guard->options.gate);
    guard_do(guard, guard_next(guard).act);
    gate_leave(guard->options.gate);
}

static void guard_sleep(const struct guard *guard, int64_t wait_ms)
{
    struct stall *stall = guard->options.stall;
    int64_t tick_ms = stall_tick_ms(guard->options.margin_ms);
    bool ticks = stall != NULL && (wait_ms < 0 || wait_ms > tick_ms);
    bell_wait(&guard->bell, ticks ? tick_ms : wait_ms);
    if (stall != NULL && stall_look(stall))
        eventfd_poke(guard->options.notify_fd);
}

static void *guard_main(void *argument)
{
    struct guard *guard = argument;
    while (!guard->stopping) {
        struct guard_step step = guard_next(guard);
        if (step.act == GUARD_WAIT)
            guard_sleep(guard, step.wait_ms);
        else
            guard_act_inside(guard);
    }
    return NULL;
}

enum result guard_start(const struct guard_options *options, struct guard **ret, struct error *err)
{
    struct guard *guard = mem_alloc(sizeof(*guard));
    guard->options = *options;
    enum result r = bell_open(&guard->bell, err);
    if (r != RESULT_OK)
        goto failed;
    r = thread_start(&guard->thread, "lapse guard", guard_main, guard, err);
    if (r != RESULT_OK)
        goto failed_bell;
    *ret = guard;
    return RESULT_OK;

failed_bell:
    bell_close(&guard->bell);
failed:
    free(guard);
    return r;
}

void guard_stop(struct guard *guard)
{
    if (guard == NULL)
        return;
    guard->stopping = true;
    bell_ring(&guard->bell);
    pthread_join(guard->thread, NULL);
    bell_close(&guard->bell);
    containment_report_done(&guard->report);
    free(guard);
}

enum guard_state guard_state(const struct guard *guard)
{
    return (enum guard_state)guard->state;
}

void guard_confirm(struct guard *guard, int64_t deadline_boot_ms)
{
    gate_move(guard->options.gate, deadline_boot_ms);
}

static bool guard_deadline_ahead(const struct guard *guard)
{
    return MUTANT("deadline-thaw") || guard_now(guard) < gate_deadline(guard->options.gate);
}

/* Inside the gate. A process that was stopped between its look and the thaw sees it at the second look. */
static bool guard_thaw(struct guard *guard)
{
    if (!guard_deadline_ahead(guard))
        return false;
    FAILPOINT("guard-before-thaw");
    containment_thaw(guard->options.containment);
    guard->options.gate->closed = false;
    guard->state = GUARD_WATCHING;
    FAILPOINT("guard-after-thaw");
    if (guard_deadline_ahead(guard))
        return true;
    guard_do_freeze(guard);
    return false;
}

bool guard_resume(struct guard *guard)
{
    gate_enter(guard->options.gate);
    bool runs = guard_state(guard) == GUARD_FROZEN ? guard_thaw(guard) : guard_state(guard) == GUARD_WATCHING;
    gate_leave(guard->options.gate);
    bell_ring(&guard->bell);
    return runs;
}

void guard_freeze(struct guard *guard)
{
    gate_enter(guard->options.gate);
    if (guard_state(guard) == GUARD_WATCHING)
        guard_do(guard, GUARD_FREEZE);
    gate_leave(guard->options.gate);
}

void guard_take_report(struct guard *guard, struct containment_report *ret)
{
    gate_enter(guard->options.gate);
    *ret = guard->report;
    guard->report = (struct containment_report){0};
    gate_leave(guard->options.gate);
}
