#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_scan.h"
#include "base/memory.h"

/* A literal that may hold NUL bytes, with its length. */
#define JSON(literal) literal, sizeof(literal) - 1

struct example {
    const char *bytes;
    size_t length;
    const char *message; /* behind "t.json:"; NULL: accepted */
};

static void check(const struct example *example)
{
    struct json_document document = {0};
    _cleanup_(error_done) struct error err = {0}, short_err = {0};
    /* Exactly the bytes and nothing behind them, so that a sanitizer sees a read too far. */
    _cleanup_(mem_free) char *copy = mem_resize(NULL, example->length, 1);
    memcpy(copy, example->bytes, example->length);
    enum result r = json_document_parse(copy, example->length, "t.json", &document, &err);
    enum result checked = json_check(copy, example->length, &short_err);
    if (!example->message) {
        if (r != RESULT_OK)
            print_error("%.60s: %s\n", example->bytes, err.message);
        assert_int_equal(r, RESULT_OK);
        assert_int_equal(checked, RESULT_OK);
        json_document_done(&document);
        return;
    }
    assert_int_equal(r, RESULT_INVALID);
    assert_int_equal(checked, RESULT_INVALID);
    assert_int_equal(strncmp(err.message, "t.json:", 7), 0);
    assert_string_equal(err.message + 7, example->message);
    assert_string_equal(short_err.message, example->message);
    assert_null(document.root);
}

static void check_all(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(&examples[i]);
}

