#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"

struct target {
    char *name;
    char code[5];
    int64_t count, any, wait_ms;
    bool enabled;
    struct json_object *value, *object, *array;
};

static const struct json_field FIELDS[] = {
    {"name", JSON_STRING, offsetof(struct target, name), true, 0, 8},
    {"code", JSON_BUFFER, offsetof(struct target, code), false, 0, sizeof(((struct target *)0)->code)},
    {"count", JSON_INTEGER, offsetof(struct target, count), false, 1, 100},
    {"any", JSON_INTEGER, offsetof(struct target, any), false, 0, 0},
    {"wait", JSON_DURATION, offsetof(struct target, wait_ms), false, 1000, 60000},
    {"enabled", JSON_BOOLEAN, offsetof(struct target, enabled), false, 0, 0},
    {"value", JSON_VALUE, offsetof(struct target, value), false, 0, 0},
    {"object", JSON_OBJECT, offsetof(struct target, object), false, 0, 0},
    {"array", JSON_ARRAY, offsetof(struct target, array), false, 0, 0},
};

static enum result read_text(const char *text, bool strict, bool with_document, struct target *target,
    struct json_document *document, struct error *err)
{
    assert_int_equal(json_document_parse(text, strlen(text), "t.json", document, err), RESULT_OK);
    struct json_object *object = document->root;
    return json_table_read(
        with_document ? document : NULL, "", object, FIELDS, ARRAY_SIZE(FIELDS), strict, target, err);
}

static void everything_is_read(void **state _unused_)
{
    struct target target = {.name = mem_string("default"), .count = 50};
    struct json_document document = {0};
    assert_int_equal(
        read_text("{\"name\":\"12345678\",\"code\":\"abcd\",\"count\":100,\"any\":-9223372036854775808,"
                  "\"wait\":\"60s\",\"enabled\":true,\"value\":[1],\"object\":{},\"array\":[]}",
            true, true, &target, &document, NULL),
        RESULT_OK);
    assert_string_equal(target.name, "12345678");
    assert_string_equal(target.code, "abcd");
    assert_int_equal(target.count, 100);
    assert_true(target.any == INT64_MIN);
    assert_int_equal(target.wait_ms, 60000);
    assert_true(target.enabled);
    assert_true(json_object_is_type(target.value, json_type_array));
    assert_true(json_object_is_type(target.object, json_type_object));
    assert_true(json_object_is_type(target.array, json_type_array));
    mem_free(&target.name);
    json_document_done(&document);
}

static void defaults_stay(void **state _unused_)
{
    struct target target = {.count = 50, .wait_ms = 5, .enabled = true, .code = "zz"};
    struct json_document document = {0};
    assert_int_equal(read_text("{\"name\":\"\"}", true, true, &target, &document, NULL), RESULT_OK);
    assert_string_equal(target.name, "");
    assert_int_equal(target.count, 50);
    assert_int_equal(target.wait_ms, 5);
    assert_true(target.enabled);
    assert_string_equal(target.code, "zz");
    assert_null(target.array);
    mem_free(&target.name);
    json_document_done(&document);
}

static const struct {
    const char *text, *with_place, *without;
} REFUSED[] = {
    {"{}", "t.json:1:1: \"name\" is missing", "\"name\" is missing"},
    {"[]", "t.json:1:1: an object is expected here", "an object is expected"},
    {"null", "t.json:1:1: an object is expected here", "an object is expected"},
    {"{\"name\":7}", "t.json:1:9: \"name\" must be a string", "\"name\" must be a string"},
    {"{\"name\":null}", "t.json:1:9: \"name\" must be a string", "\"name\" must be a string"},
    {"{\"name\":\"123456789\"}", "t.json:1:9: \"name\" must have at most 8 bytes",
        "\"name\" must have at most 8 bytes"},
    {"{\"name\":\"a\\u0000b\"}", "t.json:1:9: \"name\" must not hold a NUL character",
        "\"name\" must not hold a NUL character"},
    {"{\"name\":\"\",\"code\":\"abcde\"}", "t.json:1:19: \"code\" must have at most 4 bytes",
        "\"code\" must have at most 4 bytes"},
    {"{\"name\":\"\",\"count\":0}", "t.json:1:20: \"count\" must be from 1 to 100",
        "\"count\" must be from 1 to 100"},
    {"{\"name\":\"\",\"count\":101}", "t.json:1:20: \"count\" must be from 1 to 100",
        "\"count\" must be from 1 to 100"},
    {"{\"name\":\"\",\"count\":1.0}", "t.json:1:20: \"count\" must be a whole number",
        "\"count\" must be a whole number"},
    {"{\"name\":\"\",\"count\":\"1\"}", "t.json:1:20: \"count\" must be a whole number",
        "\"count\" must be a whole number"},
    {"{\"name\":\"\",\"count\":true}", "t.json:1:20: \"count\" must be a whole number",
        "\"count\" must be a whole number"},
    {"{\"name\":\"\",\"any\":9223372036854775808}",
        "t.json:1:18: \"any\" must be from -9223372036854775808 to 9223372036854775807",
        "\"any\" must be from -9223372036854775808 to 9223372036854775807"},
    {"{\"name\":\"\",\"enabled\":1}", "t.json:1:22: \"enabled\" must be true or false",
        "\"enabled\" must be true or false"},
    {"{\"name\":\"\",\"wait\":60}", "t.json:1:19: \"wait\" must be a duration in a string, like \"90s\"",
        "\"wait\" must be a duration in a string, like \"90s\""},
    {"{\"name\":\"\",\"wait\":\"2m\"}",
        "t.json:1:19: \"wait\" \"2m\" is out of range: give a whole number and one unit (ms, s, m, h, d), "
        "from 1s to 1m",
        "\"wait\" \"2m\" is out of range: give a whole number and one unit (ms, s, m, h, d), from 1s to 1m"},
    {"{\"name\":\"\",\"object\":[]}", "t.json:1:21: \"object\" must be an object",
        "\"object\" must be an object"},
    {"{\"name\":\"\",\"array\":{}}", "t.json:1:20: \"array\" must be an array", "\"array\" must be an array"},
    {"{\"name\":\"\",\n \"nmae\":1}", "t.json:2:2: \"nmae\" is not a known key",
        "\"nmae\" is not a known key"},
};

