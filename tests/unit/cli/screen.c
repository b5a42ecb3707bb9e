/*
 * The live screen on a real pseudo terminal, and the writer behind it: what is shown at the end is right
 * after any resize, the cursor comes back, and nobody who feeds it waits for a terminal that does not read.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cli/frame.h"
#include "cli/screen.h"
#include "cli/writer.h"
#include "tests/unit/cli/fake_run.h"

/* ---- a terminal of our own: just what the screen uses, on a grid ---- */

#define GRID_ROWS    40
#define GRID_COLUMNS 120

struct grid {
    char cells[GRID_ROWS][GRID_COLUMNS];
    int row, column, columns;
    bool hidden;
};

static void grid_init(struct grid *grid, int columns)
{
    *grid = (struct grid){.columns = columns};
    memset(grid->cells, ' ', sizeof(grid->cells));
}

static void grid_erase(struct grid *grid, bool below)
{
    memset(&grid->cells[grid->row][grid->column], ' ', (size_t)(GRID_COLUMNS - grid->column));
    for (int row = grid->row + 1; below && row < GRID_ROWS; row++)
        memset(grid->cells[row], ' ', GRID_COLUMNS);
}

static const char *grid_escape(struct grid *grid, const char *at)
{
    int number = 0;
    bool private = *at == '?';
    for (at += private; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + *at - '0';
    if (*at == 'A')
        grid->row = grid->row > number ? grid->row - number : 0;
    else if (*at == 'K' || *at == 'J')
        grid_erase(grid, *at == 'J');
    else if (private && number == 25)
        grid->hidden = *at == 'l';
    else if (!private || number != 2026)
        fail_msg("an unknown sequence: %.8s", at);
    return at + 1;
}

static void grid_feed(struct grid *grid, const char *bytes)
{
    for (const char *at = bytes; *at;) {
        if (at[0] == '\x1b' && at[1] == '[') {
            at = grid_escape(grid, at + 2);
            continue;
        }
        if (*at == '\n')
            grid->row++;
        else if (*at == '\r')
            grid->column = 0;
        else {
            if (grid->column >= grid->columns) {
                grid->column = 0;
                grid->row++;
            }
            assert_true(grid->row < GRID_ROWS);
            grid->cells[grid->row][grid->column++] = *at;
        }
        at++;
    }
}

static void assert_row(const struct grid *grid, int row, const char *expected)
{
    char line[GRID_COLUMNS + 1];
    memcpy(line, grid->cells[row], GRID_COLUMNS);
    int length = GRID_COLUMNS;
    while (length > 0 && line[length - 1] == ' ')
        length--;
    line[length] = '\0';
    assert_string_equal(line, expected);
}

static void compose(
    struct region *region, struct grid *grid, const char *lines, const char *const *rows, int width)
{
    struct look look = {0};
    struct frame frame = {0};
    struct text above = {0}, bytes = {0};
    text_add(&above, lines);
    for (; rows && *rows; rows++) {
        mem_grow(&frame.rows, &frame.capacity, frame.count, sizeof(*frame.rows));
        row_begin(&frame.rows[frame.count], &look, 200);
        row_add(&frame.rows[frame.count++], STYLE_PLAIN, *rows);
    }
    region_compose(region, &above, &frame, width, &bytes);
    grid_feed(grid, bytes.bytes ? bytes.bytes : "");
    frame_done(&frame);
    text_done(&above);
    text_done(&bytes);
}

static void a_region_is_replaced_in_place(_unused_ void **state)
{
    struct grid grid;
    struct region region = {0};
    grid_init(&grid, 40);
    compose(&region, &grid, "first\n", (const char *const[]){"aaaaaa", "bbb", NULL}, 40);
    /* Visible and below, so that whoever dies now leaves a terminal that can be used. */
    assert_false(grid.hidden);
    assert_int_equal(grid.row, 3);
    assert_int_equal(grid.column, 0);
    compose(&region, &grid, "", (const char *const[]){"cc", "dd", "ee", NULL}, 40);
    compose(&region, &grid, "second\nthird\n", (const char *const[]){"f", NULL}, 40);
    assert_row(&grid, 0, "first");
    assert_row(&grid, 1, "second");
    assert_row(&grid, 2, "third");
    assert_row(&grid, 3, "f");
    assert_row(&grid, 4, "");
    compose(&region, &grid, "last\n", NULL, 40);
    assert_row(&grid, 3, "last");
    assert_row(&grid, 4, "");
    assert_false(grid.hidden);
    assert_int_equal(grid.column, 0);
    region_done(&region);
}

/* A terminal that became narrower has broken our lines anew: the region is higher than we drew it. */
static void a_region_survives_a_narrower_terminal(_unused_ void **state)
{
    struct grid grid;
    struct region region = {0};
    grid_init(&grid, 40);
    grid_feed(&grid, "above\r\n");
    compose(&region, &grid, "", (const char *const[]){"aaaaaaaaaaaaaaaaaaaaaaaaa", "bb", NULL}, 40);
    grid_init(&grid, 10);
    grid_feed(&grid, "above\r\naaaaaaaaaaaaaaaaaaaaaaaaa\r\nbb\r\n");
    compose(&region, &grid, "", (const char *const[]){"cccc", "dd", NULL}, 10);
    assert_row(&grid, 0, "above");
    assert_row(&grid, 1, "cccc");
    assert_row(&grid, 2, "dd");
    assert_row(&grid, 3, "");
    region_done(&region);
}

static void nothing_shown_leaves_no_trace(_unused_ void **state)
{
    struct region region = {0};
    struct frame frame = {0};
    struct text lines = {0}, bytes = {0};
    region_compose(&region, &lines, &frame, 80, &bytes);
    assert_int_equal(bytes.length, 0);
    text_add(&lines, "verdict\n");
    region_compose(&region, &lines, &frame, 80, &bytes);
    assert_string_equal(bytes.bytes, "verdict\r\n");
    region_done(&region);
    text_done(&lines);
    text_done(&bytes);
}

/* ---- on a pseudo terminal ---- */

struct terminal {
    int master, slave;
};

static struct terminal terminal_open(int columns)
{
    struct terminal terminal;
    struct winsize size = {.ws_row = 30, .ws_col = (unsigned short)columns};
    assert_int_equal(openpty(&terminal.master, &terminal.slave, NULL, NULL, &size), 0);
    fcntl(terminal.master, F_SETFL, O_NONBLOCK);
    return terminal;
}

static void terminal_close(struct terminal *terminal)
{
    close(terminal->master);
    close(terminal->slave);
}

/* Reads what is there, until nothing comes for `quiet_ms`. */
static void terminal_read(const struct terminal *terminal, int quiet_ms, struct text *ret)
{
    char buffer[4096];
    struct pollfd fd = {.fd = terminal->master, .events = POLLIN};
    while (poll(&fd, 1, quiet_ms) > 0) {
        ssize_t length = read(terminal->master, buffer, sizeof(buffer));
        if (length <= 0)
            break;
        text_append(ret, buffer, (size_t)length);
    }
}

static void read_until(const struct terminal *terminal, const char *wanted, struct text *ret)
{
    for (int i = 0; i < 500 && !(ret->bytes && strstr(ret->bytes, wanted)); i++)
        terminal_read(terminal, 20, ret);
    if (!ret->bytes || !strstr(ret->bytes, wanted))
        fail_msg("never shown: %s", wanted);
}

static struct screen *open_screen(int fd, bool terminal)
{
    struct error err = {0};
    struct screen *screen = NULL;
    struct screen_options options = {.look = {.fd = fd, .terminal = terminal}, .clock = clock_system()};
    assert_int_equal(screen_open(&options, &screen, &err), RESULT_OK);
    return screen;
}

static void feed(struct screen *screen, int from, int to)
{
    int64_t now = clock_system()->boot_ms(clock_system());
    for (int i = from; i < to; i++) {
        struct journal_event event = FAKE_EVENTS[i];
        event.boot_ms = now;
        screen_event(screen, &event);
    }
}

static size_t count_of(const char *bytes, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(bytes, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/* From where the cursor was shown or hidden for the last time. */
static const char *last_cursor(const char *bytes)
{
    const char *last = NULL;
    for (const char *at = bytes; (at = strstr(at, "\x1b[?25")); at++)
        last = at;
    assert_non_null(last);
    return last;
}

static void the_spinner_turns_without_events_and_the_cursor_comes_back(_unused_ void **state)
{
    struct terminal terminal = terminal_open(80);
    struct text shown = {0};
    struct screen *screen = open_screen(terminal.slave, true);
    feed(screen, 0, FAKE_BUILDING);
    read_until(&terminal, "| build", &shown);
    read_until(&terminal, "/ build", &shown);
    read_until(&terminal, "- build", &shown);
    feed(screen, FAKE_BUILDING, FAKE_ALL);
    screen_close(screen);
    terminal_read(&terminal, 50, &shown);
    /* Every frame is one synchronized update. */
    assert_int_equal(count_of(shown.bytes, "\x1b[?2026h"), count_of(shown.bytes, "\x1b[?2026l"));
    assert_int_equal(last_cursor(shown.bytes)[5], 'h');
    assert_non_null(strstr(shown.bytes, "x test"));
    text_done(&shown);
    terminal_close(&terminal);
}

/* Before a stop (Ctrl-Z) freezes the work, the shell must get its cursor. */
static void a_frozen_run_shows_the_cursor_before_the_event_returns(_unused_ void **state)
{
    struct terminal terminal = terminal_open(80);
    struct text shown = {0};
    struct screen *screen = open_screen(terminal.slave, true);
    feed(screen, 0, FAKE_TWO_AT_ONCE);
    read_until(&terminal, "\x1b[?25l", &shown);
    text_clear(&shown);
    feed(screen, FAKE_TROUBLE, FAKE_FROZEN);
    terminal_read(&terminal, 0, &shown);
    assert_non_null(strstr(shown.bytes, "\x1b[?25h"));
    assert_non_null(strstr(shown.bytes, "frozen since"));
    screen_close(screen);
    text_done(&shown);
    terminal_close(&terminal);
}

static void a_signal_gives_the_cursor_back(_unused_ void **state)
{
    struct terminal terminal = terminal_open(80);
    struct text shown = {0};
    pid_t pid = checked_fork();
    if (pid == 0) {
        struct screen *screen = open_screen(terminal.slave, true);
        feed(screen, 0, FAKE_BUILDING);
        for (;;)
            pause();
    }
    read_until(&terminal, "\x1b[?25l", &shown);
    kill(pid, SIGINT);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGINT);
    terminal_read(&terminal, 50, &shown);
    assert_string_equal(last_cursor(shown.bytes), "\x1b[?25h\x1b[0m\r\r\n");
    text_done(&shown);
    terminal_close(&terminal);
}

/* ---- nobody reads ---- */

static void feeding_never_waits_for_a_pipe_that_nobody_reads(_unused_ void **state)
{
    int fds[2];
    struct text shown = {0};
    char buffer[4096];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct screen *screen = open_screen(fds[1], false);
    _cleanup_(mem_free) char *note = mem_alloc(1001);
    memset(note, 'x', 1000);
    int64_t start = clock_system()->boot_ms(clock_system());
    for (int i = 0; i < 2000; i++) {
        struct journal_event event = {.kind = JOURNAL_NOTE, .text = note};
        screen_event(screen, &event);
    }
    assert_true(clock_system()->boot_ms(clock_system()) - start < 5000);
    assert_int_equal(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
    /* Once somebody reads, what was kept comes whole, and what was dropped is said. */
    pid_t pid = checked_fork();
    if (pid == 0) {
        close(fds[1]);
        size_t total = 0;
        bool said = false;
        for (ssize_t length; (length = read(fds[0], buffer, sizeof(buffer) - 1)) > 0;
             total += (size_t)length) {
            text_append(&shown, buffer, (size_t)length);
            said = strstr(shown.bytes, "lines were not shown") != NULL;
        }
        _exit(said && total < 1024 * 1024 && shown.bytes[shown.length - 1] == '\n' ? 0 : 1);
    }
    close(fds[0]);
    screen_close(screen);
    close(fds[1]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_closed_pipe_is_no_signal_and_no_spin(_unused_ void **state)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    close(fds[0]);
    struct screen *screen = open_screen(fds[1], false);
    feed(screen, 0, FAKE_ALL);
    screen_close(screen);
    struct screen *none = open_screen(-1, false);
    feed(none, 0, FAKE_ALL);
    screen_close(none);
    close(fds[1]);
}

static void a_patient_writer_drops_nothing(_unused_ void **state)
{
    int fds[2];
    struct writer *writer = NULL;
    struct error err = {0};
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = checked_fork();
    if (pid == 0) {
        char buffer[4096];
        size_t total = 0;
        close(fds[1]);
        for (ssize_t length; (length = read(fds[0], buffer, sizeof(buffer))) > 0;)
            total += (size_t)length;
        _exit(total == 200000 * 10 ? 0 : 1);
    }
    close(fds[0]);
    struct writer_options options = {
        .fd = fds[1], .limit_bytes = 1000, .patient = true, .prompt = true, .interval_ms = 100};
    assert_int_equal(writer_start(&options, &writer, &err), RESULT_OK);
    for (int i = 0; i < 200000; i++)
        assert_true(writer_put(writer, "123456789\n", 10));
    writer_close(writer);
    close(fds[1]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void silence_is_explained_in_a_log(_unused_ void **state)
{
    int fds[2];
    char buffer[512] = {0};
    struct pollfd fd;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct screen *screen = open_screen(fds[1], false);
    fd = (struct pollfd){.fd = fds[0], .events = POLLIN};
    int64_t start = clock_system()->boot_ms(clock_system());
    assert_int_equal(poll(&fd, 1, 10000), 1);
    assert_true(clock_system()->boot_ms(clock_system()) - start >= 1900);
    assert_true(read(fds[0], buffer, sizeof(buffer) - 1) > 0);
    assert_string_equal(buffer, "looking at the work tree: waiting for git to look at every file\n");
    screen_close(screen);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_replaced_in_place),
        cmocka_unit_test(a_region_survives_a_narrower_terminal),
        cmocka_unit_test(nothing_shown_leaves_no_trace),
        cmocka_unit_test(the_spinner_turns_without_events_and_the_cursor_comes_back),
        cmocka_unit_test(a_frozen_run_shows_the_cursor_before_the_event_returns),
        cmocka_unit_test(a_signal_gives_the_cursor_back),
        cmocka_unit_test(feeding_never_waits_for_a_pipe_that_nobody_reads),
        cmocka_unit_test(a_closed_pipe_is_no_signal_and_no_spin),
        cmocka_unit_test(a_patient_writer_drops_nothing),
        cmocka_unit_test(silence_is_explained_in_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
