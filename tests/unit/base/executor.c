#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/checked_fork.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/executor.h"
#include "base/files.h"
#include "base/json_table.h"
#include "base/memory.h"

static void this_machine_is_read(void **state _unused_)
{
    struct machine machine = {0}, again = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = machine_read(&machine, &err);
    assert_int_equal(r, RESULT_OK); /* also where there is no machine-id */
    assert_int_equal(strspn(machine.machine_id, "0123456789abcdef"), 32);
    assert_int_equal(strlen(machine.machine_id), 32);
    assert_int_equal(strlen(machine.boot_id), 32);
    assert_true(machine.pid_namespace > 0);
    assert_true(strlen(machine.host) > 0);
    assert_int_equal(machine_read(&again, NULL), RESULT_OK);
    assert_memory_equal(&machine, &again, sizeof(machine));
}

static bool has_id(const char *path)
{
    _cleanup_(text_done) struct text text = {0};
    return file_read(AT_FDCWD, path, false, 256, &text, NULL) == RESULT_OK && text.length >= 32 &&
           strspn(text.bytes, "0123456789abcdef") == 32;
}

static void an_id_made_of_the_hosts_name_is_marked(void **state _unused_)
{
    struct machine machine = {0};
    assert_int_equal(machine_read(&machine, NULL), RESULT_OK);
    assert_int_equal(
        machine.named_by_host, !has_id("/etc/machine-id") && !has_id("/var/lib/dbus/machine-id"));
}

static void a_test_build_can_play_another_machine(void **state _unused_)
{
    struct machine machine = {0};
    setenv("TENURE_TEST_MACHINE_ID", "11111111111111111111111111111111", 1);
    setenv("TENURE_TEST_BOOT_ID", "22222222222222222222222222222222", 1);
    enum result r = machine_read(&machine, NULL);
    unsetenv("TENURE_TEST_MACHINE_ID");
    unsetenv("TENURE_TEST_BOOT_ID");
#ifdef TENURE_FAILPOINTS
    assert_int_equal(r, RESULT_OK);
    assert_string_equal(machine.machine_id, "11111111111111111111111111111111");
    assert_string_equal(machine.boot_id, "22222222222222222222222222222222");
#else
    assert_string_not_equal(machine.machine_id, "11111111111111111111111111111111");
    (void)r;
#endif
}

static const struct machine MACHINE = {
    .machine_id = "00112233445566778899aabbccddeeff",
    .boot_id = "ffeeddccbbaa99887766554433221100",
    .host = "h\xc3\xb6st",
    .pid_namespace = 4026531836,
};

static void self_is_this_process(void **state _unused_)
{
    struct executor self, again;
    int64_t ticks = -1;
    assert_int_equal(executor_self(&MACHINE, &self, NULL), RESULT_OK);
    assert_int_equal(executor_self(&MACHINE, &again, NULL), RESULT_OK);
    assert_int_equal(self.pid, getpid());
    assert_int_equal(self.uid, getuid());
    assert_string_equal(self.machine_id, MACHINE.machine_id);
    assert_int_equal(process_start_ticks(getpid(), &ticks, NULL), RESULT_OK);
    assert_int_equal(self.start_ticks, ticks);
    assert_int_equal(strlen(self.incarnation), 32);
    assert_string_not_equal(self.incarnation, again.incarnation);
    assert_true(strlen(self.user) > 0);
}

static void json_round_trip(void **state _unused_)
{
    struct executor self, back;
    memset(&back, 0x55, sizeof(back));
    assert_int_equal(executor_self(&MACHINE, &self, NULL), RESULT_OK);
    struct json_object *json = executor_to_json(&self);
    json_add_string(json, "added_by_a_newer_version", "x");
    assert_int_equal(executor_from_json(json, &back, NULL), RESULT_OK);
    assert_memory_equal(&self, &back, sizeof(self));
    json_object_put(json);
}

static void every_required_key_is_required(void **state _unused_)
{
    static const char *const KEYS[] = {
        "machine_id", "boot_id", "incarnation", "pid_namespace", "pid", "start_ticks", "uid"};
    for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++) {
        struct executor self, back = {.pid = 77};
        _cleanup_(error_done) struct error err = {0};
        assert_int_equal(executor_self(&MACHINE, &self, NULL), RESULT_OK);
        struct json_object *json = executor_to_json(&self);
        json_object_object_del(json, KEYS[i]);
        assert_int_equal(executor_from_json(json, &back, &err), RESULT_INVALID);
        assert_non_null(strstr(err.message, KEYS[i]));
        assert_int_equal(back.pid, 77);
        json_object_put(json);
    }
}

static void bad_values_are_refused(void **state _unused_)
{
    static const struct {
        const char *key, *json;
    } CASES[] = {
        {"pid", "0"},
        {"pid", "-1"},
        {"pid", "4294967296"},
        {"pid", "\"1\""},
        {"pid", "1.5"},
        {"pid", "null"},
        {"start_ticks", "-1"},
        {"start_ticks", "18446744073709551615"},
        {"uid", "-1"},
        {"incarnation", "\"000102030405060708090a0b0c0d0e0f0\""},
        {"machine_id", "7"},
        {"host", "[]"},
        {"host", "\"a\\u0000b\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
        struct executor self, back;
        assert_int_equal(executor_self(&MACHINE, &self, NULL), RESULT_OK);
        struct json_object *json = executor_to_json(&self);
        json_object_object_add(json, CASES[i].key, json_tokener_parse(CASES[i].json));
        assert_int_equal(executor_from_json(json, &back, NULL), RESULT_INVALID);
        json_object_put(json);
    }
    struct executor back;
    assert_int_equal(executor_from_json(NULL, &back, NULL), RESULT_INVALID);
}

static void a_missing_process_is_absent(void **state _unused_)
{
    int64_t ticks = 77;
    pid_t child = checked_fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(process_start_ticks(child, &ticks, &err), RESULT_ABSENT);
    assert_int_equal(process_start_ticks(INT64_MAX, &ticks, NULL), RESULT_ABSENT);
    assert_int_equal(ticks, 77);
}

static void verdicts_have_names(void **state _unused_)
{
    assert_string_equal(owner_verdict_name(OWNER_UNKNOWN), "unknown");
    assert_string_equal(owner_verdict_name(OWNER_RUNNING), "running");
    assert_string_equal(owner_verdict_name(OWNER_GONE), "gone");
}

static void an_owner_that_told_nothing_has_a_sentence_too(void **state _unused_)
{
    const struct executor known = {.user = "alice", .host = "build7", .pid = 4711}, unknown = {0};
    _cleanup_(mem_free) char *one = executor_text(&known), *other = executor_text(&unknown);

    assert_string_equal(one, "alice on build7, pid 4711");
    assert_string_equal(other, "somebody on an unknown host, pid unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_told_nothing_has_a_sentence_too),
        cmocka_unit_test(this_machine_is_read),
        cmocka_unit_test(an_id_made_of_the_hosts_name_is_marked),
        cmocka_unit_test(a_test_build_can_play_another_machine),
        cmocka_unit_test(self_is_this_process),
        cmocka_unit_test(json_round_trip),
        cmocka_unit_test(every_required_key_is_required),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(a_missing_process_is_absent),
        cmocka_unit_test(verdicts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
