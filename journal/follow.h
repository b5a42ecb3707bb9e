/*
 * Following a journal that is being written: replay, then live, by inotify with a bounded poll beside it.
 *
 *     follow_open(path, &follow, err);
 *     for (;;) {
 *         r = follow_next(follow, 250, &event, err);
 *         // OK: an event. BUSY: nothing new within the time. ABSENT: the last record is `settled`, or the
 *         // owner is gone and everything was read: follow_verdict() tells. CORRUPT: damage.
 *     }
 *
 * A follower never delays the run. Where the verdict is unknown (a copy, another machine) nobody can say that
 * nothing more will come: the answer stays BUSY, and the caller decides how long to go on. A death by SIGKILL
 * is noticed within about 10 ms, without inotify too. `machine` must live as long as the follower. One thread
 * per object.
 */
#ifndef JOURNAL_FOLLOW_H
#define JOURNAL_FOLLOW_H

#include "base/machine.h"
#include "journal/liveness.h"
#include "journal/reader.h"

struct follow;

_must_use_ enum result follow_open(
    const char *path, const struct machine *machine, struct follow **ret, struct error *err);
_must_use_ enum result follow_next(
    struct follow *follow, int64_t timeout_ms, struct journal_event *ret, struct error *err);
const struct journal_header *follow_header(const struct follow *follow);
struct liveness follow_verdict(const struct follow *follow); /* of the last probe */
void follow_close(struct follow *follow);

/* Bytes of a producer's output log from `offset_bytes` on, as far as they are there; *ret_length 0 at its
 * end. `log` is the event's. Offsets stay valid when the log is finished; the tail that a dead owner left is
 * shown as joined. ABSENT, INVALID (not the name of a log), DENIED, SYSTEM. */
_must_use_ enum result follow_output(const struct follow *follow, const char *log, int64_t offset_bytes,
    void *buffer, size_t size, size_t *ret_length, struct error *err);

#endif
