#include "completion/proof/dsse.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_table.h"
#include "base/memory.h"
#include "base/mutant.h"

#define BASE64_VARIANT   sodium_base64_VARIANT_ORIGINAL
#define SIGNATURE_BASE64 88 /* of 64 bytes */

void dsse_pae(const char *type, const char *payload, size_t length, struct text *ret)
{
    text_addf(ret, "DSSEv1 %zu %s %zu ", strlen(type), type, length);
    text_append(ret, payload, length);
}

/* ---- the one form of an envelope ---- */

/* What was read, or what will be written. The last two stand in the one element of `list`. */
struct envelope {
    char *payload, *type; /* payload in base64 */
    struct json_object *list;
    char *key_id, *signature; /* signature in base64 */
};

static void envelope_done(struct envelope *envelope)
{
    free(envelope->payload);
    free(envelope->type);
    free(envelope->key_id);
    free(envelope->signature);
}

static char *base64_of(const void *bytes, size_t length)
{
    size_t size = sodium_base64_encoded_len(length, BASE64_VARIANT);
    char *base64 = mem_alloc(size);
    return sodium_bin2base64(base64, size, bytes, length, BASE64_VARIANT);
}

static void envelope_write(const struct envelope *envelope, struct text *ret)
{
    struct json_object *json = json_object_new_object(), *list = json_object_new_array();
    struct json_object *signature = json_object_new_object();
    json_add_string(json, "payload", envelope->payload);
    json_add_string(json, "payloadType", envelope->type);
    json_object_object_add(json, "signatures", list);
    json_object_array_add(list, signature);
    json_add_string(signature, "keyid", envelope->key_id);
    json_add_string(signature, "sig", envelope->signature);
    text_add(
        ret, json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    text_add(ret, "\n");
    json_object_put(json);
}

/* ---- signing ---- */

static char *sign_base64(const struct signing_key *key, const char *payload, size_t length)
{
    _cleanup_(text_done) struct text pae = {0};
    uint8_t public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
    uint8_t bytes[crypto_sign_BYTES];
    dsse_pae(DSSE_PAYLOAD_TYPE, payload, length, &pae);
    crypto_sign_seed_keypair(public, secret, key->seed);
    crypto_sign_detached(bytes, NULL, (const uint8_t *)pae.bytes, pae.length, secret);
    sodium_memzero(secret, sizeof(secret));
    return base64_of(bytes, sizeof(bytes));
}

void dsse_sign(const struct signing_key *key, const char *payload, size_t length, struct text *ret)
{
    _cleanup_(envelope_done) struct envelope envelope = {
        .payload = base64_of(payload, length),
        .type = mem_string(DSSE_PAYLOAD_TYPE),
        .key_id = mem_string(key->public.id),
        .signature = sign_base64(key, payload, length),
    };
    envelope_write(&envelope, ret);
}

/* ---- reading ---- */

static const struct json_field ENVELOPE_FIELDS[] = {
    {"payload", JSON_STRING, offsetof(struct envelope, payload), true, 0, 0},
    {"payloadType", JSON_STRING, offsetof(struct envelope, type), true, 0, 0},
    {"signatures", JSON_ARRAY, offsetof(struct envelope, list), true, 0, 0},
};
static const struct json_field SIGNATURE_FIELDS[] = {
    {"keyid", JSON_STRING, offsetof(struct envelope, key_id), true, 0, KEY_ID_SIZE - 1},
    {"sig", JSON_STRING, offsetof(struct envelope, signature), true, 0, SIGNATURE_BASE64},
};

static enum result read_signature(
    const struct json_document *document, struct envelope *envelope, struct error *err)
{
    if (json_object_array_length(envelope->list) != 1)
        return json_error_at(document, "/signatures", false, err, "exactly one signature is expected");
    return json_table_read(document, "/signatures/0", json_object_array_get_idx(envelope->list, 0),
        SIGNATURE_FIELDS, ARRAY_SIZE(SIGNATURE_FIELDS), true, envelope, err);
}

static enum result check_form(
    const struct envelope *envelope, const char *bytes, size_t length, struct error *err)
{
    _cleanup_(text_done) struct text canonical = {0};
    envelope_write(envelope, &canonical);
    if (canonical.length == length && memcmp(canonical.bytes, bytes, length) == 0)
        return RESULT_OK;
    error_set(err, RESULT_INVALID, 0, "the envelope is not in the form in which it was written");
    return error_remedy(err, "use the bytes as `tenure proof` prints them, without reformatting");
}

static enum result envelope_read(const char *bytes, size_t length, struct envelope *ret, struct error *err)
{
    _cleanup_(json_document_done) struct json_document document = {0};
    enum result r = json_document_parse(bytes, length, "envelope", &document, err);
    if (r == RESULT_OK)
        r = json_table_read(
            &document, "", document.root, ENVELOPE_FIELDS, ARRAY_SIZE(ENVELOPE_FIELDS), true, ret, err);
    if (r == RESULT_OK)
        r = read_signature(&document, ret, err);
    ret->list = NULL; /* dies with the document */
    return r == RESULT_OK ? check_form(ret, bytes, length, err) : r;
}

static enum result base64_read(const char *what, const char *base64, struct text *ret, struct error *err)
{
    size_t length = strlen(base64), got = 0, room = length / 4 * 3 + 1;
    _cleanup_(mem_free) char *bytes = mem_alloc(room);
    if (sodium_base642bin((uint8_t *)bytes, room, base64, length, NULL, &got, NULL, BASE64_VARIANT) != 0)
        return error_set(err, RESULT_INVALID, 0, "envelope: %s is not canonical base64", what);
    text_append(ret, bytes, got);
    return RESULT_OK;
}

/* ---- verifying ---- */

static const struct public_key *key_of(const struct key_ring *ring, const char *id)
{
    for (size_t i = 0; i < ring->count; i++)
        if (strcmp(ring->keys[i].id, id) == 0)
            return &ring->keys[i];
    return NULL;
}

static enum result refuse_stranger(const char *key_id, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, key_id, strlen(key_id), false);
    error_set(err, RESULT_DENIED, 0, "signed by %s, which is not a trusted key", shown.bytes);
    return error_remedy(err, "if you trust that key: `tenure key trust FILE`, or --key FILE");
}

