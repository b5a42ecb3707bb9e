/* What a collector printed, as COPY wants it: whatever the bytes and wherever the pieces are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "publish/collected.h"

static char *read_all(const void *bytes, size_t length, enum collected_form form, size_t piece)
{
    char path[] = "/tmp/tenure-collected-XXXXXX", buffer[4096];
    int fd = mkstemp(path);
    struct collected *collected = NULL;
    struct text text = {0};
    int64_t got = 0;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    assert_int_equal(collected_open(path, form, &collected, NULL), RESULT_OK);
    while ((got = collected_read(collected, buffer, piece)) > 0)
        text_append(&text, buffer, (size_t)got);
    assert_int_equal(got, 0);
    assert_int_equal(collected_read(collected, buffer, piece), 0);
    collected_close(collected);
    unlink(path);
    return text_steal(&text);
}

static const struct {
    const char *printed, *fed;
} SAMPLES[] = {
    {"", ""},
    {"a", "1\ta\n"},
    {"a\n", "1\ta\n"},
    {"\n", "1\t\n"},
    {"a\n\nb", "1\ta\n2\t\n3\tb\n"},
    {"\\.\n\\N\n", "1\t\\\\.\n2\t\\\\N\n"},
    {"a\tb\r\n", "1\ta\\tb\\r\n"},
};

static void makes_rows_of_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++)
        for (size_t piece = 64; piece <= 4096; piece *= 8) {
            _cleanup_(mem_free) char *fed =
                read_all(SAMPLES[i].printed, strlen(SAMPLES[i].printed), COLLECTED_LINES, piece);
            assert_string_equal(fed, SAMPLES[i].fed);
        }
}

static void numbers_many_lines(void **state)
{
    (void)state;
    struct text printed = {0}, wanted = {0};
    for (int i = 1; i <= 30000; i++) {
        text_addf(&printed, "line %d\n", i);
        text_addf(&wanted, "%d\tline %d\n", i, i);
    }
    _cleanup_(mem_free) char *fed = read_all(printed.bytes, printed.length, COLLECTED_LINES, 1000);
    assert_string_equal(fed, wanted.bytes);
    text_done(&printed);
    text_done(&wanted);
}

static void hands_raw_bytes_on(void **state)
{
    (void)state;
    _cleanup_(mem_free) char *fed = read_all("1,\"a\tb\\\"\r\n", 10, COLLECTED_RAW, 64);
    assert_string_equal(fed, "1,\"a\tb\\\"\r\n");
}

static void says_what_cannot_be_opened(void **state)
{
    (void)state;
    struct collected *collected = NULL;
    assert_int_equal(collected_open("/nowhere/at/all", COLLECTED_RAW, &collected, NULL), RESULT_SYSTEM);
    assert_null(collected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_rows_of_lines),
        cmocka_unit_test(numbers_many_lines),
        cmocka_unit_test(hands_raw_bytes_on),
        cmocka_unit_test(says_what_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
