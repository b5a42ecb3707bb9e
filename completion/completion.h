/*
 * `tenure done`: from a tree to a Proof. The story in order:
 *
 *     candidate  ->  configuration  ->  a Proof already?  ->  hold (recover, reserve, heartbeat)  ->  plan
 *     ->  bind  ->  procedures before, producers (needs first), procedures after, evidence under the token
 *     ->  look at the tree again  ->  sign  ->  settle with the Proof
 *
 * Nothing to do writes nothing. One thread.
 */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H

#include "completion/evidence/evidence.h"
#include "supervisor/exits.h"
#include "supervisor/hold.h"

struct completion_options {
    const char *directory;    /* where we are; NULL: "." */
    const char *store_url;    /* from option or environment; NULL: the configuration's, else the default */
    const char *const *names; /* demanded producers; none: all */
    size_t name_count;
    int64_t wait_ms; /* WAIT_NONE: held is answered at once */
    bool rerun, keep_going, dirty, dry_run;
    size_t jobs;      /* 0: number of processors */
    const char *what; /* the command line, for people */
    journal_tap_fn tap;
    void (*waiting)(void *context, const struct attempt *holder, const struct store_time *now);
    void *context; /* of tap and waiting */
};

enum producer_source {
    SOURCE_NONE, /* was not reached */
    SOURCE_RAN,
    SOURCE_REUSED,
};

struct completion_producer {
    char *name;
    enum producer_source source;
    bool planned_reuse;
    char *reason;  /* of the plan */
    char *verdict; /* NULL when it was not reached */
    bool passed;
    int exit_code, signal;
    int64_t duration_ms; /* -1: not known */
    int64_t dropped_bytes;
    char *log; /* absolute; NULL when there is none */
    char *key;
    char *text;
    char *command; /* that reproduces it, shell-quoted */
};

struct completion_result {
    enum outcome outcome;
    int signal;   /* ended by it; 0: not */
    bool already; /* the Proof was there: nothing ran, nothing was written */
    bool trial;   /* --dirty: no Proof */
    bool partial;
    char *sentence; /* the verdict in one sentence */
    char *repository, *commit, *tree;
    char *attempt_id, *handle;
    int64_t fence;
    enum attempt_state state;
    struct reason reason;
    struct completion_producer *producers;
    size_t producer_count;
    char *proof_id, *key_id;
    struct pending pending; /* OUTCOME_HELD */
    int64_t duration_ms;
};
void completion_result_done(struct completion_result *result);

/* OK: `ret` tells how it ended, whatever the outcome. Anything else: refused or broken before there was an
 * outcome, `err` tells, and outcome_of_result() gives the exit status. */
_must_use_ enum result completion_run(
    const struct completion_options *options, struct completion_result *ret, struct error *err);

#endif
