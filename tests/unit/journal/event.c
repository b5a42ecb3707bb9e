/* Events: every kind and field there and back, whatever bytes a text holds and however long it is. */
#include "fixture.h"

#include "journal/event.h"

static void encode_decode(const struct journal_event *event, struct journal_event *ret)
{
    struct error err = {0};
    _cleanup_(text_done) struct text json = {0};
    journal_event_encode(event, &json);
    assert_true(json.length <= FORMAT_RECORD_LIMIT);
    assert_int_equal(text_utf8_prefix(json.bytes, json.length), json.length);
    assert_null(memchr(json.bytes, '\n', json.length));
    if (journal_event_decode(json.bytes, json.length, ret, &err) != RESULT_OK)
        fail_msg("%s: %s", journal_kind_name(event->kind), err.message);
}

static const struct journal_event FULL = {
    .boot_ms = 1,
    .wall_ms = INT64_MAX,
    .attempt = "01890000-0000-7000-8000-000000000000",
    .attempt_kind = "done",
    .repository = "/srv/\xc3\xa9",
    .commit = "c",
    .tree = "t",
    .fence = 1796067000000001,
    .ttl_ms = 60000,
    .producer = "build",
    .log = "build.log",
    .cgroup = "/user.slice/x",
    .pid = 4711,
    .start_ticks = 123456,
    .expected_ms = 9,
    .phase = "producers",
    .done = 3,
    .total = 10,
    .offset_bytes = 1 << 20,
    .dropped_bytes = 5,
    .verdict = "failed",
    .exit_code = -1,
    .signal = 9,
    .duration_ms = 1234,
    .frozen_ms = 77,
    .digest = "d",
    .key = "k",
    .reused = true,
    .result = "busy",
    .state = "failed",
    .reason = "producer-failed",
    .text = "a \"quoted\" line\nand\ttabs\\",
    .by_attempt = "other",
    .proof = "p",
};

#define SAME_TEXT(field)   assert_string_equal(read.field, FULL.field)
#define SAME_NUMBER(field) assert_int_equal(read.field, FULL.field)

static void every_field_of_every_kind(void **state _unused_)
{
    for (int kind = JOURNAL_RESERVED; kind < JOURNAL_UNKNOWN; kind++) {
        struct journal_event event = FULL, read;
        if (kind == JOURNAL_PLAN)
            continue;
        event.kind = (enum journal_kind)kind;
        encode_decode(&event, &read);
        assert_int_equal(read.kind, kind);
        SAME_NUMBER(boot_ms), SAME_NUMBER(wall_ms), SAME_NUMBER(fence), SAME_NUMBER(ttl_ms), SAME_NUMBER(pid);
        SAME_NUMBER(start_ticks), SAME_NUMBER(expected_ms), SAME_NUMBER(done), SAME_NUMBER(total);
        SAME_NUMBER(offset_bytes), SAME_NUMBER(dropped_bytes), SAME_NUMBER(exit_code), SAME_NUMBER(signal);
        SAME_NUMBER(duration_ms), SAME_NUMBER(frozen_ms), SAME_NUMBER(reused);
        SAME_TEXT(attempt), SAME_TEXT(attempt_kind), SAME_TEXT(repository), SAME_TEXT(commit),
            SAME_TEXT(tree);
        SAME_TEXT(producer), SAME_TEXT(log), SAME_TEXT(cgroup), SAME_TEXT(phase), SAME_TEXT(verdict);
        SAME_TEXT(digest), SAME_TEXT(key), SAME_TEXT(result), SAME_TEXT(state), SAME_TEXT(reason);
        SAME_TEXT(text), SAME_TEXT(by_attempt), SAME_TEXT(proof);
        journal_event_done(&read);
    }
}

static void every_kind_with_nothing_set(void **state _unused_)
{
    for (int kind = JOURNAL_RESERVED; kind < JOURNAL_UNKNOWN; kind++) {
        struct journal_event event = {.kind = (enum journal_kind)kind}, read;
        encode_decode(&event, &read);
        assert_int_equal(read.kind, kind);
        assert_int_equal(read.exit_code, 0);
        assert_null(read.repository);
        journal_event_done(&read);
    }
}

