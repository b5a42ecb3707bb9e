#include "tests/unit/completion/proof-fixture.h"

#include "completion/evidence/evidence.h"

static struct applicability sample_applicability(void)
{
    struct applicability applicability = {0};
    strcpy(applicability.key, HEX64);
    for (int i = 0; i < COMPONENT_MAX; i++) {
        strcpy(applicability.components[i], HEX64B);
        applicability.components[i][0] = (char)('0' + i);
    }
    return applicability;
}

static void add_state(struct output_states *states, const char *path, uint32_t mode, const char *digest)
{
    states->items = mem_resize(states->items, states->count + 1, sizeof(*states->items));
    struct output_state *state = &states->items[states->count++];
    *state = (struct output_state){.path = mem_string(path), .mode = mode};
    strcpy(state->digest, digest);
}

static struct evidence sample_evidence(void)
{
    struct evidence evidence = {
        .sequence = 9,
        .attempt_id = "01900000-0000-7000-8000-000000000001",
        .producer = mem_string("test"),
        .applicability = sample_applicability(),
        .verdict = mem_string("failed"),
        .reusable = true,
        .exit_code = 3,
        .signal = -1,
        .duration_ms = 12345,
        .frozen_ms = 6,
        .log = mem_string("/home/\"me\"/out/test.log"),
        .log_digest = mem_string(HEX64),
        .log_bytes = INT64_C(1) << 40,
        .dropped_bytes = 17,
        .handle = mem_string("T-7K3M-QX9D"),
        .host = mem_string("wolf"),
        .commit = mem_string(COMMIT),
        .tree = mem_string(TREE),
        .text = mem_string("exited with status 3"),
        .wall_ms = INT64_C(1735603200123),
    };
    add_state(&evidence.outputs, "widget", 0100755, HEX64);
    add_state(&evidence.outputs, "caf\xc3\xa9", 0, "");
    add_state(&evidence.artifacts, "report.xml", 0100644, HEX64B);
    return evidence;
}

static void assert_states_equal(const struct output_states *a, const struct output_states *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].path, b->items[i].path);
        assert_int_equal(a->items[i].mode, b->items[i].mode);
        assert_string_equal(a->items[i].digest, b->items[i].digest);
    }
}

static void everything_survives_the_row(void **state _unused_)
{
    _cleanup_(evidence_done) struct evidence evidence = sample_evidence(), read = {0};
    _cleanup_(evidence_row_done) struct evidence_row row = {0};
    evidence_to_row(&evidence, "acme/widget", &row);
    assert_string_equal(row.repository, "acme/widget");
    assert_string_equal(row.producer, "test");
    assert_string_equal(row.key, HEX64);
    assert_string_equal(row.verdict, "failed");
    assert_string_equal(row.tree, TREE);
    assert_true(row.reusable);
    assert_false(row.passed);
    assert_int_equal(evidence_from_row(&row, &read, NULL), RESULT_OK);
    assert_int_equal(read.sequence, 9);
    assert_string_equal(read.attempt_id, evidence.attempt_id);
    assert_string_equal(read.producer, "test");
    assert_memory_equal(&read.applicability, &evidence.applicability, sizeof(read.applicability));
    assert_string_equal(read.verdict, "failed");
    assert_false(read.passed);
    assert_true(read.reusable);
    assert_int_equal(read.exit_code, 3);
    assert_int_equal(read.signal, -1);
    assert_int_equal(read.duration_ms, 12345);
    assert_int_equal(read.frozen_ms, 6);
    assert_string_equal(read.log, evidence.log);
    assert_string_equal(read.log_digest, HEX64);
    assert_int_equal(read.log_bytes, evidence.log_bytes);
    assert_int_equal(read.dropped_bytes, 17);
    assert_string_equal(read.handle, "T-7K3M-QX9D");
    assert_string_equal(read.host, "wolf");
    assert_string_equal(read.commit, COMMIT);
    assert_string_equal(read.tree, TREE);
    assert_string_equal(read.text, evidence.text);
    assert_int_equal(read.wall_ms, evidence.wall_ms);
    assert_states_equal(&read.outputs, &evidence.outputs);
    assert_states_equal(&read.artifacts, &evidence.artifacts);
}

