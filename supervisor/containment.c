#include "supervisor/containment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "supervisor/proc-private.h"
#include "supervisor/process.h"
#include "supervisor/roster-private.h"

#define CLEAN_PASSES    2 /* in a row: then all is as it was seen */
#define BUSY_PASSES     4 /* that follow each other at once, before naps are taken */
#define NAP_NS          1000000
#define FREEZE_LEAST_MS 200 /* a freeze that comes late still stops before it kills */
#define KILL_BOUND_MS   1000
#define PASSES_MAX      20000 /* a bound for a clock that stands still */
#define CASUALTIES_MAX  32

static const char *const LEVEL_NAMES[] = {[CONTAINMENT_PLAIN] = "plain"};
_Static_assert(ARRAY_SIZE(LEVEL_NAMES) == CONTAINMENT_LEVEL_MAX, "every level has a name");

const char *containment_level_name(enum containment_level level)
{
    return (unsigned)level < CONTAINMENT_LEVEL_MAX ? LEVEL_NAMES[level] : "unknown";
}

struct containment {
    const struct clock *clock;
    pid_t root;
    bool frozen;
    uint64_t orphans_reaped;
    pid_t *groups; /* leaders that were not reaped yet, so their numbers are theirs */
    size_t group_count, group_capacity;
    struct roster roster;
};

/* ---- opening ---- */

/* A /proc of another pid namespace would show other processes under our numbers. */
static enum result proc_check(struct error *err)
{
    char target[32] = {0};
    if (readlink("/proc/self", target, sizeof(target) - 1) < 0) {
        error_errno(err, errno, "cannot look at /proc/self");
        return error_remedy(err, "mount /proc");
    }
    if (atoi(target) != getpid()) {
        error_set(err, RESULT_SYSTEM, 0, "/proc belongs to another pid namespace");
        return error_remedy(err, "mount a /proc of this namespace (unshare --mount-proc)");
    }
    if (access("/proc/thread-self/children", R_OK) != 0)
        return error_errno(err, errno, "the kernel does not list children (CONFIG_PROC_CHILDREN)");
    return RESULT_OK;
}

enum result containment_open(const struct clock *clock, struct containment **ret, struct error *err)
{
    enum result r = proc_check(err);
    if (r != RESULT_OK)
        return r;
    struct roster roster;
    if (!roster_init(&roster))
        return error_errno(err, errno, "cannot map the list of processes");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        error_errno(err, errno, "cannot become the reaper of orphaned work");
        roster_done(&roster);
        return RESULT_SYSTEM;
    }
    struct containment *containment = mem_alloc(sizeof(*containment));
    *containment = (struct containment){.clock = clock, .root = getpid(), .roster = roster};
    *ret = containment;
    return RESULT_OK;
}

void containment_close(struct containment *containment)
{
    if (!containment)
        return;
    roster_done(&containment->roster);
    free(containment->groups);
    free(containment);
}

enum containment_level containment_level(const struct containment *containment _unused_)
{
    return CONTAINMENT_PLAIN;
}

void containment_add(struct containment *containment, pid_t group_leader)
{
    mem_grow(&containment->groups, &containment->group_capacity, containment->group_count, sizeof(pid_t));
    containment->groups[containment->group_count++] = group_leader;
}

static bool group_is_known(const struct containment *containment, pid_t group)
{
    for (size_t i = 0; i < containment->group_count; i++)
        if (containment->groups[i] == group)
            return true;
    return false;
}

static void group_forget(struct containment *containment, pid_t leader)
{
    for (size_t i = 0; i < containment->group_count; i++)
        if (containment->groups[i] == leader) {
            containment->groups[i] = containment->groups[--containment->group_count];
            return;
        }
}

static void groups_signal(const struct containment *containment, int signal)
{
    for (size_t i = 0; i < containment->group_count; i++)
        process_signal_group(containment->groups[i], signal);
}

/* ---- who was hit, kept without allocation until all is over ---- */

struct casualty {
    pid_t pid;
    char name[PROC_NAME_SIZE];
    const char *what; /* NULL, or why it is named */
};

