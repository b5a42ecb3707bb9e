#include "tests/unit/completion/proof-fixture.h"

#define HEAD                                                                                                 \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"acme/widget\",\"digest\":{"     \
    "\"gitCommit\":\"" COMMIT "\",\"gitTree\":\"" TREE "\"}}],"                                              \
    "\"predicateType\":\"https://in-toto.io/attestation/test-result/v0.1\",\"predicate\":{"
#define CONFIGURATION                                                                                        \
    "\"configuration\":[{\"name\":\"tenure.json\",\"digest\":{\"blake2b_256\":\"" HEX64 "\"}},"              \
    "{\"name\":\"evidence/build\",\"digest\":{\"blake2b_256\":\"" HEX64                                      \
    "\"},\"annotations\":{\"sequence\":7,\"reused\":true}},"                                                 \
    "{\"name\":\"evidence/test \\\"quick\\\"\",\"digest\":{\"blake2b_256\":\"" HEX64B                        \
    "\"},\"annotations\":{\"sequence\":12,\"reused\":false}}],"
#define TESTS "\"passedTests\":[\"build\",\"test \\\"quick\\\"\"],"
#define EXTENSION                                                                                            \
    "\"tenure\":{\"version\":\"0.1.0\",\"time\":\"2024-12-31T00:00:00Z\","                                   \
    "\"attempt\":\"01900000-0000-7000-8000-000000000001\",\"fence\":42,"                                     \
    "\"journal\":\"00112233445566778899aabbccddeeff\","                                                      \
    "\"demand\":{\"blake2b_256\":\"" HEX64B "\",\"complete\":true}}"
static const char GOLDEN[] = HEAD "\"result\":\"PASSED\"," CONFIGURATION TESTS EXTENSION "}}";

static void the_form_is_pinned(void **state _unused_)
{
    _cleanup_(text_done) struct text json = {0};
    struct statement statement = sample_statement();
    statement_encode(&statement, &json);
    assert_string_equal(json.bytes, GOLDEN);
}

static void assert_same(const struct statement *a, const struct statement *b)
{
    _cleanup_(text_done) struct text left = {0}, right = {0};
    statement_encode(a, &left);
    statement_encode(b, &right);
    assert_string_equal(left.bytes, right.bytes);
}

static void what_is_written_reads_back(void **state _unused_)
{
    struct statement statement = sample_statement();
    _cleanup_(text_done) struct text json = {0};
    _cleanup_(statement_done) struct statement read = {0};
    struct statement_evidence evidence[2] = {SAMPLE_EVIDENCE[0], SAMPLE_EVIDENCE[1]};
    evidence[0].sequence = 0;
    statement.evidence = evidence;
    statement.complete = false;
    statement.journal_head = NULL;
    statement_encode(&statement, &json);
    assert_int_equal(statement_decode(json.bytes, json.length, &read, NULL), RESULT_OK);
    assert_same(&statement, &read);
    assert_string_equal(read.repository, "acme/widget");
    assert_string_equal(read.commit, COMMIT);
    assert_string_equal(read.tree, TREE);
    assert_string_equal(read.config_digest, HEX64);
    assert_string_equal(read.demand_digest, HEX64B);
    assert_int_equal(read.evidence_count, 2);
    assert_string_equal(read.evidence[1].producer, "test \"quick\"");
    assert_string_equal(read.evidence[1].key, HEX64B);
    assert_int_equal(read.evidence[0].sequence, 0);
    assert_int_equal(read.evidence[1].sequence, 12);
    assert_true(read.evidence[0].reused);
    assert_false(read.evidence[1].reused);
    assert_false(read.complete);
    assert_null(read.journal_head);
    assert_int_equal(read.fence, 42);
    assert_int_equal(read.wall_ms, statement.wall_ms);
    assert_string_equal(read.version, "0.1.0");
}

static void assert_refused(const char *json, enum result expected)
{
    struct statement read = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result r = statement_decode(json, strlen(json), &read, &err);
    if (r != expected)
        fail_msg("%s: %s instead of %s", json, result_name(r), result_name(expected));
    assert_null(read.backing);
    assert_non_null(err.message);
}

static void other_results_are_told_from_nonsense(void **state _unused_)
{
    assert_refused(
        HEAD "\"result\":\"FAILED\",\"configuration\":[],\"failedTests\":[\"build\"]}}", RESULT_DENIED);
    assert_refused(HEAD "\"result\":\"FAILED\"," CONFIGURATION TESTS EXTENSION "}}", RESULT_DENIED);
    assert_refused(HEAD "\"result\":\"WARNED\"," CONFIGURATION TESTS EXTENSION "}}", RESULT_DENIED);
    assert_refused(HEAD "\"result\":\"passed\"," CONFIGURATION TESTS EXTENSION "}}", RESULT_INVALID);
    assert_refused(HEAD "\"result\":true," CONFIGURATION TESTS EXTENSION "}}", RESULT_INVALID);
    assert_refused(HEAD "\"result\":null," CONFIGURATION TESTS EXTENSION "}}", RESULT_INVALID);
    assert_refused(HEAD CONFIGURATION TESTS EXTENSION "}}", RESULT_INVALID);
}

