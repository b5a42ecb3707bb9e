/*
 * Reading an output log as a follower sees it, also one whose writer died before it joined head and tail.
 */
#ifndef JOURNAL_OUTPUT_PRIVATE_H
#define JOURNAL_OUTPUT_PRIVATE_H

#include <stdbool.h>

#include "base/text.h"
#include "journal/output.h"

/* The line that states what is missing, with the line feeds around it; `why` may be NULL. */
void output_statement(int64_t dropped_bytes, const char *why, struct text *ret);

/* Bytes of out/`log` from `offset_bytes` on, *ret_length 0 at the end. With `abandoned` the tail that a dead
 * writer left counts as joined. ABSENT, INVALID (not a log's name), SYSTEM. */
_must_use_ enum result output_read(const char *directory, const char *log, bool abandoned,
    int64_t offset_bytes, void *buffer, size_t size, size_t *ret_length, struct error *err);

#endif
