/*
 * The signals of a process that holds an attempt: blocked so that a descriptor can deliver them in order, and
 * put back as they were. What was ignored when we came (nohup, a background job of a script) stays ignored.
 * May be nested. Call before any thread is started. Source: signal(7), signalfd(2).
 */
#ifndef SUPERVISOR_SIGNALS_PRIVATE_H
#define SUPERVISOR_SIGNALS_PRIVATE_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

struct signals {
    sigset_t before, blocked;
    struct sigaction child, pipe, output;
    bool active;
};

enum signals_scope {
    SIGNALS_ENDING, /* those that end a run: INT, TERM, HUP, QUIT; and USR2, `renew now` */
    SIGNALS_ALL,    /* also CHLD, TSTP, CONT */
};

void signals_begin(struct signals *signals, enum signals_scope scope);
/* Puts everything back, but for SIGUSR2, which stays ignored. A signal that came too late to be acted on is
 * dropped. */
void signals_end(struct signals *signals);
bool signals_handles(const struct signals *signals, int signal);
bool signal_ends_run(int signal);
/* A signalfd(2) of the ending signals that are handled. */
_must_use_ enum result signals_open_fd(const struct signals *signals, int *ret_fd, struct error *err);

#endif
