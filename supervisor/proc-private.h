/*
 * Looking at processes through /proc, without allocation (but for names) and without any lock: the guard does
 * it while everything else may hang. Everything seen here is a snapshot of a moment. Thread-safe. Source:
 * proc(5).
 */
#ifndef SUPERVISOR_PROC_PRIVATE_H
#define SUPERVISOR_PROC_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

#define PROC_NAME_SIZE 64

struct proc_stat {
    char state; /* of the leading thread: R, S, D, T, t, Z, X, I */
    pid_t parent, group, session;
    int64_t threads;
    int64_t start_ticks;       /* since boot */
    char name[PROC_NAME_SIZE]; /* as in the file: at most 15 bytes for a program, any byte but NUL */
};

/* False when there is no such process (any more). */
bool proc_stat_read(pid_t pid, struct proc_stat *ret);

/* Appends "pid 4711 (sleep)" or, with `what`, "pid 4711 (sleep, what)" to a list for people. Allocates: not
 * while something is to be stopped. */
void proc_name_add(struct text *list, pid_t pid, const char *name, const char *what);

/* Nothing of it runs any more: a zombie without living threads. A leading thread may end before others. */
bool proc_stat_is_dead(const struct proc_stat *stat);

/* No thread executes its program: stopped, traced, ended, or waiting for the child of a vfork(2), which holds
 * it in the kernel until that child, which is looked at by itself, runs on. */
bool proc_is_stopped(pid_t pid, const struct proc_stat *stat);

/* A SIGSTOP waits for the process: for a stopped one this tells that it was stopped before that signal. */
bool proc_stop_is_pending(pid_t pid);

/* Real user id, from the file that everybody may read. False when the process is gone. */
bool proc_user(pid_t pid, uid_t *ret);

/* Calls `each` for every child of every thread. With living, running children some may be passed over:
 * callers look again until nothing changes. `threads` is from the process's stat. False when a list is there
 * and could not be read (no descriptor left). */
bool proc_each_child(
    pid_t pid, int64_t threads, void (*each)(void *context, pid_t parent, pid_t child), void *context);

/* Calls `each` for every process that can be seen. */
void proc_each(void (*each)(void *context, pid_t pid), void *context);

#endif
