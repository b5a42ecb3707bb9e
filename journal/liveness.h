/*
 * Who is alive: the verdict about the owner of a journal, by the kernel's own lock.
 *
 * First match wins:
 *     1. journal missing, unreadable, header damaged, other incarnation, or a file system not known
 *        to be local (overlayfs and FUSE: only if device and inode equal the header's)            unknown
 *     2. lock held                                                                                 running
 *     3. lock free, `settled` is the last record                                                   gone
 *     4. lock free, boot id is the current one, device and inode are those of the header           gone
 *     5. lock free, same machine (by its machine-id, not by its host's name), another boot, not in a
 *        container, last renewal before this boot                                                  gone
 *     6. anything else: a copy, a snapshot, another machine, a failed probe                        unknown
 *
 * Never blocks. Thread-safe.
 */
#ifndef JOURNAL_LIVENESS_H
#define JOURNAL_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/executor.h"
#include "base/machine.h"

struct liveness_question {
    const char *path;              /* of the journal */
    const char *incarnation;       /* of the record's executor; NULL: whoever the header names */
    const char *attempt;           /* of the record; NULL, or a header without one: not compared */
    const struct machine *machine; /* the prober's own */
    bool renewed_before_boot; /* the record's last renewal, by the store's clock, lies before this boot */
};

struct liveness {
    enum owner_verdict verdict;
    int rule;        /* 1 to 6, of the table above */
    const char *why; /* constant sentence for people */
};

struct liveness liveness_probe(const struct liveness_question *question);

/* Waits until the owner of the journal is no longer running, or `timeout_ms` have passed (CLOCK_BOOTTIME;
 * bounded, never negative), or `wake_fd` (-1: none) is readable. Woken by inotify, then probes again for up
 * to 100 ms. Returns the verdict of the last probe. */
struct liveness liveness_wait(const struct liveness_question *question, int64_t timeout_ms, int wake_fd);

#endif