static bool signature_fits(const struct public_key *key, const struct text *signature, const struct text *pae)
{
    return signature->length == crypto_sign_BYTES &&
           crypto_sign_verify_detached(
               (const uint8_t *)signature->bytes, (const uint8_t *)pae->bytes, pae->length, key->bytes) == 0;
}

static enum result check_signature(const struct envelope *envelope, const struct text *payload,
    const struct key_ring *ring, const struct public_key **ret, struct error *err)
{
    _cleanup_(text_done) struct text pae = {0}, signature = {0};
    const struct public_key *key = key_of(ring, envelope->key_id);
    enum result r = base64_read("the signature", envelope->signature, &signature, err);
    if (r != RESULT_OK)
        return r;
    if (!key)
        return refuse_stranger(envelope->key_id, err);
    dsse_pae(envelope->type, payload->bytes, payload->length, &pae);
    if (!signature_fits(key, &signature, &pae))
        return error_set(
            err, RESULT_DENIED, 0, "the signature by %s does not match: a byte was changed", key->id);
    *ret = key;
    return RESULT_OK;
}

enum result dsse_verify(const char *envelope_bytes, size_t length, const struct key_ring *ring,
    struct text *ret_payload, const struct public_key **ret_key, struct error *err)
{
    _cleanup_(envelope_done) struct envelope envelope = {0};
    _cleanup_(text_done) struct text payload = {0};
    const struct public_key *key = NULL;
    enum result r = envelope_read(envelope_bytes, length, &envelope, err);
    if (r != RESULT_OK)
        return r;
    if (strcmp(envelope.type, DSSE_PAYLOAD_TYPE) != 0)
        return error_set(err, RESULT_INVALID, 0, "envelope: the payload's type is not %s", DSSE_PAYLOAD_TYPE);
    r = base64_read("the payload", envelope.payload, &payload, err);
    if (r != RESULT_OK)
        return r;
    r = check_signature(&envelope, &payload, ring, &key, err);
    if (!MUTANT("signature-before-parse") && r != RESULT_OK)
        return r;
    text_append(ret_payload, payload.bytes, payload.length);
    *ret_key = key ? key : ring->keys;
    return RESULT_OK;
}
