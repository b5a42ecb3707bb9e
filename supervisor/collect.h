/*
 * Running programs for their output: git, mostly. Several at once, stdout and stderr collected in memory.
 *
 * `struct runner` is a seam: collect_runner() polls by itself, for use before an attempt is held; the
 * supervisor offers one that turns its loop meanwhile (supervisor_runner()), so that the heartbeat never
 * waits for git. Before there is an attempt nothing bears a mark. So what collect_runner() starts stays in
 * our session and process group, where the terminal's signals reach it and what it starts in turn; and all of
 * it is ended when a batch fails, when one is overdue, and when INT, TERM, HUP or QUIT comes to this process,
 * which then does to us what it would have done. When this process is killed, its programs are, too; what
 * they had started is not.
 */
#ifndef SUPERVISOR_COLLECT_H
#define SUPERVISOR_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "supervisor/spawn.h"

/* Long enough for a cold disk and a huge tree; not for a file system that does not answer. */
#define COLLECT_BOUND_DEFAULT_MS (INT64_C(10) * 60 * 1000)

struct collect {
    /* in */
    const char *const *argv;
    const char *const *environment; /* NULL: the caller's own without GIT_* */
    int directory_fd;               /* AT_FDCWD: where we are */
    const void *input;              /* fed to stdin; NULL: empty */
    size_t input_length;
    size_t limit_bytes; /* of stdout; more is RESULT_INVALID; 0: 1 GiB */
    int64_t bound_ms;   /* one that has not ended by then is killed, SYSTEM; 0: COLLECT_BOUND_DEFAULT_MS.
                           Time in which the machine or this process stood still does not count */
    /* out */
    struct text output, complaint; /* stdout; the first 64 KiB of stderr */
    int status;                    /* as from waitpid(2) */
};
void collect_done(struct collect *collect);

/* The exit status was 0. Otherwise fills `err` with the program's own words (INVALID). */
_must_use_ enum result collect_check(const struct collect *collect, struct error *err);

struct runner {
    /* Runs all at once and waits for all. OK when all ran to an end of their own, whatever their status;
     * INTERRUPTED when the run is being stopped, or a signal came that this process goes on after; SYSTEM
     * when one could not be started or did not end within its bound. */
    enum result (*run)(struct runner *runner, struct collect *collects, size_t count, struct error *err);
    void (*tick)(
        struct runner *runner); /* to be called about every 50 ms by long computations; may be NULL */
};
struct runner *collect_runner(void);

/* Turns the runner's loop, if it has one, so that no heartbeat waits for a long computation. `runner` may be
 * NULL. The second is for a loop over very many things: it turns at every 4,096th. */
void runner_turn(struct runner *runner);
void runner_pace(struct runner *runner, size_t i);

#endif
