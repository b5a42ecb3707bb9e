/* What of the shared store needs no server: words, errors, arrays, lists of hosts, records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "attempts/store_postgres-private.h"
#include "base/memory.h"

/* ---- SQLSTATEs ---- */

static void each_sqlstate_has_its_meaning(void **state _unused_)
{
    static const struct {
        const char *sqlstate;
        enum result result;
        enum remedy remedy;
    } EXPECTED[] = {
        {"40001", RESULT_BUSY, REMEDY_REPEAT},
        {"40P01", RESULT_BUSY, REMEDY_REPEAT},
        {"55P03", RESULT_BUSY, REMEDY_REPEAT},
        {"57014", RESULT_BUSY, REMEDY_NONE},
        {"25006", RESULT_UNREACHABLE, REMEDY_RECONNECT},
        {"57P01", RESULT_UNREACHABLE, REMEDY_LOST},
        {"57P02", RESULT_UNREACHABLE, REMEDY_LOST},
        {"57P03", RESULT_UNREACHABLE, REMEDY_RECONNECT},
        {"08P01", RESULT_UNREACHABLE, REMEDY_LOST},
        {"42501", RESULT_DENIED, REMEDY_NONE},
        {"28P01", RESULT_DENIED, REMEDY_NONE},
        {"3D000", RESULT_INVALID, REMEDY_NONE},
        {"42883", RESULT_INVALID, REMEDY_NONE},
        {"53300", RESULT_UNREACHABLE, REMEDY_REPEAT},
        {"53100", RESULT_UNREACHABLE, REMEDY_NONE},
        {"58030", RESULT_UNREACHABLE, REMEDY_NONE},
        {"TN002", RESULT_NEWER, REMEDY_NONE},
        {"XX001", RESULT_CORRUPT, REMEDY_NONE},
        {"23505", RESULT_CORRUPT, REMEDY_NONE},
        {"22021", RESULT_INVALID, REMEDY_NONE},
        {"0A000", RESULT_UNREACHABLE, REMEDY_NONE},
        {"", RESULT_UNREACHABLE, REMEDY_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(EXPECTED); i++) {
        const struct sqlstate_meaning *meaning = sqlstate_look_up(EXPECTED[i].sqlstate);
        assert_int_equal(meaning->result, EXPECTED[i].result);
        assert_int_equal(meaning->remedy, EXPECTED[i].remedy);
    }
}

static void the_sqlstate_of_a_failed_connection_is_found(void **state _unused_)
{
    static const char MESSAGE[] =
        "connection to server at \"::1\", port 5432 failed: FATAL:  57P03: the system is starting up\n"
        "connection to server at \"127.0.0.1\", port 5432 failed: FEHLER:  28000: no such role\n"
        "LOCATION:  x, y.c:1\n";
    char sqlstate[6] = "";
    const char *text = NULL;

    assert_string_equal(sqlstate_find(MESSAGE, sqlstate, &text), "28000");
    assert_int_equal(strncmp(text, "no such role\n", 13), 0);
    assert_null(sqlstate_find("port 1 failed: Connection refused", sqlstate, &text));
    assert_null(sqlstate_find("FATAL:  28", sqlstate, &text));
    assert_null(sqlstate_find("FATAL:  lower: x", sqlstate, NULL));
    assert_null(sqlstate_find("", sqlstate, NULL));
}

static void advice_quotes_its_names(void **state _unused_)
{
    _cleanup_(mem_free) char *filled =
        advice_fill("GRANT {role} ON {database} {other}", "o\"b; DROP", "{role}");

    assert_string_equal(filled, "GRANT \"o\"\"b; DROP\" ON \"{role}\" {other}");
}

static void each_word_is_a_result(void **state _unused_)
{
    assert_int_equal(result_of_word("ok"), RESULT_OK);
    assert_int_equal(result_of_word("held"), RESULT_HELD);
    assert_int_equal(result_of_word("invalid"), RESULT_INVALID);
    assert_int_equal(result_of_word("interrupted"), RESULT_CORRUPT);
    assert_int_equal(result_of_word(""), RESULT_CORRUPT);
}

/* ---- what goes in ---- */

static void an_array_keeps_every_character(void **state _unused_)
{
    _cleanup_(text_done) struct text empty = {0}, full = {0};

    assert_string_equal(array_text(&empty), "{}");
    array_add(&full, "a,b}");
    array_add(&full, NULL);
    array_add(&full, "null");
    array_add(&full, "");
    array_add(&full, "\"\\x00");
    assert_string_equal(array_text(&full), "{\"a,b}\",NULL,\"null\",\"\",\"\\\"\\\\x00\"}");
}

static void hosts_are_counted_and_taken(void **state _unused_)
{
    _cleanup_(mem_free) char *one = list_item("a,,c", 0), *two = list_item("a,,c", 1),
                             *three = list_item("a,,c", 2), *beyond = list_item("a,b", 5),
                             *shared = list_item("5432", 7), *none = list_item(NULL, 0);

    assert_int_equal(list_count("a,,c"), 3);
    assert_int_equal(list_count("a"), 1);
    assert_int_equal(list_count(NULL), 1);
    assert_string_equal(one, "a");
    assert_null(two);
    assert_string_equal(three, "c");
    assert_null(beyond);
    assert_string_equal(shared, "5432");
    assert_null(none);
}

/* ---- records ---- */

#define ID "0192e4a0-0000-7000-8000-000000000001"
#define RECORD(head, tail)                                                                                   \
    "{\"id\": \"" ID "\", \"record_version\": " head ", \"fence\": 7, \"rev\": 3, \"kind\": \"done\","       \
    " \"state\": \"running\", \"subjects\": [\"a\", \"b\"]" tail "}"

static void a_record_is_read(void **state _unused_)
{
    static const char JSON[] =
        RECORD("2", ", \"executor\": {\"host\": \"h\", \"pid\": 5}, \"ttl_ms\": 60000, \"acquired_ms\": 1000,"
                    " \"renewed_ms\": 2000, \"expires_ms\": 62000, \"settled_ms\": null, \"cancel_by\": null,"
                    " \"progress_phase\": \"producers\", \"of a later version\": {}");
    _cleanup_(attempt_done) struct attempt attempt = {0};

    assert_int_equal(record_read(JSON, &attempt, NULL), RESULT_OK);
    assert_string_equal(attempt.id, ID);
    assert_int_equal(attempt.fence, 7);
    assert_int_equal(attempt.kind, KIND_DONE);
    assert_int_equal(attempt.state, ATTEMPT_RUNNING);
    assert_int_equal(attempt.subject_count, 2);
    assert_string_equal(attempt.subjects[1], "b");
    assert_string_equal(attempt.executor.host, "h");
    assert_int_equal(attempt.executor.pid, 5);
    assert_int_equal(lease_expiry(&attempt.lease), 62000);
    assert_int_equal(attempt.renewed_wall_ms, 2000);
    assert_int_equal(attempt.settled_wall_ms, LEASE_TIME_NONE);
    assert_null(attempt.cancel_by);
    assert_string_equal(attempt.progress.phase, "producers");
}

/* Whoever may call the functions may say what he likes. */
static void a_record_that_says_too_much_is_cut(void **state _unused_)
{
    static const char LONG[] = "01234567890123456789012345678901234567890123456789012345678901234567890123456"
                               "78901234567890123456789";
    _cleanup_(attempt_done) struct attempt attempt = {0}, stranger = {0};
    _cleanup_(mem_free) char *json = mem_format(
        "{\"id\": \"" ID "\", \"record_version\": 2, \"fence\": 7, \"rev\": 1, \"kind\": \"publication\","
        " \"state\": \"passed\", \"subjects\": [], \"settle_nonce\": \"%s\", \"progress_phase\": \"%s\","
        " \"executor\": {\"incarnation\": \"%s\", \"host\": \"h\"}}",
        LONG, LONG, LONG);

    assert_int_equal(record_read(json, &attempt, NULL), RESULT_OK);
    assert_int_equal(strlen(attempt.settle_nonce), SETTLE_NONCE_SIZE - 1);
    assert_int_equal(strlen(attempt.progress.phase), sizeof attempt.progress.phase - 1);
    assert_string_equal(attempt.executor.host, "h");
    assert_int_equal(
        record_read(RECORD("2", ", \"executor\": {\"host\": \"h\", \"pid\": \"x\"}"), &stranger, NULL),
        RESULT_OK);
    assert_string_equal(stranger.executor.host, "");
}

static void a_record_without_times_has_lapsed(void **state _unused_)
{
    const struct store_time now = {.ms = 5, .wall_ms = 5};
    _cleanup_(attempt_done) struct attempt attempt = {0};

    assert_int_equal(record_read(RECORD("2", ""), &attempt, NULL), RESULT_OK);
    assert_true(lease_lapsed(&attempt.lease, &now));
}

static void a_newer_record_is_newer(void **state _unused_)
{
    struct attempt attempt = {0};

    assert_int_equal(record_read(RECORD("3", ", \"kind\": 5"), &attempt, NULL), RESULT_NEWER);
    assert_null(attempt.subjects);
}

static void a_broken_record_names_its_field(void **state _unused_)
{
    static const struct {
        const char *json, *named;
    } BROKEN[] = {
        {RECORD("2", ", \"fence\": \"x\""), "\"fence\""},
        {RECORD("2", ", \"rev\": -1"), "\"rev\""},
        {RECORD("2", ", \"state\": \"asleep\""), "\"state\""},
        {RECORD("2", ", \"kind\": \"sabotage\""), "\"kind\""},
        {RECORD("2", ", \"subjects\": [1]"), "\"subjects\""},
        {RECORD("2", ", \"subjects\": null"), "\"subjects\""},
        {RECORD("2", ", \"executor\": []"), "\"executor\""},
        {RECORD("2", ", \"expires_ms\": \"infinity\""), "\"expires_ms\""},
        {RECORD("0", ""), "\"record_version\""},
        {"{}", "\"id\""},
        {"[]", "object"},
        {"{", "object"},
        {"", "object"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(BROKEN); i++) {
        _cleanup_(error_done) struct error err = {0};
        struct attempt attempt = {0};
        assert_int_equal(record_read(BROKEN[i].json, &attempt, &err), RESULT_CORRUPT);
        assert_non_null(strstr(err.message, BROKEN[i].named));
        assert_null(attempt.subjects);
    }
}

/* ---- opening ---- */

static void no_password_is_repeated(void **state _unused_)
{
    static const char *const URLS[] = {
        "postgresql://u:s3cret@h/d?nonsense=1",
        "postgresql://u:s3c%ret@h/d",
        "postgres://u:s3cret@/h?nonsense=1",
        "postgresql:///d?password=s3cret&nonsense=1",
    };
    const struct machine machine = {.machine_id = "m", .boot_id = "b"};

    for (size_t i = 0; i < ARRAY_SIZE(URLS); i++) {
        const struct store_options options = {.url = URLS[i], .clock = clock_system(), .machine = &machine};
        _cleanup_(error_done) struct error err = {0};
        struct store *store = NULL;
        assert_int_equal(store_open(&options, STORE_READ, &store, &err), RESULT_INVALID);
        assert_null(strstr(err.message, "s3cret"));
        assert_null(strstr(err.remedy, "s3cret"));
    }
}

static void a_server_that_is_not_there_is_unreachable_at_once(void **state _unused_)
{
    const struct machine machine = {.machine_id = "m", .boot_id = "b"};
    const struct store_options options = {
        .url = "postgresql:///d?host=/nowhere/at/all", .clock = clock_system(), .machine = &machine};
    _cleanup_(error_done) struct error err = {0};
    struct store *store = NULL;
    int64_t from_ms = real_ms();

    assert_int_equal(store_open(&options, STORE_WRITE, &store, &err), RESULT_UNREACHABLE);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    assert_non_null(err.remedy);
    assert_true(real_ms() - from_ms < 10000); /* of the 30 s that a call may wait */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sqlstate_has_its_meaning),
        cmocka_unit_test(the_sqlstate_of_a_failed_connection_is_found),
        cmocka_unit_test(advice_quotes_its_names),
        cmocka_unit_test(each_word_is_a_result),
        cmocka_unit_test(an_array_keeps_every_character),
        cmocka_unit_test(hosts_are_counted_and_taken),
        cmocka_unit_test(a_record_is_read),
        cmocka_unit_test(a_record_that_says_too_much_is_cut),
        cmocka_unit_test(a_record_without_times_has_lapsed),
        cmocka_unit_test(a_newer_record_is_newer),
        cmocka_unit_test(a_broken_record_names_its_field),
        cmocka_unit_test(no_password_is_repeated),
        cmocka_unit_test(a_server_that_is_not_there_is_unreachable_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
