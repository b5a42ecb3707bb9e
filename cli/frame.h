/*
 * Drawing: from a board to lines of a given width. Pure, so that a test can hold the very lines in its hand.
 *
 * No line is wider than `columns - 1` (the last column makes terminals wrap late or early), whatever the
 * names in it; what does not fit ends in an ellipsis. All text from outside goes through look_add_foreign.
 */
#ifndef CLI_FRAME_H
#define CLI_FRAME_H

#include "cli/board.h"
#include "cli/terminal.h"

/* Characters that depend on the locale. */
struct glyphs {
    const char *const *spinner;
    size_t spinner_count;
    const char *passed, *failed, *stopped, *reused, *frozen, *warn, *gutter, *dot, *ellipsis, *arrow, *about;
    const char *bar_full, *bar_half, *bar_rest; /* bar_half NULL: none */
};
const struct glyphs *glyphs_of(const struct look *look);

/* One line that knows how wide it is. */
struct row {
    const struct look *look;
    struct text text;
    int columns, limit;
    bool cut;
};
void row_begin(struct row *row, const struct look *look, int limit);
/* Appends as much of `string` as fits. */
void row_add(struct row *row, enum style style, const char *string);
void row_pad(struct row *row, int columns); /* spaces up to that column */
void row_done(struct row *row);

struct frame {
    struct row *rows;
    size_t count, capacity;
};
void frame_done(struct frame *frame);

/* The live region, at most `size.rows - 1` lines and never none. */
void frame_draw(const struct board *board, const struct look *look, struct terminal_size size,
    int64_t now_boot_ms, struct frame *ret);

/* Indent, width of the column of names, and the gap behind it, for this width: what scrolls away and what
 * lives line up. */
int frame_indent(int columns);
int frame_gap(int columns);
int frame_name_columns(const struct board *board, const struct look *look, int columns);

#endif
