/*
 * Events as lines: one plain line each where there is no terminal, a little richer where one scrolls.
 *
 * Lines of ours begin with a word or a mark; a producer's output stands behind a gutter, always. Pure but for
 * the log of a failed producer, whose last lines are read.
 */
#ifndef CLI_PLAIN_H
#define CLI_PLAIN_H

#include "cli/board.h"
#include "cli/terminal.h"
#include "journal/event.h"

/* What an event that was just applied to `board` says. Appends whole lines, or nothing. */
void plain_add(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret);
/* What has been going on for long, for a log that would else be silent. */
void plain_add_silence(
    const struct look *look, const struct board *board, int64_t now_boot_ms, struct text *ret);

#endif
