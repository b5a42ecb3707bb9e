#include "cli/scroll.h"

#include "base/duration.h"
#include "base/memory.h"
#include "cli/event_text.h"
#include "cli/frame.h"
#include "cli/tail.h"
#include "cli/wrap.h"

#define SHORT_HEX      12
#define FEW_REUSED     10 /* more than that are told in one line */
#define HEADER_COLUMNS 60 /* of the long form of the first line */

/* What every line needs. */
struct scroll {
    const struct look *look;
    const struct glyphs *glyphs;
    const struct board *board;
    int columns;
    struct text *ret;
};

/* How a line of ours begins. */
struct mark {
    enum style style;
    const char *glyph;
};

static void add_styled(const struct scroll *scroll, enum style style, const char *string)
{
    look_add_styled(scroll->look, scroll->ret, style, string);
}

static void add_mark(const struct scroll *scroll, struct mark mark)
{
    text_addf(scroll->ret, "%*s", frame_indent(scroll->columns), "");
    text_add(scroll->ret, style_begin(scroll->look, mark.style));
    text_add(scroll->ret, mark.glyph);
    text_add(scroll->ret, style_end(scroll->look, mark.style));
    text_add(scroll->ret, " ");
}

/* Foreign text of a length that we do not choose: cut to what is left of the width behind `used` columns. */
static void add_cut(const struct scroll *scroll, enum style style, const char *string, int used)
{
    struct row row;
    row_begin(&row, scroll->look, scroll->columns - 1 - used);
    row_add(&row, style, string);
    text_add(scroll->ret, row.text.bytes);
    row_done(&row);
}

static void add_line(const struct scroll *scroll, struct mark mark, enum style style, const char *string)
{
    size_t start = scroll->ret->length;
    add_mark(scroll, mark);
    add_styled(scroll, style, string);
    text_add(scroll->ret, "\n");
    wrap_from(scroll->ret, start, frame_indent(scroll->columns) + 2, scroll->columns);
}

/* Mark and name; returns how many columns they take. */
static int add_name(const struct scroll *scroll, struct mark mark, const char *name)
{
    struct row row;
    int width = frame_name_columns(scroll->board, scroll->look, scroll->columns);
    add_mark(scroll, mark);
    row_begin(&row, scroll->look, width);
    row_add(&row, STYLE_BOLD, name);
    row_pad(&row, width);
    text_add(scroll->ret, row.text.bytes);
    int gap = frame_gap(scroll->columns);
    text_addf(scroll->ret, "%*s", gap, "");
    row_done(&row);
    return frame_indent(scroll->columns) + 2 + width + gap;
}

/* ---- one small function per kind of event ---- */

static void on_header(const struct scroll *scroll, const struct journal_event *event)
{
    if (scroll->columns >= HEADER_COLUMNS) {
        add_styled(scroll, STYLE_BOLD, event->text);
        add_styled(scroll, STYLE_DIM, "  reconnect with  ");
    }
    add_styled(scroll, STYLE_PLAIN, "tenure attach ");
    add_styled(scroll, STYLE_PLAIN, event->text);
    text_add(scroll->ret, "\n");
}

static void on_reserved(const struct scroll *scroll, const struct journal_event *event)
{
    _cleanup_(text_done) struct text line = {0};
    text_add(&line, event->repository ? event->repository : event->text ? event->text : "");
    if (event->commit)
        text_addf(&line, " at %.*s", SHORT_HEX, event->commit);
    if (scroll->columns >= HEADER_COLUMNS)
        text_addf(&line, "%sfence %lld", line.length ? ", " : "", (long long)event->fence);
    if (line.length == 0)
        return;
    size_t start = scroll->ret->length;
    add_styled(scroll, STYLE_DIM, line.bytes);
    text_add(scroll->ret, "\n");
    wrap_from(scroll->ret, start, 2, scroll->columns);
}

/* Many reused ones are one line. */
static void on_plan(const struct scroll *scroll, const struct journal_event *event)
{
    size_t reused = event_planned_reuse(event), shown = 0;
    _cleanup_(text_done) struct text names = {0};
    if (reused <= FEW_REUSED)
        return;
    text_addf(&names, "%zu producers reused: ", reused);
    for (size_t i = 0; i < event->plan_count; i++)
        if (event->plan[i].reuse)
            text_addf(&names, "%s%s", shown++ ? ", " : "", event->plan[i].producer);
    add_mark(scroll, (struct mark){STYLE_ACCENT, scroll->glyphs->reused});
    add_cut(scroll, STYLE_DIM, names.bytes, frame_indent(scroll->columns) + 2);
    text_add(scroll->ret, "\n");
}

static void on_evidence(const struct scroll *scroll, const struct journal_event *event)
{
    struct mark mark = {STYLE_ACCENT, scroll->glyphs->reused};
    bool failed = event->verdict && !event_passed(event);
    /* A failure that is known is told once, at the end, with its log. */
    if (!event->reused || failed || board_count(scroll->board, BOARD_REUSED) > FEW_REUSED)
        return;
    int used = add_name(scroll, mark, event->producer);
    add_cut(scroll, STYLE_DIM, event->text && *event->text ? event->text : "reused", used);
    text_add(scroll->ret, "\n");
}

