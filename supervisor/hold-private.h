/*
 * What the files of holding share.
 *
 *     hold.c        hold_begin and the small questions
 *     hold_wait.c   reserving, and waiting for a holder to go
 *     hold_job.c    running one job
 *     hold_end.c    ending: work, heartbeat, settlement, journal
 */
#ifndef SUPERVISOR_HOLD_PRIVATE_H
#define SUPERVISOR_HOLD_PRIVATE_H

#include "supervisor/exits.h"
#include "supervisor/hold.h"
#include "supervisor/signals-private.h"

/* One statement of the main handle may wait so long for other programs. */
#define HOLD_STATEMENT_MS INT64_C(5000)
/* A store that stays busy is given up after this while starting: a hundred may start at once. */
#define HOLD_BUSY_MS INT64_C(10000)

struct hold {
    struct hold_options options;
    const struct clock *clock;
    struct machine machine;
    struct executor executor;
    struct signals signals;
    int signal_fd; /* -1 once the supervisor takes the signals */
    struct store_options store_options;
    struct store *store;
    struct journal *journal;
    bool handle_told;
    bool store_told; /* that the store lets us wait */
    int64_t store_wait_boot_ms,
        store_asked_boot_ms; /* of the present wait for it: its start, the last look */
    bool ending;             /* the work is over: what is left has bounds of its own */
    bool settling;           /* by the caller's own function: a stop ends its waits */
    bool blocked;            /* by leftovers on a subject of this attempt */
    struct supervisor *supervisor;
    struct reservation reservation;
    struct attempt attempt;
    int64_t begun_boot_ms, sent_boot_ms;
    char *marks[4];
};

int64_t hold_now(const struct hold *hold);
/* A random pause of `least` to `most`. */
int64_t hold_jitter_ms(int64_t least_ms, int64_t most_ms);
/* Waits, but not through a signal that ends the run, or while a supervisor is there: turning its loop. */
void hold_pause(struct hold *hold, int64_t pause_ms);
void hold_tell(struct hold *hold, const struct journal_event *event, enum journal_durability durability);
void hold_note(struct hold *hold, const char *format, ...) _printf_(2, 3);
/* The exit status of this run for an outcome: `tenure run` has its own. */
int hold_exit(const struct hold *hold, enum outcome outcome);
/* Closes the store's handle and opens another. */
_must_use_ enum result hold_reopen(struct hold *hold, struct error *err);
void hold_free(struct hold *hold);

/* hold_wait.c: OK, HELD (pending filled), INTERRUPTED (*ret_signal), ABSENT, or the store's results. */
_must_use_ enum result hold_reserve(
    struct hold *hold, struct pending *ret_pending, int *ret_signal, struct error *err);

#endif
