/*
 * Events as lines on a terminal: what scrolls away above the live region.
 *
 * Marks and names stand in the columns of the live region. Lines of ours may be broken by the terminal, so
 * that paths and commands can be copied; a producer's output is cut to the width and stands behind a gutter,
 * so that it never begins a line. Pure but for the log of a failed producer, whose last lines are read.
 */
#ifndef CLI_SCROLL_H
#define CLI_SCROLL_H

#include "cli/board.h"
#include "cli/terminal.h"

/* What an event that was just applied to `board` says on a terminal of that width. Appends whole lines, or
 * nothing. */
void scroll_add(const struct look *look, const struct board *board, const struct journal_event *event,
    int columns, struct text *ret);

#endif
