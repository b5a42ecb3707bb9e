/* TABLE:KEY=VALUE. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "publish/publish.h"

static const struct {
    const char *text, *table, *key, *value;
} SAMPLES[] = {
    {"app.source:id=42", "app.source", "id", "42"},
    {"source:name=a:b=c", "source", "name", "a:b=c"},
    {"source:name=", "source", "name", ""},
    {"\"a:b\".\"c=d\":\"e=\"\"f\"=g", "\"a:b\".\"c=d\"", "e=\"f", "g"},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++) {
        _cleanup_(publish_row_done) struct publish_row row = {0};
        assert_int_equal(publish_row_parse(SAMPLES[i].text, &row, NULL), RESULT_OK);
        assert_string_equal(row.table, SAMPLES[i].table);
        assert_string_equal(row.key, SAMPLES[i].key);
        assert_string_equal(row.value, SAMPLES[i].value);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"", "a", "a:b", "a=b", ":b=c", "a:=c", "\"a:b=c"};
    for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
        struct publish_row row = {0};
        assert_int_equal(publish_row_parse(TEXTS[i], &row, NULL), RESULT_INVALID);
        assert_null(row.table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
