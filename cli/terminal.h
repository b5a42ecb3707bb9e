/*
 * What a descriptor can show: is it a terminal, how large, which characters, which colors.
 *
 * Also the one piece of state that a signal handler needs: while a live screen hides the cursor, a signal
 * that ends or stops this process first gives it back. Functions are thread-safe after terminal_guard_start.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/options.h"

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_BAD, STYLE_WARN, STYLE_ACCENT, STYLE_MAX };

/* How something is to be drawn. A plain value, so that a test can ask for any. */
struct look {
    int fd;
    bool terminal; /* a live screen is possible */
    bool utf8;
    bool colored;
};

struct terminal_size {
    int columns, rows;
};

/* Asks about a descriptor once. `color` as chosen, NO_COLOR (https://no-color.org) and TERM=dumb respected.
 */
struct look look_at(int fd, enum color_choice color);

/* The size now; 80 by 24 when nobody knows. */
struct terminal_size terminal_size_of(int fd);

/* False in the background of a shell with job control: the cursor is the shell's. */
bool terminal_is_ours(int fd);

/* The escape sequence that begins a style, "" when nothing is colored. style_end ends every style. */
const char *style_begin(const struct look *look, enum style style);
const char *style_end(const struct look *look, enum style style);

/* Appends text from outside: safe on any terminal, and plain ASCII where the locale is not UTF-8. */
void look_add_foreign(const struct look *look, struct text *text, const char *string);
/* The same in a style; `string` may be NULL. */
void look_add_styled(const struct look *look, struct text *text, enum style style, const char *string);

/* From start to stop, INT, TERM, HUP, QUIT and TSTP give the cursor back before they end or stop the process.
 * Signals that were ignored when we started stay ignored. Signal source: sigaction(2), console_codes(4). */
void terminal_guard_start(int fd);
void terminal_guard_stop(void);
/* Around each frame, in the thread that writes it. Waits while a signal is ending or stopping us. */
void terminal_guard_enter(void);
void terminal_guard_leave(void);
/* Whether TSTP has stopped us since the last call: others wrote to the terminal meanwhile. */
bool terminal_guard_was_stopped(void);

#endif
