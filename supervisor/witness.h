/*
 * What can be seen of an unfinished attempt beside its record: its journal tells what runs and where, the
 * kernel whether its owner stands still. For people; nothing here decides. Thread-safe.
 */
#ifndef SUPERVISOR_WITNESS_H
#define SUPERVISOR_WITNESS_H

#include <stdbool.h>

#include "attempts/attempt.h"
#include "base/machine.h"

struct witness {
    char *does;      /* the command line; NULL when the journal cannot be read here */
    char *directory; /* where it was started; NULL */
    bool local;      /* its journal would lie on this machine */
    bool stopped;    /* its owner is stopped: by Ctrl-Z, or by a SIGSTOP (state T of proc(5)) */
};

/* Nothing is known of an attempt of another machine. Never fails. */
void witness_look(const struct machine *machine, const struct attempt *attempt, struct witness *ret);
void witness_done(struct witness *witness);

#endif