static void valid_texts(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("{}"), NULL},
        {JSON("[]"), NULL},
        {JSON("null"), NULL},
        {JSON(" true "), NULL},
        {JSON("\"x\""), NULL},
        {JSON("0"), NULL},
        {JSON("-0"), NULL},
        {JSON("12"), NULL},
        {JSON("-1.5e+10"), NULL},
        {JSON("1E5"), NULL},
        {JSON("0.001"), NULL},
        {JSON("1e-999"), NULL},
        {JSON("1.7976931348623157e308"), NULL},
        {JSON("9223372036854775807"), NULL},
        {JSON("-9223372036854775808"), NULL},
        {JSON("18446744073709551615"), NULL},
        {JSON(" \t\r\n{ \"a\" : [ 1 , 2 ] }\r\n"), NULL},
        {JSON("{\"\":1}"), NULL},
        {JSON("{\"a\":1,\"A\":2}"), NULL},
        {JSON("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}"), NULL},
        {JSON("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\""), NULL},
        {JSON("\"gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80\x7f\""), NULL},
        {JSON("\"\\u0000 in a value\""), NULL},
        {JSON("{\"\xe2\x82\xac\":1,\"\\u20ad\":2}"), NULL},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void duplicate_keys(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("{\"a\":1,\"a\":2}"), "1:8: duplicate key \"a\""},
        {JSON("{\"a\":1,\"\\u0061\":2}"), "1:8: duplicate key \"a\""},
        {JSON("{\"\\u0061\":1,\"a\":2}"), "1:13: duplicate key \"a\""},
        {JSON("{\"\\u0061\":1,\"\\u0061\":2}"), "1:13: duplicate key \"a\""},
        {JSON("{\"\":1,\"\":2}"), "1:7: duplicate key \"\""},
        {JSON("{\"/\":1,\"\\/\":2}"), "1:8: duplicate key \"/\""},
        {JSON("{\"\xe2\x82\xac\":1,\"\\u20AC\":2}"), "1:8: duplicate key \"\xe2\x82\xac\""},
        {JSON("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}"), "1:8: duplicate key \"\xf0\x9f\x98\x80\""},
        {JSON("{\n  \"build\": {},\n  \"x\": {\"build\": 1}, \"build\": 2\n}"),
            "3:22: duplicate key \"build\""},
        {JSON("[{\"a\":1},{\"b\":1,\"c\":2,\"b\":3}]"), "1:23: duplicate key \"b\""},
        {JSON("{\"a\":{\"b\":1},\"c\":1,\"a\":2}"), "1:20: duplicate key \"a\""},
        {JSON("{\"\\n\":1,\"\\u000a\":2}"), "1:9: duplicate key \"\\x0a\""},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void bad_encoding(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("\xEF\xBB\xBF{}"), "1:1: the text begins with a byte-order mark"},
        {JSON("\xFF\xFE{\0}\0"), "1:1: invalid UTF-8, byte \\xff"},
        {JSON("\"\xc0\xaf\""), "1:2: invalid UTF-8, byte \\xc0"},
        {JSON("\"\xe0\x80\x80\""), "1:2: invalid UTF-8, byte \\xe0"},
        {JSON("\"\xed\xa0\x80\""), "1:2: invalid UTF-8, byte \\xed"},
        {JSON("\"\xf4\x90\x80\x80\""), "1:2: invalid UTF-8, byte \\xf4"},
        {JSON("\"\xc3"), "1:2: invalid UTF-8, byte \\xc3"},
        {JSON("\"\xc3\xa9\x80\""), "1:3: invalid UTF-8, byte \\x80"},
        {JSON("\"\\ud800\""), "1:2: \\ud800 is half of a surrogate pair"},
        {JSON("\"\\udc00\""), "1:2: \\udc00 is half of a surrogate pair"},
        {JSON("\"\\ud800\\ud800\""), "1:2: \\ud800 is half of a surrogate pair"},
        {JSON("\"\\ud800\\n\""), "1:2: \\ud800 is half of a surrogate pair"},
        {JSON("\"\\udc00\\ud800\""), "1:2: \\udc00 is half of a surrogate pair"},
        {JSON("{\"a\\ud800\":1}"), "1:4: \\ud800 is half of a surrogate pair"},
        {JSON("{\"a\\u0000b\":1}"), "1:4: \\u0000 is not allowed in a key"},
        {JSON("{\"a\0b\":1}"), "1:4: control character \\x00 in a string"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void slips(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("{\"a\":1,}"), "1:7: trailing comma before '}'"},
        {JSON("[1, 2 , ]"), "1:7: trailing comma before ']'"},
        {JSON("// x\n{}"), "1:1: comments are not allowed"},
        {JSON("{ /* x */ }"), "1:3: comments are not allowed"},
        {JSON("{\"a\":1 # x\n}"), "1:8: comments are not allowed"},
        {JSON("{}\n// x"), "2:1: comments are not allowed"},
        {JSON("NaN"), "1:1: NaN is not a JSON number"},
        {JSON("[NaN]"), "1:2: NaN is not a JSON number"},
        {JSON("[Infinity]"), "1:2: Infinity is not a JSON number"},
        {JSON("[-Infinity]"), "1:3: 'I' found where a digit is expected"},
        {JSON("[True]"), "1:2: True is not a JSON word"},
        {JSON("['a']"), "1:2: single quotes are not allowed"},
        {JSON("{'a':1}"), "1:2: single quotes are not allowed"},
        {JSON("{a:1}"), "1:2: 'a' found where a key in double quotes is expected"},
        {JSON("{1:1}"), "1:2: '1' found where a key in double quotes is expected"},
        {JSON("{\"a\" 1}"), "1:6: '1' found where ':' after a key is expected"},
        {JSON("{\"a\":}"), "1:6: '}' found where a value is expected"},
        {JSON("{\"a\":1 \"b\":2}"), "1:8: '\"' found where ',' or '}' is expected"},
        {JSON("[1 2]"), "1:4: '2' found where ',' or ']' is expected"},
        {JSON("[1}"), "1:3: '}' found where ',' or ']' is expected"},
        {JSON("[,1]"), "1:2: ',' found where a value is expected"},
        {JSON("{,}"), "1:2: ',' found where a key in double quotes is expected"},
        {JSON("[\xe2\x82\xac]"), "1:2: '\xe2\x82\xac' found where a value is expected"},
        {JSON("\v1"), "1:1: '\\x0b' found where a value is expected"},
        {JSON("\xc2\xa0"
              "1"),
            "1:1: '\xc2\xa0' found where a value is expected"},
        {JSON("truex"), "1:5: 'x' found where the end of the text is expected"},
        {JSON("tru"), "1:1: 't' found where a value is expected"},
        {JSON("nul\0"), "1:1: 'n' found where a value is expected"},
        {JSON("TRUE"), "1:1: 'T' found where a value is expected"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void ends_too_early_or_too_late(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON(""), "1:1: the text ends where a value is expected"},
        {JSON(" \n "), "2:2: the text ends where a value is expected"},
        {JSON("{"), "1:2: the text ends where a key in double quotes is expected"},
        {JSON("{\"a\""), "1:5: the text ends where ':' after a key is expected"},
        {JSON("{\"a\":"), "1:6: the text ends where a value is expected"},
        {JSON("{\"a\":1"), "1:7: the text ends where ',' or '}' is expected"},
        {JSON("[1,"), "1:4: the text ends where a value is expected"},
        {JSON("\"abc"), "1:1: the string that begins here does not end"},
        {JSON("\"abc\\\""), "1:1: the string that begins here does not end"},
        {JSON("\"abc\\"), "1:5: unknown escape in a string"},
        {JSON("{}{}"), "1:3: '{' found where the end of the text is expected"},
        {JSON("{}]"), "1:3: ']' found where the end of the text is expected"},
        {JSON("1 2"), "1:3: '2' found where the end of the text is expected"},
        {JSON("{}\0"), "1:3: '\\x00' found where the end of the text is expected"},
        {JSON("{}\0{\"hidden\":1}"), "1:3: '\\x00' found where the end of the text is expected"},
        {JSON("\0{}"), "1:1: '\\x00' found where a value is expected"},
        {JSON("[1\0,2]"), "1:3: '\\x00' found where ',' or ']' is expected"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void numbers(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("01"), "1:1: a number must not begin with 0"},
        {JSON("-01"), "1:1: a number must not begin with 0"},
        {JSON("[00.5]"), "1:2: a number must not begin with 0"},
        {JSON("+1"), "1:1: a number must not begin with a plus sign"},
        {JSON(".5"), "1:1: a number must begin with a digit"},
        {JSON("-"), "1:2: the text ends where a digit is expected"},
        {JSON("-a"), "1:2: 'a' found where a digit is expected"},
        {JSON("1."), "1:3: the text ends where a digit behind the point is expected"},
        {JSON("1.e5"), "1:3: 'e' found where a digit behind the point is expected"},
        {JSON("1e"), "1:3: the text ends where a digit of the exponent is expected"},
        {JSON("[1e+]"), "1:5: ']' found where a digit of the exponent is expected"},
        {JSON("0x10"), "1:2: 'x' found where the end of the text is expected"},
        {JSON("1_000"), "1:2: '_' found where the end of the text is expected"},
        {JSON("1.5.5"), "1:4: '.' found where the end of the text is expected"},
        {JSON("18446744073709551616"), "1:1: this number is too large"},
        {JSON("-9223372036854775809"), "1:1: this number is too large"},
        {JSON("[1,99999999999999999999999999]"), "1:4: this number is too large"},
        {JSON("1e309"), "1:1: this number is too large"},
        {JSON("-1.8e308"), "1:1: this number is too large"},
        {JSON("1e99999999999999999999"), "1:1: this number is too large"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static void strings(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("\"a\nb\""), "1:3: control character \\x0a in a string"},
        {JSON("\"a\tb\""), "1:3: control character \\x09 in a string"},
        {JSON("\"a\0b\""), "1:3: control character \\x00 in a string"},
        {JSON("\"\\x41\""), "1:2: unknown escape in a string"},
        {JSON("\"\\'\""), "1:2: unknown escape in a string"},
        {JSON("\"\\\0\""), "1:2: unknown escape in a string"},
        {JSON("\"\\u12\""), "1:2: \\u needs four hexadecimal digits"},
        {JSON("\"\\u12g4\""), "1:2: \\u needs four hexadecimal digits"},
        {JSON("\"\\u"), "1:2: \\u needs four hexadecimal digits"},
        {JSON("\"\\U0041\""), "1:2: unknown escape in a string"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

/* Columns count characters; only a line feed ends a line, so CR LF is one end. */
static void positions(void **state _unused_)
{
    static const struct example EXAMPLES[] = {
        {JSON("{\r\n  \"a\": 1,\r\n  \"a\": 2\r\n}"), "3:3: duplicate key \"a\""},
        {JSON("{\n\n\n\"a\"::1}"), "4:5: ':' found where a value is expected"},
        {JSON("{\"gr\xc3\xbc\xc3\x9f"
              "e\xf0\x9f\x98\x80\":x}"),
            "1:11: 'x' found where a value is expected"},
        {JSON("{\t\"a\":x}"), "1:7: 'x' found where a value is expected"},
        {JSON("\n"), "2:1: the text ends where a value is expected"},
    };
    check_all(EXAMPLES, ARRAY_SIZE(EXAMPLES));
}

static char *nested(int levels, char open, char close)
{
    char *text = mem_alloc(2 * (size_t)levels + 1);
    memset(text, open, (size_t)levels);
    memset(text + levels, close, (size_t)levels);
    return text;
}

static void depth_is_limited(void **state _unused_)
{
    _cleanup_(mem_free) char *fine = nested(JSON_LIMIT_DEPTH, '[', ']');
    _cleanup_(mem_free) char *deep = nested(JSON_LIMIT_DEPTH + 1, '[', ']');
    check(&(struct example){fine, strlen(fine), NULL});
    check(&(struct example){deep, strlen(deep), "1:33: nested deeper than 32 levels"});
    struct text objects = {0};
    for (int i = 0; i <= JSON_LIMIT_DEPTH; i++)
        text_add(&objects, "{\"a\":");
    check(&(struct example){objects.bytes, objects.length, "1:161: nested deeper than 32 levels"});
    text_done(&objects);
}

static void size_is_limited(void **state _unused_)
{
    size_t limit = JSON_LIMIT_BYTES;
    _cleanup_(mem_free) char *text = mem_alloc(limit + 1);
    memset(text, ' ', limit + 1);
    text[0] = '1';
    check(&(struct example){text, limit, NULL});
    _cleanup_(error_done) struct error err = {0};
    struct json_document document = {0};
    assert_int_equal(json_document_parse(text, limit + 1, "t.json", &document, &err), RESULT_INVALID);
    assert_string_equal(err.message, "t.json: 1048577 bytes are more than the limit of 1048576");
    assert_int_equal(json_check(text, limit + 1, NULL), RESULT_INVALID);
    /* Refused before a byte is looked at: these lie nowhere. */
    assert_int_equal(json_check(text, (size_t)10 * 1024 * 1024, NULL), RESULT_INVALID);
}

static void messages_are_short_and_harmless(void **state _unused_)
{
    struct text text = {0};
    text_add(&text, "{");
    for (int twice = 0; twice < 2; twice++) {
        text_add(&text, twice ? ",\"\xc2\x9b" : "\"\xc2\x9b");
        for (int i = 0; i < 100000; i++)
            text_add(&text, "k");
        text_add(&text, "\":1");
    }
    text_add(&text, "}");
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(json_check(text.bytes, text.length, &err), RESULT_INVALID);
    assert_non_null(strstr(err.message, "duplicate key \"\\xc2\\x9bkkk"));
    assert_true(strlen(err.message) < 200);
    text_done(&text);
}

static void slips_come_with_a_remedy(void **state _unused_)
{
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(json_check(JSON("[1,]"), &err), RESULT_INVALID);
    assert_string_equal(err.remedy, "remove the comma");
    assert_int_equal(json_check(JSON("['x']"), &err), RESULT_INVALID);
    assert_string_equal(err.remedy, "write \"double quotes\"");
    assert_int_equal(json_check(JSON("[1 2]"), &err), RESULT_INVALID);
    assert_null(err.remedy);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The cost per byte of a large text, times that of a small one, measured as CPU time of the check. */
static double seconds_for(const struct text *text)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        double begin = cpu_seconds();
        assert_int_equal(json_check(text->bytes, text->length, NULL), RESULT_OK);
        double took = cpu_seconds() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static void add_object_of(struct text *text, int keys)
{
    text_clear(text);
    text_add(text, "{");
    for (int i = 0; i < keys; i++)
        text_addf(text, "%s\"%d\":0", i ? "," : "", i);
    text_add(text, "}");
}

static void many_keys_cost_linear_time(void **state _unused_)
{
    _cleanup_(text_done) struct text small = {0}, large = {0};
    add_object_of(&small, 4000);
    add_object_of(&large, 80000);
    double ratio = seconds_for(&large) / seconds_for(&small);
    assert_true(ratio < 120); /* linear: about 20; quadratic: 400 */
    /* And the last key is still compared with the first. */
    large.length--;
    text_add(&large, ",\"0\":1}");
    assert_int_equal(json_check(large.bytes, large.length, NULL), RESULT_INVALID);
}

static void add_deep_place(struct text *text, size_t key_bytes, int values)
{
    text_clear(text);
    text_add(text, "{\"");
    for (size_t i = 0; i < key_bytes; i++)
        text_add(text, "k");
    text_add(text, "\":[0");
    for (int i = 1; i < values; i++)
        text_add(text, ",0");
    text_add(text, "]}");
}

static void places_cost_memory_in_proportion(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    struct json_document document = {0};
    add_deep_place(&text, 400000, 200000); /* whole pointers would take 80 GB */
    assert_int_equal(json_document_parse(text.bytes, text.length, "t.json", &document, NULL), RESULT_OK);
    assert_int_equal(document.place_count, 200002);
    assert_true(document.tokens.length == 400000);
    json_document_done(&document);
}

#define SAMPLE                                                                                               \
    "{\n"                                                                                                    \
    "  \"producers\": {\n"                                                                                   \
    "    \"build\": { \"run\": [\"make\", \"all\"] },\n"                                                     \
    "    \"a/b~c\": 1\n"                                                                                     \
    "  },\n"                                                                                                 \
    "  \"\": [[1, 2], {\"x\": null}]\n"                                                                      \
    "}\n"

static void places_of_keys_and_values(void **state _unused_)
{
    static const struct {
        const char *pointer;
        int key_line, key_column, line, column;
    } CASES[] = {
        {"", 0, 0, 1, 1},
        {"/producers", 2, 3, 2, 16},
        {"/producers/build", 3, 5, 3, 14},
        {"/producers/build/run", 3, 16, 3, 23},
        {"/producers/build/run/0", 0, 0, 3, 24},
        {"/producers/build/run/1", 0, 0, 3, 32},
        {"/producers/a~1b~0c", 4, 5, 4, 14},
        {"/", 6, 3, 6, 7},
        {"//0", 0, 0, 6, 8},
        {"//0/1", 0, 0, 6, 12},
        {"//1/x", 6, 17, 6, 22},
    };
    struct json_document document = {0};
    assert_int_equal(json_document_parse(JSON(SAMPLE), "t.json", &document, NULL), RESULT_OK);
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        const struct json_place *place = json_document_where(&document, CASES[i].pointer);
        assert_non_null(place);
        assert_int_equal(place->key_line, CASES[i].key_line);
        assert_int_equal(place->key_column, CASES[i].key_column);
        assert_int_equal(place->line, CASES[i].line);
        assert_int_equal(place->column, CASES[i].column);
    }
    static const char *const ABSENT[] = {"x", "/x", "/producers/run", "//2", "//0/2", "//00", "//-", "//1/y",
        "/producers/build/run/0/x", "/producers/a/b~0c"};
    for (size_t i = 0; i < ARRAY_SIZE(ABSENT); i++)
        assert_null(json_document_where(&document, ABSENT[i]));
    json_document_done(&document);
}

static void errors_at_a_place(void **state _unused_)
{
    struct json_document document = {0};
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(json_document_parse(JSON(SAMPLE), "tenure.json", &document, NULL), RESULT_OK);
    assert_int_equal(json_error_at(&document, "/producers/build", true, &err, "bad %d", 1), RESULT_INVALID);
    assert_string_equal(err.message, "tenure.json:3:5: bad 1");
    json_error_at(&document, "/producers/build", false, &err, "bad");
    assert_string_equal(err.message, "tenure.json:3:14: bad");
    json_error_at(&document, "/producers/build/run/1", true, &err, "bad");
    assert_string_equal(err.message, "tenure.json:3:32: bad");
    json_error_at(&document, "/producers/build/missing/deeper", true, &err, "bad");
    assert_string_equal(err.message, "tenure.json:3:14: bad");
    json_document_done(&document);
}

static void pointers_are_escaped(void **state _unused_)
{
    _cleanup_(mem_free) char *plain = json_pointer_join("/a", "b");
    _cleanup_(mem_free) char *escaped = json_pointer_join("", "a/b~1");
    assert_string_equal(plain, "/a/b");
    assert_string_equal(escaped, "/a~1b~01");
}

static void the_tree_is_json_cs(void **state _unused_)
{
    struct json_document document = {0};
    struct json_object *value;
    assert_int_equal(json_document_parse(JSON("{\"a\":\"x\\u0000y\"}\n"), "t", &document, NULL), RESULT_OK);
    assert_true(json_object_object_get_ex(document.root, "a", &value));
    assert_int_equal(json_object_get_string_len(value), 3);
    json_document_done(&document);
    assert_null(document.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts),
        cmocka_unit_test(duplicate_keys),
        cmocka_unit_test(bad_encoding),
        cmocka_unit_test(slips),
        cmocka_unit_test(ends_too_early_or_too_late),
        cmocka_unit_test(numbers),
        cmocka_unit_test(strings),
        cmocka_unit_test(positions),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(messages_are_short_and_harmless),
        cmocka_unit_test(slips_come_with_a_remedy),
        cmocka_unit_test(many_keys_cost_linear_time),
        cmocka_unit_test(places_cost_memory_in_proportion),
        cmocka_unit_test(places_of_keys_and_values),
        cmocka_unit_test(errors_at_a_place),
        cmocka_unit_test(pointers_are_escaped),
        cmocka_unit_test(the_tree_is_json_cs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
