/*
 * What a job left behind. Everything that its processes started is a descendant of ours (this process is a
 * subreaper), so the children lists are walked, not all of /proc. Each signal goes through a pidfd that was
 * opened before the process was looked at again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "supervisor/proc-private.h"
#include "supervisor/process.h"
#include "supervisor/supervisor-private.h"

#define NAMED_MAX         8
#define SWEEP_INTERVAL_MS INT64_C(20)

struct sweep {
    pid_t session; /* 0: every descendant of this process */
    int signal;    /* 0: only count */
};

struct sweep_walk {
    const struct sweep *sweep;
    pid_t *found;
    size_t count, capacity;
};

static void add_child(void *context, pid_t parent, pid_t child)
{
    (void)parent;
    struct sweep_walk *walk = context;
    mem_grow(&walk->found, &walk->capacity, walk->count, sizeof(*walk->found));
    walk->found[walk->count++] = child;
}

static void add_children_of(struct sweep_walk *walk, pid_t pid)
{
    struct proc_stat stat;
    if (proc_stat_read(pid, &stat))
        proc_each_child(pid, stat.threads, add_child, walk);
}

static bool belongs(const struct sweep *sweep, pid_t pid, struct proc_stat *ret)
{
    return proc_stat_read(pid, ret) && !proc_stat_is_dead(ret) &&
           (sweep->session == 0 || ret->session == sweep->session);
}

/* True when it lives and belongs to the job. */
static bool sweep_one(const struct sweep *sweep, pid_t pid, struct proc_stat *ret)
{
    if (!belongs(sweep, pid, ret))
        return false;
    struct process process;
    if (sweep->signal == 0 || process_open(pid, ret->start_ticks, &process, NULL) != RESULT_OK)
        return true;
    enum result r = process_signal(&process, sweep->signal, NULL);
    if (r == RESULT_OK && sweep->signal != SIGKILL)
        r = process_signal(&process, SIGCONT, NULL); /* a stopped one cannot act on it otherwise */
    process_close(&process);
    return true;
}

/* One pass over our descendants: how many of the job's live; their names are appended to `named`. */
static size_t sweep_pass(const struct sweep *sweep, struct text *named)
{
    struct sweep_walk walk = {.sweep = sweep};
    size_t lives = 0;
    add_children_of(&walk, getpid());
    for (size_t i = 0; i < walk.count; i++) {
        struct proc_stat stat;
        add_children_of(&walk, walk.found[i]);
        if (!sweep_one(sweep, walk.found[i], &stat))
            continue;
        if (named != NULL && lives < NAMED_MAX)
            proc_name_add(named, walk.found[i], stat.name, NULL);
        lives++;
    }
    if (named != NULL && lives > NAMED_MAX)
        text_addf(named, " and %zu more", lives - NAMED_MAX);
    free(walk.found);
    return lives;
}

/* A daemon in a session of its own bears no sign of the job: it is the job's when nothing else runs, else it
 * is ended with the run. */
static size_t sweep_job(struct supervisor *supervisor, const struct job *job, int signal, struct text *named)
{
    bool alone = supervisor->job_count == 1 && supervisor->run == NULL;
    struct sweep sweep = {.session = alone ? 0 : job->process.pid, .signal = signal};
    gate_enter(&supervisor->gate);
    /* A frozen process must not be continued for the sake of a TERM. */
    if (signal == SIGTERM && containment_is_frozen(supervisor->containment))
        sweep.signal = SIGKILL;
    size_t lives = sweep_pass(&sweep, named);
    gate_leave(&supervisor->gate);
    return lives;
}

static bool nothing_lives(struct supervisor *supervisor)
{
    gate_enter(&supervisor->gate);
    bool empty = containment_is_empty(supervisor->containment);
    gate_leave(&supervisor->gate);
    return empty;
}

void sweep_first(struct supervisor *supervisor, struct job *job)
{
    job->outcome.leftovers =
        nothing_lives(supervisor) ? 0 : (int)sweep_job(supervisor, job, SIGTERM, &job->left);
}

void sweep_begin(struct supervisor *supervisor, struct job *job)
{
    if (job->outcome.leftovers == 0) {
        outcome_end(supervisor, job, false);
        return;
    }
    job->phase = JOB_SWEEPING;
    job->swept_boot_ms = supervisor_now(supervisor);
    job->act_boot_ms = job->swept_boot_ms + SWEEP_GRACE_MS;
}

void sweep_look(struct supervisor *supervisor, struct job *job, int64_t now, int64_t *due)
{
    if (now < job->swept_boot_ms + SWEEP_INTERVAL_MS) {
        due_at(due, job->swept_boot_ms + SWEEP_INTERVAL_MS);
        return;
    }
    job->swept_boot_ms = now;
    bool by_force = job->phase == JOB_SWEPT || now >= job->act_boot_ms || supervisor->killed;
    if (by_force && job->phase == JOB_SWEEPING) {
        job->phase = JOB_SWEPT;
        job->act_boot_ms = now + SWEEP_BOUND_MS;
    }
    size_t lives = sweep_job(supervisor, job, by_force ? SIGKILL : 0, NULL);
    if (lives == 0 || (job->phase == JOB_SWEPT && now >= job->act_boot_ms))
        outcome_end(supervisor, job, lives > 0);
    else
        due_at(due, now + SWEEP_INTERVAL_MS);
}

void sweep_session(struct supervisor *supervisor, pid_t session)
{
    if (session <= 0 || nothing_lives(supervisor))
        return;
    struct sweep sweep = {.session = session, .signal = SIGKILL};
    gate_enter(&supervisor->gate);
    sweep_pass(&sweep, NULL);
    gate_leave(&supervisor->gate);
}
