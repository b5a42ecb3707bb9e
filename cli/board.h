/*
 * What is known of a run: the sum of the events so far. The live screen is drawn from it.
 *
 * Fed with the same events by a run's own tap and by a follower on the other side of the machine. Copies what
 * it keeps. Times are CLOCK_BOOTTIME. Not thread-safe; the screen guards it.
 */
#ifndef CLI_BOARD_H
#define CLI_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/event.h"

enum board_state {
    BOARD_WAITING,
    BOARD_RUNNING,
    BOARD_PASSED,
    BOARD_FAILED,
    BOARD_REUSED,
    BOARD_STOPPED,
    BOARD_STATE_MAX
};

struct board_producer {
    char *name;
    char *command; /* that does the same by hand; NULL when not told */
    enum board_state state;
    bool planned; /* it counts; a procedure does not */
    int64_t expected_ms, started_boot_ms, duration_ms, output_bytes;
};

/* What a run is about while no producer runs: the words, and after two seconds what it waits for. */
enum board_step {
    STEP_LOOK,
    STEP_STORE,
    STEP_HELD,
    STEP_PLAN,
    STEP_WORK,
    STEP_SETTLE,
    STEP_OVER,
    BOARD_STEP_MAX
};

struct board {
    char *handle, *directory;
    struct board_producer *producers;
    size_t count, capacity;
    size_t total; /* of what counts; the plan may list fewer */
    enum board_step step;
    int64_t step_boot_ms;
    char *held_by, *holder; /* who is waited for: handle, and "user on host, pid N" */
    int64_t frozen_boot_ms; /* 0: not frozen */
    int64_t frozen_wall_ms; /* the same for people */
    char *frozen;           /* why; NULL: not told */
    char *trouble;          /* of the last renewal that was not confirmed */
    int64_t trouble_boot_ms;
    bool trouble_is_old; /* said already, not long ago */
};

void board_init(struct board *board, int64_t now_boot_ms);
void board_done(struct board *board);
void board_apply(struct board *board, const struct journal_event *event);
/* Waiting for a holder: its handle, and who it is. */
void board_hold(struct board *board, const char *handle, const char *holder, int64_t now_boot_ms);

const struct board_producer *board_find(const struct board *board, const char *name);
size_t board_count(const struct board *board, enum board_state state); /* of what counts */
size_t board_ended(const struct board *board);                         /* of itself or by us, or reused */
size_t board_running(const struct board *board);                       /* procedures included */

/* How much of the work is done, 0 to 1000, weighed by expected times. */
int board_permille(const struct board *board, int64_t now_boot_ms);
/* How long it may still take; 0 when history does not tell. */
int64_t board_left_ms(const struct board *board, int64_t now_boot_ms);

/* "looking at the work tree", and what a long one waits for. */
const char *board_step_name(enum board_step step);
const char *board_step_awaits(enum board_step step);

#endif
