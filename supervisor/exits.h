/*
 * How a command ends: one table of outcomes, exit statuses and their meanings. The journal's last record
 * carries the number, so that an attached terminal exits alike; the man pages are checked against the table.
 * Thread-safe.
 */
#ifndef SUPERVISOR_EXITS_H
#define SUPERVISOR_EXITS_H

#include "base/error.h"

enum outcome {
    OUTCOME_DONE,     /* what the command's name promises */
    OUTCOME_NEGATIVE, /* a negative verdict */
    OUTCOME_REFUSED,  /* refused before anything ran */
    OUTCOME_HELD,     /* another attempt is current */
    OUTCOME_LOST,     /* retired or cancelled by another, or the lease could not be kept */
    OUTCOME_STORE,    /* store unreachable, or outcome unknown */
    OUTCOME_MOVED,    /* the tree moved while it was being proved */
    OUTCOME_INTERNAL, /* internal error */
    OUTCOME_MAX
};

struct exit_row {
    int status;          /* of every command but `run` */
    int run_status;      /* of `tenure run`, for its own failures; 0: does not happen there */
    const char *name;    /* "done", "negative", ... as in --json */
    const char *meaning; /* one line, as in the man pages */
};
extern const struct exit_row EXITS[OUTCOME_MAX];

#define EXIT_SIGNAL_BASE        128 /* 128+n: ended by signal n; recorded as cancelled */
#define EXIT_RUN_NOT_EXECUTABLE 126
#define EXIT_RUN_NOT_FOUND      127

/* The outcome that an error stands for when it ended a command. */
enum outcome outcome_of_result(enum result result);

#endif
