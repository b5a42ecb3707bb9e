/*
 * A wait that another thread can cut short, on CLOCK_BOOTTIME so that a suspend counts. One thread waits, any
 * thread rings; a ring that comes before the wait ends it at once. Source: timerfd_create(2), eventfd(2).
 */
#ifndef SUPERVISOR_BELL_PRIVATE_H
#define SUPERVISOR_BELL_PRIVATE_H

#include <pthread.h>
#include <stdint.h>

#include "base/error.h"

struct bell {
    int timer_fd, ring_fd;
};

_must_use_ enum result bell_open(struct bell *bell, struct error *err);
void bell_close(struct bell *bell);
void bell_ring(const struct bell *bell);
/* Until rung or `timeout_ms` from now are over; negative: until rung. May return early. */
void bell_wait(const struct bell *bell, int64_t timeout_ms);

/* Adds one to an eventfd: how every thread of this room wakes another. */
void eventfd_poke(int fd);
/* Empties a non-blocking eventfd. */
void eventfd_clear(int fd);

/* Starts a thread with every signal blocked: signals are the loop's. */
_must_use_ enum result thread_start(
    pthread_t *ret, const char *name, void *(*main)(void *), void *argument, struct error *err);

#endif
