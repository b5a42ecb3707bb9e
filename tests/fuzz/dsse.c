/*
 * As an envelope, the bytes are accepted only if they are, byte for byte, what signing their payload writes.
 * As a payload they come back from an envelope as they were, and no change of one byte of that envelope is
 * accepted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "completion/proof/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The seed is all zero; its public half and id, as key_load would fill them in. */
static void key_prepare(struct signing_key *key)
{
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(key->public.bytes, secret, key->seed);
    digest_hex(key->public.bytes, sizeof(key->public.bytes), stpcpy(key->public.id, "ed25519:"));
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool accepted(
    const struct key_ring *ring, const char *envelope, size_t length, struct text *ret_payload)
{
    _cleanup_(error_done) struct error err = {0};
    const struct public_key *key = NULL;
    enum result r = dsse_verify(envelope, length, ring, ret_payload, &key, &err);
    require(r == RESULT_OK || r == RESULT_INVALID || r == RESULT_DENIED);
    require((r == RESULT_OK) == (key != NULL) && (r == RESULT_OK) == (err.message == NULL));
    return r == RESULT_OK;
}

static void as_envelope(
    const struct signing_key *key, const struct key_ring *ring, const char *bytes, size_t length)
{
    _cleanup_(text_done) struct text payload = {0}, again = {0};
    if (!accepted(ring, bytes, length, &payload))
        return;
    dsse_sign(key, payload.bytes, payload.length, &again);
    require(again.length == length && memcmp(again.bytes, bytes, length) == 0);
}

static void as_payload(
    const struct signing_key *key, const struct key_ring *ring, const char *bytes, size_t length)
{
    _cleanup_(text_done) struct text envelope = {0}, payload = {0}, none = {0};
    dsse_sign(key, bytes, length, &envelope);
    require(accepted(ring, envelope.bytes, envelope.length, &payload));
    require(payload.length == length && memcmp(payload.bytes, bytes, length) == 0);
    /* Where and how to change it is taken from the input itself. */
    size_t at = 0;
    memcpy(&at, bytes, length < sizeof(at) ? length : sizeof(at));
    envelope.bytes[at % envelope.length] ^= (char)(bytes[length - 1] ? bytes[length - 1] : 1);
    require(!accepted(ring, envelope.bytes, envelope.length, &none) && none.length == 0);
}

static void as_proof(const struct key_ring *ring, const char *bytes, size_t length)
{
    _cleanup_(verify_result_done) struct verify_result result = {0};
    _cleanup_(error_done) struct error err = {0};
    struct verify_request request = {.envelope = bytes, .length = length, .ring = ring};
    enum result r = proof_verify(&request, &result, &err);
    require((r == RESULT_OK) == (result.refusal == VERIFY_ACCEPTED));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct signing_key key = {0};
    key_prepare(&key);
    struct key_ring ring = {.keys = &key.public, .count = 1};
    as_envelope(&key, &ring, (const char *)bytes, length);
    as_proof(&ring, (const char *)bytes, length);
    if (length > 0 && length < 4096)
        as_payload(&key, &ring, (const char *)bytes, length);
    return 0;
}
