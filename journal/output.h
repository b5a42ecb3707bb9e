/*
 * Output logs: a producer's raw bytes, untouched, in constant memory whatever it writes.
 *
 * out/<producer>.log keeps at most `cap_bytes`: all of a smaller output, else its head and its tail with one
 * line between them that states how many bytes were dropped there. While the producer runs, the tail grows in
 * a ring beside the log (out/<producer>.tail); output_finish() joins them. A producer name may hold any byte:
 * the file name is escaped, and a digest keeps long ones apart. One thread per object.
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
int64_t output_readable_bytes(const struct output *output); /* of the head, visible to a follower now */

/* Joins head and tail, states what was dropped, gives the digest of the log as kept (BLAKE2b-256 hex). */
_must_use_ enum result output_finish(
    struct output *output, char ret_digest[DIGEST_HEX_SIZE], struct error *err);
void output_close(struct output *output); /* NULL is allowed */

#endif
