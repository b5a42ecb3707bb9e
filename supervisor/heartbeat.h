/*
 * The heartbeat: a thread of its own, with a store handle of its own, that renews every attempt of this
 * process.
 *
 * Gated on the loop turning: before each renewal it wakes the loop through `loop_fd` and waits for the turn
 * counter to move (for a quarter of the heartbeat, but at least 500 ms); a wedged loop stops being renewed.
 * The next renewal is scheduled after the last one ended; after a failure sooner, with jitter. Each
 * statement's deadline is less than the heartbeat. Results are left in a mailbox for the loop, announced
 * through `loop_fd`. A confirmation goes straight to the guard. Only a record that is finished or bears
 * another token proves a loss.
 *
 * Functions are called from the loop's thread.
 */
#ifndef SUPERVISOR_HEARTBEAT_H
#define SUPERVISOR_HEARTBEAT_H

#include "attempts/store.h"
#include "supervisor/guard.h"

struct heartbeat;

/* How a handle is opened: store_open(), or a test's own. */
typedef enum result (*store_open_fn)(
    const struct store_options *options, enum store_access access, struct store **ret, struct error *err);

struct heartbeat_options {
    const struct store_options
        *store;               /* copied, with a deadline of its own; its strings are borrowed. The
                                 thread opens its own handle at its first beat, so not for short runs */
    store_open_fn open_store; /* NULL: store_open */
    const struct clock *clock;
    const struct credential *credential; /* borrowed */
    struct lease_terms terms;
    int64_t sent_boot_ms; /* when the reserve was sent: the first confirmation */
    struct guard *guard;
    int loop_fd; /* eventfd that wakes the loop */
};

_must_use_ enum result heartbeat_start(
    const struct heartbeat_options *options, struct heartbeat **ret, struct error *err);

void heartbeat_turned(struct heartbeat *heartbeat); /* the loop turned */
void heartbeat_progress(struct heartbeat *heartbeat, const struct progress *progress);
void heartbeat_hurry(struct heartbeat *heartbeat); /* renew now, without waiting for the schedule */

/* What has happened since the last call. */
struct heartbeat_news {
    int64_t confirmed_sent_boot_ms; /* when the last confirmed renewal was sent; the reserve's at first */
    bool lost;                      /* RETIRED (or LAPSED for a strict kind): `reason` tells */
    struct reason reason;
    bool cancel_requested;
    enum result trouble;        /* of the last unconfirmed try; OK when the last try was confirmed */
    char *trouble_text;         /* owned; NULL when nothing new */
    int64_t busy_since_boot_ms; /* start of the present run of BUSY results; 0 when not busy */
};
void heartbeat_news_done(struct heartbeat_news *news);
void heartbeat_take(struct heartbeat *heartbeat, struct heartbeat_news *ret);

/* Before a settlement: one last renewal when the last confirmed one is older than a heartbeat, then stops and
 * joins the thread. Afterwards no renewal of this process can happen. */
void heartbeat_drain(struct heartbeat *heartbeat, struct heartbeat_news *ret);
void heartbeat_stop(
    struct heartbeat *heartbeat); /* frees; drains without a last renewal when still running */

#endif
