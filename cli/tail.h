/*
 * The last lines of a producer's log, as a view: control bytes escaped, styling of its own dropped, what a
 * carriage return overwrote left out, every line behind a prefix. So no output can look like a line of ours.
 */
#ifndef CLI_TAIL_H
#define CLI_TAIL_H

#include "cli/terminal.h"

#define TAIL_LINES 10

/* Appends at most `lines` lines of the file, each as `prefix`, text, line feed, cut to `columns` (0: 200
 * characters). Constant memory; nothing when the file cannot be read. Returns how many. */
size_t tail_add(const struct look *look, const char *path, const char *prefix, size_t lines, int columns,
    struct text *ret);

/* The same from bytes in memory. */
size_t tail_add_bytes(const struct look *look, const char *bytes, size_t length, const char *prefix,
    size_t lines, int columns, struct text *ret);

#endif
