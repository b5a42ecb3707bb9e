#include "cli/terminal.h"

#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/attributes.h"
#include "supervisor/exits.h"

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return !term || !*term || strcmp(term, "dumb") == 0;
}

struct look look_at(int fd, enum color_choice color)
{
    bool terminal = isatty(fd) && !is_dumb();
    return (struct look){
        .fd = fd,
        .terminal = terminal,
        .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .colored = color == COLOR_ALWAYS || (color == COLOR_AUTO && terminal && !is_set("NO_COLOR")),
    };
}

struct terminal_size terminal_size_of(int fd)
{
    struct winsize size = {0};
    struct terminal_size ret = {.columns = 80, .rows = 24};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        ret.columns = size.ws_col;
    if (size.ws_row > 0)
        ret.rows = size.ws_row;
    return ret;
}

bool terminal_is_ours(int fd)
{
    pid_t foreground = tcgetpgrp(fd);
    return foreground < 0 || foreground == getpgrp();
}

static const char *const STYLES[STYLE_MAX] = {
    [STYLE_PLAIN] = "",
    [STYLE_BOLD] = "\x1b[1m",
    [STYLE_DIM] = "\x1b[2m",
    [STYLE_GOOD] = "\x1b[32m",
    [STYLE_BAD] = "\x1b[1;31m",
    [STYLE_WARN] = "\x1b[33m",
    [STYLE_ACCENT] = "\x1b[36m",
};

const char *style_begin(const struct look *look, enum style style)
{
    return look->colored ? STYLES[style] : "";
}

const char *style_end(const struct look *look, enum style style)
{
    return look->colored && style != STYLE_PLAIN ? "\x1b[0m" : "";
}

void look_add_foreign(const struct look *look, struct text *text, const char *string)
{
    size_t start = text->length;
    text_add_printable(text, string, strlen(string), false);
    if (look->utf8)
        return;
    _cleanup_(text_done) struct text safe = {0};
    for (size_t i = start; i < text->length; i++) {
        unsigned char byte = (unsigned char)text->bytes[i];
        if (byte < 0x80)
            text_append(&safe, &byte, 1);
        else
            text_addf(&safe, "\\x%02x", byte);
    }
    text->length = start;
    text_append(text, safe.bytes ? safe.bytes : "", safe.length);
}

void look_add_styled(const struct look *look, struct text *text, enum style style, const char *string)
{
    text_add(text, style_begin(look, style));
    look_add_foreign(look, text, string ? string : "");
    text_add(text, style_end(look, style));
}

/* ---- the guard: the only state outside of an object, because a signal handler is handed none ---- */

static volatile sig_atomic_t guarded_fd = -1;
static atomic_bool was_stopped, is_drawing, is_closed;

#define LAST_FRAME_MS 50 /* how long a handler waits for a frame that is being written */

/* End of a synchronized update, cursor shown, no style, a fresh line. */
static const char RESTORE[] = "\x1b[?2026l\x1b[?25h\x1b[0m\r\n";

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* No frame begins from now on, and the one that is being written gets a moment to end: else it would hide the
 * cursor again behind our back. */
static void close_and_wait(void)
{
    atomic_store(&is_closed, true);
    for (int i = 0; i < LAST_FRAME_MS && atomic_load(&is_drawing); i++)
        pause_shortly();
}

void terminal_guard_enter(void)
{
    for (;;) {
        atomic_store(&is_drawing, true);
        if (!atomic_load(&is_closed))
            return;
        atomic_store(&is_drawing, false);
        pause_shortly();
    }
}

void terminal_guard_leave(void)
{
    atomic_store(&is_drawing, false);
}

/* A terminal that is held up (XOFF), or whose other end nobody reads, would hold us here for ever. */
static bool takes_output(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    return poll(&look, 1, 0) > 0 && (look.revents & POLLOUT) != 0;
}

static void restore(void)
{
    int fd = guarded_fd;
    close_and_wait();
    if (fd >= 0 && takes_output(fd) && write(fd, RESTORE, sizeof(RESTORE) - 1) < 0)
        return;
}

static _noreturn_ void on_ending(int signal)
{
    restore();
    _exit(EXIT_SIGNAL_BASE + signal);
}

/* The cursor is hidden again by the next frame. */
static void on_stopping(_unused_ int signal)
{
    restore();
    atomic_store(&was_stopped, true);
    kill(getpid(), SIGSTOP);
    atomic_store(&is_closed, false);
}

static const struct guarded_signal {
    int signal;
    void (*handler)(int);
} GUARDED[] = {
    {SIGINT, on_ending},
    {SIGTERM, on_ending},
    {SIGHUP, on_ending},
    {SIGQUIT, on_ending},
    {SIGTSTP, on_stopping},
};

static void replace(int signal, void (*from)(int), void (*to)(int))
{
    struct sigaction action = {0};
    if (sigaction(signal, NULL, &action) < 0 || action.sa_handler != from)
        return;
    action = (struct sigaction){.sa_handler = to, .sa_flags = SA_RESTART};
    sigaction(signal, &action, NULL);
}

void terminal_guard_start(int fd)
{
    guarded_fd = fd;
    for (size_t i = 0; i < ARRAY_SIZE(GUARDED); i++)
        replace(GUARDED[i].signal, SIG_DFL, GUARDED[i].handler);
}

bool terminal_guard_was_stopped(void)
{
    return atomic_exchange(&was_stopped, false);
}

void terminal_guard_stop(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(GUARDED); i++)
        replace(GUARDED[i].signal, GUARDED[i].handler, SIG_DFL);
    guarded_fd = -1;
}
