/* A containment that only counts, in place of the real one: for the guard and the heartbeat by themselves. */
#ifndef TESTS_UNIT_SUPERVISOR_FAKE_CONTAINMENT_H
#define TESTS_UNIT_SUPERVISOR_FAKE_CONTAINMENT_H

#include <stdatomic.h>

#include "supervisor/containment.h"

struct containment {
    _Atomic int freezes, thaws, signals;
    _Atomic int last_signal;
    _Atomic bool frozen;
    _Atomic int64_t freeze_deadline_boot_ms;
    void (*on_thaw)(void); /* what happens between the thaw and the second look */
};

void containment_freeze(
    struct containment *containment, int64_t deadline_boot_ms, struct containment_report *report)
{
    containment->freezes++;
    containment->frozen = true;
    containment->freeze_deadline_boot_ms = deadline_boot_ms;
    report->frozen++;
}

void containment_thaw(struct containment *containment)
{
    containment->thaws++;
    containment->frozen = false;
    if (containment->on_thaw != NULL)
        containment->on_thaw();
}

void containment_signal(struct containment *containment, int signal, struct containment_report *report)
{
    containment->last_signal = signal;
    containment->signals++;
    report->killed++;
}

void containment_report_done(struct containment_report *report)
{
    text_done(&report->named);
    *report = (struct containment_report){0};
}

/* A clock that a test moves while another thread reads it. */
struct moved_clock {
    struct clock clock;
    _Atomic int64_t now_boot_ms;
};

static _unused_ int64_t moved_boot_ms(const struct clock *clock)
{
    return ((const struct moved_clock *)clock)->now_boot_ms;
}

static _unused_ void moved_clock_init(struct moved_clock *moved, int64_t boot_ms)
{
    moved->clock = (struct clock){.boot_ms = moved_boot_ms, .wall_ms = moved_boot_ms};
    moved->now_boot_ms = boot_ms;
}

#endif
