/*
 * The keys of one JSON text, to find one that comes twice in an object. Keys are remembered by where they
 * lie, so that the set costs 16 bytes a key; those written with escapes are kept decoded.
 *
 * The hash is keyed at random as soon as the set grows beyond a few entries: nobody can choose keys that
 * collide.
 */
#ifndef BASE_JSON_KEYS_PRIVATE_H
#define BASE_JSON_KEYS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define JSON_KEYS_FIRST 32 /* slots that need no memory from the heap */
#define JSON_KEYS_SEED  16

struct json_key {
    uint32_t object; /* number of the object that holds it; 0: a free slot */
    uint32_t hash;
    uint32_t offset; /* in the source, or in the decoded keys */
    uint32_t length : 31;
    uint32_t decoded : 1;
};

struct json_keys {
    const char *source;
    struct text decoded;
    struct json_key *slots; /* `first`, or on the heap */
    size_t slot_count;      /* a power of two */
    size_t used;
    uint8_t seed[JSON_KEYS_SEED];
    struct json_key first[JSON_KEYS_FIRST];
};

void json_keys_init(struct json_keys *keys, const char *source);
void json_keys_done(struct json_keys *keys);

/* `key` tells where the bytes are; its hash is filled in here. False when the object has that key already. */
_must_use_ bool json_keys_add(struct json_keys *keys, struct json_key key);

/* The decoded bytes of a key; valid until the next key is decoded. */
const char *json_keys_bytes(const struct json_keys *keys, const struct json_key *key);

#endif
