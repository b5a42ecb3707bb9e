/* The format, byte by byte: golden vectors, and that no change and no cut of a journal goes unseen. */
#include "fixture.h"

#include "journal/event.h"
#include "journal/format.h"

/* Computed with hashlib.blake2b(previous + json, digest_size=16), from 16 zero bytes on. */
static const char *const GOLDEN[] = {
    "28 c1cc0d29322b7ff839e806780de36880 {\"kind\":\"note\",\"text\":\"one\"}\n",
    "28 b21882ba73a1253556beae5b24581489 {\"kind\":\"note\",\"text\":\"two\"}\n",
    "29 133b105617cead3af55c5c00637729c6 {\"kind\":\"note\",\"text\":\"dr\xc3\xa9\"}\n",
};

static void golden_text(struct text *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++)
        text_add(ret, GOLDEN[i]);
}

/* Goes through the records; *ret_records counts those that validate. */
static enum format_step walk(const char *bytes, size_t length, size_t *ret_records)
{
    struct chain chain = {{0}};
    enum format_step step = FORMAT_PARTIAL;
    size_t at = 0;
    for (*ret_records = 0; at < length; (*ret_records)++) {
        const char *json = NULL;
        size_t json_length = 0, used = 0;
        step = format_parse(&chain, bytes + at, length - at, &json, &json_length, &used);
        if (step != FORMAT_RECORD)
            return step;
        at += used;
    }
    return FORMAT_RECORD;
}

static void golden_written(void **state _unused_)
{
    struct chain chain = {{0}};
    _cleanup_(text_done) struct text expected = {0}, text = {0};
    golden_text(&expected);
    for (size_t i = 0; i < ARRAY_SIZE(GOLDEN); i++) {
        const char *json = strchr(GOLDEN[i], '{');
        format_line(&chain, json, strlen(json) - 1, &text);
    }
    assert_int_equal(text.length, expected.length);
    assert_memory_equal(text.bytes, expected.bytes, expected.length);
}

static void golden_read(void **state _unused_)
{
    size_t records = 0;
    _cleanup_(text_done) struct text text = {0};
    golden_text(&text);
    assert_int_equal(walk(text.bytes, text.length, &records), FORMAT_RECORD);
    assert_int_equal(records, ARRAY_SIZE(GOLDEN));
}

static void every_change_of_one_byte(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    golden_text(&text);
    for (size_t at = 0; at < text.length; at++)
        for (int delta = 1; delta < 256; delta++) {
            size_t records = 0;
            char before = text.bytes[at];
            text.bytes[at] = (char)((unsigned char)before ^ delta);
            if (walk(text.bytes, text.length, &records) != FORMAT_DAMAGED)
                fail_msg("byte %zu, changed by %d, goes unseen", at, delta);
            text.bytes[at] = before;
        }
}

static void every_cut(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    size_t boundary = 0, whole = 0;
    golden_text(&text);
    for (size_t length = 1; length < text.length; length++) {
        size_t records = 0;
        if (length == boundary + strlen(GOLDEN[whole])) {
            boundary = length;
            whole++;
            assert_int_equal(walk(text.bytes, length, &records), FORMAT_RECORD);
        } else
            assert_int_equal(walk(text.bytes, length, &records), FORMAT_PARTIAL);
        assert_int_equal(records, whole);
    }
}

static void every_byte_taken_out(void **state _unused_)
{
    _cleanup_(text_done) struct text text = {0};
    golden_text(&text);
    for (size_t at = 0; at < text.length; at++) {
        size_t records = 0;
        _cleanup_(text_done) struct text shorter = {0};
        text_append(&shorter, text.bytes, at);
        text_append(&shorter, text.bytes + at + 1, text.length - at - 1);
        enum format_step step = walk(shorter.bytes, shorter.length, &records);
        /* Without its last line feed the last record is a torn one. */
        assert_int_equal(step, at + 1 == text.length ? FORMAT_PARTIAL : FORMAT_DAMAGED);
    }
}

