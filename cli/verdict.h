/*
 * How a `done` ended: the last lines for people, the document for programs. Pure.
 */
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include "cli/cli.h"
#include "completion/completion.h"

/* The exit status: 128+n when a signal ended it. */
int verdict_status(const struct cli *cli, const struct completion_result *result);

/* What failed, where its log is and how to reproduce it; then the verdict in one sentence, the Proof's id,
 * the time. Empty for OUTCOME_HELD, which is told by its pending cause. `watched`: a live screen on `look`
 * has shown what failed while it ran. */
void verdict_add(
    const struct look *look, const struct completion_result *result, bool watched, struct text *ret);
/* The plan of --dry-run: a line per producer, with the reason. */
void verdict_add_plan(const struct look *look, const struct completion_result *result, struct text *ret);

/* The whole document of `done --json`. `err` NULL: there was none. Caller puts it. */
struct json_object *verdict_json(
    const struct cli *cli, const struct completion_result *result, int status, const struct error *err);

/* One line that ends a run: mark, sentence, more (may be NULL), time (below 0: none). */
void verdict_line(const struct look *look, bool good, const char *sentence, const char *more,
    int64_t duration_ms, struct text *ret);

#endif
