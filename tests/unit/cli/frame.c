/* The live region, line by line, at several widths, in ASCII and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/frame.h"
#include "tests/unit/cli/fake_run.h"

static char *drawn(int moment, int64_t at_ms, bool utf8, int columns, int rows)
{
    struct board board;
    struct frame frame;
    struct text text = {0};
    struct look look = {.terminal = true, .utf8 = utf8};
    fake_board(&board, moment);
    frame_draw(&board, &look, (struct terminal_size){columns, rows}, FAKE_START_MS + at_ms, &frame);
    for (size_t i = 0; i < frame.count; i++) {
        assert_int_equal(frame.rows[i].columns, text_columns(frame.rows[i].text.bytes));
        text_addf(&text, "%s\n", frame.rows[i].text.bytes);
    }
    frame_done(&frame);
    board_done(&board);
    return text_steal(&text);
}

struct golden {
    int moment;
    int64_t at_ms;
    bool utf8;
    int columns;
    const char *lines;
};

static const struct golden GOLDEN[] = {
#include "tests/unit/cli/frame_golden.inc"
};

static void frames_are_as_they_were_drawn(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++) {
        const struct golden *golden = &GOLDEN[i];
        _cleanup_(mem_free) char *text =
            drawn(golden->moment, golden->at_ms, golden->utf8, golden->columns, 24);
        assert_string_equal(text, golden->lines);
    }
}

/* Whatever the width, no line reaches the last column, and the region never fills the terminal. */
static void nothing_is_wider_or_higher_than_the_terminal(_unused_ void **state)
{
    for (int moment = 0; moment <= FAKE_ALL; moment++)
        for (int columns = 1; columns <= 210; columns++)
            for (int utf8 = 0; utf8 < 2; utf8++) {
                _cleanup_(mem_free) char *text = drawn(moment, 4321, utf8, columns, 5);
                char *rest = text;
                int lines = 0;
                for (char *line = strsep(&rest, "\n"); line && rest; line = strsep(&rest, "\n"), lines++)
                    if (text_columns(line) > (columns > 2 ? columns - 1 : 1))
                        fail_msg("%d columns: %s", columns, line);
                assert_true(lines <= 4);
            }
}

static void names_from_outside_are_harmless(_unused_ void **state)
{
    struct board board;
    struct frame frame;
    struct look look = {.terminal = true, .utf8 = true};
    board_init(&board, 0);
    struct journal_event event = {
        .kind = JOURNAL_STARTED, .boot_ms = 1, .producer = "a\x1b[2J\nb\xff\xe2\x80\xae 漢字"};
    board_apply(&board, &event);
    frame_draw(&board, &look, (struct terminal_size){120, 10}, 100, &frame);
    assert_int_equal(frame.count, 1);
    assert_non_null(strstr(frame.rows[0].text.bytes, "a\\x1b[2J\\x0ab\\xff\\xe2"));
    assert_null(strchr(frame.rows[0].text.bytes, '\x1b'));
    assert_null(strchr(frame.rows[0].text.bytes, '\n'));
    frame_done(&frame);
    board_done(&board);
}

static void many_producers_are_counted_where_they_do_not_fit(_unused_ void **state)
{
    struct board board;
    struct frame frame;
    struct look look = {.terminal = true, .utf8 = true};
    board_init(&board, 0);
    for (int i = 0; i < 30; i++) {
        _cleanup_(mem_free) char *name = mem_format("producer-%d", i);
        struct journal_event event = {.kind = JOURNAL_STARTED, .boot_ms = 1, .producer = name};
        board_apply(&board, &event);
    }
    frame_draw(&board, &look, (struct terminal_size){80, 10}, 100, &frame);
    assert_int_equal(frame.count, 9);
    assert_non_null(strstr(frame.rows[8].text.bytes, "and 22 more"));
    frame_done(&frame);
    board_done(&board);
}

static void colors_are_there_only_when_wanted(_unused_ void **state)
{
    struct board board;
    struct frame plain, colored;
    struct look look = {.terminal = true, .utf8 = true};
    fake_board(&board, FAKE_BUILDING);
    frame_draw(&board, &look, (struct terminal_size){80, 24}, FAKE_START_MS + 1000, &plain);
    look.colored = true;
    frame_draw(&board, &look, (struct terminal_size){80, 24}, FAKE_START_MS + 1000, &colored);
    assert_null(strchr(plain.rows[0].text.bytes, '\x1b'));
    assert_non_null(strstr(colored.rows[0].text.bytes, "\x1b[1mbuild\x1b[0m"));
    assert_int_equal(plain.rows[0].columns, colored.rows[0].columns);
    frame_done(&plain);
    frame_done(&colored);
    board_done(&board);
}

static void the_bar_never_goes_back_and_ends_full(_unused_ void **state)
{
    int last = 0;
    for (int moment = 3; moment <= FAKE_ALL; moment++) {
        struct board board;
        fake_board(&board, moment);
        int permille = board_permille(&board, FAKE_START_MS + FAKE_EVENTS[moment - 1].boot_ms);
        assert_true(permille >= last && permille <= 1000);
        last = permille;
        board_done(&board);
    }
    assert_true(last >= 850 && last < 1000); /* `package` was never reached */
}

static void frozen_time_is_not_the_producers_own(_unused_ void **state)
{
    struct board before, after;
    fake_board(&before, FAKE_FROZEN);
    fake_board(&after, FAKE_THAWED);
    const struct board_producer *frozen = board_find(&before, "test"), *thawed = board_find(&after, "test");
    assert_int_equal(
        before.frozen_boot_ms - frozen->started_boot_ms, FAKE_START_MS + 8000 - thawed->started_boot_ms);
    assert_int_equal(after.frozen_boot_ms, 0);
    board_done(&before);
    board_done(&after);
}

static void a_settled_run_has_no_live_region(_unused_ void **state)
{
    _cleanup_(mem_free) char *text = drawn(FAKE_ALL, 10000, true, 80, 24);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_as_they_were_drawn),
        cmocka_unit_test(nothing_is_wider_or_higher_than_the_terminal),
        cmocka_unit_test(names_from_outside_are_harmless),
        cmocka_unit_test(many_producers_are_counted_where_they_do_not_fit),
        cmocka_unit_test(colors_are_there_only_when_wanted),
        cmocka_unit_test(the_bar_never_goes_back_and_ends_full),
        cmocka_unit_test(frozen_time_is_not_the_producers_own),
        cmocka_unit_test(a_settled_run_has_no_live_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
