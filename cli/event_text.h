/* What events say in words, for every way of showing them. Pure; strings are owned by the caller. */
#ifndef CLI_EVENT_TEXT_H
#define CLI_EVENT_TEXT_H

#include "cli/board.h"

bool event_passed(const struct journal_event *event);  /* its verdict is "passed" */
bool event_stopped(const struct journal_event *event); /* we ended it, because the run was to end */

/* What became of it in one of three words, "passed", "failed" or "stopped". The verdicts of the journal are
 * finer; event_finish_text() tells them. */
const char *event_ending(const struct journal_event *event);

/* "exit status 3", "ended by signal 11 (Segmentation fault)", "no output for too long", or the event's own
 * words. */
char *event_finish_text(const struct journal_event *event);

/* What is to be said of one that passed, beyond that: processes that it left and that were ended, bytes that
 * were dropped. NULL: nothing. */
char *event_remark(const struct journal_event *event);

/* "4 producers: 3 to run, 1 reused". */
char *event_plan_text(const struct journal_event *event);
size_t event_planned_reuse(const struct journal_event *event);

/* "this run was stopped, suspended or held up for 12.0 s". */
char *event_gap_text(const struct journal_event *event);

/* Absolute path of the log that the event names; NULL when it cannot be told. */
char *event_log_path(const struct board *board, const struct journal_event *event);

#endif