static void refusals_name_place_and_reason(void **state _unused_)
{
    for (size_t i = 0; i < 2 * ARRAY_SIZE(REFUSED); i++) {
        bool with_document = i % 2 == 0;
        struct target target = {0};
        struct json_document document = {0};
        _cleanup_(error_done) struct error err = {0};
        assert_int_equal(
            read_text(REFUSED[i / 2].text, true, with_document, &target, &document, &err), RESULT_INVALID);
        assert_string_equal(err.message, with_document ? REFUSED[i / 2].with_place : REFUSED[i / 2].without);
        mem_free(&target.name);
        json_document_done(&document);
    }
}

static void the_nearest_key_is_suggested(void **state _unused_)
{
    struct target target = {0};
    struct json_document document = {0};
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(
        read_text("{\"name\":\"\",\"enabeld\":1}", true, true, &target, &document, &err), RESULT_INVALID);
    assert_string_equal(err.remedy, "did you mean \"enabled\"?");
    json_document_done(&document);
    assert_int_equal(read_text("{\"zzzzzzz\":1}", true, true, &target, &document, &err), RESULT_INVALID);
    assert_null(err.remedy);
    mem_free(&target.name);
    json_document_done(&document);
}

/* Records of newer versions: more keys, and null where nothing is known. */
static void lenient_reading(void **state _unused_)
{
    struct target target = {.count = 50};
    struct json_document document = {0};
    assert_int_equal(read_text("{\"name\":\"x\",\"newer\":{},\"count\":null,\"wait\":null,\"value\":null}",
                         false, true, &target, &document, NULL),
        RESULT_OK);
    assert_int_equal(target.count, 50);
    assert_null(target.value);
    mem_free(&target.name);
    json_document_done(&document);
    assert_int_equal(read_text("{\"name\":null}", false, true, &target, &document, NULL), RESULT_INVALID);
    json_document_done(&document);
}

static void nested_pointers_are_placed(void **state _unused_)
{
    static const char TEXT[] = "{\"outer\":\n  {\"name\": 5}}";
    struct target target = {0};
    struct json_document document = {0};
    struct json_object *inner;
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(json_document_parse(TEXT, strlen(TEXT), "t.json", &document, NULL), RESULT_OK);
    assert_true(json_object_object_get_ex(document.root, "outer", &inner));
    assert_int_equal(
        json_table_read(&document, "/outer", inner, FIELDS, ARRAY_SIZE(FIELDS), true, &target, &err),
        RESULT_INVALID);
    assert_string_equal(err.message, "t.json:2:12: \"name\" must be a string");
    json_document_done(&document);
}

static void any_bytes_become_a_string(void **state _unused_)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *expected;
    } CASES[] = {
        {"plain", 5, "plain"},
        {"", 0, ""},
        {"gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f"},
        {"a\xff\xfe", 3, "a\\xff\\xfe"},
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
        {"cut \xe2\x82", 6, "cut \\xe2\\x82"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct json_object *json = json_from_bytes(CASES[i].bytes, CASES[i].length);
        const char *written = json_object_to_json_string(json);
        assert_string_equal(json_object_get_string(json), CASES[i].expected);
        assert_int_equal(json_check(written, strlen(written), NULL), RESULT_OK);
        json_object_put(json);
    }
    struct json_object *json = json_from_bytes("a\0b", 3);
    assert_int_equal(json_object_get_string_len(json), 3);
    json_object_put(json);
}

static void adding(void **state _unused_)
{
    struct json_object *object = json_object_new_object();
    json_add_string(object, "s", "a\xff");
    json_add_string(object, "n", NULL);
    json_add_integer(object, "i", INT64_MIN);
    json_add_boolean(object, "b", true);
    assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN),
        "{\"s\":\"a\\\\xff\",\"n\":null,\"i\":-9223372036854775808,\"b\":true}");
    json_object_put(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(defaults_stay),
        cmocka_unit_test(refusals_name_place_and_reason),
        cmocka_unit_test(the_nearest_key_is_suggested),
        cmocka_unit_test(lenient_reading),
        cmocka_unit_test(nested_pointers_are_placed),
        cmocka_unit_test(any_bytes_become_a_string),
        cmocka_unit_test(adding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
