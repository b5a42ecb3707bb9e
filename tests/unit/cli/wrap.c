/* Sentences in a narrow terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/wrap.h"

static char *wrapped(const char *string, int indent, int columns)
{
    struct text text = {0};
    text_add(&text, "kept as it is, whatever its length may be\n");
    size_t start = text.length;
    text_add(&text, string);
    wrap_from(&text, start, indent, columns);
    char *ret = mem_string(text.bytes + start);
    text_done(&text);
    return ret;
}

static const struct {
    const char *string;
    int indent, columns;
    const char *expected;
} CASES[] = {
    {"one two three\n", 2, 40, "one two three\n"},
    {"one two three\n", 2, 0, "one two three\n"},
    {"one two three\n", 2, 10, "one two\n  three\n"},
    {"one two three\n", 2, 9, "one two\n  three\n"},
    {"one two three\nfour five six\n", 1, 9, "one two\n three\nfour\n five\n six\n"},
    /* A path can be copied only whole. */
    {"log /a/very/long/path\n", 2, 10, "log\n  /a/very/long/path\n"},
    {"    /a/very/long/path\n", 2, 10, "    /a/very/long/path\n"},
    /* Styles take no room. */
    {"\x1b[1;31mone\x1b[0m \x1b[2mtwo\x1b[0m\n", 2, 9, "\x1b[1;31mone\x1b[0m \x1b[2mtwo\x1b[0m\n"},
    /* Wide characters take two columns. */
    {"漢字 漢字 x\n", 1, 10, "漢字 漢字\n x\n"},
};

static void lines_break_at_spaces(_unused_ void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        _cleanup_(mem_free) char *text = wrapped(CASES[i].string, CASES[i].indent, CASES[i].columns);
        assert_string_equal(text, CASES[i].expected);
    }
}

static void a_path_begins_at_home(_unused_ void **state)
{
    struct look terminal = {.terminal = true, .utf8 = true}, pipe = {.utf8 = true};
    _cleanup_(text_done) struct text shown = {0}, piped = {0}, other = {0};
    setenv("HOME", "/home/alice", 1);
    look_add_path(&terminal, &shown, "/home/alice/log");
    look_add_path(&pipe, &piped, "/home/alice/log");
    look_add_path(&terminal, &other, "/home/alicent/log");
    assert_string_equal(shown.bytes, "~/log");
    assert_string_equal(piped.bytes, "/home/alice/log");
    assert_string_equal(other.bytes, "/home/alicent/log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_break_at_spaces),
        cmocka_unit_test(a_path_begins_at_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
