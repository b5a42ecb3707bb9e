/*
 * DSSE envelopes (https://github.com/secure-systems-lab/dsse, protocol 1.0) with Ed25519. Bytes are signed as
 * they are stored and sent; the signature is checked over the pre-authentication encoding before the payload
 * is parsed. Pure; thread-safe.
 */
#ifndef COMPLETION_PROOF_DSSE_H
#define COMPLETION_PROOF_DSSE_H

#include "base/text.h"
#include "completion/proof/keys.h"

#define DSSE_PAYLOAD_TYPE "application/vnd.in-toto+json"

/* Appends the envelope's JSON (one line, final line feed) to `ret`. */
void dsse_sign(const struct signing_key *key, const char *payload, size_t length, struct text *ret);

/* Strict: one JSON object of exactly payload, payloadType and signatures, canonical base64, and byte for byte
 * what dsse_sign would have written (one line, that order of keys, a final line feed): no byte of an envelope
 * can be changed without notice, signed or not. Exactly one signature; its key id only selects the key. On OK
 * `ret_payload` holds the payload, `ret_key` points into the ring. INVALID: not an envelope. DENIED: not
 * signed by a trusted key (`err` names the key id that signed). */
_must_use_ enum result dsse_verify(const char *envelope, size_t length, const struct key_ring *ring,
    struct text *ret_payload, const struct public_key **ret_key, struct error *err);

/* Pre-authentication encoding: "DSSEv1" SP length SP type SP length SP payload. */
void dsse_pae(const char *type, const char *payload, size_t length, struct text *ret);

#endif
