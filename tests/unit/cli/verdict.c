/* How a `done` ended: the document and the last lines, of results that were made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/pending.h"
#include "cli/report.h"
#include "cli/verdict.h"

#define WALL_MS INT64_C(1796067097000) /* 2026-11-30T19:31:37Z */

static int run_nothing(_unused_ struct cli *cli)
{
    return 0;
}

static const struct command DONE = {.name = "done", .synopsis = "done", .run = run_nothing};

static struct completion_producer PRODUCERS[] = {
    {.name = "build",
        .source = SOURCE_RAN,
        .verdict = "passed",
        .passed = true,
        .exit_code = 0,
        .signal = -1,
        .duration_ms = 3200,
        .log = "/j/out/build.log",
        .key = "aa",
        .command = "make -j2"},
    {.name = "crash",
        .source = SOURCE_RAN,
        .verdict = "signalled",
        .exit_code = -1,
        .signal = 11,
        .duration_ms = 80,
        .log = "/j/out/crash.log",
        .key = "bb",
        .text = "ended by signal 11",
        .command = "./crash"},
    {.name = "package", .source = SOURCE_NONE, .exit_code = -1, .signal = -1},
};

static struct completion_result failed_result(void)
{
    return (struct completion_result){
        .outcome = OUTCOME_NEGATIVE,
        .sentence = "crash: ended by signal 11",
        .repository = "acme/widget",
        .commit = "3f2a91c0aa11bb22",
        .tree = "88ab12d0",
        .attempt_id = "0192-1",
        .handle = "T-7K3M-QX9D",
        .fence = 812,
        .state = ATTEMPT_FAILED,
        .reason = {.code = "producer-failed", .text = "crash: ended by signal 11"},
        .producers = PRODUCERS,
        .producer_count = ARRAY_SIZE(PRODUCERS),
        .duration_ms = 12345,
    };
}