static void plan(void **state _unused_)
{
    const struct journal_plan_step steps[] = {
        {.producer = "build", .reason = "sources changed", .expected_ms = 1500},
        {.producer = "lint", .reason = "same inputs", .reuse = true},
    };
    struct journal_event event = {.kind = JOURNAL_PLAN, .plan = steps, .plan_count = 2, .total = 2}, read;
    encode_decode(&event, &read);
    assert_int_equal(read.total, 2);
    assert_int_equal(read.plan_count, 2);
    assert_string_equal(read.plan[0].producer, "build");
    assert_string_equal(read.plan[0].reason, "sources changed");
    assert_int_equal(read.plan[0].expected_ms, 1500);
    assert_false(read.plan[0].reuse);
    assert_true(read.plan[1].reuse);
    assert_null(read.text);
    journal_event_done(&read);
}

static void plan_of_very_many_steps(void **state _unused_)
{
    enum { COUNT = 20000 };
    struct journal_plan_step *steps = mem_alloc(COUNT * sizeof(*steps));
    for (size_t i = 0; i < COUNT; i++)
        steps[i] =
            (struct journal_plan_step){.producer = "a-producer-of-some-name", .reason = "\x01\x02\xff"};
    struct journal_event event = {.kind = JOURNAL_PLAN, .plan = steps, .plan_count = COUNT, .total = COUNT},
                         read;
    encode_decode(&event, &read);
    assert_int_equal(read.total, COUNT);
    assert_in_range(read.plan_count, 1000, COUNT - 1);
    char expected[100];
    snprintf(
        expected, sizeof(expected), "%zu of %d steps are not listed here", COUNT - read.plan_count, COUNT);
    assert_string_equal(read.text, expected);
    journal_event_done(&read);
    free(steps);
}

static void plan_of_long_names(void **state _unused_)
{
    char *name = mem_alloc(100001);
    memset(name, '\x01', 100000);
    const struct journal_plan_step steps[] = {
        {name, name, true, 1}, {name, name, true, 1}, {name, "", false, 1}};
    struct journal_event event = {.kind = JOURNAL_PLAN, .plan = steps, .plan_count = 3, .total = 3}, read;
    encode_decode(&event, &read);
    assert_int_equal(read.plan_count, 3);
    assert_non_null(strstr(read.plan[2].producer, "bytes left out]"));
    journal_event_done(&read);
    free(name);
}

static void long_texts_are_cut_with_a_statement(void **state _unused_)
{
    /* What escapes worst, what is not UTF-8, and sequences that a cut could split. */
    static const char *const PIECES[] = {
        "x", "\x01", "\xff", "\xc3\xa9", "\xf0\x9f\x94\x92", "\"", "a\xe2\x82\xac"};
    for (size_t i = 0; i < ARRAY_SIZE(PIECES); i++) {
        _cleanup_(text_done) struct text text = {0};
        while (text.length < 1000000)
            text_add(&text, PIECES[i]);
        struct journal_event event = {.kind = JOURNAL_NOTE, .text = text.bytes}, read;
        encode_decode(&event, &read);
        assert_non_null(strstr(read.text, " bytes left out]"));
        assert_true(strlen(read.text) > 1000);
        assert_null(strstr(PIECES[i], "\xc3") != NULL ? strstr(read.text, "\\x") : NULL);
        journal_event_done(&read);
    }
}

static void all_fields_long_at_once(void **state _unused_)
{
    struct journal_event event = FULL, read;
    char *longest = mem_alloc(300001);
    memset(longest, '\x02', 300000);
    event.kind = JOURNAL_FINISHED;
    event.attempt = event.attempt_kind = event.repository = event.commit = event.tree = longest;
    event.producer = event.log = event.cgroup = event.phase = event.verdict = event.digest = longest;
    event.key = event.result = event.state = event.reason = event.text = event.by_attempt = longest;
    event.proof = longest;
    encode_decode(&event, &read);
    assert_int_equal(read.exit_code, -1);
    assert_non_null(strstr(read.producer, "bytes left out]"));
    journal_event_done(&read);
    free(longest);
}

