#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/duration.h"

#define DAY_MS INT64_C(86400000)

static void accepted_forms(void **state _unused_)
{
    static const struct {
        const char *text;
        int64_t ms;
    } CASES[] = {
        {"500ms", 500},
        {"60s", 60000},
        {"10m", 600000},
        {"2h", 7200000},
        {"14d", 14 * DAY_MS},
        {"0s", 0},
        {"0ms", 0},
        {"106751991167d", 106751991167 * DAY_MS},
        {"9223372036854775807ms", INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        int64_t ms = -1;
        assert_int_equal(duration_parse("x", CASES[i].text, 0, INT64_MAX, &ms, NULL), RESULT_OK);
        assert_true(ms == CASES[i].ms);
    }
}

static void refused_forms(void **state _unused_)
{
    static const char *const BAD[] = {
        "0",
        "-1",
        "0.4",
        "60x",
        "99999999999",
        "",
        "1h30m",
        "90",
        "s",
        "ms",
        "-60s",
        "+60s",
        " 60s",
        "60s ",
        "60 s",
        "60S",
        "1e3s",
        "0x10s",
        "6_0s",
        "60ss",
        "60sec",
        "1.5h",
        "\xd9\xa6s",
        "60\xce\xbcs",
        "inf",
        "nan",
        "none",
        "1w",
        "60s\n",
        "106751991168d",
        "9223372036854775808ms",
        "99999999999999999999999999s",
        "18446744073709551676s" /* wraps round to 60 */,
    };
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
        _cleanup_(error_done) struct error err = {0};
        int64_t ms = 77;
        assert_int_equal(duration_parse("--ttl", BAD[i], 0, INT64_MAX, &ms, &err), RESULT_INVALID);
        assert_int_equal(ms, 77);
        assert_int_equal(strncmp(err.message, "--ttl: ", 7), 0);
    }
}

static void the_range_is_inclusive(void **state _unused_)
{
    static const struct {
        const char *text;
        enum result expected;
    } CASES[] = {
        {"1999ms", RESULT_INVALID},
        {"2000ms", RESULT_OK},
        {"2s", RESULT_OK},
        {"1h", RESULT_OK},
        {"60m", RESULT_OK},
        {"3600001ms", RESULT_INVALID},
        {"0s", RESULT_INVALID},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        int64_t ms;
        assert_int_equal(duration_parse("x", CASES[i].text, 2000, 3600000, &ms, NULL), CASES[i].expected);
    }
}

static void the_sentence_names_form_and_range(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    int64_t ms;
    assert_int_equal(duration_parse("--ttl", "1h30m", 2000, 3600000, &ms, &err), RESULT_INVALID);
    assert_string_equal(err.message, "--ttl: \"1h30m\" is not a duration: give a whole number and one unit "
                                     "(ms, s, m, h, d), from 2s to 1h");
    assert_int_equal(duration_parse("--ttl", "2h", 1500, 3600000, &ms, &err), RESULT_INVALID);
    assert_string_equal(err.message, "--ttl: \"2h\" is out of range: give a whole number and one unit "
                                     "(ms, s, m, h, d), from 1500ms to 1h");
}

static void the_sentence_is_short_and_harmless(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    char huge[100000];
    int64_t ms;
    memset(huge, '\x1b', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    assert_int_equal(duration_parse("x", huge, 0, 1000, &ms, &err), RESULT_INVALID);
    assert_null(strchr(err.message, '\x1b'));
    assert_true(strlen(err.message) < 500);
}

static void formatted_for_people(void **state _unused_)
{
    static const struct {
        int64_t ms;
        const char *expected;
    } CASES[] = {
        {0, "0 ms"},
        {480, "480 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {3200, "3.2 s"},
        {3299, "3.2 s"},
        {59999, "59.9 s"},
        {60000, "1 m"},
        {250000, "4 m 10 s"},
        {3599999, "59 m 59 s"},
        {3600000, "1 h"},
        {7500000, "2 h 5 m"},
        {3 * DAY_MS + 4 * 3600000, "3 d 4 h"},
        {-3200, "-3.2 s"},
        {INT64_MAX, "106751991167 d 7 h"},
        {INT64_MIN, "-106751991167 d 7 h"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        char text[DURATION_TEXT_SIZE];
        duration_format(CASES[i].ms, text);
        assert_string_equal(text, CASES[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_forms),
        cmocka_unit_test(refused_forms),
        cmocka_unit_test(the_range_is_inclusive),
        cmocka_unit_test(the_sentence_names_form_and_range),
        cmocka_unit_test(the_sentence_is_short_and_harmless),
        cmocka_unit_test(formatted_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
