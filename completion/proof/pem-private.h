/*
 * Ed25519 keys as PEM, in exactly one form each: PKCS #8 (RFC 8410, section 7; 48 bytes of DER) for private
 * and SubjectPublicKeyInfo (RFC 8410, section 4; 44 bytes) for public ones, as `openssl genpkey -algorithm
 * ed25519` and `openssl pkey -pubout` write them. What is read must equal, byte for byte, what would be
 * written. Pure.
 */
#ifndef COMPLETION_PROOF_PEM_PRIVATE_H
#define COMPLETION_PROOF_PEM_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

#define PEM_KEY_BYTES    32
#define PEM_LIMIT_BYTES  256 /* no key in this form is as long */
#define PEM_PRIVATE_SIZE 120 /* with the final NUL */
#define PEM_PUBLIC_SIZE  114

/* Whoever calls these wipes `ret`. */
void pem_private_write(const uint8_t seed[PEM_KEY_BYTES], char ret[PEM_PRIVATE_SIZE]);
_must_use_ bool pem_private_read(const char *bytes, size_t length, uint8_t ret_seed[PEM_KEY_BYTES]);

void pem_public_write(const uint8_t key[PEM_KEY_BYTES], char ret[PEM_PUBLIC_SIZE]);
/* Also false for 32 bytes that are no point of the curve's main subgroup: no signature by them means
 * anything. */
_must_use_ bool pem_public_read(const char *bytes, size_t length, uint8_t ret_key[PEM_KEY_BYTES]);

#endif
