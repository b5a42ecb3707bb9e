#include "supervisor/offspring-private.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "supervisor/proc-private.h"
#include "supervisor/process.h"

#define PASS_INTERVAL_MS 2

struct pids {
    pid_t *items;
    size_t count, capacity;
};

static void pids_done(struct pids *pids)
{
    free(pids->items);
}

static bool pids_have(const struct pids *pids, pid_t pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i] == pid)
            return true;
    return false;
}

static void pids_add(struct pids *pids, pid_t pid)
{
    if (pids_have(pids, pid))
        return;
    mem_grow(&pids->items, &pids->capacity, pids->count, sizeof(*pids->items));
    pids->items[pids->count++] = pid;
}

static void add_child(void *context, pid_t parent _unused_, pid_t child)
{
    pids_add(context, child);
}

static void add_children_of(struct pids *pids, pid_t pid)
{
    struct proc_stat stat;
    if (proc_stat_read(pid, &stat))
        proc_each_child(pid, stat.threads, add_child, pids);
}

/* Twice, because a child that ends while the list is read can hide another. */
static void list_others(const struct pids *programs, struct pids *ret)
{
    struct pids children = {0};
    add_children_of(&children, getpid());
    add_children_of(&children, getpid());
    for (size_t i = 0; i < children.count; i++)
        if (!pids_have(programs, children.items[i]))
            pids_add(ret, children.items[i]);
    pids_done(&children);
}

/* True when it lives. */
static bool kill_one(pid_t pid)
{
    struct proc_stat stat;
    struct process process;
    if (!proc_stat_read(pid, &stat) || proc_stat_is_dead(&stat))
        return false;
    if (process_open(pid, stat.start_ticks, &process, NULL) != RESULT_OK)
        return true;
    (void)!process_signal(&process, SIGKILL, NULL);
    process_close(&process);
    return true;
}

/* What is dead and became our child is nobody else's to reap. */
static void reap_orphans(const struct pids *programs, const struct pids *others)
{
    struct pids children = {0};
    siginfo_t ended;
    add_children_of(&children, getpid());
    for (size_t i = 0; i < children.count; i++)
        if (!pids_have(programs, children.items[i]) && !pids_have(others, children.items[i]))
            (void)waitid(P_PID, (id_t)children.items[i], &ended, WEXITED | WNOHANG);
    pids_done(&children);
}

/* One pass over the programs, the orphans and their descendants: how many of them lived. */
static size_t kill_all(const struct pids *programs, const struct pids *others)
{
    struct pids found = {0}, children = {0};
    size_t lives = 0;
    for (size_t i = 0; i < programs->count; i++)
        pids_add(&found, programs->items[i]);
    add_children_of(&children, getpid());
    for (size_t i = 0; i < children.count; i++)
        if (!pids_have(others, children.items[i]))
            pids_add(&found, children.items[i]);
    for (size_t i = 0; i < found.count; i++) {
        add_children_of(&found, found.items[i]);
        lives += kill_one(found.items[i]);
    }
    pids_done(&found);
    pids_done(&children);
    return lives;
}

void offspring_end(const pid_t *programs, size_t count, int64_t bound_ms)
{
    const struct clock *clock = clock_system();
    int64_t until = clock->boot_ms(clock) + bound_ms;
    struct pids roots = {0}, others = {0};
    int was_subreaper = 0;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        pids_add(&roots, programs[i]);
    list_others(&roots, &others);
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    while (kill_all(&roots, &others) > 0 && clock->boot_ms(clock) < until) {
        reap_orphans(&roots, &others);
        poll(NULL, 0, PASS_INTERVAL_MS);
    }
    reap_orphans(&roots, &others);
    prctl(PR_SET_CHILD_SUBREAPER, (unsigned long)was_subreaper, 0, 0, 0);
    pids_done(&roots);
    pids_done(&others);
}
