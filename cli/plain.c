#include "cli/plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/tail.h"

#define SHORT_HEX    12
#define FEW_REUSED   10 /* more than that are told in one line */
#define PLAIN_PREFIX "  | "

static bool is(const char *string, const char *word)
{
    return string && strcmp(string, word) == 0;
}

static const struct {
    const char *verdict, *words;
} VERDICTS[] = {
    {"timed-out", "ran out of its time"},
    {"quiet", "no output for too long"},
    {"not-started", "could not be started"},
    {"stopped", "was stopped"},
    {"stalled", "stopped itself and stayed so"},
    {"output-lost", "its output could not be kept"},
    {"inputs-changed", "its inputs changed while it ran"},
    {"output-missing", "did not make an output that it declares"},
};

static char *verdict_text(const struct journal_event *event)
{
    if (is(event->verdict, "failed"))
        return mem_format("exit status %lld", (long long)event->exit_code);
    if (is(event->verdict, "signalled"))
        return mem_format(
            "ended by signal %lld (%s)", (long long)event->signal, strsignal((int)event->signal));
    for (size_t i = 0; i < ARRAY_SIZE(VERDICTS); i++)
        if (is(event->verdict, VERDICTS[i].verdict))
            return mem_string(VERDICTS[i].words);
    return mem_string(event->verdict ? event->verdict : "no verdict");
}

char *finish_text(const struct journal_event *event)
{
    struct text text = {0};
    _cleanup_(mem_free) char *derived = event->text && *event->text ? NULL : verdict_text(event);
    text_add(&text, derived ? derived : event->text);
    if (event->dropped_bytes > 0)
        text_addf(&text, "; %lld bytes of its output were dropped", (long long)event->dropped_bytes);
    return text_steal(&text);
}

static bool has_passed(const struct journal_event *event)
{
    return is(event->verdict, "passed");
}

static size_t planned_reuse(const struct journal_event *event)
{
    size_t count = 0;
    for (size_t i = 0; i < event->plan_count; i++)
        count += event->plan[i].reuse;
    return count;
}

static char *plan_text(const struct journal_event *event)
{
    size_t reused = planned_reuse(event);
    size_t total = event->total > 0 ? (size_t)event->total : event->plan_count;
    return mem_format("%zu producer%s: %zu to run, %zu reused", total, total == 1 ? "" : "s",
        total > reused ? total - reused : 0, reused);
}

static char *log_path(const struct board *board, const char *log)
{
    if (!log || !board->directory)
        return NULL;
    return mem_format("%s/out/%s", board->directory, log);
}

/* ---- without a terminal ---- */

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

static void plain_header(const struct look *look, const struct journal_event *event, struct text *ret)
{
    say(look, ret, event->text);
    text_add(ret, ": reconnect with `tenure attach ");
    say(look, ret, event->text);
    text_add(ret, "`\n");
}

static void plain_reserved(const struct look *look, const struct journal_event *event, struct text *ret)
{
    text_addf(ret, "attempt %s, fence %lld", event->attempt ? event->attempt : "?", (long long)event->fence);
    if (event->repository) {
        text_add(ret, ", ");
        say(look, ret, event->repository);
    }
    if (event->commit)
        text_addf(ret, " at %.*s", SHORT_HEX, event->commit);
    text_add(ret, "\n");
}

static void plain_started(const struct look *look, const struct journal_event *event, struct text *ret)
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
    _cleanup_(mem_free) char *path = log_path(board, event->log);
    if (!path)
        return;
    tail_add(look, path, PLAIN_PREFIX, TAIL_LINES, 0, ret);
    say(look, ret, event->producer);
    say_line(look, ret, ": the whole output is in", path);
}

static void plain_finished(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    say(look, ret, event->producer);
    if (has_passed(event)) {
        text_addf(ret, ": passed in %s", duration);
        if (event->dropped_bytes > 0)
            text_addf(ret, "; %lld bytes of its output were dropped", (long long)event->dropped_bytes);
        text_add(ret, "\n");
        return;
    }
    _cleanup_(mem_free) char *why = finish_text(event);
    text_addf(ret, ": %s after %s: ", event->verdict ? event->verdict : "ended", duration);
    say(look, ret, why);
    text_add(ret, "\n");
    plain_failure(look, board, event, ret);
}

static void plain_evidence(const struct look *look, const struct journal_event *event, struct text *ret)
{
    if (!event->reused)
        return;
    say(look, ret, event->producer);
    text_addf(ret, ": %s, ", event->verdict ? event->verdict : "passed");
    say(look, ret, event->text && *event->text ? event->text : "reused");
    text_add(ret, "\n");
}

