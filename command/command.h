/*
 * `tenure run`: one command while a subject is held. The command has our stdin, stdout and stderr, byte for
 * byte, and its status is passed on.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include "supervisor/hold.h"

struct command_options {
    struct hold_options hold; /* kind, what and bind_now are set here */
    const char *const *argv;  /* NULL-terminated */
};

struct command_result {
    bool started;
    struct spawn_failure failure; /* when not started */
    char *failure_text;           /* the same in words, with what to do about it */
    int exit_code, signal;        /* -1 when not so ended */
    bool lost;                    /* retired, or the lease could not be kept */
    int stop_signal;              /* 0, or the signal that ended us */
    struct hold_result end;
    char *unsettled; /* why the store could not record the end of a command that failed; NULL when it did */
    char *handle;
    char *attempt_id;
    int64_t fence;
};
void command_result_done(struct command_result *result);

/* The exit status of a run that command_run() answered OK, or INTERRUPTED while it waited. The journal's last
 * record says the same. */
int command_exit(const struct command_result *result);

/* OK: the command ran or could not be started, `ret` tells. HELD fills `ret_pending`, INTERRUPTED fills
 * `ret->stop_signal`. Once an attempt was held `ret` is filled whatever the result. A settlement that
 * failed never hides that the command did: then it is OK and `unsettled`; else it is the result. Start from a
 * zeroed `ret` and end with command_result_done(). */
_must_use_ enum result command_run(const struct command_options *options, struct command_result *ret,
    struct pending *ret_pending, struct error *err);

#endif
