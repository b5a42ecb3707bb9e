#include "supervisor/gate.h"

void gate_init(struct gate *gate, const struct clock *clock, int64_t deadline_boot_ms)
{
    pthread_mutex_init(&gate->mutex, NULL);
    gate->clock = clock;
    atomic_init(&gate->deadline_boot_ms, deadline_boot_ms);
    atomic_init(&gate->closed, false);
}

void gate_done(struct gate *gate)
{
    pthread_mutex_destroy(&gate->mutex);
}

void gate_enter(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_unlock(&gate->mutex);
}

bool gate_may_run(const struct gate *gate)
{
    return !gate->closed && gate->clock->boot_ms(gate->clock) < gate->deadline_boot_ms;
}

void gate_move(struct gate *gate, int64_t deadline_boot_ms)
{
    int64_t before = gate->deadline_boot_ms;
    while (before < deadline_boot_ms &&
           !atomic_compare_exchange_weak(&gate->deadline_boot_ms, &before, deadline_boot_ms))
        continue;
}

int64_t gate_deadline(const struct gate *gate)
{
    return gate->deadline_boot_ms;
}
