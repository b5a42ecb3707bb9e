/*
 * What the files of the supervisor share.
 *
 *     supervisor.c   start, free, and the small questions
 *     loop.c         one turn: wait, look at everything, arm the one timer; supervisor_next
 *     signals.c      the signals: blocked, handled, restored
 *     freeze.c       the lease: news of the heartbeat, frozen and thawed, gaps, doubt after a stall, Ctrl-Z
 *     stop.c         stopping the run, ending its work
 *     start.c        through the gate: how anything of the work comes to life
 *     jobs.c         starting jobs, their phases and time-outs
 *     outcome.c      from a wait status to an outcome
 *     sweep.c        what a job left behind
 *     account.c      what is told to the journal, and how often
 *     runner.c       programs run for their output
 *
 * Everything here belongs to the loop's thread.
 */
#ifndef SUPERVISOR_SUPERVISOR_PRIVATE_H
#define SUPERVISOR_SUPERVISOR_PRIVATE_H

#include <systemd/sd-event.h>

#include "supervisor/capture.h"
#include "supervisor/signals-private.h"
#include "supervisor/supervisor.h"

#define NEVER_MS INT64_MAX

#define STALLED_MS       INT64_C(10000) /* a job may stand still for so long by itself */
#define SWEEP_GRACE_MS   INT64_C(500)   /* what a job left behind: from TERM to KILL */
#define SWEEP_BOUND_MS   INT64_C(5000)  /* and from KILL to giving up */
#define END_BOUND_MS     INT64_C(10000) /* the same for all of the work */
#define SAME_SIGNAL_MS   INT64_C(100) /* a signal so soon after the first is the same wish, passed on twice */
#define MARK_INTERVAL_MS INT64_C(500) /* between progress records, and output marks of one job */

enum job_phase {
    JOB_RUNNING,  /* nothing was asked of it */
    JOB_ENDING,   /* TERM was sent; KILL at act_boot_ms */
    JOB_KILLED,   /* KILL was sent; given up at act_boot_ms */
    JOB_SWEEPING, /* the leader was reaped; TERM to what it left, KILL at act_boot_ms */
    JOB_SWEPT,    /* KILL to what it left; given up at act_boot_ms */
    JOB_PHASE_MAX
};

struct job {
    struct job_outcome outcome;
    struct process process;
    struct capture *capture; /* NULL: not captured, or drained */
    struct output *output;
    int64_t timeout_ms, quiet_ms;
    int64_t started_boot_ms, heard_boot_ms; /* heard: the last output, or the start */
    int64_t frozen_before_ms;               /* of the run, when the job started */
    int64_t standing_boot_ms;               /* since when it stands still by itself; 0: it does not */
    int64_t act_boot_ms, swept_boot_ms;
    int64_t marked_boot_ms, marked_bytes, seen_bytes;
    struct text left; /* what it left behind, named */
    enum job_phase phase;
    bool judged;
    enum job_verdict asked; /* why it was asked to stop; JOB_VERDICT_MAX: it was not */
};

struct supervisor {
    struct supervisor_options options;
    sd_event *event;
    sd_event_source *timer, *wake;
    struct signals signals;
    struct rlimit64 files; /* RLIMIT_NOFILE as it was: the work's */
    int loop_fd;
    struct gate gate;
    struct containment *containment;
    struct guard *guard;
    struct heartbeat *heartbeat;
    bool drained;

    struct job **jobs;
    size_t job_count, job_capacity;
    bool children; /* a child changed: reap, and look at the standing ones */

    struct supervisor_event *queue;
    size_t queue_count, queue_capacity;

    struct stop stop;
    int64_t signal_boot_ms; /* of the first signal */
    bool stopping_told;     /* that it has been heard */
    bool killed;            /* everything was killed already */

    int64_t confirmed_boot_ms; /* when the last confirmed renewal was sent */
    bool lost, in_trouble;

    bool frozen;
    int64_t frozen_boot_ms, frozen_total_ms; /* in all: with the gaps */
    struct stall stall;
    int64_t busy_boot_ms;   /* since when the store is busy; 0: it is not */
    int64_t resume_boot_ms; /* only a renewal sent later than this thaws */

    bool doubtful, doubt_spent;
    int64_t doubt_boot_ms;
    int64_t turned_boot_ms, due_boot_ms;

    struct progress progress;
    bool progress_pending;
    int64_t progress_boot_ms;

    struct runner runner;
    struct run *run; /* programs being run for their output; NULL: none */
};

int64_t supervisor_now(const struct supervisor *supervisor);
static inline void due_at(int64_t *due, int64_t at)
{
    *due = at < *due ? at : *due;
}

/* ---- loop.c ---- */