static void reordered_repeated_or_foreign(void **state _unused_)
{
    static const size_t ORDERS[][3] = {{1, 0, 2}, {0, 2, 1}, {0, 0, 1}, {2, 1, 0}, {1, 1, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(ORDERS); i++) {
        size_t records = 0;
        _cleanup_(text_done) struct text text = {0};
        for (size_t j = 0; j < 3; j++)
            text_add(&text, GOLDEN[ORDERS[i][j]]);
        assert_int_equal(walk(text.bytes, text.length, &records), FORMAT_DAMAGED);
        assert_true(records < 2);
    }
}

static void lengths_out_of_bounds(void **state _unused_)
{
    static const char *const LINES[] = {"0 ", "028 ", "-1 ", "+28 ", " 28 ", "262145 ",
        "99999999999999999999 ", "28\t", "0x1c ", "28  ", "28 C1CC", "28 g", "\n",
        "28 c1cc0d29322b7ff839e806780de36880\n"};
    for (size_t i = 0; i < ARRAY_SIZE(LINES); i++) {
        size_t records = 0;
        if (walk(LINES[i], strlen(LINES[i]), &records) != FORMAT_DAMAGED)
            fail_msg("'%s' is not seen as damage", LINES[i]);
    }
}

static void longest_record(void **state _unused_)
{
    struct chain chain = {{0}};
    size_t records = 0;
    _cleanup_(text_done) struct text text = {0};
    _cleanup_(mem_free) char *json = mem_alloc(FORMAT_RECORD_LIMIT);
    memset(json, 'x', FORMAT_RECORD_LIMIT);
    format_line(&chain, json, FORMAT_RECORD_LIMIT, &text);
    assert_int_equal(walk(text.bytes, text.length, &records), FORMAT_RECORD);
    assert_int_equal(records, 1);
}

static struct journal_header header_sample(const struct fixture *fixture)
{
    return (struct journal_header){
        .format = FORMAT_VERSION,
        .salt = "000102030405060708090a0b0c0d0e0f",
        .device = UINT64_MAX,
        .inode = (uint64_t)INT64_MAX + 7, /* above what a signed number holds: some file systems have such */
        .handle = "T-7K3M-QX9C",
        .attempt = "01890000-0000-7000-8000-000000000000",
        .tenure = "0.1.0",
        .executor = fixture->executor,
        .boot_ms = 12,
        .wall_ms = 1796067000000,
    };
}

static void header_round_trip(void **state)
{
    struct error err = {0};
    struct journal_header header = header_sample(*state), read = {.format = 0};
    _cleanup_(text_done) struct text json = {0};
    format_header_encode(&header, &json);
    if (format_header_decode(json.bytes, json.length, &read, &err) != RESULT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(read.device, header.device);
    assert_int_equal(read.inode, header.inode);
    assert_string_equal(read.salt, header.salt);
    assert_string_equal(read.handle, header.handle);
    assert_string_equal(read.attempt, header.attempt);
    assert_string_equal(read.tenure, header.tenure);
    assert_string_equal(read.executor.incarnation, header.executor.incarnation);
    assert_int_equal(read.executor.pid, header.executor.pid);
    assert_int_equal(read.wall_ms, header.wall_ms);
}

static enum result decode_with(const struct fixture *fixture, const char *key, struct json_object *value)
{
    struct journal_header header = header_sample(fixture), read = {.format = 0};
    _cleanup_(text_done) struct text json = {0};
    format_header_encode(&header, &json);
    struct json_object *root = json_tokener_parse(json.bytes);
    json_object_object_del(root, key);
    if (value != NULL)
        json_object_object_add(root, key, value);
    const char *changed = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN);
    enum result r = format_header_decode(changed, strlen(changed), &read, NULL);
    json_object_put(root);
    return r;
}

static void header_damaged(void **state)
{
    static const char *const KEYS[] = {
        "kind", "format", "salt", "device", "inode", "handle", "tenure", "executor", "boot_ms", "wall_ms"};
    for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++) {
        assert_int_equal(decode_with(*state, KEYS[i], NULL), RESULT_CORRUPT);
        assert_int_equal(decode_with(*state, KEYS[i], json_object_new_array()), RESULT_CORRUPT);
    }
    assert_int_equal(decode_with(*state, "attempt", NULL), RESULT_OK);
    assert_int_equal(decode_with(*state, "kind", json_object_new_string("note")), RESULT_CORRUPT);
    assert_int_equal(decode_with(*state, "format", json_object_new_int(0)), RESULT_CORRUPT);
    assert_int_equal(decode_with(*state, "handle", json_object_new_string("T-7K3M-QX9D")), RESULT_CORRUPT);
    assert_int_equal(decode_with(*state, "handle", json_object_new_string("t-7k3m-qx9c")), RESULT_CORRUPT);
    assert_int_equal(decode_with(*state, "salt", json_object_new_string("00")), RESULT_CORRUPT);
    struct journal_header read;
    assert_int_equal(format_header_decode("[]", 2, &read, NULL), RESULT_CORRUPT);
    assert_int_equal(format_header_decode("{", 1, &read, NULL), RESULT_CORRUPT);
    assert_int_equal(format_header_decode("", 0, &read, NULL), RESULT_CORRUPT);
}

static void header_of_a_newer_version(void **state)
{
    assert_int_equal(decode_with(*state, "format", json_object_new_int(2)), RESULT_NEWER);
    /* A key of a newer minor version is skipped. */
    assert_int_equal(decode_with(*state, "colour", json_object_new_string("blue")), RESULT_OK);
    struct error err = {0};
    struct journal_header read;
    const char newer[] = "{\"kind\":\"header\",\"format\":2,\"everything\":\"else\"}";
    assert_int_equal(format_header_decode(newer, strlen(newer), &read, &err), RESULT_NEWER);
    assert_non_null(err.remedy);
    error_done(&err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_written),
        cmocka_unit_test(golden_read),
        cmocka_unit_test(every_change_of_one_byte),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(every_byte_taken_out),
        cmocka_unit_test(reordered_repeated_or_foreign),
        cmocka_unit_test(lengths_out_of_bounds),
        cmocka_unit_test(longest_record),
        FIXTURE_TEST(header_round_trip),
        FIXTURE_TEST(header_damaged),
        FIXTURE_TEST(header_of_a_newer_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
