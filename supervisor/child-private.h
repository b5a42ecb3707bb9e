/*
 * The child between its birth and execve(2).
 *
 * It shares the parent's memory and runs on a stack of its own (clone(2) with CLONE_VM, without CLONE_VFORK:
 * the parent goes on, so that its wait has a bound even when the file system under the program hangs). So
 * nothing in here may take a lock, allocate, or touch anything but the plan and this stack: bare system calls
 * only.
 */
#ifndef SUPERVISOR_CHILD_PRIVATE_H
#define SUPERVISOR_CHILD_PRIVATE_H

#include <stdint.h>

#include "supervisor/spawn.h"

#define CHILD_KEEP_MAX 5

/* Everything that the child needs, made ready by the parent. */
struct child_plan {
    const char *path;
    char *const *argv;
    char *const *environment;
    int directory_fd; /* -1: stay */
    int stdio[3];     /* -1: /dev/null */
    int report_fd;    /* close-on-exec, 3 or above: takes a struct spawn_failure; closed by the exec */
    int keep[CHILD_KEEP_MAX]; /* every descriptor above that is 3 or more, ascending, no number twice */
    int keep_count;
    pid_t parent;
    bool dies_with_parent; /* and stays in its session and process group */
    uint64_t left_ignored; /* one bit a signal: stays as it is */
    bool has_files;
    struct rlimit64 files; /* see struct spawn_request */
    int64_t deadline_ns;   /* of CLOCK_BOOTTIME as this process reads it; 0: none */
};

/* What clone(2) runs; `context` is a struct child_plan. Never returns to its caller. */
int child_main(void *context);

#endif