static void add_hint(const struct scroll *scroll, int indent, const char *name)
{
    text_addf(scroll->ret, "%*s", indent, "");
    text_add(scroll->ret, style_begin(scroll->look, STYLE_DIM));
    text_addf(scroll->ret, "%s %-9s", scroll->glyphs->arrow, name);
    text_add(scroll->ret, style_end(scroll->look, STYLE_DIM));
    text_add(scroll->ret, " ");
}

static void add_failure(const struct scroll *scroll, const struct journal_event *event)
{
    int indent = frame_indent(scroll->columns) + 2;
    _cleanup_(mem_free) char *prefix = mem_format("%*s%s ", indent, "", scroll->glyphs->gutter);
    _cleanup_(mem_free) char *path = event_log_path(scroll->board, event);
    const struct board_producer *producer = board_find(scroll->board, event->producer);
    if (!path)
        return;
    tail_add(scroll->look, path, prefix, TAIL_LINES, scroll->columns, scroll->ret);
    add_hint(scroll, indent, "log");
    look_add_path(scroll->look, scroll->ret, path);
    text_add(scroll->ret, "\n");
    if (!producer || !producer->command)
        return;
    add_hint(scroll, indent, "reproduce");
    add_styled(scroll, STYLE_PLAIN, producer->command);
    text_add(scroll->ret, "\n");
}

static void on_finished(const struct scroll *scroll, const struct journal_event *event)
{
    char duration[DURATION_TEXT_SIZE];
    bool passed = event_passed(event), stopped = event_stopped(event);
    size_t start = scroll->ret->length;
    duration_format(event->duration_ms, duration);
    add_name(scroll,
        passed    ? (struct mark){STYLE_GOOD, scroll->glyphs->passed}
        : stopped ? (struct mark){STYLE_WARN, scroll->glyphs->stopped}
                  : (struct mark){STYLE_BAD, scroll->glyphs->failed},
        event->producer);
    text_add(scroll->ret, duration);
    _cleanup_(mem_free) char *why = passed ? event_remark(event) : event_finish_text(event);
    if (why) {
        text_add(scroll->ret, "  ");
        add_styled(scroll, passed || stopped ? STYLE_DIM : STYLE_BAD, why);
    }
    text_add(scroll->ret, "\n");
    wrap_from(scroll->ret, start, frame_indent(scroll->columns) + 2, scroll->columns);
    /* The last words of what was ended in the middle tell nothing. */
    if (!passed && !stopped)
        add_failure(scroll, event);
}

static void on_thawed(const struct scroll *scroll, const struct journal_event *event)
{
    char duration[DURATION_TEXT_SIZE];
    duration_format(event->duration_ms, duration);
    _cleanup_(mem_free) char *line = mem_format("thawed after %s, the lease is confirmed", duration);
    add_line(scroll, (struct mark){STYLE_WARN, scroll->glyphs->frozen}, STYLE_PLAIN, line);
}

static void on_gap(const struct scroll *scroll, const struct journal_event *event)
{
    _cleanup_(mem_free) char *line = event_gap_text(event);
    add_line(scroll, (struct mark){STYLE_WARN, scroll->glyphs->frozen}, STYLE_PLAIN, line);
}

static void on_retired(const struct scroll *scroll, const struct journal_event *event)
{
    _cleanup_(text_done) struct text line = {0};
    const char *why = event->text && *event->text ? event->text : event->reason;
    text_addf(&line, "retired: %s", why ? why : "no reason is given");
    if (event->by_attempt && (!event->text || !*event->text))
        text_addf(&line, ", by attempt %s", event->by_attempt);
    add_line(scroll, (struct mark){STYLE_BAD, scroll->glyphs->failed}, STYLE_BAD, line.bytes);
}

static void on_note(const struct scroll *scroll, const struct journal_event *event)
{
    add_line(scroll, (struct mark){STYLE_DIM, scroll->glyphs->dot}, STYLE_DIM, event->text);
}

/* What has no line here is shown by the live region. */
static void (*const ADD[JOURNAL_KIND_MAX])(const struct scroll *, const struct journal_event *) = {
    [JOURNAL_HEADER] = on_header,
    [JOURNAL_RESERVED] = on_reserved,
    [JOURNAL_PLAN] = on_plan,
    [JOURNAL_EVIDENCE] = on_evidence,
    [JOURNAL_FINISHED] = on_finished,
    [JOURNAL_THAWED] = on_thawed,
    [JOURNAL_GAP] = on_gap,
    [JOURNAL_RETIRED] = on_retired,
    [JOURNAL_NOTE] = on_note,
};

void scroll_add(const struct look *look, const struct board *board, const struct journal_event *event,
    int columns, struct text *ret)
{
    struct scroll scroll = {
        .look = look, .glyphs = glyphs_of(look), .board = board, .columns = columns, .ret = ret};
    if ((unsigned)event->kind < JOURNAL_KIND_MAX && ADD[event->kind])
        ADD[event->kind](&scroll, event);
}
