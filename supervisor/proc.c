#include "supervisor/proc-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

#define PATH_SIZE     64
#define STAT_SIZE     1024
#define STATUS_SIZE   4096
#define ENTRIES_SIZE  ((size_t)16 * 1024)
#define CHILDREN_SIZE ((size_t)16 * 1024)

/* Reads the start of a small file as a string; false when it is gone or may not be looked at. */
static bool file_start(const char *path, char *ret, size_t size)
{
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, ret, size - 1);
    if (got <= 0)
        return false;
    ret[got] = '\0';
    return true;
}

/* "4711 (na) me) S 1 ...": the name may hold anything, so its end is the last parenthesis. */
static bool stat_parse(const char *line, struct proc_stat *ret)
{
    const char *open_at = strchr(line, '('), *close_at = strrchr(line, ')');
    long long threads, start;
    if (!open_at || !close_at || close_at < open_at)
        return false;
    if (sscanf(close_at + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lld %*d %lld",
            &ret->state, &ret->parent, &ret->group, &ret->session, &threads, &start) != 6)
        return false;
    ret->threads = threads;
    ret->start_ticks = start;
    size_t length = (size_t)(close_at - open_at - 1);
    if (length >= sizeof(ret->name))
        length = sizeof(ret->name) - 1;
    memcpy(ret->name, open_at + 1, length);
    ret->name[length] = '\0';
    return true;
}

static bool stat_read(const char *path, struct proc_stat *ret)
{
    char line[STAT_SIZE];
    struct proc_stat stat = {0};
    if (!file_start(path, line, sizeof(line)) || !stat_parse(line, &stat))
        return false;
    *ret = stat;
    return true;
}

bool proc_stat_read(pid_t pid, struct proc_stat *ret)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    return stat_read(path, ret);
}

void proc_name_add(struct text *list, pid_t pid, const char *name, const char *what)
{
    text_addf(list, "%spid %d (", list->length > 0 ? ", " : "", pid);
    text_add_printable(list, name, strlen(name), false);
    text_addf(list, "%s%s)", what ? ", " : "", what ? what : "");
}

static bool state_is_dead(char state)
{
    return state == 'Z' || state == 'X' || state == 'x';
}

bool proc_stat_is_dead(const struct proc_stat *stat)
{
    return state_is_dead(stat->state) && stat->threads <= 1;
}

/* The kernel holds the parent in wait_for_vfork_done(), mostly inlined into the function that clones. */
static bool thread_waits_for_vfork(pid_t pid, pid_t thread)
{
    static const char *const PLACES[] = {"kernel_clone", "wait_for_vfork_done", "_do_fork", "do_fork"};
    char path[PATH_SIZE], place[128];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, thread);
    if (!file_start(path, place, sizeof(place)))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++)
        if (strcmp(place, PLACES[i]) == 0)
            return true;
    return false;
}

static bool thread_is_stopped(pid_t pid, pid_t thread, char state)
{
    if (state == 'T' || state == 't' || state_is_dead(state))
        return true;
    return state == 'D' && thread_waits_for_vfork(pid, thread);
}

/* ---- directories of numbers ---- */

struct numbers {
    bool (*each)(void *context, pid_t number); /* false ends the walk */
    void *context;
};

static bool entry_visit(const struct dirent64 *entry, const struct numbers *numbers)
{
    char *end;
    long number = strtol(entry->d_name, &end, 10);
    if (*end != '\0' || number <= 0 || number > INT32_MAX)
        return true;
    return numbers->each(numbers->context, (pid_t)number);
}

/* False when the directory is there and cannot be opened. */
static bool directory_each_number(const char *path, const struct numbers *numbers)
{
    _Alignas(struct dirent64) char entries[ENTRIES_SIZE];
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH;
    for (;;) {
        ssize_t got = getdents64(fd, entries, sizeof(entries));
        if (got <= 0)
            return true;
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            if (!entry_visit(entry, numbers))
                return true;
            at += entry->d_reclen;
        }
    }
}

