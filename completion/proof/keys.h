/*
 * Signing keys: Ed25519 (RFC 8032) by libsodium, one file each.
 *
 * <config>/keys/<name>.key (0600: anything looser, or another owner, is refused) holds PKCS #8 PEM (RFC 8410)
 * and <name>.pub SubjectPublicKeyInfo PEM, so that openssl reads both. The key id is "ed25519:" and the
 * BLAKE2b-256 of the raw public key, hex. Trusted public keys: .tenure/keys/ of the repository,
 * <config>/trusted/, and --key. Secrets are wiped after use. One thread.
 *
 *     key_check(NULL, err);                                       // before work starts
 *     key_load(NULL, &key, err);                                  // when there is something to sign
 *     dsse_sign(&key, payload, length, &envelope);
 *     signing_key_done(&key);
 *
 *     key_ring_add_directory(&ring, ".tenure/keys", err);         // who may have signed what is verified
 */
#ifndef COMPLETION_PROOF_KEYS_H
#define COMPLETION_PROOF_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

#define KEY_ID_SIZE (8 + DIGEST_HEX_SIZE)

struct public_key {
    uint8_t bytes[32];
    char id[KEY_ID_SIZE];
    char *origin; /* file it came from */
};
void public_key_done(struct public_key *key);

struct key_ring {
    struct public_key *keys;
    size_t count;
};
void key_ring_done(struct key_ring *ring);

struct signing_key {
    uint8_t seed[32];
    struct public_key public;
};
void signing_key_done(struct signing_key *key); /* wipes */

/* Makes <name>.key and <name>.pub. `directory` NULL: the configuration directory's keys/; made with mode
 * 0700. CONFLICT when either file exists: a key is never replaced. INVALID for a name that is not plain
 * letters, digits, '.', '-' and '_'. */
_must_use_ enum result key_make(
    const char *directory, const char *name, struct public_key *ret, struct error *err);
/* The default key ("default.key", or the only one); a public half that is missing is written again. ABSENT
 * with the remedy `tenure init`; DENIED when loose: the file is a link, another's, or not of mode 0600 or
 * less, or others may write to the directory; INVALID when the file is no such key, or there are several and
 * none is the default. */
_must_use_ enum result key_load(const char *directory, struct signing_key *ret, struct error *err);
/* Could it be loaded? Before work starts. */
_must_use_ enum result key_check(const char *directory, struct error *err);

/* INVALID when the file is no Ed25519 public key in PEM. */
_must_use_ enum result public_key_read(const char *path, struct public_key *ret, struct error *err);
void public_key_pem(const struct public_key *key, char **ret);
/* Adds every *.pub of a directory (missing: nothing) to the ring, in order of name. A key that is there
 * already is not added twice. A file that is no key is an error: a ring that silently lacks a key misleads.
 */
_must_use_ enum result key_ring_add_directory(struct key_ring *ring, const char *path, struct error *err);
/* The user's own keys and those that the user trusts. */
_must_use_ enum result key_ring_add_own(struct key_ring *ring, struct error *err);
_must_use_ enum result key_ring_add_file(struct key_ring *ring, const char *path, struct error *err);
/* Copies a public key into the trusted ones of the user, as <digest>.pub. OK when it is there already. */
_must_use_ enum result key_trust(const char *path, struct public_key *ret, struct error *err);

#endif
