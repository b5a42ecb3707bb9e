/*
 * Output logs: a producer's raw bytes, untouched, in constant memory whatever it writes.
 *
 * out/<producer>.log keeps at most `cap_bytes` of the producer's: all of a smaller output, else its first and
 * its last half with one line between them that states how many bytes were dropped there:
 *
 *     LF [tenure: 936.0 MiB (981467136 bytes) dropped here] LF
 *
 * While the producer runs, what does not fit the first half goes round in a ring beside the log
 * (out/<producer>.tail); output_finish() joins them. A crash leaves both, and a follower still shows them as
 * one. On a full disk the log ends in such a line that also names the cause. A producer name may hold any
 * byte: the file name is escaped, and a digest keeps long ones apart. One thread per object.
 */
#ifndef JOURNAL_OUTPUT_H
#define JOURNAL_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

#define OUTPUT_CAP_DEFAULT_BYTES (INT64_C(64) * 1024 * 1024)

struct output;

/* Creates the log below `directory` (a journal's out/). An existing one is replaced. */
_must_use_ enum result output_create(
    const char *directory, const char *producer, int64_t cap_bytes, struct output **ret, struct error *err);

const char *output_name(const struct output *output); /* file name below out/ */
const char *output_path(const struct output *output);

/* Appends bytes. A full disk is answered SYSTEM once; later bytes are counted as dropped and OK is returned.
 */
_must_use_ enum result output_write(
    struct output *output, const void *bytes, size_t length, struct error *err);

int64_t output_total_bytes(const struct output *output); /* written by the producer so far */
int64_t output_dropped_bytes(const struct output *output);
/* Of the log, visible to a follower now: the head while the producer runs, all once it is finished. */
int64_t output_readable_bytes(const struct output *output);

/* Joins head and tail, states what was dropped, gives the digest of the log as kept, that line included
 * (BLAKE2b-256 hex, as `b2sum -l 256` prints it). Not synced. SYSTEM when the log could not even be ended in
 * a statement of what it lacks and no output_write() said so before; a second call then gives the digest of
 * what is there. No output_write() may follow. */
_must_use_ enum result output_finish(
    struct output *output, char ret_digest[DIGEST_HEX_SIZE], struct error *err);
void output_close(struct output *output); /* NULL is allowed */

#endif