static void what_is_not_known_stays_so(void **state _unused_)
{
    _cleanup_(evidence_done) struct evidence evidence = {0}, read = {0};
    _cleanup_(evidence_row_done) struct evidence_row row = {0};
    evidence.producer = mem_string("build");
    evidence.verdict = mem_string("not-started");
    evidence_to_row(&evidence, NULL, &row);
    assert_int_equal(evidence_from_row(&row, &read, NULL), RESULT_OK);
    assert_null(read.log);
    assert_null(read.log_digest);
    assert_null(read.text);
    assert_null(read.tree);
    assert_int_equal(read.outputs.count, 0);
}

static void bytes_that_are_no_text_become_visible(void **state _unused_)
{
    _cleanup_(evidence_done) struct evidence evidence = sample_evidence(), read = {0};
    _cleanup_(evidence_row_done) struct evidence_row row = {0};
    free(evidence.text);
    evidence.text = mem_string("a\xff"
                               "b\x1b[31m");
    evidence_to_row(&evidence, "acme/widget", &row);
    assert_int_equal(evidence_from_row(&row, &read, NULL), RESULT_OK);
    assert_string_equal(read.text, "a\\xffb\x1b[31m");
}

/* Row with another payload; the caller's struct must stay as it was. */
static void assert_unreadable(const char *payload, enum result expected)
{
    struct evidence untouched = {0}, read = {0};
    struct evidence_row row = {.sequence = 5, .producer = (char *)"build", .payload = (char *)payload};
    _cleanup_(error_done) struct error err = {0};
    enum result r = evidence_from_row(&row, &read, &err);
    if (r != expected)
        fail_msg("%s: %s", payload, result_name(r));
    assert_memory_equal(&read, &untouched, sizeof(read));
    assert_non_null(strstr(err.message, "evidence 5 of build"));
}

static const struct {
    const char *from, *to;
} DAMAGES[] = {
    {"{", ""},
    {"\"format\":1", "\"format\":0"},
    {"\"format\":1", "\"format\":\"1\""},
    {"\"exit\":3", "\"exit\":99999999999"},
    {"\"exit\":3", "\"exit\":3,\"exit\":3"},
    {"\"exit\":3,", ""},
    {"\"duration_ms\":12345", "\"duration_ms\":-1"},
    {"\"inputs\":", "\"imputs\":"},
    {"\"outputs\":[", "\"outputs\":[7,"},
    {"\"outputs\":[", "\"outputs\":[{},"},
    {"\"mode\":33261", "\"mode\":4294967296"},
    {"\"digest\":\"" HEX64 "\"", "\"digest\":\"0" HEX64 "\""},
    {"\"text\":\"exited", "\"text\":\"\\u0000exited"},
};

static void damage_is_corrupt_and_later_formats_are_newer(void **state _unused_)
{
    _cleanup_(evidence_done) struct evidence evidence = sample_evidence();
    _cleanup_(evidence_row_done) struct evidence_row row = {0};
    evidence_to_row(&evidence, "acme/widget", &row);
    for (size_t i = 0; i < ARRAY_SIZE(DAMAGES); i++) {
        const char *at = strstr(row.payload, DAMAGES[i].from);
        if (!at)
            fail_msg("%s is not in %s", DAMAGES[i].from, row.payload);
        char *damaged = mem_format(
            "%.*s%s%s", (int)(at - row.payload), row.payload, DAMAGES[i].to, at + strlen(DAMAGES[i].from));
        assert_unreadable(damaged, RESULT_CORRUPT);
        free(damaged);
    }
    char *newer = mem_copy(row.payload, strlen(row.payload));
    strstr(newer, "\"format\":1")[9] = '2';
    assert_unreadable(newer, RESULT_NEWER);
    free(newer);
    assert_unreadable("", RESULT_CORRUPT);
    assert_unreadable("[]", RESULT_CORRUPT);
}

