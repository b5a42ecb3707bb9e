/*
 * Reading a journal: never writes, never locks, never follows a symlink, never hangs on a FIFO.
 *
 *     journal_reader_open(path, &reader, err);                       // header validated
 *     while ((r = journal_reader_next(reader, &event, err)) == RESULT_OK)
 *         ...                                                         // journal_event_done(&event)
 *     // ABSENT: no complete record more (for now); CORRUPT: damage, the error names the offset
 *
 * After ABSENT the same call may be made again once the file has grown. One thread per reader.
 */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "journal/event.h"
#include "journal/format.h"

struct journal_reader;

/* ABSENT, CORRUPT (header), NEWER, DENIED, INVALID (not a regular file, a symlink). */
_must_use_ enum result journal_reader_open(const char *path, struct journal_reader **ret, struct error *err);
void journal_reader_close(struct journal_reader *reader);
void journal_reader_cleanup(struct journal_reader **reader);

const struct journal_header *journal_reader_header(const struct journal_reader *reader);
_must_use_ enum result journal_reader_next(
    struct journal_reader *reader, struct journal_event *ret, struct error *err);

int journal_reader_fd(const struct journal_reader *reader);
int64_t journal_reader_offset(const struct journal_reader *reader); /* end of the last valid record */
bool journal_reader_torn(const struct journal_reader *reader);      /* bytes of an incomplete record follow */

#endif
