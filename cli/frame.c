#include "cli/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/memory.h"

#define SILENCE_MS       INT64_C(2000)
#define SPINNER_MS       INT64_C(100)
#define NAME_COLUMNS_MAX 40
#define BAR_MAX          40
#define GAUGE_COLUMNS    10
#define NARROW           40 /* below there is no room for an indent and words */
#define WIDE             64 /* from here on there is room for a gauge per producer */
#define TIMES_COLUMNS    13 /* what a narrow line needs beside the name */
#define TIMES_ROOM       22 /* "1 m 10 s of ~12 m 30 s" */
#define VERY_WIDE        100

static const char *const BRAILLE[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
static const char *const STICKS[] = {"|", "/", "-", "\\"};

static const struct glyphs UTF8_GLYPHS = {
    .spinner = BRAILLE,
    .spinner_count = ARRAY_SIZE(BRAILLE),
    .passed = "✓",
    .failed = "✗",
    .stopped = "⊘",
    .reused = "↻",
    .frozen = "‖",
    .warn = "!",
    .gutter = "│",
    .dot = "·",
    .ellipsis = "…",
    .arrow = "→",
    .about = "~",
    .bar_full = "━",
    .bar_half = "╸",
    .bar_rest = "─",
};

static const struct glyphs ASCII_GLYPHS = {
    .spinner = STICKS,
    .spinner_count = ARRAY_SIZE(STICKS),
    .passed = "+",
    .failed = "x",
    .stopped = "o",
    .reused = "=",
    .frozen = "#",
    .warn = "!",
    .gutter = "|",
    .dot = "-",
    .ellipsis = "..",
    .arrow = "->",
    .about = "~",
    .bar_full = "#",
    .bar_half = NULL,
    .bar_rest = ".",
};

const struct glyphs *glyphs_of(const struct look *look)
{
    return look->utf8 ? &UTF8_GLYPHS : &ASCII_GLYPHS;
}

/* ---- rows ---- */

void row_begin(struct row *row, const struct look *look, int limit)
{
    *row = (struct row){.look = look, .limit = limit > 1 ? limit : 1};
    text_add(&row->text, "");
}

void row_done(struct row *row)
{
    text_done(&row->text);
}

/* Bytes of the character at `string`, with what combines with it. */
static size_t character_bytes(const char *string)
{
    size_t bytes = 1;
    while (((unsigned char)string[bytes] & 0xC0) == 0x80)
        bytes++;
    return bytes;
}

static int character_columns(const char *string, size_t bytes)
{
    char buffer[8] = {0};
    if (bytes == 1)
        return 1;
    memcpy(buffer, string, bytes < sizeof(buffer) ? bytes : sizeof(buffer) - 1);
    return text_columns(buffer);
}

/* How many bytes of `string` fit into `columns`. */
static size_t fitting(const char *string, int columns, int *ret_used)
{
    size_t at = 0;
    *ret_used = 0;
    while (string[at]) {
        size_t bytes = character_bytes(string + at);
        int width = character_columns(string + at, bytes);
        if (*ret_used + width > columns)
            break;
        *ret_used += width;
        at += bytes;
    }
    return at;
}

void row_add(struct row *row, enum style style, const char *string)
{
    if (row->cut || !string || !*string)
        return;
    _cleanup_(text_done) struct text safe = {0};
    /* The glyphs are ours, and right for this locale; everything else is foreign. Both pass through here. */
    look_add_foreign(row->look, &safe, string);
    const char *ellipsis = glyphs_of(row->look)->ellipsis;
    int used = 0, room = row->limit - row->columns, dots = text_columns(ellipsis);
    size_t bytes = fitting(safe.bytes, room, &used);
    row->cut = safe.bytes[bytes] != '\0';
    if (row->cut)
        bytes = fitting(safe.bytes, room > dots ? room - dots : 0, &used);
    text_add(&row->text, style_begin(row->look, style));
    text_append(&row->text, safe.bytes, bytes);
    if (row->cut && room >= dots) {
        text_add(&row->text, ellipsis);
        used += dots;
    }
    text_add(&row->text, style_end(row->look, style));
    row->columns += used;
}

void row_pad(struct row *row, int columns)
{
    for (; !row->cut && row->columns < columns && row->columns < row->limit; row->columns++)
        text_add(&row->text, " ");
}

/* Room for one string in a part of the row that is `columns` wide, padded. */
static void row_cell(struct row *row, enum style style, const char *string, int columns)
{
    struct row cell;
    int start = row->columns, room = row->limit - row->columns;
    if (row->cut || room <= 0)
        return;
    row_begin(&cell, row->look, columns < room ? columns : room);
    row_add(&cell, style, string);
    text_append(&row->text, cell.text.bytes, cell.text.length);
    row->columns += cell.columns;
    row_done(&cell);
    row_pad(row, start + columns);
}

static struct row *frame_row(struct frame *frame, const struct look *look, int limit)
{
    mem_grow(&frame->rows, &frame->capacity, frame->count, sizeof(*frame->rows));
    struct row *row = &frame->rows[frame->count++];
    row_begin(row, look, limit);
    return row;
}

void frame_done(struct frame *frame)
{
    for (size_t i = 0; i < frame->count; i++)
        row_done(&frame->rows[i]);
    free(frame->rows);
    *frame = (struct frame){0};
}

/* ---- pieces ---- */

/* What all rows of one frame share. */
struct drawing {
    const struct board *board;
    const struct look *look;
    const struct glyphs *glyphs;
    int64_t now_boot_ms;
    int64_t work_boot_ms; /* now, or when the work was frozen */
    int limit, rows, name_columns;
    struct frame *frame;
};

static int indent_of(int limit)
{
    return limit < NARROW ? 0 : 2;
}

int frame_indent(int columns)
{
    return indent_of(columns - 1);
}

static int gap_of(int limit)
{
    return limit < NARROW ? 1 : 2;
}

int frame_gap(int columns)
{
    return gap_of(columns - 1);
}

static const char *spinner(const struct drawing *drawing)
{
    int64_t turn = drawing->now_boot_ms / SPINNER_MS;
    return drawing->glyphs->spinner[(size_t)(turn < 0 ? 0 : turn) % drawing->glyphs->spinner_count];
}

static void add_bar(struct row *row, const struct glyphs *glyphs, int columns, int permille, enum style style)
{
    struct text full = {0}, rest = {0};
    int halves = columns * 2 * permille / 1000, cells = halves / 2;
    for (int i = 0; i < cells; i++)
        text_add(&full, glyphs->bar_full);
    if (cells < columns && halves % 2 && glyphs->bar_half) {
        text_add(&full, glyphs->bar_half);
        cells++;
    }
    for (int i = cells; i < columns; i++)
        text_add(&rest, glyphs->bar_rest);
    row_add(row, style, full.bytes);
    row_add(row, STYLE_DIM, rest.bytes);
    text_done(&full);
    text_done(&rest);
}

static void format_bytes(int64_t bytes, char ret[32])
{
    static const char *const UNITS[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    int64_t tenths = bytes * 10;
    for (; tenths >= 10000 && unit + 1 < ARRAY_SIZE(UNITS); unit++)
        tenths /= 1000;
    if (unit == 0 || tenths >= 1000)
        snprintf(ret, 32, "%lld %s", (long long)(tenths / 10), UNITS[unit]);
    else
        snprintf(ret, 32, "%lld.%lld %s", (long long)(tenths / 10), (long long)(tenths % 10), UNITS[unit]);
}

/* Tenths only while they mean something: seconds that pass, not minutes. */
static void format_elapsed(int64_t ms, char ret[DURATION_TEXT_SIZE])
{
    if (ms < 0)
        ms = 0;
    if (ms < 10000)
        snprintf(
            ret, DURATION_TEXT_SIZE, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
    else
        duration_format(ms / 1000 * 1000, ret);
}

/* All that the times, and the gauge where there is one, leave over. */
static int name_room(int limit)
{
    if (limit < NARROW)
        return limit - TIMES_COLUMNS;
    int room = limit - indent_of(limit) - 4 - TIMES_ROOM - (limit >= WIDE ? 2 + GAUGE_COLUMNS : 0);
    return room < NAME_COLUMNS_MAX ? room : NAME_COLUMNS_MAX;
}

int frame_name_columns(const struct board *board, const struct look *look, int columns)
{
    int widest = 4, most = name_room(columns - 1);
    for (size_t i = 0; i < board->count; i++) {
        _cleanup_(text_done) struct text safe = {0};
        look_add_foreign(look, &safe, board->producers[i].name);
        int width = text_columns(safe.bytes);
        widest = width > widest ? width : widest;
    }
    most = most < 4 ? 4 : most;
    return widest < most ? widest : most;
}

/* ---- the rows of the live region ---- */

static void draw_times(const struct drawing *drawing, struct row *row, const struct board_producer *producer)
{
    char elapsed[DURATION_TEXT_SIZE], expected[DURATION_TEXT_SIZE];
    format_elapsed(drawing->work_boot_ms - producer->started_boot_ms, elapsed);
    row_add(row, STYLE_PLAIN, elapsed);
    if (producer->expected_ms <= 0)
        return;
    /* Nobody knows the future to a tenth of a second. */
    duration_format(
        producer->expected_ms < 1000 ? producer->expected_ms : (producer->expected_ms + 500) / 1000 * 1000,
        expected);
    row_add(row, STYLE_DIM, drawing->limit < NARROW ? "/" : " of ");
    row_add(row, STYLE_DIM, drawing->glyphs->about);
    row_add(row, STYLE_DIM, expected);
}

/* What has ended has its time in the same column, further up. */
static int times_column(const struct drawing *drawing)
{
    return indent_of(drawing->limit) + 2 + drawing->name_columns + gap_of(drawing->limit);
}

static void draw_gauge(const struct drawing *drawing, struct row *row, const struct board_producer *producer)
{
    int64_t elapsed = drawing->work_boot_ms - producer->started_boot_ms;
    if (producer->expected_ms <= 0)
        return;
    int64_t permille = elapsed * 1000 / producer->expected_ms;
    int shown = (int)(permille < 0 ? 0 : permille > 1000 ? 1000 : permille);
    row_pad(row, times_column(drawing) + TIMES_ROOM + 2);
    add_bar(row, drawing->glyphs, GAUGE_COLUMNS, shown, STYLE_ACCENT);
}

static void draw_producer(const struct drawing *drawing, const struct board_producer *producer)
{
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    bool frozen = drawing->board->frozen_boot_ms != 0;
    row_pad(row, indent_of(drawing->limit));
    row_add(row, frozen ? STYLE_WARN : STYLE_ACCENT, frozen ? drawing->glyphs->frozen : spinner(drawing));
    row_add(row, STYLE_PLAIN, " ");
    row_cell(row, STYLE_BOLD, producer->name, drawing->name_columns);
    row_pad(row, times_column(drawing));
    draw_times(drawing, row, producer);
    if (drawing->limit >= WIDE)
        draw_gauge(drawing, row, producer);
    if (drawing->limit < VERY_WIDE || producer->output_bytes <= 0)
        return;
    char bytes[32];
    format_bytes(producer->output_bytes, bytes);
    row_pad(row, times_column(drawing) + TIMES_ROOM + 2 + GAUGE_COLUMNS + 2);
    row_add(row, STYLE_DIM, bytes);
    row_add(row, STYLE_DIM, " of output");
}

static void draw_more(const struct drawing *drawing, size_t hidden)
{
    char text[48];
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    row_pad(row, indent_of(drawing->limit) + 2);
    snprintf(text, sizeof(text), "and %zu more", hidden);
    row_add(row, STYLE_DIM, text);
}

static void draw_producers(const struct drawing *drawing, int most)
{
    size_t running = board_running(drawing->board), shown = 0;
    size_t limit = running <= (size_t)most ? running : (size_t)(most > 1 ? most - 1 : 0);
    for (size_t i = 0; i < drawing->board->count && shown < limit; i++) {
        if (drawing->board->producers[i].state != BOARD_RUNNING)
            continue;
        draw_producer(drawing, &drawing->board->producers[i]);
        shown++;
    }
    if (running > shown && most > 0)
        draw_more(drawing, running - shown);
}

/* No producer runs: what is going on, and after two seconds what is waited for and since when. */
static void draw_step(const struct drawing *drawing)
{
    const struct board *board = drawing->board;
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    int64_t since = drawing->now_boot_ms - board->step_boot_ms;
    bool frozen = board->frozen_boot_ms != 0;
    row_pad(row, indent_of(drawing->limit));
    row_add(row, frozen ? STYLE_WARN : STYLE_ACCENT, frozen ? drawing->glyphs->frozen : spinner(drawing));
    row_add(row, STYLE_PLAIN, " ");
    if (board->step == STEP_HELD && board->held_by) {
        row_add(row, STYLE_PLAIN, "waiting for ");
        row_add(row, STYLE_BOLD, board->held_by);
    } else {
        row_add(row, STYLE_PLAIN, board_step_name(board->step));
    }
    if (since < SILENCE_MS)
        return;
    char elapsed[DURATION_TEXT_SIZE];
    format_elapsed(since, elapsed);
    row_add(row, STYLE_PLAIN, "  ");
    row_add(row, STYLE_PLAIN, elapsed);
    row_add(row, STYLE_PLAIN, "  ");
    row_add(row, STYLE_DIM, board->step == STEP_HELD ? board->holder : board_step_awaits(board->step));
}

static void draw_frozen(const struct drawing *drawing)
{
    char since[CLOCK_TEXT_SIZE];
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    clock_format_people(drawing->board->frozen_wall_ms, since);
    row_pad(row, indent_of(drawing->limit));
    row_add(row, STYLE_WARN, drawing->glyphs->frozen);
    /* No duration: whoever is stopped cannot count on, and what he last drew stays. */
    row_add(row, STYLE_WARN, " frozen since ");
    row_add(row, STYLE_WARN, strchr(since, ' ') ? strchr(since, ' ') + 1 : since);
    row_add(row, STYLE_DIM, ": ");
    row_add(row, STYLE_DIM,
        drawing->board->frozen ? drawing->board->frozen : "the lease could not be confirmed in time");
}

static void draw_trouble(const struct drawing *drawing)
{
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    row_pad(row, indent_of(drawing->limit));
    row_add(row, STYLE_WARN, drawing->glyphs->warn);
    row_add(row, STYLE_WARN, " the lease is not confirmed: ");
    row_add(row, STYLE_PLAIN, drawing->board->trouble);
}

static void count_text(const struct drawing *drawing, char *ret, size_t size)
{
    char left[DURATION_TEXT_SIZE];
    size_t total = drawing->board->total, ended = board_ended(drawing->board);
    int64_t left_ms = board_left_ms(drawing->board, drawing->now_boot_ms);
    bool wide = drawing->limit >= NARROW;
    duration_format((left_ms + 999) / 1000 * 1000, left);
    if (left_ms > 0 && wide && !drawing->board->frozen_boot_ms)
        snprintf(ret, size, "%zu of %zu  %s%s left", ended, total, drawing->glyphs->about, left);
    else
        snprintf(ret, size, wide ? "%zu of %zu" : "%zu/%zu", ended, total);
}

static void draw_bar(const struct drawing *drawing)
{
    char text[96];
    int indent = indent_of(drawing->limit);
    struct row *row = frame_row(drawing->frame, drawing->look, drawing->limit);
    count_text(drawing, text, sizeof(text));
    int room = drawing->limit - indent - 2 - text_columns(text);
    int columns = room > BAR_MAX ? BAR_MAX : room;
    bool failed = board_count(drawing->board, BOARD_FAILED) > 0;
    row_pad(row, indent);
    if (columns >= 4) {
        add_bar(row, drawing->glyphs, columns, board_permille(drawing->board, drawing->work_boot_ms),
            failed ? STYLE_BAD : STYLE_GOOD);
        row_add(row, STYLE_PLAIN, "  ");
    }
    row_add(row, STYLE_PLAIN, text);
}

void frame_draw(const struct board *board, const struct look *look, struct terminal_size size,
    int64_t now_boot_ms, struct frame *ret)
{
    *ret = (struct frame){0};
    if (board->step == STEP_OVER)
        return;
    struct drawing drawing = {
        .board = board,
        .look = look,
        .glyphs = glyphs_of(look),
        .now_boot_ms = now_boot_ms,
        .work_boot_ms = board->frozen_boot_ms ? board->frozen_boot_ms : now_boot_ms,
        .limit = size.columns - 1,
        .name_columns = frame_name_columns(board, look, size.columns),
        .frame = ret,
    };
    bool bar = board->total > 0 && size.rows > 2;
    bool trouble = board->trouble && !board->frozen_boot_ms && size.rows > 3;
    bool frozen = board->frozen_boot_ms && size.rows > 3;
    int most = size.rows - 1 - bar - trouble - frozen;
    if (board_running(board) > 0)
        draw_producers(&drawing, most > 1 ? most : 1);
    else
        draw_step(&drawing);
    if (trouble)
        draw_trouble(&drawing);
    if (frozen)
        draw_frozen(&drawing);
    if (bar)
        draw_bar(&drawing);
}