static void plain_retired(const struct look *look, const struct journal_event *event, struct text *ret)
{
    text_add(ret, "retired: ");
    say(look, ret, event->text && *event->text ? event->text : event->reason);
    if (event->by_attempt) {
        text_add(ret, ", by attempt ");
        say(look, ret, event->by_attempt);
    }
    text_add(ret, "\n");
}

static void plain_thawed(const struct journal_event *event, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    text_addf(ret, "thawed: the lease is confirmed after %s\n", duration);
}

void plain_add(
    const struct look *look, const struct board *board, const struct journal_event *event, struct text *ret)
{
    _cleanup_(mem_free) char *plan = event->kind == JOURNAL_PLAN ? plan_text(event) : NULL;
    if (event->kind == JOURNAL_HEADER)
        plain_header(look, event, ret);
    else if (event->kind == JOURNAL_RESERVED)
        plain_reserved(look, event, ret);
    else if (event->kind == JOURNAL_PLAN)
        say_line(look, ret, "plan", plan);
    else if (event->kind == JOURNAL_STARTED)
        plain_started(look, event, ret);
    else if (event->kind == JOURNAL_FINISHED)
        plain_finished(look, board, event, ret);
    else if (event->kind == JOURNAL_EVIDENCE)
        plain_evidence(look, event, ret);
    else if (event->kind == JOURNAL_RENEWAL_TROUBLE && !board->trouble_is_old)
        say_line(look, ret, "the lease is not confirmed", event->text);
    else if (event->kind == JOURNAL_FROZEN)
        say_line(look, ret, "frozen", event->text);
    else if (event->kind == JOURNAL_THAWED)
        plain_thawed(event, ret);
    else if (event->kind == JOURNAL_RETIRED)
        plain_retired(look, event, ret);
    else if (event->kind == JOURNAL_NOTE)
        say_line(look, ret, "note", event->text);
}