static bool threads_each(pid_t pid, const struct numbers *numbers)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    return directory_each_number(path, numbers);
}

/* ---- is all of it stopped ---- */

struct stopped_look {
    pid_t pid;
    bool stopped;
};

static bool thread_look(void *context, pid_t thread)
{
    struct stopped_look *look = context;
    char path[PATH_SIZE];
    struct proc_stat stat;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", look->pid, thread);
    if (stat_read(path, &stat) && !thread_is_stopped(look->pid, thread, stat.state))
        look->stopped = false;
    return look->stopped;
}

bool proc_is_stopped(pid_t pid, const struct proc_stat *stat)
{
    if (!thread_is_stopped(pid, pid, stat->state))
        return false;
    if (stat->threads <= 1)
        return true;
    struct stopped_look look = {.pid = pid, .stopped = true};
    threads_each(pid, &(struct numbers){.each = thread_look, .context = &look});
    return look.stopped;
}

/* ---- the status file ---- */

static bool status_field(pid_t pid, const char *field, int base, unsigned long long *ret)
{
    char path[PATH_SIZE], status[STATUS_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (!file_start(path, status, sizeof(status)))
        return false;
    const char *line = strstr(status, field);
    if (!line)
        return false;
    char *end;
    const char *value = line + strlen(field);
    *ret = strtoull(value, &end, base);
    return end != value;
}

bool proc_stop_is_pending(pid_t pid)
{
    unsigned long long pending;
    return status_field(pid, "\nShdPnd:\t", 16, &pending) && (pending >> (SIGSTOP - 1) & 1);
}

bool proc_user(pid_t pid, uid_t *ret)
{
    unsigned long long user;
    if (!status_field(pid, "\nUid:\t", 10, &user))
        return false;
    *ret = (uid_t)user;
    return true;
}

/* ---- children ---- */

struct children_walk {
    pid_t pid;
    bool complete;
    void (*each)(void *context, pid_t parent, pid_t child);
    void *context;
};

/* The list is read piece by piece: a number that is cut off goes on in the next piece. */
static void children_read(int fd, const struct children_walk *walk)
{
    char piece[CHILDREN_SIZE];
    int64_t number = 0;
    for (;;) {
        ssize_t got = read(fd, piece, sizeof(piece));
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] >= '0' && piece[i] <= '9') {
                number = number * 10 + (piece[i] - '0');
            } else if (number > 0) {
                walk->each(walk->context, walk->pid, (pid_t)number);
                number = 0;
            }
        }
    }
    if (number > 0)
        walk->each(walk->context, walk->pid, (pid_t)number);
}

static bool thread_children(void *context, pid_t thread)
{
    struct children_walk *walk = context;
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", walk->pid, thread);
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        children_read(fd, walk);
    else if (errno != ENOENT && errno != ESRCH)
        walk->complete = false;
    return true;
}

bool proc_each_child(
    pid_t pid, int64_t threads, void (*each)(void *context, pid_t parent, pid_t child), void *context)
{
    struct children_walk walk = {.pid = pid, .complete = true, .each = each, .context = context};
    if (threads <= 1)
        thread_children(&walk, pid);
    else if (!threads_each(pid, &(struct numbers){.each = thread_children, .context = &walk}))
        walk.complete = false;
    return walk.complete;
}

/* ---- all processes ---- */

struct all_walk {
    void (*each)(void *context, pid_t pid);
    void *context;
};

static bool all_visit(void *context, pid_t pid)
{
    const struct all_walk *walk = context;
    walk->each(walk->context, pid);
    return true;
}

void proc_each(void (*each)(void *context, pid_t pid), void *context)
{
    struct all_walk walk = {.each = each, .context = context};
    directory_each_number("/proc", &(struct numbers){.each = all_visit, .context = &walk});
}
