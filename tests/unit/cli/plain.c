/* Lines of a log and lines of a terminal, for the same events; and that no output can look like one of ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/plain.h"
#include "cli/scroll.h"
#include "cli/tail.h"
#include "tests/unit/cli/fake_run.h"

static char *told(int columns, bool utf8)
{
    struct board board;
    struct text text = {0};
    struct look look = {.terminal = columns > 0, .utf8 = utf8};
    fake_board(&board, 0);
    for (size_t i = 0; i < ARRAY_SIZE(FAKE_EVENTS); i++) {
        struct journal_event event = FAKE_EVENTS[i];
        event.boot_ms += FAKE_START_MS;
        board_apply(&board, &event);
        if (columns > 0)
            scroll_add(&look, &board, &event, columns, &text);
        else
            plain_add(&look, &board, &event, &text);
    }
    board_done(&board);
    return text_steal(&text);
}

static void a_log_has_a_line_per_event(_unused_ void **state)
{
    _cleanup_(mem_free) char *text = told(0, true);
    assert_string_equal(text, "T-7K3M-QX9D: reconnect with `tenure attach T-7K3M-QX9D`\n"
                              "attempt 0192, fence 812, acme/widget at 3f2a91c0aa11\n"
                              "plan: 5 producers: 4 to run, 1 reused\n"
                              "lint: passed, reused: same key as T-AAAA-BBBC\n"
                              "build: started, about 3 s expected\n"
                              "build: passed in 3.2 s\n"
                              "test: started, about 6 s expected\n"
                              "documentation-of-everything: started, about 4 s expected\n"
                              "the lease is not confirmed: the store is busy\n"
                              "frozen: the lease was not confirmed in time\n"
                              "thawed: the lease is confirmed after 2 s\n"
                              "test: failed after 4 s: exit status 3\n"
                              "documentation-of-everything: passed in 4.1 s\n");
}

static void a_terminal_has_marks_and_columns(_unused_ void **state)
{
    _cleanup_(mem_free) char *wide = told(80, true), *narrow = told(40, false);
    assert_string_equal(wide, "T-7K3M-QX9D  reconnect with  tenure attach T-7K3M-QX9D\n"
                              "acme/widget at 3f2a91c0aa11, fence 812\n"
                              "  ↻ lint                         reused: same key as T-AAAA-BBBC\n"
                              "  ✓ build                        3.2 s\n"
                              "  ‖ thawed after 2 s, the lease is confirmed\n"
                              "  ✗ test                         4 s  exit status 3\n"
                              "  ✓ documentation-of-everything  4.1 s\n");
    assert_string_equal(narrow, "tenure attach T-7K3M-QX9D\n"
                                "acme/widget at 3f2a91c0aa11\n"
                                "= lint                       reused: ..\n"
                                "+ build                      3.2 s\n"
                                "# thawed after 2 s, the lease is\n"
                                "  confirmed\n"
                                "x test                       4 s  exit\n"
                                "  status 3\n"
                                "+ documentation-of-everyth.. 4.1 s\n");
}

/* A directory that looks like a journal's, with one log in it. */
static char *make_log(const char *bytes, size_t length)
{
    char *directory = mem_string("/tmp/tenure-unit-XXXXXX");
    assert_non_null(mkdtemp(directory));
    _cleanup_(mem_free) char *out = mem_format("%s/out", directory), *log = mem_format("%s/x.log", out);
    assert_int_equal(mkdir(out, 0700), 0);
    FILE *file = fopen(log, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return directory;
}

static void remove_log(char *directory)
{
    _cleanup_(mem_free) char *out = mem_format("%s/out", directory), *log = mem_format("%s/x.log", out);
    unlink(log);
    rmdir(out);
    rmdir(directory);
    free(directory);
}

static const char FORGED[] =
    "first\n"
    "lint: passed in 1 s\n"
    "\rtest: passed\n"
    "50%\r100% done\r\n"
    "\x1b[31mred\x1b[0m and \x1b[2J\x1b]0;title\x07\n"
    "\xff\xfe \xe2\x80\xae tab\there\n"
    "a very long line that goes on beyond the edge and would wrap: ok: passed in 1 s";

static void output_never_begins_a_line(_unused_ void **state)
{
    struct board board;
    struct look look = {.terminal = true, .utf8 = true};
    char *directory = make_log(FORGED, sizeof(FORGED) - 1);
    struct text plain = {0}, scrolled = {0};
    struct journal_event header = {.kind = JOURNAL_HEADER, .text = "T-7K3M-QX9D", .log = directory};
    struct journal_event end = {
        .kind = JOURNAL_FINISHED, .producer = "x", .verdict = "signalled", .signal = 11, .log = "x.log"};
    board_init(&board, 0);
    board_apply(&board, &header);
    board_apply(&board, &end);
    plain_add(&look, &board, &end, &plain);
    scroll_add(&look, &board, &end, 40, &scrolled);
    _cleanup_(mem_free) char *expected =
        mem_format("x: failed after 0 ms: ended by signal 11 (Segmentation fault)\n"
                   "  | first\n"
                   "  | lint: passed in 1 s\n"
                   "  | test: passed\n"
                   "  | 100%% done\n"
                   "  | red and \\x1b[2J\\x1b]0;title\\x07\n"
                   "  | \\xff\\xfe \\xe2\\x80\\xae tab    here\n"
                   "  | a very long line that goes on beyond the edge and would wrap: ok: passed in 1 s\n"
                   "x: the whole output is in: %s/out/x.log\n",
            directory);
    assert_string_equal(plain.bytes, expected);
    assert_non_null(strstr(scrolled.bytes, "\n  │ lint: passed in 1 s\n"));
    assert_non_null(strstr(scrolled.bytes, "\n  │ a very long line that goes on beyo…\n"));
    assert_null(strchr(scrolled.bytes, '\x1b'));
    text_done(&plain);
    text_done(&scrolled);
    board_done(&board);
    remove_log(directory);
}

static void the_tail_is_the_last_lines_only(_unused_ void **state)
{
    struct look look = {.utf8 = true};
    struct text bytes = {0}, tail = {0};
    for (int i = 0; i < 5000; i++)
        text_addf(&bytes, "line %d\n", i);
    char *directory = make_log(bytes.bytes, bytes.length);
    _cleanup_(mem_free) char *path = mem_format("%s/out/x.log", directory);
    assert_int_equal(tail_add(&look, path, "> ", 2, 80, &tail), 2);
    assert_string_equal(tail.bytes, "> line 4998\n> line 4999\n");
    assert_int_equal(tail_add(&look, "/nonexistent", "> ", 2, 80, &tail), 0);
    assert_int_equal(tail_add(&look, directory, "> ", 2, 80, &tail), 0);
    assert_int_equal(tail_add_bytes(&look, "\n\n", 2, "> ", 2, 80, &tail), 0);
    text_clear(&tail);
    assert_int_equal(tail_add_bytes(&look, "a\n\nb", 4, "> ", 9, 80, &tail), 3);
    assert_string_equal(tail.bytes, "> a\n> \n> b\n");
    text_done(&bytes);
    text_done(&tail);
    remove_log(directory);
}

static void trouble_that_repeats_is_told_once(_unused_ void **state)
{
    struct board board;
    struct look look = {.utf8 = true};
    struct text text = {0};
    board_init(&board, 0);
    for (int i = 0; i < 100; i++) {
        struct journal_event event = {
            .kind = JOURNAL_RENEWAL_TROUBLE, .boot_ms = 1000 + i * 100, .text = "busy"};
        board_apply(&board, &event);
        plain_add(&look, &board, &event, &text);
    }
    assert_string_equal(text.bytes, "the lease is not confirmed: busy\n");
    text_done(&text);
    board_done(&board);
}

static void many_reused_ones_are_one_line(_unused_ void **state)
{
    struct journal_plan_step steps[30];
    struct board board;
    struct look look = {.utf8 = true};
    struct text text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        steps[i] = (struct journal_plan_step){.producer = mem_format("p%zu", i), .reason = "", .reuse = true};
    struct journal_event plan = {.kind = JOURNAL_PLAN, .plan = steps, .plan_count = 30, .total = 30};
    board_init(&board, 0);
    board_apply(&board, &plan);
    scroll_add(&look, &board, &plan, 60, &text);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct journal_event event = {
            .kind = JOURNAL_EVIDENCE, .producer = steps[i].producer, .verdict = "passed", .reused = true};
        board_apply(&board, &event);
        scroll_add(&look, &board, &event, 60, &text);
        free((char *)(uintptr_t)steps[i].producer);
    }
    assert_string_equal(text.bytes, "  ↻ 30 producers reused: p0, p1, p2, p3, p4, p5, p6, p7, p…\n");
    text_done(&text);
    board_done(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_has_a_line_per_event),
        cmocka_unit_test(a_terminal_has_marks_and_columns),
        cmocka_unit_test(output_never_begins_a_line),
        cmocka_unit_test(the_tail_is_the_last_lines_only),
        cmocka_unit_test(trouble_that_repeats_is_told_once),
        cmocka_unit_test(many_reused_ones_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