static void later_members_are_skipped(void **state _unused_)
{
    _cleanup_(evidence_done) struct evidence evidence = sample_evidence(), read = {0};
    _cleanup_(evidence_row_done) struct evidence_row row = {0};
    evidence_to_row(&evidence, "acme/widget", &row);
    char *extended = mem_format("{\"later\":[1,2],%s", row.payload + 1);
    free(row.payload);
    row.payload = extended;
    assert_int_equal(evidence_from_row(&row, &read, NULL), RESULT_OK);
    assert_string_equal(read.text, evidence.text);
}

static const struct {
    enum job_verdict verdict;
    bool passed, reusable;
} OUTCOMES[] = {
    {JOB_PASSED, true, true},
    {JOB_FAILED, false, true},
    {JOB_SIGNALLED, false, true},
    {JOB_TIMED_OUT, false, true},
    {JOB_QUIET, false, true},
    {JOB_NOT_STARTED, false, false},
    {JOB_STOPPED, false, false},
    {JOB_STALLED, false, false},
    {JOB_OUTPUT_LOST, false, false},
};
_Static_assert(ARRAY_SIZE(OUTCOMES) == JOB_VERDICT_MAX, "every verdict is judged");

static void only_completed_outcomes_are_reusable(void **state _unused_)
{
    struct applicability applicability = sample_applicability();
    for (size_t i = 0; i < ARRAY_SIZE(OUTCOMES); i++) {
        struct job_outcome outcome = {
            .name = (char *)"test",
            .verdict = OUTCOMES[i].verdict,
            .exit_code = 0, /* a stopped job may well exit 0: it is no pass */
            .signal = -1,
            .duration_ms = 5,
            .output_digest = HEX64,
        };
        _cleanup_(evidence_done) struct evidence evidence = {0};
        evidence_from_outcome(&outcome, &applicability, &evidence);
        assert_int_equal(evidence.passed, OUTCOMES[i].passed);
        assert_int_equal(evidence.reusable, OUTCOMES[i].reusable);
        assert_string_equal(evidence.verdict, job_verdict_name(OUTCOMES[i].verdict));
        assert_string_equal(evidence.producer, "test");
        assert_string_equal(evidence.applicability.key, HEX64);
        assert_null(evidence.log_digest);
    }
}

static void a_captured_job_brings_its_log_along(void **state _unused_)
{
    struct applicability applicability = sample_applicability();
    struct job_outcome outcome = {
        .name = (char *)"test",
        .verdict = JOB_FAILED,
        .exit_code = 2,
        .signal = -1,
        .log = (char *)"test.log",
        .output_digest = HEX64B,
        .output_bytes = 100,
        .dropped_bytes = 40,
        .frozen_ms = 8,
        .text = (char *)"exited with status 2",
    };
    _cleanup_(evidence_done) struct evidence evidence = {0};
    evidence_from_outcome(&outcome, &applicability, &evidence);
    assert_string_equal(evidence.log_digest, HEX64B);
    assert_int_equal(evidence.log_bytes, 100);
    assert_int_equal(evidence.dropped_bytes, 40);
    assert_int_equal(evidence.frozen_ms, 8);
    assert_int_equal(evidence.exit_code, 2);
    assert_string_equal(evidence.text, "exited with status 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_survives_the_row),
        cmocka_unit_test(what_is_not_known_stays_so),
        cmocka_unit_test(bytes_that_are_no_text_become_visible),
        cmocka_unit_test(damage_is_corrupt_and_later_formats_are_newer),
        cmocka_unit_test(later_members_are_skipped),
        cmocka_unit_test(only_completed_outcomes_are_reusable),
        cmocka_unit_test(a_captured_job_brings_its_log_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
