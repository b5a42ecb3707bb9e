/*
 * The verdict through a descriptor that is open already, so that a follower is told about the file it reads
 * and not about one that took its name.
 */
#ifndef JOURNAL_LIVENESS_PRIVATE_H
#define JOURNAL_LIVENESS_PRIVATE_H

#include "journal/format.h"
#include "journal/liveness.h"

#define LIVENESS_SETTLE_MS 100 /* the unlock follows the close within this time: probe again and again */
#define LIVENESS_BEAT_MS   2   /* between two probes of that time */
#define LIVENESS_POLL_MS   250 /* with inotify, which can miss an event */
#define LIVENESS_BLIND_MS  10  /* without it */

/* `fd` is a regular file's; its position is not moved. */
struct liveness liveness_probe_fd(
    int fd, const struct journal_header *header, const struct liveness_question *question);

/* A non-blocking inotify descriptor that tells when a writer closes `path`, and with `writes` of every write;
 * -1 when there is none to be had. */
int liveness_watch(const char *path, bool writes);
/* Takes all events off it. True when the file was closed by its writer or went away. */
bool liveness_watch_drain(int watch_fd);

/* Waits for the watch or `wake_fd` (each may be -1), at most `timeout_ms`. True when `wake_fd` is readable.
 */
bool liveness_poll(int watch_fd, int wake_fd, int64_t timeout_ms);

#endif