struct casualties {
    struct casualty items[CASUALTIES_MAX];
    size_t count; /* may be above CASUALTIES_MAX: those were not kept */
};

static void casualty_add(
    struct casualties *casualties, pid_t pid, const struct proc_stat *stat, const char *what)
{
    if (casualties->count < CASUALTIES_MAX) {
        struct casualty *casualty = &casualties->items[casualties->count];
        casualty->pid = pid;
        casualty->what = what;
        memcpy(casualty->name, stat->name, sizeof(casualty->name));
    }
    casualties->count++;
}

static void casualties_name(const struct casualties *casualties, struct text *text)
{
    for (size_t i = 0; i < casualties->count && i < CASUALTIES_MAX; i++)
        proc_name_add(text, casualties->items[i].pid, casualties->items[i].name, casualties->items[i].what);
    if (casualties->count > CASUALTIES_MAX)
        text_addf(text, " and %zu more", casualties->count - CASUALTIES_MAX);
}

void containment_report_done(struct containment_report *report)
{
    text_done(&report->named);
    *report = (struct containment_report){0};
}

/* ---- one pass down the tree ---- */

struct pass {
    struct containment *containment;
    void (*visit)(
        struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd, bool fresh);
    int signal;
    bool changed; /* something was met that the pass before had not seen so */
    bool running; /* something runs */
    bool blind;   /* something could not be looked at */
    size_t killed;
    struct casualties *casualties;
};

static void child_enqueue(void *context, pid_t parent, pid_t child)
{
    struct pass *pass = context;
    roster_enqueue(&pass->containment->roster, child, parent);
}

static void children_enqueue(struct pass *pass, const struct proc_stat *stat, pid_t pid)
{
    if (!proc_stat_is_dead(stat) && !proc_each_child(pid, stat->threads, child_enqueue, pass))
        pass->blind = true;
}

/* Its parent is the one on whose list it was, or us, or another reaper within the work. Anything else under
 * this number is a stranger that got it since. */
static bool is_of_the_work(
    const struct containment *containment, const struct visit *visit, const struct proc_stat *stat)
{
    if (stat->parent == visit->parent || stat->parent == containment->root)
        return true;
    const struct member *parent = roster_find(&containment->roster, stat->parent);
    return parent && parent->pass == containment->roster.pass;
}

static bool errno_means_gone(void)
{
    return errno == ENOENT || errno == ESRCH || errno == EINVAL;
}

/* The pidfd is opened first: what is read of the number afterwards is either of that process, or the pidfd is
 * of a dead one and a signal through it does nothing. */
static void pass_visit(struct pass *pass, const struct visit *visit)
{
    struct containment *containment = pass->containment;
    struct proc_stat stat;
    bool fresh;
    _cleanup_(fd_cleanup) int pidfd = pidfd_open(visit->pid, 0);
    if (pidfd < 0 || !proc_stat_read(visit->pid, &stat)) {
        pass->blind = pass->blind || !errno_means_gone();
        return;
    }
    struct member *member = is_of_the_work(containment, visit, &stat)
                                ? roster_meet(&containment->roster, visit->pid, stat.start_ticks, &fresh)
                                : NULL;
    if (!member) {
        pass->changed = true;
        return;
    }
    if (member->pass == containment->roster.pass)
        return;
    member->pass = containment->roster.pass;
    /* A stopped parent has no more children; a killed one has none any more, and theirs would go unnamed. */
    if (pass->signal == SIGKILL)
        children_enqueue(pass, &stat, visit->pid);
    pass->visit(pass, member, &stat, pidfd, fresh);
    if (pass->signal != SIGKILL)
        children_enqueue(pass, &stat, visit->pid);
}

static void pass_run(struct pass *pass)
{
    struct roster *roster = &pass->containment->roster;
    pass->changed = pass->running = pass->blind = false;
    roster_begin_pass(roster);
    if (!proc_each_child(pass->containment->root, INT64_MAX, child_enqueue, pass))
        pass->blind = true;
    for (size_t i = 0; i < roster->visit_count; i++) {
        struct visit visit = roster->visits[i]; /* a copy: the list moves when it grows */
        pass_visit(pass, &visit);
    }
}