static char *document(const struct completion_result *result, const struct error *err)
{
    struct cli cli = {.command = &DONE};
    int status = err ? report_status(&cli, outcome_of_result(err->code)) : verdict_status(&cli, result);
    struct json_object *json = verdict_json(&cli, result, status, err);
    char *text = mem_string(json_object_to_json_string_ext(
        json, JSON_C_TO_STRING_PRETTY_TAB | JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(json);
    return text;
}

static void a_failure_is_told_in_full(_unused_ void **state)
{
    struct completion_result result = failed_result();
    _cleanup_(mem_free) char *text = document(&result, NULL);
    assert_string_equal(text, "{\n"
                              "\t\"command\":\"done\",\n"
                              "\t\"outcome\":\"negative\",\n"
                              "\t\"exit\":1,\n"
                              "\t\"attempt\":{\n"
                              "\t\t\"id\":\"0192-1\",\n"
                              "\t\t\"fence\":812,\n"
                              "\t\t\"handle\":\"T-7K3M-QX9D\",\n"
                              "\t\t\"state\":\"failed\",\n"
                              "\t\t\"reason\":\"crash: ended by signal 11\"\n"
                              "\t},\n"
                              "\t\"candidate\":{\n"
                              "\t\t\"commit\":\"3f2a91c0aa11bb22\",\n"
                              "\t\t\"tree\":\"88ab12d0\"\n"
                              "\t},\n"
                              "\t\"producers\":[\n"
                              "\t\t{\n"
                              "\t\t\t\"name\":\"build\",\n"
                              "\t\t\t\"verdict\":\"passed\",\n"
                              "\t\t\t\"source\":\"ran\",\n"
                              "\t\t\t\"exit\":0,\n"
                              "\t\t\t\"signal\":null,\n"
                              "\t\t\t\"duration_ms\":3200,\n"
                              "\t\t\t\"log\":\"/j/out/build.log\",\n"
                              "\t\t\t\"key\":\"aa\",\n"
                              "\t\t\t\"text\":null\n"
                              "\t\t},\n"
                              "\t\t{\n"
                              "\t\t\t\"name\":\"crash\",\n"
                              "\t\t\t\"verdict\":\"signalled\",\n"
                              "\t\t\t\"source\":\"ran\",\n"
                              "\t\t\t\"exit\":null,\n"
                              "\t\t\t\"signal\":11,\n"
                              "\t\t\t\"duration_ms\":80,\n"
                              "\t\t\t\"log\":\"/j/out/crash.log\",\n"
                              "\t\t\t\"key\":\"bb\",\n"
                              "\t\t\t\"text\":\"ended by signal 11\"\n"
                              "\t\t},\n"
                              "\t\t{\n"
                              "\t\t\t\"name\":\"package\",\n"
                              "\t\t\t\"verdict\":null,\n"
                              "\t\t\t\"source\":null,\n"
                              "\t\t\t\"exit\":null,\n"
                              "\t\t\t\"signal\":null,\n"
                              "\t\t\t\"duration_ms\":null,\n"
                              "\t\t\t\"log\":null,\n"
                              "\t\t\t\"key\":null,\n"
                              "\t\t\t\"text\":null\n"
                              "\t\t}\n"
                              "\t],\n"
                              "\t\"standards\":[\n\t],\n"
                              "\t\"proof\":null,\n"
                              "\t\"pending\":null\n"
                              "}");
}

static void a_held_run_names_one_cause(_unused_ void **state)
{
    struct completion_result result = {.outcome = OUTCOME_HELD,
        .pending = {.subject = "checkout:1",
            .verdict = OWNER_RUNNING,
            .lapses_in_ms = 57000,
            .lapses_wall_ms = WALL_MS + 57000,
            .holder = {.id = "0192-2",
                .journal_handle = "T-7K3M-QX9D",
                .acquired_wall_ms = WALL_MS - 60000,
                .renewed_wall_ms = WALL_MS,
                .executor = {.host = "build7", .user = "alice", .pid = 4711}}}};
    _cleanup_(mem_free) char *text = document(&result, NULL);
    assert_non_null(strstr(text, "\t\"exit\":3,\n"));
    assert_non_null(strstr(text, "\t\"attempt\":null,\n"));
    assert_non_null(strstr(text, "\t\"pending\":{\n"
                                 "\t\t\"cause\":\"another attempt holds checkout:1\",\n"
                                 "\t\t\"attempt\":\"0192-2\",\n"
                                 "\t\t\"executor\":{\n"
                                 "\t\t\t\"host\":\"build7\",\n"
                                 "\t\t\t\"pid\":4711,\n"
                                 "\t\t\t\"user\":\"alice\",\n"
                                 "\t\t\t\"started_at\":\"2026-11-30T19:30:37Z\"\n"
                                 "\t\t},\n"
                                 "\t\t\"renewed_at\":\"2026-11-30T19:31:37Z\",\n"
                                 "\t\t\"lapses_at\":\"2026-11-30T19:32:34Z\",\n"
                                 "\t\t\"handle\":\"T-7K3M-QX9D\",\n"
                                 "\t\t\"reconnect\":\"tenure attach T-7K3M-QX9D\"\n"
                                 "\t}\n"));

    struct look look = {.utf8 = true};
    struct text people = {0};
    verdict_add(&look, &result, false, &people);
    assert_int_equal(people.length, 0);
    pending_add(&look, &result.pending, &people);
    assert_string_equal(people.bytes,
        "‖ tenure: held by T-7K3M-QX9D: another attempt is current\n"
        "  subject    checkout:1\n"
        "  owner      alice on build7, pid 4711, since 2026-11-30 19:30:37Z (running)\n"
        "  renewed    2026-11-30 19:31:37Z\n"
        "  lapses     in 57 s, 2026-11-30 19:32:34Z, unless it is renewed\n"
        "  reconnect  tenure attach T-7K3M-QX9D\n"
        "  wait       the same command with --wait\n"
        "  end it     tenure cancel T-7K3M-QX9D\n");
    text_done(&people);
}

static void a_refusal_is_a_document_too(_unused_ void **state)
{
    struct completion_result nothing = {0};
    _cleanup_(error_done) struct error err = {0};
    error_set(&err, RESULT_INVALID, 0, "the work tree is dirty: a\xff");
    error_remedy(&err, "commit it");
    _cleanup_(mem_free) char *text = document(&nothing, &err);
    assert_string_equal(text, "{\n"
                              "\t\"command\":\"done\",\n"
                              "\t\"outcome\":\"refused\",\n"
                              "\t\"exit\":2,\n"
                              "\t\"attempt\":null,\n"
                              "\t\"candidate\":null,\n"
                              "\t\"producers\":[\n\t],\n"
                              "\t\"standards\":[\n\t],\n"
                              "\t\"proof\":null,\n"
                              "\t\"pending\":null,\n"
                              "\t\"error\":{\n"
                              "\t\t\"code\":\"invalid\",\n"
                              "\t\t\"message\":\"the work tree is dirty: a\\\\xff\",\n"
                              "\t\t\"remedy\":\"commit it\"\n"
                              "\t}\n"
                              "}");
}

static void a_signal_is_128_and_its_number(_unused_ void **state)
{
    struct cli cli = {.command = &DONE};
    struct completion_result result = {.signal = 15, .sentence = "cancelled by signal 15"};
    assert_int_equal(verdict_status(&cli, &result), 143);
    _cleanup_(mem_free) char *text = document(&result, NULL);
    assert_non_null(strstr(text, "\"outcome\":\"cancelled\""));
    assert_non_null(strstr(text, "\"exit\":143"));
}

static void people_get_log_and_command_and_one_sentence(_unused_ void **state)
{
    struct look look = {.utf8 = true};
    struct completion_result result = failed_result();
    struct text text = {0};
    verdict_add(&look, &result, false, &text);
    assert_string_equal(text.bytes, "  ✗ crash  ended by signal 11\n"
                                    "    log       /j/out/crash.log\n"
                                    "    reproduce ./crash\n"
                                    "✗ crash: ended by signal 11  · 12.3 s\n");
    text_clear(&text);
    result = (struct completion_result){
        .sentence = "acme/widget is proved already", .proof_id = "0123456789abcdef", .duration_ms = 40};
    verdict_add(&look, &result, false, &text);
    assert_string_equal(text.bytes, "✓ acme/widget is proved already  · Proof 0123456789ab  · 40 ms\n");
    text_done(&text);
}

static void a_plan_says_why(_unused_ void **state)
{
    struct look look = {0};
    struct completion_producer producers[] = {
        {.name = "build", .reason = "input src/a.c changed since 3f2a"},
        {.name = "documentation", .planned_reuse = true, .reason = "same key as attempt T-7K3M-QX9D"},
    };
    struct completion_result result = {
        .producers = producers, .producer_count = 2, .sentence = "1 would run, 1 would be reused"};
    struct text text = {0};
    verdict_add_plan(&look, &result, &text);
    assert_string_equal(text.bytes, "  run    build          input src/a.c changed since 3f2a\n"
                                    "  reuse  documentation  same key as attempt T-7K3M-QX9D\n"
                                    "+ 1 would run, 1 would be reused\n");
    text_done(&text);
}

/* `run` has exit statuses of its own, that do not collide with the command's. */
static void run_keeps_its_failures_high(_unused_ void **state)
{
    static const struct command RUN = {.name = "run", .own_failures_are_high = true, .run = run_nothing};
    struct cli cli = {.command = &RUN};
    assert_int_equal(report_status(&cli, OUTCOME_REFUSED), 122);
    assert_int_equal(report_status(&cli, OUTCOME_HELD), 123);
    assert_int_equal(report_status(&cli, OUTCOME_LOST), 124);
    assert_int_equal(report_status(&cli, OUTCOME_STORE), 125);
    cli.command = &DONE;
    for (int outcome = 0; outcome < OUTCOME_MAX; outcome++)
        assert_int_equal(report_status(&cli, (enum outcome)outcome), EXITS[outcome].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_told_in_full),
        cmocka_unit_test(a_held_run_names_one_cause),
        cmocka_unit_test(a_refusal_is_a_document_too),
        cmocka_unit_test(a_signal_is_128_and_its_number),
        cmocka_unit_test(people_get_log_and_command_and_one_sentence),
        cmocka_unit_test(a_plan_says_why),
        cmocka_unit_test(run_keeps_its_failures_high),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