static void bytes_that_are_not_utf8(void **state _unused_)
{
    char every[256];
    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    every[255] = '\0';
    struct journal_event event = {.kind = JOURNAL_STARTED, .producer = every, .text = "\xed\xa0\x80"}, read;
    encode_decode(&event, &read);
    assert_non_null(strstr(read.producer, "\\xff"));
    assert_memory_equal(read.producer, every, 127); /* what is ASCII stays itself */
    journal_event_done(&read);
}

static enum result decode(const char *json)
{
    struct journal_event read = {.kind = JOURNAL_UNKNOWN};
    enum result r = journal_event_decode(json, strlen(json), &read, NULL);
    if (r == RESULT_OK)
        journal_event_done(&read);
    return r;
}

static void unknown_kind_is_kept(void **state _unused_)
{
    struct journal_event read;
    const char json[] = "{\"kind\":\"comet\",\"boot_ms\":\"another type\",\"tail\":[1,2]}";
    assert_int_equal(journal_event_decode(json, strlen(json), &read, NULL), RESULT_OK);
    assert_int_equal(read.kind, JOURNAL_UNKNOWN);
    assert_true(json_object_object_get_ex(read.backing, "tail", NULL));
    journal_event_done(&read);
    assert_int_equal(decode("{\"kind\":\"unknown\"}"), RESULT_OK);
}

static void damaged_records(void **state _unused_)
{
    static const char *const WRONG[] = {"", "{", "[]", "1", "\"note\"", "null", "{}", "{\"kind\":1}",
        "{\"kind\":\"note\",\"boot_ms\":1,\"wall_ms\":1}", /* no text */
        "{\"kind\":\"note\",\"text\":\"t\",\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":1,\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":\"a\\u0000b\",\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":\"t\",\"boot_ms\":\"1\",\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":\"t\",\"boot_ms\":1.5,\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":\"t\",\"text\":\"u\",\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"note\",\"text\":\"t\",\"boot_ms\":1,\"wall_ms\":1} x",
        "{\"kind\":\"plan\",\"total\":1,\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"plan\",\"plan\":{},\"total\":1,\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"plan\",\"plan\":[1],\"total\":1,\"boot_ms\":1,\"wall_ms\":1}",
        "{\"kind\":\"plan\",\"plan\":[{\"producer\":\"p\"}],\"total\":1,\"boot_ms\":1,\"wall_ms\":1}"};
    assert_int_equal(decode("{\"kind\":\"note\",\"text\":\"t\",\"boot_ms\":1,\"wall_ms\":1}"), RESULT_OK);
    for (size_t i = 0; i < ARRAY_SIZE(WRONG); i++)
        if (decode(WRONG[i]) != RESULT_CORRUPT)
            fail_msg("'%s' is not seen as damage", WRONG[i]);
}

static void names_of_kinds(void **state _unused_)
{
    for (int kind = 0; kind < JOURNAL_KIND_MAX; kind++)
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(
                journal_kind_name((enum journal_kind)kind), journal_kind_name((enum journal_kind)other));
    assert_string_equal(journal_kind_name(JOURNAL_RENEWAL_TROUBLE), "renewal-trouble");
    assert_string_equal(journal_kind_name(JOURNAL_KIND_MAX), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_kind),
        cmocka_unit_test(every_kind_with_nothing_set),
        cmocka_unit_test(plan),
        cmocka_unit_test(plan_of_very_many_steps),
        cmocka_unit_test(plan_of_long_names),
        cmocka_unit_test(long_texts_are_cut_with_a_statement),
        cmocka_unit_test(all_fields_long_at_once),
        cmocka_unit_test(bytes_that_are_not_utf8),
        cmocka_unit_test(unknown_kind_is_kept),
        cmocka_unit_test(damaged_records),
        cmocka_unit_test(names_of_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