/* One thing changed in the golden text: the first string becomes the second. */
static const struct {
    const char *from, *to;
} CHANGES[] = {
    {"Statement/v1", "Statement/v0.1"},
    {"test-result/v0.1", "test-result/v1"},
    {"\"_type\"", "\"type\""},
    {"\"name\":\"acme/widget\",", ""},
    {"\"name\":\"acme/widget\"", "\"name\":\"a\",\"uri\":\"b\""},
    {"\"name\":\"acme/widget\"", "\"name\":1"},
    {"\"gitTree\":\"4b", "\"gitTree\":\"4B"},
    {"\"gitTree\":\"4b", "\"gitTree\":\"b"},
    {"\"gitCommit\":\"", "\"gitCommit\":\"../"},
    {"\"gitCommit\"", "\"sha1\""},
    {"\"gitTree\":\"" TREE "\"", "\"gitTree\":\"" TREE "\",\"gitTree\":\"" TREE "\""},
    {"\"subject\":[{", "\"subject\":[{},{"},
    {"tenure.json", "other.json"},
    {"evidence/build", "build"},
    {"evidence/build", "evidence/other"},
    {"\"passedTests\":[\"build\",", "\"passedTests\":["},
    {"\"passedTests\":[\"build\",", "\"passedTests\":[\"build\",\"build\","},
    {"\"passedTests\":[\"build\",", "\"passedTests\":[1,"},
    {"\"passedTests\"", "\"failedTests\""},
    {"\"sequence\":7", "\"sequence\":-7"},
    {"\"sequence\":7", "\"sequence\":0"},
    {"\"sequence\":7", "\"sequence\":7.0"},
    {"\"sequence\":7", "\"sequence\":99999999999999999999"},
    {"\"reused\":true", "\"reused\":1"},
    {"\"annotations\":{\"sequence\":7,\"reused\":true}", "\"annotations\":{\"sequence\":7}"},
    {"\"fence\":42", "\"fence\":0"},
    {"\"fence\":42", "\"fence\":\"42\""},
    {"\"fence\":42", "\"fence\":42,\"fence\":42"},
    {"\"complete\":true", "\"complete\":\"true\""},
    {",\"complete\":true", ""},
    {"\"complete\":true", "\"complete\":true,\"new\":1"},
    {"2024-12-31T00:00:00Z", "2024-12-31 00:00:00"},
    {"2024-12-31T00:00:00Z", "2024-02-30T00:00:00Z"},
    {"\"version\":\"0.1.0\",", ""},
    {"\"version\":\"0.1.0\"", "\"version\":null"},
    {"\"demand\":{\"blake2b_256\":\"ff", "\"demand\":{\"blake2b_256\":\"FF"},
    {"\"demand\":{\"blake2b_256\"", "\"demand\":{\"sha256\""},
    {"}}}", "}}} x"},
    {"}}}", "}}"},
    {"\"result\":\"PASSED\"", "\"result\":\"PASSED\",\"result\":\"PASSED\""},
};

static void anything_else_is_refused(void **state _unused_)
{
    for (size_t i = 0; i < ARRAY_SIZE(CHANGES); i++) {
        const char *at = strstr(GOLDEN, CHANGES[i].from);
        assert_non_null(at);
        char *changed =
            mem_format("%.*s%s%s", (int)(at - GOLDEN), GOLDEN, CHANGES[i].to, at + strlen(CHANGES[i].from));
        assert_refused(changed, RESULT_INVALID);
        free(changed);
    }
}

static void a_proof_of_nothing_is_refused(void **state _unused_)
{
    assert_refused(HEAD "\"result\":\"PASSED\",\"configuration\":[{\"name\":\"tenure.json\",\"digest\":{"
                        "\"blake2b_256\":\"" HEX64 "\"}}],\"passedTests\":[]," EXTENSION "}}",
        RESULT_INVALID);
    assert_refused(
        HEAD "\"result\":\"PASSED\",\"configuration\":[],\"passedTests\":[]," EXTENSION "}}", RESULT_INVALID);
    assert_refused("", RESULT_INVALID);
    assert_refused("[]", RESULT_INVALID);
    assert_refused("null", RESULT_INVALID);
}

static void every_cut_is_refused(void **state _unused_)
{
    for (size_t cut = 0; cut < strlen(GOLDEN); cut++) {
        struct statement read = {0};
        char *copy = mem_copy(GOLDEN, cut);
        assert_int_equal(statement_decode(copy, cut, &read, NULL), RESULT_INVALID);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_is_pinned),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(other_results_are_told_from_nonsense),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(a_proof_of_nothing_is_refused),
        cmocka_unit_test(every_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
