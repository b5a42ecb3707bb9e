/*
 * What the files of the library share.
 *
 *     tenure.c     the functions of tenure.h, in their order
 *     renewal.c    the thread that renews, on a store handle of its own
 *     settle.c     ending a claim, whatever becomes of the answer
 *     embedded.c   there is no embedded store here
 */
#ifndef LIBRARY_CLAIM_PRIVATE_H
#define LIBRARY_CLAIM_PRIVATE_H

#include <pthread.h>
#include <sys/types.h>

#include "attempts/publication.h"
#include "include/tenure.h"

/* One statement of a claim may take so long; those of a publication what is left of the lease. */
#define CLAIM_STATEMENT_MS INT64_C(10000)
/* How long the end of a claim is tried, when the server is busy or away. */
#define CLAIM_PATIENCE_MS INT64_C(10000)

/* Guarded by `lock`, but for `store` and what is constant while the thread lives. */
struct renewal_thread {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool started, ending, paused, hurried;
    bool renewing;       /* a statement is under way: a pause waits for its end */
    bool lost;           /* proven */
    int64_t deadline_ms; /* our own, on CLOCK_BOOTTIME */
    struct store_options options;
    const struct credential *credential;
    struct lease_terms terms;
};

struct tenure_claim {
    pid_t pid; /* of who may use it */
    char *url;
    struct machine machine;
    struct store_options options;
    struct store *store; /* NULL: to be opened anew */
    struct credential credential;
    struct renewal_thread renewal;
    struct publication *publication;
    struct publication_counts counts;
    int64_t deadline_before_ms; /* of the lease as it was before the publication that is open */
    bool held, ended;
    struct error error;
    char *message; /* the error and its remedy, in one sentence */
};

/* ---- renewal.c ---- */
_must_use_ enum result renewal_start(struct tenure_claim *claim, int64_t sent_ms, struct error *err);
void renewal_pause(struct renewal_thread *renewal); /* none is under way any more, and none begins */
void renewal_resume(struct renewal_thread *renewal);
void renewal_stop(struct renewal_thread *renewal); /* joins; may be called again */
bool renewal_is_live(struct renewal_thread *renewal);
int64_t renewal_set_deadline(struct renewal_thread *renewal, int64_t deadline_ms); /* the one before */

/* ---- settle.c ---- */
_must_use_ enum result claim_open(struct tenure_claim *claim, struct error *err);
/* Settles, again and by asking as long as that may help. */
_must_use_ enum result claim_settle(
    struct tenure_claim *claim, const struct settlement *settlement, struct error *err);
/* After the answer of a commit was lost: OK it landed, CONFLICT it did not, RETIRED, UNKNOWN. */
_must_use_ enum result claim_ask(
    struct tenure_claim *claim, const struct settlement *settlement, struct error *err);

#endif
