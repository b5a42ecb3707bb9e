#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "base/text.h"

static void append_keeps_nul_bytes_and_terminates(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    text_append(&text, "a\0b", 3);
    text_add(&text, "cd");
    text_addf(&text, "%d", 42);
    assert_int_equal(text.length, 7);
    assert_memory_equal(text.bytes, "a\0bcd42\0", 8);
    text_clear(&text);
    assert_int_equal(text.length, 0);
    assert_string_equal(text.bytes, "");
}

static void append_grows(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    for (int i = 0; i < 100000; i++)
        text_append(&text, "xy", 2);
    assert_int_equal(text.length, 200000);
    assert_int_equal(strlen(text.bytes), 200000);
}

static void steal_is_never_null(void **state _unused_)
{
    struct text text = {0};
    char *string = text_steal(&text);
    assert_string_equal(string, "");
    text_add(&text, string);
    assert_non_null(text.bytes);
    text_done(&text);
    text_done(&(struct text){.bytes = string});
}

struct shown {
    const char *bytes, *expected;
    bool keep_newlines;
};

static void printable_is_safe_on_any_terminal(void **state _unused_)
{
    static const struct shown CASES[] = {
        {"plain \\ text", "plain \\ text", false}, {"\x1b[31mred\x07", "\\x1b[31mred\\x07", false},
        {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d", false}, {"a\nb\tc\r", "a\nb\tc\\x0d", true},
        {"\x7f", "\\x7f", false},
        {"\xc2\x9b"
         "31m",
            "\\xc2\\x9b31m", false}, /* CSI as one C1 character */
        {"\x9b"
         "31m",
            "\\x9b31m", false}, /* and as a raw byte */
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", false},
        {"\xe2\x80\xae"
         "txt.exe",
            "\\xe2\\x80\\xaetxt.exe", false}, /* right-to-left override */
        {"\xe2\x81\xa6", "\\xe2\\x81\\xa6", false},
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8", true},                                     /* line separator */
        {"\xc0\xaf", "\\xc0\\xaf", false},                                             /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", false}, {"\xe2\x82", "\\xe2\\x82", false}, /* cut off */
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        _cleanup_(text_done) struct text text = {0};
        text_add_printable(&text, CASES[i].bytes, strlen(CASES[i].bytes), CASES[i].keep_newlines);
        assert_string_equal(text.bytes, CASES[i].expected);
    }
}

static void utf8_prefix_ends_at_the_first_bad_byte(void **state _unused_)
{
    static const struct {
        const char *bytes;
        size_t prefix;
    } CASES[] = {
        {"", 0},
        {"0123456789abcdefXYZ", 19},
        {"0123456789\x80", 10},
        {"01234567\xc3\xa9", 10},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"a\xe2\x82", 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
        assert_int_equal(text_utf8_prefix(CASES[i].bytes, strlen(CASES[i].bytes)), CASES[i].prefix);
    assert_int_equal(text_utf8_prefix("a\0b", 3), 3);
}

/* By brute force: the decoder accepts exactly the encodings of all scalar values. */
static void utf8_two_and_three_bytes_exhaustively(void **state _unused_)
{
    size_t accepted = 0;
    for (unsigned first = 0x80; first < 0x100; first++)
        for (unsigned second = 0; second < 0x100; second++)
            for (unsigned third = 0; third < 0x100; third++) {
                const unsigned char bytes[] = {
                    (unsigned char)first, (unsigned char)second, (unsigned char)third};
                accepted += text_utf8_prefix(bytes, 3) == 3 && second >= 0x80 && third >= 0x80;
            }
    assert_int_equal(accepted, 0x10000 - 0x800 - 0x800); /* 3-byte characters without surrogates */
}

static void columns_do_not_depend_on_the_locale(void **state _unused_)
{
    static const char *const LOCALES[] = {"C", "C.UTF-8"};
    for (size_t i = 0; i < ARRAY_SIZE(LOCALES); i++) {
        setlocale(LC_ALL, LOCALES[i]);
        assert_int_equal(text_columns("abc"), 3);
        assert_int_equal(text_columns("gr\xc3\xbc\xc3\x9f"
                                      "e"),
            5);
        assert_int_equal(text_columns("\xe6\xbc\xa2\xe5\xad\x97"), 4);
        assert_int_equal(text_columns("e\xcc\x81"), 1);
        assert_int_equal(text_columns("\x1b\x07"), 0);
        assert_int_equal(text_columns("a\xff"
                                      "b"),
            2);
        assert_int_equal(text_columns(""), 0);
    }
}

static void base32_is_crockfords(void **state _unused_)
{
    assert_int_equal(strlen(TEXT_BASE32), 32);
    assert_null(strpbrk(TEXT_BASE32, "ILOUilou"));
}

static void parse_int_takes_whole_numbers_in_range(void **state _unused_)
{
    static const char *const BAD[] = {"", "-", "+1", " 1", "1 ", "1x", "0x1", "1.0", "--1", "1e3",
        "9223372036854775808", "-9223372036854775809", "99999999999999999999"};
    int64_t number = 77;
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
        assert_false(text_parse_int(BAD[i], INT64_MIN, INT64_MAX, &number));
    assert_false(text_parse_int("11", 0, 10, &number));
    assert_false(text_parse_int("-1", 0, 10, &number));
    assert_int_equal(number, 77);
    assert_true(text_parse_int("9223372036854775807", INT64_MIN, INT64_MAX, &number));
    assert_true(number == INT64_MAX);
    assert_true(text_parse_int("-9223372036854775808", INT64_MIN, INT64_MAX, &number));
    assert_true(number == INT64_MIN);
    assert_true(text_parse_int("0", 0, 0, &number));
    assert_int_equal(number, 0);
}

static void nearest_suggests_only_what_is_near(void **state _unused_)
{
    static const char *const NAMES[] = {"producers", "command", "timeout", "run", "build"};
    static const struct {
        const char *word, *expected;
    } CASES[] = {
        {"producer", "producers"},
        {"comand", "command"},
        {"biuld", "build"},
        {"tiemout", "timeout"},
        {"run", "run"},
        {"rum", "run"},
        {"banana", NULL},
        {"x", NULL},
        {"", NULL},
        {"completely-different-and-long", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        const char *found = text_nearest(CASES[i].word, NAMES, ARRAY_SIZE(NAMES));
        if (CASES[i].expected)
            assert_string_equal(found, CASES[i].expected);
        else
            assert_null(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_keeps_nul_bytes_and_terminates),
        cmocka_unit_test(append_grows),
        cmocka_unit_test(steal_is_never_null),
        cmocka_unit_test(printable_is_safe_on_any_terminal),
        cmocka_unit_test(utf8_prefix_ends_at_the_first_bad_byte),
        cmocka_unit_test(utf8_two_and_three_bytes_exhaustively),
        cmocka_unit_test(columns_do_not_depend_on_the_locale),
        cmocka_unit_test(base32_is_crockfords),
        cmocka_unit_test(parse_int_takes_whole_numbers_in_range),
        cmocka_unit_test(nearest_suggests_only_what_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