void plain_add_waiting(const struct look *look, const struct attempt *holder, struct text *ret)
{
    char since[CLOCK_TEXT_SIZE];
    clock_format_utc(holder->acquired_wall_ms, since);
    text_add(ret, "waiting for ");
    say(look, ret, holder->journal_handle ? holder->journal_handle : holder->id);
    text_add(ret, ", held by ");
    say(look, ret, holder->executor.user);
    text_add(ret, " on ");
    say(look, ret, holder->executor.host);
    text_addf(ret, ", pid %lld, since %s\n", (long long)holder->executor.pid, since);
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

/* ---- above a live region ---- */

/* One line of ours: a mark, then words. */
struct mark {
    enum style style;
    const char *glyph;
};

static void scroll_mark(const struct look *look, struct mark mark, struct text *ret)
{
    text_addf(ret, "  %s%s%s ", style_begin(look, mark.style), mark.glyph, style_end(look, mark.style));
}

static void scroll_line(
    const struct look *look, struct mark mark, enum style style, const char *string, struct text *ret)
{
    scroll_mark(look, mark, ret);
    look_add_styled(look, ret, style, string);
    text_add(ret, "\n");
}

/* Mark and name, in the columns of the live region. */
static void scroll_name(const struct look *look, const struct board *board, struct mark mark,
    const char *name, int columns, struct text *ret)
{
    struct row row;
    int width = frame_name_columns(board, look, columns);
    scroll_mark(look, mark, ret);
    row_begin(&row, look, width);
    row_add(&row, STYLE_BOLD, name);
    row_pad(&row, width);
    text_add(ret, row.text.bytes);
    text_add(ret, "  ");
    row_done(&row);
}

static void scroll_header(const struct look *look, const struct journal_event *event, struct text *ret)
{
    look_add_styled(look, ret, STYLE_BOLD, event->text);
    text_addf(ret, "  %s%s reconnect with ", style_begin(look, STYLE_DIM), glyphs_of(look)->dot);
    text_add(ret, "tenure attach ");
    look_add_foreign(look, ret, event->text ? event->text : "");
    text_addf(ret, "%s\n", style_end(look, STYLE_DIM));
}

static void scroll_reserved(const struct look *look, const struct journal_event *event, struct text *ret)
{
    _cleanup_(text_done) struct text line = {0};
    text_addf(&line, "%s", event->repository ? event->repository : event->text ? event->text : "");
    if (event->commit)
        text_addf(&line, " at %.*s", SHORT_HEX, event->commit);
    text_addf(&line, "%sfence %lld", line.length ? ", " : "", (long long)event->fence);
    look_add_styled(look, ret, STYLE_DIM, line.bytes);
    text_add(ret, "\n");
}

static void scroll_failure(const struct look *look, const struct board *board,
    const struct journal_event *event, int columns, struct text *ret)
{
    const struct glyphs *glyphs = glyphs_of(look);
    _cleanup_(mem_free) char *prefix = mem_format("    %s ", glyphs->gutter);
    _cleanup_(mem_free) char *path = log_path(board, event->log);
    if (!path)
        return;
    tail_add(look, path, prefix, TAIL_LINES, columns, ret);
    text_addf(ret, "    %s%s%s ", style_begin(look, STYLE_DIM), glyphs->arrow, style_end(look, STYLE_DIM));
    look_add_foreign(look, ret, path);
    text_add(ret, "\n");
}

static void scroll_finished(const struct look *look, const struct board *board,
    const struct journal_event *event, int columns, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    const struct glyphs *glyphs = glyphs_of(look);
    bool passed = has_passed(event);
    struct mark mark =
        passed ? (struct mark){STYLE_GOOD, glyphs->passed} : (struct mark){STYLE_BAD, glyphs->failed};
    duration_format(event->duration_ms, duration);
    scroll_name(look, board, mark, event->producer, columns, ret);
    text_add(ret, duration);
    if (!passed || event->dropped_bytes > 0) {
        _cleanup_(mem_free) char *why = finish_text(event);
        text_add(ret, "  ");
        look_add_styled(look, ret, passed ? STYLE_DIM : STYLE_BAD, why);
    }
    text_add(ret, "\n");
    if (!passed)
        scroll_failure(look, board, event, columns, ret);
}

static void scroll_reused(const struct look *look, const struct board *board,
    const struct journal_event *event, int columns, struct text *ret)
{
    const struct glyphs *glyphs = glyphs_of(look);
    bool failed = event->verdict && !has_passed(event);
    struct mark mark =
        failed ? (struct mark){STYLE_BAD, glyphs->failed} : (struct mark){STYLE_ACCENT, glyphs->reused};
    if (!event->reused || (!failed && board_count(board, BOARD_REUSED) > FEW_REUSED))
        return;
    scroll_name(look, board, mark, event->producer, columns, ret);
    struct row row;
    row_begin(&row, look, columns - 1 - 6 - frame_name_columns(board, look, columns));
    row_add(&row, STYLE_DIM, event->text && *event->text ? event->text : "reused");
    text_add(ret, row.text.bytes);
    text_add(ret, "\n");
    row_done(&row);
}

/* Many reused ones are one line. */
static void scroll_plan(
    const struct look *look, const struct journal_event *event, int columns, struct text *ret)
{
    size_t reused = planned_reuse(event);
    if (reused <= FEW_REUSED)
        return;
    struct row row;
    _cleanup_(text_done) struct text names = {0};
    text_addf(&names, "%zu producers reused: ", reused);
    for (size_t i = 0, shown = 0; i < event->plan_count; i++)
        if (event->plan[i].reuse)
            text_addf(&names, "%s%s", shown++ ? ", " : "", event->plan[i].producer);
    row_begin(&row, look, columns - 1 - 4);
    row_add(&row, STYLE_DIM, names.bytes);
    scroll_mark(look, (struct mark){STYLE_ACCENT, glyphs_of(look)->reused}, ret);
    text_add(ret, row.text.bytes);
    text_add(ret, "\n");
    row_done(&row);
}

static void scroll_thawed(const struct look *look, const struct journal_event *event, struct text *ret)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    _cleanup_(mem_free) char *line =
        mem_format("frozen for %s; the lease is confirmed, the work goes on", duration);
    scroll_line(look, (struct mark){STYLE_WARN, glyphs_of(look)->frozen}, STYLE_PLAIN, line, ret);
}

static void scroll_retired(const struct look *look, const struct journal_event *event, struct text *ret)
{
    _cleanup_(text_done) struct text line = {0};
    plain_retired(look, event, &line);
    line.bytes[line.length - 1] = '\0';
    scroll_line(look, (struct mark){STYLE_BAD, glyphs_of(look)->failed}, STYLE_BAD, line.bytes, ret);
}

void scroll_add(const struct look *look, const struct board *board, const struct journal_event *event,
    int columns, struct text *ret)
{
    if (event->kind == JOURNAL_HEADER)
        scroll_header(look, event, ret);
    else if (event->kind == JOURNAL_RESERVED)
        scroll_reserved(look, event, ret);
    else if (event->kind == JOURNAL_PLAN)
        scroll_plan(look, event, columns, ret);
    else if (event->kind == JOURNAL_FINISHED)
        scroll_finished(look, board, event, columns, ret);
    else if (event->kind == JOURNAL_EVIDENCE)
        scroll_reused(look, board, event, columns, ret);
    else if (event->kind == JOURNAL_THAWED)
        scroll_thawed(look, event, ret);
    else if (event->kind == JOURNAL_RETIRED)
        scroll_retired(look, event, ret);
    else if (event->kind == JOURNAL_NOTE)
        scroll_line(look, (struct mark){STYLE_DIM, glyphs_of(look)->dot}, STYLE_DIM, event->text, ret);
}