_must_use_ enum result loop_open(struct supervisor *supervisor, struct error *err);
void loop_close(struct supervisor *supervisor);
/* One turn: waits for at most `wait_ms` (NEVER_MS: for whatever is due), takes in everything that happened.
 */
_must_use_ enum result loop_turn(struct supervisor *supervisor, int64_t wait_ms, struct error *err);
void loop_queue(struct supervisor *supervisor, const struct supervisor_event *event);

/* ---- freeze.c: each look returns by `due` when it wants to be called again ---- */

void lease_look(struct supervisor *supervisor, int64_t now, int64_t *due);
/* Before anything of a turn is looked at: accounts for a time in which nobody could look. */
void lease_stalled(struct supervisor *supervisor);
void lease_take_news(struct supervisor *supervisor, struct heartbeat_news *news);
/* Something may have stopped this process: renew before anything else is given out. */
void lease_doubt(struct supervisor *supervisor);
bool lease_withholds(const struct supervisor *supervisor);
void lease_suspend(struct supervisor *supervisor); /* Ctrl-Z */
/* How long the run has stood still in all, frozen or with us, a freeze that lasts included. */
int64_t lease_frozen_ms(const struct supervisor *supervisor, int64_t now);

/* ---- stop.c ---- */

/* Takes over `reason`. The first cause counts, but a retirement overrides any other. */
void stop_run(struct supervisor *supervisor, enum stop_cause cause, int signal, struct reason *reason);
void stop_on_signal(struct supervisor *supervisor, int signal);
/* Says what is waited for when work does not end at once after a signal. */
void stop_look(struct supervisor *supervisor, int64_t now, int64_t *due);
void stop_kill_all(struct supervisor *supervisor);
struct reason reason_make(const char *code, const char *format, ...) _printf_(2, 3);

/* ---- start.c ---- */

/* The gate is open, and the deadline lies ahead. */
bool work_may_start(const struct supervisor *supervisor);
/* Why nothing may be started just now: BUSY. */
enum result work_withheld(struct error *err);
/* Starts a program as part of the work; fills in the request's deadline and limits. BUSY: the gate is closed,
 * try again after a turn. SYSTEM: as from the spawner. */
_must_use_ enum result work_start(struct supervisor *supervisor, struct spawn_request *request,
    struct process *ret, struct spawn_failure *ret_failure, struct error *err);

/* ---- jobs.c ---- */

void jobs_look(struct supervisor *supervisor, int64_t now, int64_t *due);
void jobs_reap(struct supervisor *supervisor);
void jobs_thawed(struct supervisor *supervisor, int64_t gap_ms);
void job_ask(struct supervisor *supervisor, struct job *job, enum job_verdict why);
void job_killed(struct supervisor *supervisor, struct job *job); /* KILL was sent to it */
/* Sends a signal to a job's group, inside the gate. */
void job_signal(struct supervisor *supervisor, const struct job *job, int signal);
void job_forget(struct supervisor *supervisor, struct job *job); /* takes it off the list and frees it */
void job_free(struct job *job);

/* ---- outcome.c ---- */

/* What the kernel said and what was captured; the journal is told by outcome_end. */
void outcome_of_exit(struct supervisor *supervisor, struct job *job, int wait_status);
/* It was killed and does not go. */
void outcome_of_survivor(struct supervisor *supervisor, struct job *job);
void outcome_of_failure(struct job *job, const struct spawn_failure *failure, const struct error *err);
/* `survived`: what the job left could not be ended. Completes the text, tells the journal, queues the event;
 * frees the job. */
void outcome_end(struct supervisor *supervisor, struct job *job, bool survived);

/* ---- sweep.c ---- */

/* The leader was reaped: counts, names and asks to end what it left. */
void sweep_first(struct supervisor *supervisor, struct job *job);
/* Waits for the end of that; the outcome follows at once when it is nothing. */
void sweep_begin(struct supervisor *supervisor, struct job *job);
/* Kills what is left of a session whose leader was reaped. */
void sweep_session(struct supervisor *supervisor, pid_t session);
void sweep_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due);

/* ---- account.c ---- */

void tell(
    struct supervisor *supervisor, const struct journal_event *event, enum journal_durability durability);
void tell_note(struct supervisor *supervisor, const char *format, ...) _printf_(2, 3);
void account_look(struct supervisor *supervisor, int64_t now, int64_t *due);
/* The killed and named of a report, as a note; frees the report. */
void tell_report(struct supervisor *supervisor, struct containment_report *report);

/* ---- runner.c ---- */

void runner_init(struct supervisor *supervisor);
/* A child that is no job was reaped; true when it was one of the runner's. */
bool runner_reaped(struct supervisor *supervisor, pid_t pid, int wait_status);

#endif
