#include "tests/unit/completion/proof-fixture.h"

#include "completion/proof/dsse.h"

static const char PAYLOAD[] = "{\"hello\":\"world\"}";

struct fixture {
    struct signing_key key;
    struct key_ring ring;
    struct text envelope;
};

static int setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof(*fixture));
    sample_key(&fixture->key, &fixture->ring);
    dsse_sign(&fixture->key, PAYLOAD, strlen(PAYLOAD), &fixture->envelope);
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

/* The outputs must stay as they were when it is refused. */
static enum result verify(const struct fixture *fixture, const char *bytes, size_t length)
{
    _cleanup_(text_done) struct text payload = {0};
    const struct public_key *key = NULL;
    enum result r = dsse_verify(bytes, length, &fixture->ring, &payload, &key, NULL);
    if (r == RESULT_OK) {
        assert_ptr_equal(key, &fixture->ring.keys[0]);
    } else {
        assert_null(key);
        assert_int_equal(payload.length, 0);
    }
    return r;
}

static void the_encoding_before_authentication(void **state _unused_)
{
    _cleanup_(text_done) struct text pae = {0};
    /* The protocol's own example, and bytes that are no text. */
    dsse_pae("http://example.com/HelloWorld", "hello world", 11, &pae);
    assert_string_equal(pae.bytes, "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    text_clear(&pae);
    dsse_pae("", "a\0b", 3, &pae);
    assert_int_equal(pae.length, strlen("DSSEv1 0  3 ") + 3);
    assert_memory_equal(pae.bytes, "DSSEv1 0  3 a\0b", pae.length);
}

static void an_envelope_has_one_form(void **state)
{
    struct fixture *fixture = *state;
    char *expected = mem_format("{\"payload\":\"eyJoZWxsbyI6IndvcmxkIn0=\","
                                "\"payloadType\":\"application/vnd.in-toto+json\","
                                "\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"",
        fixture->key.public.id);
    assert_int_equal(strncmp(fixture->envelope.bytes, expected, strlen(expected)), 0);
    assert_int_equal(fixture->envelope.length, strlen(expected) + 88 + strlen("\"}]}\n"));
    assert_int_equal(fixture->envelope.bytes[fixture->envelope.length - 1], '\n');
    free(expected);
}

static void what_is_signed_verifies(void **state)
{
    struct fixture *fixture = *state;
    static const char *const PAYLOADS[] = {
        "", "x", "\x00\xff\x80", "a long one: 0123456789 0123456789 0123456789"};
    static const size_t LENGTHS[] = {0, 1, 3, 43};
    for (size_t i = 0; i < ARRAY_SIZE(PAYLOADS); i++) {
        _cleanup_(text_done) struct text envelope = {0}, payload = {0};
        const struct public_key *key = NULL;
        dsse_sign(&fixture->key, PAYLOADS[i], LENGTHS[i], &envelope);
        assert_int_equal(
            dsse_verify(envelope.bytes, envelope.length, &fixture->ring, &payload, &key, NULL), RESULT_OK);
        assert_ptr_equal(key, &fixture->ring.keys[0]);
        assert_int_equal(payload.length, LENGTHS[i]);
        assert_memory_equal(payload.bytes, PAYLOADS[i], LENGTHS[i]);
    }
}

/* All 255 other values of every byte. */
static void any_changed_byte_is_refused(void **state)
{
    struct fixture *fixture = *state;
    size_t length = fixture->envelope.length;
    char *changed = mem_copy(fixture->envelope.bytes, length);
    for (size_t i = 0; i < length; i++) {
        for (int bits = 1; bits < 256; bits++) {
            changed[i] = (char)(fixture->envelope.bytes[i] ^ bits);
            enum result r = verify(fixture, changed, length);
            if (r != RESULT_INVALID && r != RESULT_DENIED)
                fail_msg("byte %zu changed by %02x: %s", i, (unsigned)bits, result_name(r));
        }
        changed[i] = fixture->envelope.bytes[i];
    }
    assert_int_equal(verify(fixture, changed, length), RESULT_OK);
    free(changed);
}

static void cut_and_extended_envelopes_are_refused(void **state)
{
    struct fixture *fixture = *state;
    size_t length = fixture->envelope.length;
    for (size_t cut = 0; cut < length; cut++) {
        char *copy = mem_copy(fixture->envelope.bytes, cut);
        assert_int_equal(verify(fixture, copy, cut), RESULT_INVALID);
        free(copy);
    }
    static const char *const TAILS[] = {"\n", " ", "x", "{}", "\0"};
    for (size_t i = 0; i < ARRAY_SIZE(TAILS); i++) {
        _cleanup_(text_done) struct text longer = {0};
        text_append(&longer, fixture->envelope.bytes, length);
        text_append(&longer, TAILS[i], strlen(TAILS[i]) ? strlen(TAILS[i]) : 1);
        assert_int_equal(verify(fixture, longer.bytes, longer.length), RESULT_INVALID);
    }
}

static void other_forms_of_the_same_are_refused(void **state)
{
    struct fixture *fixture = *state;
    const char *id = fixture->key.public.id;
    const char *sig = strstr(fixture->envelope.bytes, "\"sig\":\"") + 7;
#define PAYLOAD64 "eyJoZWxsbyI6IndvcmxkIn0="
#define TYPE      "application/vnd.in-toto+json"
    static const char *const FORMS[] = {
        /* as it should be, to be sure that the others differ in one thing only */
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        /* order, spaces, escapes */
        "{\"payloadType\":\"" TYPE "\",\"payload\":\"" PAYLOAD64
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{ \"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"\\u0065yJoZWxsbyI6IndvcmxkIn0=\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        /* duplicate, unknown and missing keys */
        "{\"payload\":\"" PAYLOAD64 "\",\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"extra\":1,\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"sig\":\"%2$.88s\"}]}\n",
        /* padding left out, bits behind the end, the alphabet of URLs */
        "{\"payload\":\"eyJoZWxsbyI6IndvcmxkIn0\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"eyJoZWxsbyI6IndvcmxkIn1=\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"_-_-\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        /* another type, no signature, two, a short one, not a list */
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"text/plain\","
        "\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE "\",\"signatures\":[]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE "\",\"signatures\":[{\"keyid\":\"%1$s\","
        "\"sig\":\"%2$.88s\"},{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":[{\"keyid\":\"%1$s\",\"sig\":\"%2$.84s\"}]}\n",
        "{\"payload\":\"" PAYLOAD64 "\",\"payloadType\":\"" TYPE
        "\",\"signatures\":{\"keyid\":\"%1$s\",\"sig\":\"%2$.88s\"}}\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(FORMS); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        char *envelope = mem_format(FORMS[i], id, sig);
#pragma GCC diagnostic pop
        enum result r = verify(fixture, envelope, strlen(envelope));
        if (i == 0)
            assert_int_equal(r, RESULT_OK);
        else if (r != RESULT_INVALID && r != RESULT_DENIED)
            fail_msg("form %zu: %s", i, result_name(r));
        free(envelope);
    }
}

static void strangers_are_named(void **state)
{
    struct fixture *fixture = *state;
    struct key_ring empty = {0};
    _cleanup_(text_done) struct text payload = {0};
    _cleanup_(error_done) struct error err = {0};
    const struct public_key *key = NULL;
    assert_int_equal(
        dsse_verify(fixture->envelope.bytes, fixture->envelope.length, &empty, &payload, &key, &err),
        RESULT_DENIED);
    assert_non_null(strstr(err.message, fixture->key.public.id));
    assert_int_equal(payload.length, 0);
}

/* The key id of a trusted key on a signature by another. */
static void a_borrowed_key_id_does_not_help(void **state)
{
    struct fixture *fixture = *state;
    struct signing_key forger = fixture->key;
    _cleanup_(text_done) struct text envelope = {0};
    forger.seed[0] ^= 1;
    dsse_sign(&forger, PAYLOAD, strlen(PAYLOAD), &envelope);
    assert_int_equal(verify(fixture, envelope.bytes, envelope.length), RESULT_DENIED);
}

static void huge_envelopes_are_refused(void **state)
{
    struct fixture *fixture = *state;
    _cleanup_(text_done) struct text payload = {0}, envelope = {0}, brackets = {0};
    for (size_t i = 0; i < 1000 * 1000; i++)
        text_append(&payload, "x", 1);
    dsse_sign(&fixture->key, payload.bytes, payload.length, &envelope);
    assert_int_equal(verify(fixture, envelope.bytes, envelope.length), RESULT_INVALID);
    for (size_t i = 0; i < 100 * 1000; i++)
        text_append(&brackets, "[", 1);
    assert_int_equal(verify(fixture, brackets.bytes, brackets.length), RESULT_INVALID);
}

static void openssl_agrees(void **state)
{
    struct fixture *fixture = *state;
    if (system("openssl version >/dev/null 2>&1") != 0)
        skip();
    char *place = scratch_make();
    _cleanup_(text_done) struct text pae = {0};
    const char *sig = strstr(fixture->envelope.bytes, "\"sig\":\"") + 7;
    char *base64 = mem_format("%.88s\n", sig);
    dsse_pae(DSSE_PAYLOAD_TYPE, PAYLOAD, strlen(PAYLOAD), &pae);
    text_file_put(place, "pub.pem", SAMPLE_PUBLIC, 0644);
    text_file_put(place, "sig64", base64, 0644);
    free(file_put(place, "pae", pae.bytes, pae.length, 0644));
    char *command =
        mem_format("cd %s && openssl base64 -d -A <sig64 >sig && "
                   "openssl pkeyutl -verify -rawin -pubin -inkey pub.pem -sigfile sig -in pae >/dev/null",
            place);
    assert_int_equal(system(command), 0);
    pae.bytes[0] ^= 1;
    free(file_put(place, "pae", pae.bytes, pae.length, 0644));
    assert_int_not_equal(system(command), 0);
    free(command);
    free(base64);
    scratch_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_encoding_before_authentication),
        cmocka_unit_test_setup_teardown(an_envelope_has_one_form, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_signed_verifies, setup, teardown),
        cmocka_unit_test_setup_teardown(any_changed_byte_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_and_extended_envelopes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(other_forms_of_the_same_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_borrowed_key_id_does_not_help, setup, teardown),
        cmocka_unit_test_setup_teardown(huge_envelopes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(openssl_agrees, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
