#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const struct {
    int64_t ms;
    const char *text;
} TIMES[] = {
    {0, "1970-01-01T00:00:00Z"},
    {INT64_C(-1000), "1969-12-31T23:59:59Z"},
    {INT64_C(951782400000), "2000-02-29T00:00:00Z"},
    {INT64_C(1735603200000) + 86399000, "2024-12-31T23:59:59Z"},
    {INT64_C(-2203891200000), "1900-03-01T00:00:00Z"},
    {INT64_C(-11670998400000), "1600-02-29T00:00:00Z"},
    {INT64_C(253402300799000), "9999-12-31T23:59:59Z"},
    {INT64_C(-62167219200000), "0000-01-01T00:00:00Z"},
};

/* In a child, because the offset is read once. */
static void a_test_build_can_move_the_wall_clock(void **state _unused_)
{
    pid_t child = checked_fork();
    if (child == 0) {
        struct timespec now;
        setenv("TENURE_TEST_WALL_OFFSET_MS", "-7200000", 1);
        int64_t wall_ms = clock_system()->wall_ms(clock_system());
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t apart_ms = now.tv_sec * MS_PER_S - wall_ms;
        _exit(apart_ms > 7100000 && apart_ms < 7300000 ? 1 : apart_ms > -60000 && apart_ms < 60000 ? 0 : 2);
    }
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
#ifdef TENURE_FAILPOINTS
    assert_int_equal(WEXITSTATUS(status), 1);
#else
    assert_int_equal(WEXITSTATUS(status), 0);
#endif
}

static void known_times(void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_SIZE(TIMES); i++) {
        char text[CLOCK_TEXT_SIZE];
        int64_t ms = 1;
        clock_format_utc(TIMES[i].ms, text);
        assert_string_equal(text, TIMES[i].text);
        assert_true(clock_parse_utc(text, &ms));
        assert_true(ms == TIMES[i].ms);
    }
}

static void every_day_agrees_with_the_c_library(void **state _unused_)
{
    for (int64_t day = -800000; day < 2900000; day += 13) {
        time_t seconds = (time_t)(day * 86400 + 86399);
        struct tm tm;
        char text[CLOCK_TEXT_SIZE], expected[CLOCK_TEXT_SIZE];
        int64_t ms;
        if (!gmtime_r(&seconds, &tm) || tm.tm_year + 1900 < 0 || tm.tm_year + 1900 > 9999)
            continue;
        strftime(expected, sizeof(expected), "T%H:%M:%SZ", &tm);
        clock_format_utc(seconds * MS_PER_S, text);
        assert_string_equal(text + 10, expected);
        assert_int_equal(atoi(text), tm.tm_year + 1900);
        assert_int_equal(atoi(text + 5), tm.tm_mon + 1);
        assert_int_equal(atoi(text + 8), tm.tm_mday);
        assert_true(clock_parse_utc(text, &ms));
        assert_true(ms == seconds * MS_PER_S);
    }
}

static void out_of_range_is_clamped(void **state _unused_)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_utc(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59Z");
    clock_format_utc(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00Z");
}

static void fractions(void **state _unused_)
{
    int64_t ms;
    assert_true(clock_parse_utc("1970-01-01T00:00:01.5Z", &ms));
    assert_int_equal(ms, 1500);
    assert_true(clock_parse_utc("1970-01-01T00:00:01.123456789Z", &ms));
    assert_int_equal(ms, 1123);
    assert_true(clock_parse_utc("1969-12-31T23:59:59.999Z", &ms));
    assert_int_equal(ms, -1);
}

static void junk_is_refused(void **state _unused_)
{
    static const char *const BAD[] = {"", "now", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z",
        "2024-01-01t00:00:00z", "2024-01-01T00:00:00+00:00", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z",
        "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-01-32T00:00:00Z", "2024-01-00T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00Zx", " 2024-01-01T00:00:00Z", "24-01-01T00:00:00Z", "2024-1-1T00:00:00Z",
        "2024-01-01T00:00:00.5", "-024-01-01T00:00:00Z", "2024-01-01T00:00:00,5Z", "10000-01-01T00:00:00Z"};
    int64_t ms = 77;
    for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
        assert_false(clock_parse_utc(BAD[i], &ms));
    assert_int_equal(ms, 77);
}

static void the_system_clock_runs(void **state _unused_)
{
    const struct clock *clock = clock_system();
    int64_t boot_ms = clock->boot_ms(clock);
    assert_true(boot_ms > 0);
    assert_true(clock->boot_ms(clock) >= boot_ms);
    assert_true(clock->wall_ms(clock) > 0);
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
    int64_t apart_ms = now.tv_sec * MS_PER_S - boot_ms;
    if (!clock_is_shifted())
        assert_true(apart_ms > -60 * MS_PER_S && apart_ms < 60 * MS_PER_S);
}

static void the_manual_clock_moves_by_hand(void **state _unused_)
{
    struct clock_manual manual;
    clock_manual_init(&manual, 5, 7);
    const struct clock *clock = &manual.clock;
    assert_int_equal(clock->boot_ms(clock), 5);
    assert_int_equal(clock->wall_ms(clock), 7);
    manual.now_boot_ms += 10;
    assert_int_equal(clock->boot_ms(clock), 15);
    assert_int_equal(clock->wall_ms(clock), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_test_build_can_move_the_wall_clock),
        cmocka_unit_test(known_times),
        cmocka_unit_test(every_day_agrees_with_the_c_library),
        cmocka_unit_test(out_of_range_is_clamped),
        cmocka_unit_test(fractions),
        cmocka_unit_test(junk_is_refused),
        cmocka_unit_test(the_system_clock_runs),
        cmocka_unit_test(the_manual_clock_moves_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
