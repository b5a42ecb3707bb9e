#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static void every_result_has_its_own_name(void **state _unused_)
{
    for (int i = 0; i < RESULT_MAX; i++) {
        assert_non_null(result_name((enum result)i));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(result_name((enum result)i), result_name((enum result)j));
    }
    assert_string_equal(result_name(RESULT_HELD), "held");
    assert_string_equal(result_name(RESULT_INTERRUPTED), "interrupted");
    assert_string_equal(result_name(RESULT_MAX), "?");
}

static void set_wrap_remedy(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(error_set(&err, RESULT_HELD, 0, "%s is held", "it"), RESULT_HELD);
    assert_int_equal(error_remedy(&err, "wait %d", 3), RESULT_HELD);
    assert_int_equal(error_wrap(&err, "reserving %s: ", "x"), RESULT_HELD);
    assert_string_equal(err.message, "reserving x: it is held");
    assert_string_equal(err.remedy, "wait 3");
    assert_int_equal(error_remedy(&err, "go"), RESULT_HELD);
    assert_string_equal(err.remedy, "go");
}

static void set_may_use_its_own_old_text(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, RESULT_BUSY, 0, "first");
    error_remedy(&err, "old remedy");
    error_set(&err, RESULT_CORRUPT, 7, "second after %s", err.message);
    assert_string_equal(err.message, "second after first");
    assert_null(err.remedy);
    assert_int_equal(err.errnum, 7);
}

static void errno_text_is_appended(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(error_errno(&err, ENOENT, "cannot open %s", "f"), RESULT_SYSTEM);
    assert_string_equal(err.message, "cannot open f: No such file or directory");
    assert_int_equal(err.errnum, ENOENT);
    error_errno(&err, 99999, "x");
    assert_string_equal(err.message, "x: unknown error");
}

static void without_an_object_the_code_survives(void **state _unused_)
{
    assert_int_equal(error_set(NULL, RESULT_HELD, 0, "x"), RESULT_HELD);
    assert_int_equal(error_remedy(NULL, "y"), RESULT_HELD);
    assert_int_equal(error_set(NULL, RESULT_RETIRED, 0, "x"), RESULT_RETIRED);
    assert_int_equal(error_wrap(NULL, "y"), RESULT_RETIRED);
    assert_int_equal(error_errno(NULL, EIO, "x"), RESULT_SYSTEM);
}

static void move_empties_the_source(void **state _unused_)
{
    _cleanup_(error_done) struct error from = {0}, to = {0};
    error_set(&to, RESULT_BUSY, 0, "old");
    error_set(&from, RESULT_ABSENT, 0, "gone");
    assert_int_equal(error_move(&to, &from), RESULT_ABSENT);
    assert_string_equal(to.message, "gone");
    assert_null(from.message);
    assert_int_equal(from.code, RESULT_OK);
    assert_int_equal(error_move(NULL, &to), RESULT_ABSENT);
    assert_null(to.message);
}

static void memory_grows_and_is_freed(void **state _unused_)
{
    _cleanup_(mem_free) int *numbers = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        mem_grow(&numbers, &capacity, i, sizeof(*numbers));
        numbers[i] = (int)i;
    }
    assert_int_equal(numbers[999], 999);
    assert_true(capacity >= 1000 && capacity < 4000);
    mem_free(&numbers);
    assert_null(numbers);
}

static void memory_copies(void **state _unused_)
{
    _cleanup_(mem_free) char *copy = mem_copy("a\0b", 3);
    assert_memory_equal(copy, "a\0b\0", 4);
    assert_null(mem_string(NULL));
    _cleanup_(mem_free) unsigned char *zeroed = mem_alloc(8);
    assert_memory_equal(zeroed, "\0\0\0\0\0\0\0\0", 8);
    _cleanup_(mem_free) char *nothing = mem_alloc(0);
    assert_non_null(nothing);
    _cleanup_(mem_free) char *text = mem_format("%d-%s", 5, "x");
    assert_string_equal(text, "5-x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_has_its_own_name),
        cmocka_unit_test(set_wrap_remedy),
        cmocka_unit_test(set_may_use_its_own_old_text),
        cmocka_unit_test(errno_text_is_appended),
        cmocka_unit_test(without_an_object_the_code_survives),
        cmocka_unit_test(move_empties_the_source),
        cmocka_unit_test(memory_grows_and_is_freed),
        cmocka_unit_test(memory_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
