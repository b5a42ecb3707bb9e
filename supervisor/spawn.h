/*
 * Starting a child, and saying exactly which step failed.
 *
 * The child gets: a session of its own (so a process group of its own and no controlling terminal), default
 * signal dispositions, an empty mask, descriptors 0, 1 and 2 and nothing else, the environment given and
 * nothing else, the work directory given as a descriptor (never another directory of that name), and
 * SIGTTOU's default. The first thing it does is close_range(3, ~0), so that it never holds the journal's
 * lock. It looks at the deadline as its last step before exec: a supervisor that was stopped between its own
 * look and the spawn starts nothing.
 *
 * One that dies with us stays in our session and process group instead: what the terminal sends to us is sent
 * to it and to all that it starts, as if a shell had run it there. So it also goes on ignoring the INT, QUIT
 * and HUP that we ignore.
 *
 * The spawner is a seam: production hands over spawner_system(), tests another. Source: clone(2), execve(2),
 * pidfd_open(2), close_range(2).
 */
#ifndef SUPERVISOR_SPAWN_H
#define SUPERVISOR_SPAWN_H

#include <sys/resource.h>

#include "base/clock.h"
#include "supervisor/process.h"

enum spawn_step {
    SPAWN_STARTED,
    SPAWN_FORK,
    SPAWN_SESSION,
    SPAWN_DIRECTORY,
    SPAWN_DESCRIPTORS,
    SPAWN_LAPSED,         /* the deadline had passed: nothing was executed */
    SPAWN_NOT_FOUND,      /* no such program on PATH, or no such file */
    SPAWN_NOT_EXECUTABLE, /* there, but a directory, not executable, or of an unknown format */
    SPAWN_NO_INTERPRETER, /* a script whose #! names nothing that exists (CR LF line ends are named) */
    SPAWN_TOO_LONG,       /* arguments or environment above the kernel's limit (E2BIG) */
    SPAWN_EXEC,           /* exec failed otherwise */
    SPAWN_STEP_MAX
};
const char *spawn_step_name(enum spawn_step step); /* "not-found", ... */

struct spawn_request {
    const char *const *argv; /* argv[0] is looked up on the PATH of `environment` unless it has a slash */
    const char *const *environment;
    int directory_fd;                   /* O_PATH or O_DIRECTORY descriptor of the work directory */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null; otherwise duplicated, the caller keeps its own */
    int64_t deadline_boot_ms;           /* 0: none */
    const struct rlimit64 *files;       /* RLIMIT_NOFILE of the program; NULL: ours */
    bool dies_with_us; /* the kernel kills it when this thread ends, however that comes about; see above */
};

struct spawn_failure {
    enum spawn_step step;
    int errnum;
};

/* A spawn in three steps, because the middle one is done inside the gate (gate.h), where nobody may wait for
 * a file system: the guard would wait as well. Safe in a threaded process. */
struct spawner {
    /* Finds the program and looks at the work directory. `ret_path` is owned by the caller. SYSTEM: it cannot
     * be started, `ret_failure` says at which step, the error says it in words with a remedy. */
    enum result (*prepare)(const struct spawner *spawner, const struct spawn_request *request,
        char **ret_path, struct spawn_failure *ret_failure, struct error *err);
    /* OK: the program runs (exec succeeded). SYSTEM: it does not, as above. Blocks until exec or its failure,
     * but not beyond the deadline or 10 s. */
    enum result (*start)(const struct spawner *spawner, const struct spawn_request *request, const char *path,
        struct process *ret, struct spawn_failure *ret_failure, struct error *err);
    /* Looks for the cause of a failed exec: may change the step and the words. Does nothing for other steps.
     */
    void (*explain)(const struct spawner *spawner, const struct spawn_request *request, const char *path,
        struct spawn_failure *failure, struct error *err);
};
const struct spawner *spawner_system(void);

/* All three steps at once, for who holds no gate. */
_must_use_ enum result spawn_program(const struct spawner *spawner, const struct spawn_request *request,
    struct process *ret, struct spawn_failure *ret_failure, struct error *err);

#endif
