/*
 * What the room itself asks of a reader: one on a descriptor that is open already, and how its chain stands.
 */
#ifndef JOURNAL_READER_PRIVATE_H
#define JOURNAL_READER_PRIVATE_H

#include "journal/reader.h"

/* Opens a regular file for reading, without following a symlink or waiting for a FIFO's writer. The results
 * are those of journal_reader_open(). `flags` is O_RDONLY or O_RDWR. */
_must_use_ enum result journal_file_open(const char *path, int flags, int *ret_fd, struct error *err);

/* Reads through `fd`, which stays the caller's and must live longer. `path` is for messages. */
_must_use_ enum result journal_reader_open_fd(
    int fd, const char *path, struct journal_reader **ret, struct error *err);

struct chain journal_reader_chain(const struct journal_reader *reader);

/* Goes to the end. *ret_settled: `settled` is the last record and nothing follows it. CORRUPT like
 * journal_reader_next(). */
_must_use_ enum result journal_reader_skim(
    struct journal_reader *reader, bool *ret_settled, struct error *err);

#endif