/* Death changes the tree: the children of the dead come to us, behind the place where we may be reading. */
static bool death_is_noted(struct pass *pass, struct member *member, const struct proc_stat *stat, bool fresh)
{
    if (!proc_stat_is_dead(stat))
        return false;
    if (!member->dead || fresh)
        pass->changed = true;
    member->dead = true;
    return true;
}

static bool member_signal(
    struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd, int signal)
{
    if (pidfd_send_signal(pidfd, signal, NULL, 0) == 0)
        return true;
    if (errno == EPERM && !member->denied) {
        member->denied = true;
        casualty_add(pass->casualties, member->pid, stat, "may not be signalled");
    }
    return false;
}

/* True when it was killed now, and not by an earlier pass. */
static void member_kill(struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd)
{
    if (member->killed || !member_signal(pass, member, stat, pidfd, SIGKILL))
        return;
    member->killed = true;
    pass->changed = true;
    pass->killed++;
    casualty_add(pass->casualties, member->pid, stat, NULL);
}

/* ---- freezing ---- */

/* The groups got their one SIGSTOP before anything was looked at, for speed. In one that was stopped before,
 * that signal waits; in one that it stopped, it is used up. */
static bool was_stopped_before(const struct containment *containment, pid_t pid, const struct proc_stat *stat)
{
    if (stat->state != 'T')
        return false;
    return !group_is_known(containment, stat->group) || proc_stop_is_pending(pid);
}

static void freeze_visit(
    struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd, bool fresh)
{
    if (death_is_noted(pass, member, stat, fresh))
        return;
    if (fresh) {
        pass->changed = true;
        member->stopped_before = was_stopped_before(pass->containment, member->pid, stat);
        member->ours = !member->stopped_before;
    }
    if (proc_is_stopped(member->pid, stat))
        return;
    member->stopped_before = false; /* somebody continued it since */
    member->ours = true;
    if (member->denied)
        return;
    pass->running = true;
    if (pass->signal == SIGKILL)
        member_kill(pass, member, stat, pidfd);
    else
        member_signal(pass, member, stat, pidfd, SIGSTOP);
}

