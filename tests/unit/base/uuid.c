#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/uuid.h"

static void made_ids_are_version_7_and_carry_the_time(void **state _unused_)
{
    struct clock_manual manual;
    char id[UUID_TEXT_SIZE], other[UUID_TEXT_SIZE];
    clock_manual_init(&manual, 0, INT64_C(0x0123456789ab));
    uuid_make(&manual.clock, id);
    uuid_make(&manual.clock, other);
    assert_true(uuid_is_valid(id));
    assert_int_equal(strncmp(id, "01234567-89ab-7", 15), 0);
    assert_non_null(strchr("89ab", id[19]));
    assert_string_not_equal(id, other);
}

static void later_ids_sort_later(void **state _unused_)
{
    struct clock_manual manual;
    char early[UUID_TEXT_SIZE], late[UUID_TEXT_SIZE];
    clock_manual_init(&manual, 0, INT64_C(1700000000000));
    for (int i = 0; i < 1000; i++) {
        uuid_make(&manual.clock, early);
        manual.now_wall_ms++;
        uuid_make(&manual.clock, late);
        assert_true(strcmp(early, late) < 0);
    }
}

static void validity(void **state _unused_)
{
    static const char *const BAD[] = {"", "01234567-89ab-7cde-8f01-23456789abc",
        "01234567-89ab-7cde-8f01-23456789abcde", "01234567-89AB-7cde-8f01-23456789abcd",
        "0123456789ab-7cde-8f01-23456789abcd-", "01234567-89ab-7cde-8f01_23456789abcd",
        "g1234567-89ab-7cde-8f01-23456789abcd", "{01234567-89ab-7cde-8f01-23456789abc}"};
    assert_true(uuid_is_valid("01234567-89ab-7cde-8f01-23456789abcd"));
    assert_true(uuid_is_valid("00000000-0000-0000-0000-000000000000"));
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        assert_false(uuid_is_valid(BAD[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_ids_are_version_7_and_carry_the_time),
        cmocka_unit_test(later_ids_sort_later),
        cmocka_unit_test(validity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
