/*
 * The process that holds an attempt and does its work: one event loop (sd-event), one heartbeat, one guard.
 *
 *     supervisor_start(&options, &supervisor, err);     // signals blocked, heartbeat and guard running
 *     supervisor_spawn(supervisor, &request, err);      // through the gate; journal: started
 *     while (supervisor_next(supervisor, &event, err) == RESULT_OK)      // until something happened
 *         if (event.kind == SUPERVISOR_JOB_FINISHED)
 *             ... job_outcome_done(&event.outcome);
 *     supervisor_end_work(supervisor, ...);             // TERM, grace, KILL; nothing is left
 *     supervisor_drain(supervisor, err);                // heartbeat ended; now settle
 *     supervisor_free(supervisor);                      // guard ended, signal mask restored
 *
 * When exit status 0 alone is no pass (request.judged), the journal learns of it from the caller, by
 * supervisor_judge(), once it has looked at what the job left; of every other end the supervisor tells
 * itself.
 *
 * The caller's code runs between calls, in the order of the story, never inside a callback of the loop. After
 * a suspend, a stop or a stall supervisor_next() first has the lease confirmed, then hands out anything else.
 * Freezing, thawing, signals, cancellation, time-outs and Ctrl-Z are handled in here and reported through the
 * journal. One thread (the one that started it).
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "attempts/store.h"
#include "journal/journal.h"
#include "supervisor/collect.h"
#include "supervisor/guard.h"
#include "supervisor/heartbeat.h"
#include "supervisor/spawn.h"

#define GRACE_DEFAULT_MS          INT64_C(5000)
#define LAPSE_PATIENCE_DEFAULT_MS (INT64_C(15) * 60 * 1000)

struct supervisor;

struct supervisor_options {
    const struct clock *clock;
    const struct spawner *spawner;
    struct journal *journal;
    const struct store_options *store; /* for the heartbeat's own handle */
    store_open_fn open_store;          /* NULL: store_open */
    const struct credential *credential;
    struct lease_terms terms;
    int64_t sent_boot_ms; /* when the reserve was sent */
    enum lapse_policy on_lapse;
    int64_t lapse_patience_ms, grace_ms;
};
_must_use_ enum result supervisor_start(
    const struct supervisor_options *options, struct supervisor **ret, struct error *err);
void supervisor_free(struct supervisor *supervisor);

struct job_request {
    const char *name; /* producer or procedure; copied */
    const char *const *argv;
    const char *const *environment;
    int directory_fd;
    const char *command; /* as a person types it, for the journal; NULL: not told */
    bool judged;         /* the caller says whether exit status 0 is a pass */
    bool captured;       /* output goes to a log of the journal; else stdin, stdout, stderr are our own */
    int stdout_fd;       /* not captured: where its standard output goes; 0: our own */
    int64_t cap_bytes;   /* of the log; 0: default */
    int64_t timeout_ms, quiet_ms; /* 0: none. Frozen time and gaps do not count */
    int64_t expected_ms;          /* from history, for the screen; 0: unknown */
};

enum job_verdict {
    JOB_PASSED,    /* exit status 0, and was not asked to stop */
    JOB_FAILED,    /* another exit status */
    JOB_SIGNALLED, /* ended by a signal that we did not send */
    JOB_TIMED_OUT,
    JOB_QUIET,       /* no output for too long */
    JOB_NOT_STARTED, /* `failure` says which step */
    JOB_STOPPED,     /* we ended it: a signal to us, a cancellation, a loss; whatever its status then was */
    JOB_STALLED,     /* stopped itself (SIGTTIN, SIGSTOP) and stayed so beyond the bound */
    JOB_OUTPUT_LOST, /* ended well, but its output could not be kept */
    JOB_VERDICT_MAX
};
const char *job_verdict_name(enum job_verdict verdict); /* "passed", "timed-out", ... */

struct job_outcome {
    char *name;
    enum job_verdict verdict;
    struct spawn_failure failure;
    int exit_code, signal; /* -1 when not so ended; both as the kernel said, also for a stopped job */
    int64_t duration_ms;   /* without what follows */
    int64_t frozen_ms;     /* frozen, or nobody looked: we were stopped, suspended or held up meanwhile */
    char *log;             /* file name below the journal's out/; NULL when not captured */
    char output_digest[DIGEST_HEX_SIZE];
    int64_t output_bytes, dropped_bytes;
    int leftovers; /* processes that outlived it and were ended; named in `text` */
    char *text;    /* one sentence for people */
    bool unjudged; /* PASSED as far as the supervisor knows, and the journal was not told: supervisor_judge()
                    */
};
void job_outcome_done(struct job_outcome *outcome);

/* Starts a job. OK also when the program could not be started: then its outcome (JOB_NOT_STARTED) comes from
 * supervisor_next. BUSY: the gate is closed just now (frozen, or the deadline has passed): call
 * supervisor_next and try again. INTERRUPTED: the run is being stopped. */
_must_use_ enum result supervisor_spawn(
    struct supervisor *supervisor, const struct job_request *request, struct error *err);
/* Tells the journal how an unjudged outcome ended, durably: before anything that rests upon it. `text` NULL:
 * the outcome's own. `verdict` NULL: nobody could judge; it then counts as stopped. Does nothing when the
 * journal was told before. */
void supervisor_judge(
    struct supervisor *supervisor, struct job_outcome *outcome, const char *verdict, const char *text);
size_t supervisor_running(const struct supervisor *supervisor);
/* Asks one job to stop (TERM, then KILL after the grace). */
void supervisor_stop_job(struct supervisor *supervisor, const char *name);

enum stop_cause {
    STOP_NONE,
    STOP_SIGNAL,    /* INT, TERM, HUP, QUIT: `signal` */
    STOP_CANCELLED, /* somebody asked through the store */
    STOP_RETIRED,   /* another retired this attempt: `reason` */
    STOP_LAPSED,    /* on_lapse abort, or patience exhausted */
};
struct stop {
    enum stop_cause cause;
    int signal;
    struct reason reason; /* code and text for the record */
};

enum supervisor_event_kind {
    SUPERVISOR_JOB_FINISHED,
    SUPERVISOR_STOPPING, /* once: the run is to be stopped; supervisor_stop_of() tells why. Jobs are being
                            ended */
    SUPERVISOR_THAWED,   /* the gate is open again after a freeze */
    SUPERVISOR_IDLE,     /* nothing runs and nothing is queued */
};
struct supervisor_event {
    enum supervisor_event_kind kind;
    struct job_outcome outcome; /* JOB_FINISHED */
};
_must_use_ enum result supervisor_next(
    struct supervisor *supervisor, struct supervisor_event *ret, struct error *err);

const struct stop *supervisor_stop_of(const struct supervisor *supervisor);
/* Turns the loop without waiting: from long computations. */
void supervisor_turn(struct supervisor *supervisor);
void supervisor_progress(struct supervisor *supervisor, const char *phase, int64_t done, int64_t total);

/* Runs programs for their output while the loop turns. Lives as long as the supervisor. */
struct runner *supervisor_runner(struct supervisor *supervisor);

/* Ends everything that lives: TERM, grace, KILL (at once when retired). Appends to `ret_named` what was
 * ended; OK when nothing is left, BUSY when something could not be ended (named). */
_must_use_ enum result supervisor_end_work(
    struct supervisor *supervisor, bool at_once, struct text *ret_named, struct error *err);

/* Last renewal if one is due, heartbeat joined. RETIRED when that renewal found the attempt lost. */
_must_use_ enum result supervisor_drain(struct supervisor *supervisor, struct error *err);

#endif
