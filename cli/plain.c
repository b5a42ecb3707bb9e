#include "cli/plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "cli/event_text.h"
#include "cli/tail.h"

#define SHORT_HEX    12
#define PLAIN_PREFIX "  | "

static void say(const struct look *look, struct text *ret, const char *string)
{
    look_add_foreign(look, ret, string ? string : "");
}

static void say_line(const struct look *look, struct text *ret, const char *head, const char *body)
{
    say(look, ret, head);
    if (body && *body) {
        text_add(ret, ": ");
        say(look, ret, body);
    }
    text_add(ret, "\n");
}

static void plain_header(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    say(look, ret, event->text);
    text_add(ret, ": reconnect with `tenure attach ");
    say(look, ret, event->text);
    text_add(ret, "`\n");
}

static void plain_reserved(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    _cleanup_(text_done) struct text line = {0};
    text_addf(
        &line, "attempt %s, fence %lld", event->attempt ? event->attempt : "?", (long long)event->fence);
    if (event->repository)
        text_addf(&line, ", %s", event->repository);
    if (event->commit)
        text_addf(&line, " at %.*s", SHORT_HEX, event->commit);
    say_line(look, ret, line.bytes, NULL);
}

static void plain_started(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    char expected[DURATION_TEXT_SIZE];
    say(look, ret, event->producer);
    text_add(ret, ": started");
    if (event->expected_ms > 0) {
        duration_format(event->expected_ms, expected);
        text_addf(ret, ", about %s expected", expected);
    }
    text_add(ret, "\n");
}

static void plain_failure(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    _cleanup_(mem_free) char *path = event_log_path(board, event);
    if (!path)
        return;
    tail_add(look, path, PLAIN_PREFIX, TAIL_LINES, 0, ret);
    say(look, ret, event->producer);
    say_line(look, ret, ": the whole output is in", path);
    const struct board_producer *producer = board_find(board, event->producer);
    if (!producer || !producer->command)
        return;
    say(look, ret, event->producer);
    say_line(look, ret, ": reproduce with", producer->command);
}

static void plain_finished(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    say(look, ret, event->producer);
    if (event_passed(event)) {
        _cleanup_(mem_free) char *remark = event_remark(event);
        text_addf(ret, ": passed in %s%s", duration, remark ? "; " : "");
        say(look, ret, remark);
        text_add(ret, "\n");
        return;
    }
    _cleanup_(mem_free) char *why = event_finish_text(event);
    text_addf(ret, ": %s after %s: ", event_ending(event), duration);
    say(look, ret, why);
    text_add(ret, "\n");
    if (!event_stopped(event))
        plain_failure(look, board, event, ret);
}

/* "failed (was quiet)": the journal's finer word only where it says more. */
static void add_verdict(const struct look *look, const struct journal_event *event, struct text *ret)
{
    const char *ending = event->verdict ? event_ending(event) : "passed";
    text_add(ret, ending);
    if (!event->verdict || strcmp(event->verdict, ending) == 0)
        return;
    text_add(ret, " (was ");
    say(look, ret, event->verdict);
    text_add(ret, ")");
}

/* That evidence was stored needs no line. */
static void plain_evidence(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    if (!event->reused)
        return;
    say(look, ret, event->producer);
    text_add(ret, ": ");
    add_verdict(look, event, ret);
    text_add(ret, ", ");
    say(look, ret, event->text && *event->text ? event->text : "reused");
    text_add(ret, "\n");
}

static void plain_retired(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    text_add(ret, "retired: ");
    say(look, ret, event->text && *event->text ? event->text : event->reason);
    if (event->by_attempt && (!event->text || !*event->text)) {
        text_add(ret, ", by attempt ");
        say(look, ret, event->by_attempt);
    }
    text_add(ret, "\n");
}

static void plain_thawed(_unused_ const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    text_addf(ret, "thawed: the lease is confirmed after %s\n", duration);
}

static void plain_gap(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    _cleanup_(mem_free) char *gap = event_gap_text(event);
    say_line(look, ret, "gap", gap);
}

static void plain_plan(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    _cleanup_(mem_free) char *plan = event_plan_text(event);
    say_line(look, ret, "plan", plan);
}

static void plain_trouble(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    if (!board->trouble_is_old)
        say_line(look, ret, "the lease is not confirmed", event->text);
}

static void plain_frozen(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    say_line(look, ret, "frozen", event->text);
}

static void plain_note(const struct look *look, _unused_ const struct board *board,
    const struct journal_event *event, struct text *ret)
{
    say_line(look, ret, "note", event->text);
}

/* What has no line here is nothing that a log needs; `settled` is the verdict, which its owner prints. */
static void (*const ADD[JOURNAL_KIND_MAX])(
    const struct look *, const struct board *, const struct journal_event *, struct text *) = {
    [JOURNAL_HEADER] = plain_header,
    [JOURNAL_RESERVED] = plain_reserved,
    [JOURNAL_PLAN] = plain_plan,
    [JOURNAL_STARTED] = plain_started,
    [JOURNAL_FINISHED] = plain_finished,
    [JOURNAL_EVIDENCE] = plain_evidence,
    [JOURNAL_RENEWAL_TROUBLE] = plain_trouble,
    [JOURNAL_FROZEN] = plain_frozen,
    [JOURNAL_THAWED] = plain_thawed,
    [JOURNAL_GAP] = plain_gap,
    [JOURNAL_RETIRED] = plain_retired,
    [JOURNAL_NOTE] = plain_note,
};

void plain_add(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    if ((unsigned)event->kind < JOURNAL_KIND_MAX && ADD[event->kind])
        ADD[event->kind](look, board, event, ret);
}

static void add_running(
    const struct look *look, const struct board *board, int64_t now_boot_ms, struct text *ret)
{
    const char *between = "still running: ";
    for (size_t i = 0; i < board->count; i++) {
        const struct board_producer *producer = &board->producers[i];
        char elapsed[DURATION_TEXT_SIZE];
        if (producer->state != BOARD_RUNNING)
            continue;
        duration_format((now_boot_ms - producer->started_boot_ms) / 1000 * 1000, elapsed);
        text_add(ret, between);
        say(look, ret, producer->name);
        text_addf(ret, " for %s", elapsed);
        between = ", ";
    }
    text_add(ret, "\n");
}

void plain_add_silence(
    const struct look *look, const struct board *board, int64_t now_boot_ms, struct text *ret)
{
    if (board_running(board) > 0) {
        add_running(look, board, now_boot_ms, ret);
        return;
    }
    if (board->step == STEP_OVER || board->step == STEP_HELD)
        return;
    text_addf(ret, "%s: %s\n", board_step_name(board->step), board_step_awaits(board->step));
}
