/*
 * One run of `done`, as its parts see it: completion.c tells the story, plan.c decides what runs, schedule.c
 * runs it, proving.c signs. Nobody else includes this file.
 */
#ifndef COMPLETION_COMPLETION_PRIVATE_H
#define COMPLETION_COMPLETION_PRIVATE_H

#include "completion/completion.h"
#include "completion/repository/snapshot.h"

enum step_state {
    STEP_OUT,     /* not demanded */
    STEP_WAITING, /* demanded; needs or a free place are waited for */
    STEP_RUNNING,
    STEP_ENDED,   /* ran, or its evidence was reused */
    STEP_DROPPED, /* not started, since something else failed or the run ended */
};

/* One producer in this run. */
struct step {
    const struct producer *producer;
    enum step_state state;
    bool reuse;   /* planned, then true once it happened */
    char *reason; /* of the plan */
    int64_t expected_ms;
    struct applicability applicability;
    struct snapshot *ahead;   /* the inputs before the last look at the tree; NULL: it was not ready then */
    struct snapshot *inputs;  /* the same, of one that started */
    struct evidence evidence; /* of its outcome, once ENDED or planned for reuse */
};

struct run {
    const struct completion_options *options;
    struct completion_result *result;
    const struct clock *clock;
    struct surroundings surroundings;
    struct runner *runner; /* the plain one, then the supervisor's */

    struct candidate candidate;
    struct config config;
    bool *demanded;
    bool partial;
    char demand[DIGEST_HEX_SIZE];
    char *repository;
    const char *store_url;

    struct hold *hold;
    struct step *steps; /* one per producer of the configuration */
    bool looked;        /* the tree was looked at since the last turn of the loop */
    bool moved;
    bool failed;
    char *failure; /* sentence about the first failure, in the end about all */
    struct text failed_names;
    size_t failed_count;
};

/* ---- plan.c ---- */

/* Decides for every demanded producer whether it runs or its evidence is reused, and why. `store` may be
 * NULL: there is none yet, so everything runs. */
_must_use_ enum result plan_make(struct run *run, struct store *store, struct error *err);
/* Once all needs of a step have ended: its key, from what they really put out, and whether evidence covers
 * it. */
_must_use_ enum result plan_resolve(struct run *run, struct store *store, size_t index, struct error *err);
/* CONFLICT when an output that the step needs is not as its producer left it: the step's key would lie. */
_must_use_ enum result plan_check_needs(struct run *run, const struct step *step, struct error *err);
_must_use_ enum result plan_record(struct run *run, struct error *err);

/* ---- schedule.c ---- */

/* Runs procedures and producers to their end, or until the run is stopped; sets failed, moved. */
_must_use_ enum result schedule_run(struct run *run, struct error *err);
/* CONFLICT (and run->moved) when the work tree is not the candidate any more. */
_must_use_ enum result schedule_look(struct run *run, struct error *err);

/* ---- proving.c ---- */

/* Is this very demand proven already, by a Proof that verifies? OK, and then the steps are as it says; or
 * ABSENT. Writes nothing. */
_must_use_ enum result proving_find(
    struct run *run, struct store *store, struct proof *ret, struct error *err);

struct signed_proof {
    struct proof_row row;
    struct text envelope;
};
void signed_proof_done(struct signed_proof *proof);
_must_use_ enum result proving_sign(struct run *run, struct signed_proof *ret, struct error *err);

/* ---- result.c ---- */

/* Copies what the steps became into the result's producers. */
void result_fill_producers(struct run *run);
void result_fill_hold(struct run *run, const struct hold_result *end);
/* The command that reproduces a producer by hand, quoted for a shell. Owned. */
char *command_line_quote(const struct command_line *line);

#endif
