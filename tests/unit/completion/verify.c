#include "tests/unit/completion/proof-fixture.h"

#include "completion/proof/verify.h"

struct fixture {
    struct signing_key key;
    struct key_ring ring;
    struct text envelope;
};

static void sign(struct fixture *fixture, const char *payload, size_t length)
{
    text_clear(&fixture->envelope);
    dsse_sign(&fixture->key, payload, length, &fixture->envelope);
}

static void sign_statement(struct fixture *fixture, const struct statement *statement)
{
    _cleanup_(text_done) struct text json = {0};
    statement_encode(statement, &json);
    sign(fixture, json.bytes, json.length);
}

static int setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof(*fixture));
    struct statement statement = sample_statement();
    sample_key(&fixture->key, &fixture->ring);
    sign_statement(fixture, &statement);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    signing_key_done(&fixture->key);
    key_ring_done(&fixture->ring);
    text_done(&fixture->envelope);
    free(fixture);
    return 0;
}

static struct verify_request request_of(const struct fixture *fixture)
{
    return (struct verify_request){
        .envelope = fixture->envelope.bytes,
        .length = fixture->envelope.length,
        .ring = &fixture->ring,
        .commit = COMMIT,
        .tree = TREE,
    };
}

static void assert_refusal(
    const struct verify_request *request, enum verify_refusal expected, const char *words)
{
    _cleanup_(verify_result_done) struct verify_result result = {0};
    _cleanup_(error_done) struct error err = {0};
    assert_int_equal(proof_verify(request, &result, &err), RESULT_INVALID);
    assert_string_equal(verify_refusal_name(result.refusal), verify_refusal_name(expected));
    assert_int_equal(err.code, RESULT_INVALID);
    if (words && !strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void a_good_proof_is_accepted(void **state)
{
    struct fixture *fixture = *state;
    struct verify_request request = request_of(fixture);
    _cleanup_(verify_result_done) struct verify_result result = {0};
    char id[DIGEST_HEX_SIZE];
    assert_int_equal(proof_verify(&request, &result, NULL), RESULT_OK);
    assert_int_equal(result.refusal, VERIFY_ACCEPTED);
    assert_string_equal(result.statement.tree, TREE);
    assert_ptr_equal(result.key, &fixture->ring.keys[0]);
    digest_hex(fixture->envelope.bytes, fixture->envelope.length, id);
    assert_string_equal(result.id, id);
}

static void without_expectations_it_says_what_it_is_about(void **state)
{
    struct verify_request request = request_of(*state);
    _cleanup_(verify_result_done) struct verify_result result = {0};
    request.commit = request.tree = NULL;
    assert_int_equal(proof_verify(&request, &result, NULL), RESULT_OK);
    assert_string_equal(result.statement.commit, COMMIT);
}

static void another_tree_or_commit_is_refused(void **state)
{
    struct verify_request request = request_of(*state);
    request.tree = "0000000000000000000000000000000000000000";
    assert_refusal(&request, VERIFY_OTHER_TREE, TREE);
    request.tree = TREE;
    request.commit = "0000000000000000000000000000000000000000";
    assert_refusal(&request, VERIFY_OTHER_TREE, COMMIT);
}

static void an_unknown_key_is_refused_and_nothing_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct verify_request request = request_of(fixture);
    struct key_ring empty = {0};
    _cleanup_(verify_result_done) struct verify_result result = {0};
    request.ring = &empty;
    assert_refusal(&request, VERIFY_UNTRUSTED, fixture->key.public.id);
    assert_int_equal(proof_verify(&request, &result, NULL), RESULT_INVALID);
    assert_null(result.key);
    assert_null(result.statement.tree);
}

static void a_failed_result_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct statement statement = sample_statement();
    _cleanup_(text_done) struct text json = {0};
    statement_encode(&statement, &json);
    memcpy(strstr(json.bytes, "PASSED"), "FAILED", 6);
    sign(fixture, json.bytes, json.length);
    struct verify_request request = request_of(fixture);
    assert_refusal(&request, VERIFY_FAILED_RESULT, "FAILED");
}

static void a_partial_one_is_refused_unless_allowed(void **state)
{
    struct fixture *fixture = *state;
    struct statement statement = sample_statement();
    statement.complete = false;
    sign_statement(fixture, &statement);
    struct verify_request request = request_of(fixture);
    _cleanup_(verify_result_done) struct verify_result result = {0};
    assert_refusal(&request, VERIFY_PARTIAL, "2");
    request.partial_allowed = true;
    assert_int_equal(proof_verify(&request, &result, NULL), RESULT_OK);
}

static void signed_nonsense_is_malformed(void **state)
{
    static const char *const NONSENSE[] = {"", "{}", "[1]", "not json", "{\"_type\":\"a\",\"_type\":\"b\"}"};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_SIZE(NONSENSE); i++) {
        sign(fixture, NONSENSE[i], strlen(NONSENSE[i]));
        struct verify_request request = request_of(fixture);
        assert_refusal(&request, VERIFY_MALFORMED, NULL);
    }
}

/* The signature is looked at before the payload: what a stranger wrote is "untrusted" even when it is
 * nonsense, and what is wrong with it is not told. */
static void the_signature_comes_before_the_payload(void **state)
{
    struct fixture *fixture = *state;
    struct key_ring empty = {0};
    sign(fixture, "not json", 8);
    struct verify_request request = request_of(fixture);
    request.ring = &empty;
    assert_refusal(&request, VERIFY_UNTRUSTED, "not a trusted key");
}

/* Every byte, each single bit, all bits, and a line feed for a space. */
static void any_changed_byte_is_refused(void **state)
{
    static const int FLIPS[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, '\n' ^ ' '};
    struct fixture *fixture = *state;
    struct verify_request request = request_of(fixture);
    char *changed = mem_copy(request.envelope, request.length);
    request.envelope = changed;
    for (size_t i = 0; i < request.length; i++) {
        for (size_t flip = 0; flip < ARRAY_SIZE(FLIPS); flip++) {
            _cleanup_(verify_result_done) struct verify_result result = {0};
            changed[i] = (char)(fixture->envelope.bytes[i] ^ FLIPS[flip]);
            if (proof_verify(&request, &result, NULL) != RESULT_INVALID)
                fail_msg("byte %zu changed by %02x is accepted", i, (unsigned)FLIPS[flip]);
            assert_true(result.refusal == VERIFY_MALFORMED || result.refusal == VERIFY_UNTRUSTED);
            assert_null(result.statement.tree);
        }
        changed[i] = fixture->envelope.bytes[i];
    }
    free(changed);
}

static void cut_extended_and_huge_ones_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct verify_request request = request_of(fixture);
    size_t length = request.length;
    for (request.length = 0; request.length < length; request.length++)
        assert_refusal(&request, VERIFY_MALFORMED, NULL);
    text_append(&fixture->envelope, "\n", 1);
    request = request_of(fixture);
    assert_refusal(&request, VERIFY_MALFORMED, NULL);
    while (fixture->envelope.length <= (size_t)2 * 1024 * 1024)
        text_append(&fixture->envelope, "                                ", 32);
    request = request_of(fixture);
    assert_refusal(&request, VERIFY_MALFORMED, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_proof_is_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(without_expectations_it_says_what_it_is_about, setup, teardown),
        cmocka_unit_test_setup_teardown(another_tree_or_commit_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unknown_key_is_refused_and_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_result_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_partial_one_is_refused_unless_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(signed_nonsense_is_malformed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_signature_comes_before_the_payload, setup, teardown),
        cmocka_unit_test_setup_teardown(any_changed_byte_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_extended_and_huge_ones_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
