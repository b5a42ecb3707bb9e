/* Public keys, and the ring of those that are trusted. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "completion/proof/keys-private.h"
#include "completion/proof/pem-private.h"

#define ID_PREFIX "ed25519:"

_Static_assert(sizeof(ID_PREFIX) - 1 + DIGEST_HEX_SIZE == KEY_ID_SIZE, "an id fits its place");

void public_key_done(struct public_key *key)
{
    free(key->origin);
    *key = (struct public_key){0};
}

void key_ring_done(struct key_ring *ring)
{
    for (size_t i = 0; i < ring->count; i++)
        public_key_done(&ring->keys[i]);
    free(ring->keys);
    *ring = (struct key_ring){0};
}

void public_key_name(struct public_key *key)
{
    digest_hex(key->bytes, sizeof(key->bytes), stpcpy(key->id, ID_PREFIX));
}

/* ---- one public key ---- */

static enum result not_a_key(const char *path, const struct text *content, struct error *err)
{
    error_set(err, RESULT_INVALID, 0, "%s is not an Ed25519 public key in PEM", path);
    if (content->length && strstr(content->bytes, "PRIVATE KEY"))
        return error_remedy(err, "it is a private key: give the file that ends in %s", PUBLIC_SUFFIX);
    return error_remedy(err, "write one with `tenure key show`, or `openssl pkey -in KEY -pubout`");
}

enum result public_key_read(const char *path, struct public_key *ret, struct error *err)
{
    _cleanup_(text_done) struct text content = {0};
    enum result r = file_read(AT_FDCWD, path, false, PEM_LIMIT_BYTES, &content, err);
    if (r == RESULT_INVALID)
        return not_a_key(path, &content, err);
    if (r != RESULT_OK)
        return r;
    struct public_key key = {0};
    if (!pem_public_read(content.bytes, content.length, key.bytes))
        return not_a_key(path, &content, err);
    public_key_name(&key);
    key.origin = mem_string(path);
    *ret = key;
    return RESULT_OK;
}

void public_key_pem(const struct public_key *key, char **ret)
{
    *ret = mem_alloc(PEM_PUBLIC_SIZE);
    pem_public_write(key->bytes, *ret);
}

/* ---- the ring ---- */

static void key_ring_add(struct key_ring *ring, struct public_key *key)
{
    for (size_t i = 0; i < ring->count; i++)
        if (memcmp(ring->keys[i].bytes, key->bytes, sizeof(key->bytes)) == 0) {
            public_key_done(key);
            return;
        }
    ring->keys = mem_resize(ring->keys, ring->count + 1, sizeof(*ring->keys));
    ring->keys[ring->count++] = *key;
}

enum result key_ring_add_file(struct key_ring *ring, const char *path, struct error *err)
{
    struct public_key key = {0};
    enum result r = public_key_read(path, &key, err);
    if (r == RESULT_OK)
        key_ring_add(ring, &key);
    return r;
}

enum result key_ring_add_directory(struct key_ring *ring, const char *path, struct error *err)
{
    _cleanup_(name_list_done) struct name_list names = {0};
    enum result r = name_list_read(path, PUBLIC_SUFFIX, &names, err);
    for (size_t i = 0; r == RESULT_OK && i < names.count; i++) {
        _cleanup_(mem_free) char *file = mem_format("%s/%s", path, names.items[i]);
        r = key_ring_add_file(ring, file, err);
    }
    return r;
}

enum result key_ring_add_own(struct key_ring *ring, struct error *err)
{
    static const char *const FOLDERS[] = {"keys", "trusted"};
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < ARRAY_SIZE(FOLDERS); i++) {
        _cleanup_(mem_free) char *path = NULL;
        r = config_path(FOLDERS[i], &path, err);
        if (r == RESULT_OK)
            r = key_ring_add_directory(ring, path, err);
    }
    return r;
}

static enum result write_trusted(const char *directory, struct public_key *key, struct error *err)
{
    _cleanup_(mem_free) char *pem = NULL;
    _cleanup_(mem_free) char *path =
        mem_format("%s/%s" PUBLIC_SUFFIX, directory, key->id + strlen(ID_PREFIX));
    public_key_pem(key, &pem);
    FAILPOINT("key-before-trust");
    enum result r = file_write_atomic(path, 0644, false, pem, strlen(pem), err);
    FAILPOINT("key-after-trust");
    if (r != RESULT_OK)
        return r;
    free(key->origin);
    key->origin = STEAL(path);
    return RESULT_OK;
}

enum result key_trust(const char *path, struct public_key *ret, struct error *err)
{
    _cleanup_(public_key_done) struct public_key key = {0};
    _cleanup_(mem_free) char *directory = NULL;
    enum result r = public_key_read(path, &key, err);
    if (r == RESULT_OK)
        r = config_path("trusted", &directory, err);
    if (r == RESULT_OK)
        r = keys_make_directory(directory, err);
    if (r == RESULT_OK)
        r = write_trusted(directory, &key, err);
    if (r != RESULT_OK)
        return r;
    *ret = key;
    key.origin = NULL;
    return RESULT_OK;
}