static void nap(size_t passes)
{
    if (passes >= BUSY_PASSES)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Until the tree stands still. False when it did not within the bounds. */
static bool freeze_settle(struct pass *pass, int64_t deadline_boot_ms)
{
    struct containment *containment = pass->containment;
    size_t clean = 0;
    for (size_t passes = 0; clean < CLEAN_PASSES; passes++) {
        int64_t now_ms = containment->clock->boot_ms(containment->clock);
        if (now_ms >= deadline_boot_ms)
            pass->signal = SIGKILL;
        if (now_ms >= deadline_boot_ms + KILL_BOUND_MS || passes > PASSES_MAX)
            return false;
        uint64_t reaped = containment->orphans_reaped;
        pass_run(pass);
        bool still = !pass->changed && !pass->running && !pass->blind;
        clean = still && reaped == containment->orphans_reaped ? clean + 1 : 0;
        if (pass->running || pass->blind)
            nap(passes);
    }
    return true;
}

static size_t members_count_ours(const struct roster *roster)
{
    size_t count = 0;
    for (size_t i = 0; i < roster->capacity; i++)
        count += roster->members[i].pid != 0 && roster->members[i].ours && !roster->members[i].dead;
    return count;
}

void containment_freeze(
    struct containment *containment, int64_t deadline_boot_ms, struct containment_report *report)
{
    struct casualties casualties = {0};
    struct pass pass = {
        .containment = containment,
        .visit = freeze_visit,
        .signal = SIGSTOP,
        .casualties = &casualties,
    };
    if (!containment->frozen) {
        roster_clear(&containment->roster);
        groups_signal(containment, SIGSTOP);
    }
    containment->frozen = true;
    int64_t least_ms = containment->clock->boot_ms(containment->clock) + FREEZE_LEAST_MS;
    if (!freeze_settle(&pass, deadline_boot_ms > least_ms ? deadline_boot_ms : least_ms) && pass.blind)
        groups_signal(containment, SIGKILL); /* what cannot be looked at cannot be known to stand still */
    report->frozen += members_count_ours(&containment->roster);
    report->killed += pass.killed;
    casualties_name(&casualties, &report->named);
}

bool containment_is_frozen(const struct containment *containment)
{
    return containment->frozen;
}

static void thaw_visit(
    struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd _unused_, bool fresh)
{
    death_is_noted(pass, member, stat, fresh);
}

static void visit_continue(struct containment *containment, const struct visit *visit)
{
    const struct member *member = roster_find(&containment->roster, visit->pid);
    struct proc_stat stat;
    if (!member || !member->ours || member->dead)
        return;
    _cleanup_(fd_cleanup) int pidfd = pidfd_open(visit->pid, 0);
    if (pidfd >= 0 && proc_stat_read(visit->pid, &stat) && stat.start_ticks == member->start_ticks)
        pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
}

/* Leaves first: a shell that waits for its jobs finds them running again, and never learns of the stop. */
void containment_thaw(struct containment *containment)
{
    struct casualties nobody = {0};
    struct pass pass = {.containment = containment, .visit = thaw_visit, .casualties = &nobody};
    if (!containment->frozen)
        return;
    pass_run(&pass);
    for (size_t i = containment->roster.visit_count; i-- > 0;)
        visit_continue(containment, &containment->roster.visits[i]);
    containment->frozen = false;
}

/* ---- signalling ---- */

static void signal_visit(
    struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd, bool fresh)
{
    if (death_is_noted(pass, member, stat, fresh))
        return;
    if (pass->signal == SIGKILL)
        member_kill(pass, member, stat, pidfd);
    else
        member_signal(pass, member, stat, pidfd, pass->signal);
}

/* One by one for their names, then the groups, which leaves a storm of forks no gap. */
static void kill_all(struct pass *pass)
{
    struct containment *containment = pass->containment;
    int64_t end_ms = containment->clock->boot_ms(containment->clock) + KILL_BOUND_MS;
    size_t clean = 0;
    for (size_t passes = 0; clean < CLEAN_PASSES && passes < PASSES_MAX; passes++) {
        pass_run(pass);
        groups_signal(containment, SIGKILL);
        clean = pass->changed || pass->blind ? 0 : clean + 1;
        if (containment->clock->boot_ms(containment->clock) >= end_ms)
            return;
        nap(passes);
    }
}

void containment_signal(struct containment *containment, int signal, struct containment_report *report)
{
    struct casualties casualties = {0};
    struct pass pass = {
        .containment = containment,
        .visit = signal_visit,
        .signal = signal,
        .casualties = &casualties,
    };
    if (!containment->frozen)
        roster_clear(&containment->roster);
    if (signal == SIGKILL)
        kill_all(&pass);
    else
        pass_run(&pass);
    report->killed += pass.killed;
    casualties_name(&casualties, &report->named);
}

/* ---- the dead, and the living ---- */

bool containment_reap(struct containment *containment, pid_t *ret_pid, int *ret_status)
{
    int status;
    pid_t pid;
    do
        pid = waitpid(-1, &status, WNOHANG | __WALL);
    while (pid < 0 && errno == EINTR);
    if (pid <= 0)
        return false;
    if (group_is_known(containment, pid))
        group_forget(containment, pid);
    else
        containment->orphans_reaped++;
    *ret_pid = pid;
    *ret_status = status;
    return true;
}

bool containment_is_empty(struct containment *containment _unused_)
{
    siginfo_t child;
    return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 && errno == ECHILD;
}

bool containment_is_stopped(pid_t pid)
{
    struct proc_stat stat;
    return proc_stat_read(pid, &stat) && stat.state == 'T';
}

static void survivor_visit(
    struct pass *pass, struct member *member, const struct proc_stat *stat, int pidfd _unused_, bool fresh)
{
    if (!death_is_noted(pass, member, stat, fresh))
        casualty_add(pass->casualties, member->pid, stat, NULL);
}

void containment_name_survivors(struct containment *containment, struct text *ret)
{
    struct casualties living = {0};
    struct pass pass = {.containment = containment, .visit = survivor_visit, .casualties = &living};
    pass_run(&pass);
    casualties_name(&living, ret);
}
