/*
 * What the room itself asks of a reader: one on a descriptor that is open already, and a glance at the end.
 */
#ifndef JOURNAL_READER_PRIVATE_H
#define JOURNAL_READER_PRIVATE_H

#include "journal/reader.h"

/* Reads through `fd`, which stays the caller's and must live longer. `path` is for messages. */
_must_use_ enum result journal_reader_open_fd(
    int fd, const char *path, struct journal_reader **ret, struct error *err);

/* Goes to the end. *ret_settled: `settled` is the last record and nothing follows it. CORRUPT like
 * journal_reader_next(). */
_must_use_ enum result journal_reader_skim(
    struct journal_reader *reader, bool *ret_settled, struct error *err);

#endif
