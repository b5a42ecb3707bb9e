/*
 * One thread that writes, so that nobody else ever waits for a terminal.
 *
 *     writer_start(&options, &writer, err);
 *     writer_put(writer, bytes, length);       // copies whole lines; never blocks: drops when nobody reads
 *     writer_close(writer);                    // writes what is left, blocking, and joins
 *
 * A timer asks `frame` for what is to be shown below the lines, at most once per interval: it is called in
 * the writer's thread, turns the lines waiting into the bytes of one write(2), and returns. The descriptor is
 * used as it is (O_NONBLOCK is never set: it would leak into the user's shell), all signals are blocked in
 * the thread, so neither SIGTTOU nor SIGPIPE ends anybody. A descriptor that fails for good is written no
 * more. put, poke, flush and close are for one thread, beside the writer's own.
 */
#ifndef CLI_WRITER_H
#define CLI_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define WRITER_LIMIT_BYTES ((size_t)256 * 1024)

struct writer;

struct writer_options {
    int fd;
    size_t limit_bytes;  /* of what waits; 0: WRITER_LIMIT_BYTES */
    bool patient;        /* writer_put waits for room instead of dropping: for who delays nobody */
    bool prompt;         /* lines are written at once; else with the next frame */
    int64_t interval_ms; /* between two frames */
    /* Appends the bytes of one write; `last` at the close. NULL: the lines as they are. */
    void (*frame)(void *context, const struct text *lines, bool last, struct text *ret);
    void (*written)(void *context); /* in the writer's thread, after each write; may be NULL */
    void *context;
};

_must_use_ enum result writer_start(
    const struct writer_options *options, struct writer **ret, struct error *err);

/* False when the bytes were dropped. What was dropped is counted and said once there is room. */
bool writer_put(struct writer *writer, const char *bytes, size_t length);
/* Waits until what was put before, and a frame after it, is written, for at most `timeout_ms`. */
void writer_flush(struct writer *writer, int64_t timeout_ms);
void writer_close(struct writer *writer); /* NULL is allowed */

/* Writes everything through short writes, EINTR and EAGAIN (poll(2)); false on any other error, errno tells.
 */
bool write_whole(int fd, const char *bytes, size_t length);

#endif
