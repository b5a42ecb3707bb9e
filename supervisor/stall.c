#include "supervisor/stall.h"

#include <sched.h>

void stall_init(struct stall *stall, const struct clock *clock, int64_t margin_ms)
{
    stall->clock = clock;
    stall->bound_ms = 2 * margin_ms;
    atomic_init(&stall->seen_boot_ms, clock->boot_ms(clock));
    atomic_init(&stall->gap_ms, 0);
    atomic_init(&stall->looking, 0);
}

int64_t stall_tick_ms(int64_t margin_ms)
{
    return margin_ms / 2 > 0 ? margin_ms / 2 : 1;
}

static bool count(struct stall *stall)
{
    int64_t now = stall->clock->boot_ms(stall->clock);
    int64_t before = stall->seen_boot_ms;
    /* Only the one that moves it counts what lies between; who read the clock earlier than another has moved
     * it comes too late to say anything. */
    do {
        if (before >= now)
            return false;
    } while (!atomic_compare_exchange_weak(&stall->seen_boot_ms, &before, now));
    if (now - before <= stall->bound_ms)
        return false;
    stall->gap_ms += now - before;
    return true;
}

bool stall_look(struct stall *stall)
{
    stall->looking++;
    bool ended = count(stall);
    stall->looking--;
    return ended;
}

/* Whose own look found nothing may have come second, to one that has not counted yet. */
int64_t stall_take(struct stall *stall)
{
    while (stall->looking > 0)
        sched_yield();
    return atomic_exchange(&stall->gap_ms, 0);
}
