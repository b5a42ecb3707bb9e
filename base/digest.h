/*
 * Digests, random bytes and hex. BLAKE2b (RFC 7693) by libsodium; 128 bits for chains, 256 for keys.
 *
 * Encoded fields are length-prefixed (8 bytes, little endian, then the bytes), so that no two different lists
 * of fields give the same bytes. Streaming objects belong to one thread; the rest is thread-safe.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

#define DIGEST_BYTES       32 /* BLAKE2b-256 */
#define DIGEST_SHORT_BYTES 16 /* BLAKE2b-128 */
#define DIGEST_HEX_SIZE    (2 * DIGEST_BYTES + 1)

/* Once, at the very start of the program and before any thread: libsodium asks for it, and then takes the
 * fastest code that this processor has (BLAKE2b with AVX2 is an eighth faster). Without it all results are
 * the same. */
void digest_begin(void);

struct digest {
    crypto_generichash_state state;
    size_t size_bytes; /* of the result */
};

void digest_init(struct digest *digest, size_t size_bytes); /* DIGEST_BYTES or DIGEST_SHORT_BYTES */
void digest_raw(struct digest *digest, const void *bytes, size_t length);
void digest_field(struct digest *digest, const void *bytes, size_t length); /* length-prefixed */
void digest_string(struct digest *digest, const char *string);              /* field; NULL is told from "" */
void digest_number(struct digest *digest, uint64_t number); /* field of 8 bytes, little endian */
void digest_final(struct digest *digest, uint8_t *ret);
void digest_final_hex(struct digest *digest, char *ret_hex); /* 2 * size + 1 bytes */

/* Digest of one buffer, in hex (DIGEST_HEX_SIZE). */
void digest_hex(const void *bytes, size_t length, char ret_hex[DIGEST_HEX_SIZE]);

void random_bytes(void *ret, size_t length); /* never fails: getrandom(2) */

void hex_encode(const void *bytes, size_t length, char *ret_hex); /* 2 * length + 1, lower case */
_must_use_ bool hex_decode(
    const char *hex, void *ret, size_t length); /* exactly 2 * length lower-case digits */

#endif
