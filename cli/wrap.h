/*
 * Lines that are broken where a terminal ends: at spaces, the rest indented below. Escape sequences take no
 * room; a word that is longer than the line is left to the terminal, so that a path can be copied. Pure.
 */
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include "cli/terminal.h"

/* Breaks what was appended to `text` behind byte `start`. `columns` 0: not a terminal, nothing is broken. */
void wrap_from(struct text *text, size_t start, int indent, int columns);

/* How wide a sentence on `look` may be: the terminal's width, 0 when it is none. */
int look_columns(const struct look *look);

/* Appends a path: on a terminal below the home directory it begins with ~. */
void look_add_path(const struct look *look, struct text *text, const char *path);

#endif
