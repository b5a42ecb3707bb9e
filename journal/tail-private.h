/*
 * The tail of an output while its producer runs: a file used as a ring, out/<producer>.tail.
 *
 * Its first page is text, one line of decimal numbers, each of 20 digits:
 *
 *     tenure-tail 1 <head> <keep> <ring> <total> LF
 *
 *     head   bytes of the log that lie before the tail
 *     keep   how many of the last bytes are wanted
 *     ring   bytes of the ring, which begins behind the page
 *     total  bytes written to the tail so far: byte N of the tail lies at N modulo ring
 *
 * The line is written after the bytes that it counts. The ring has room for one write more than it keeps, so
 * that a crash between the two never costs a byte that the line still counts.
 */
#ifndef JOURNAL_TAIL_PRIVATE_H
#define JOURNAL_TAIL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct tail {
    int fd; /* -1: there is none */
    int64_t head_bytes, keep_bytes, ring_bytes, total_bytes;
};

/* Makes the file anew, 0600. 0 or an errno, like the others here: the caller knows what to say. */
_must_use_ int tail_create(
    int dir_fd, const char *name, int64_t head_bytes, int64_t keep_bytes, struct tail *ret);
/* Opens the tail that a crash left. ENODATA when its line does not validate. */
_must_use_ int tail_open(int dir_fd, const char *name, struct tail *ret);
void tail_close(struct tail *tail);

/* *ret_kept counts what was taken; it is less than `length` only with an errno. */
_must_use_ int tail_write(struct tail *tail, const void *bytes, size_t length, size_t *ret_kept);

int64_t tail_kept_bytes(const struct tail *tail);
int64_t tail_dropped_bytes(const struct tail *tail);

/* Bytes from `at` on, counted from the first one kept; 0 at the end, -1 with errno. */
_must_use_ int64_t tail_read(const struct tail *tail, int64_t at, void *buffer, size_t size);

#endif
