#include "base/json_keys-private.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

void json_keys_init(struct json_keys *keys, const char *source)
{
    *keys = (struct json_keys){.source = source, .slot_count = JSON_KEYS_FIRST};
    keys->slots = keys->first;
}

void json_keys_done(struct json_keys *keys)
{
    text_done(&keys->decoded);
    if (keys->slots != keys->first)
        free(keys->slots);
    keys->slots = NULL;
}

const char *json_keys_bytes(const struct json_keys *keys, const struct json_key *key)
{
    return (key->decoded ? keys->decoded.bytes : keys->source) + key->offset;
}

static uint32_t key_hash(const struct json_keys *keys, const struct json_key *key)
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t number;
    crypto_shorthash(hash, (const uint8_t *)json_keys_bytes(keys, key), key->length, keys->seed);
    memcpy(&number, hash, sizeof(number));
    return number + key->object * 0x9E3779B1U; /* the same few keys come in many objects */
}

static bool key_equal(const struct json_keys *keys, const struct json_key *a, const struct json_key *b)
{
    return a->hash == b->hash && a->object == b->object && a->length == b->length &&
           memcmp(json_keys_bytes(keys, a), json_keys_bytes(keys, b), a->length) == 0;
}

/* The slot that holds an equal key, or the free one where it belongs. */
static struct json_key *slot_find(const struct json_keys *keys, const struct json_key *key)
{
    size_t mask = keys->slot_count - 1;
    size_t at = key->hash & mask;
    while (keys->slots[at].object && !key_equal(keys, &keys->slots[at], key))
        at = (at + 1) & mask;
    return &keys->slots[at];
}

static void keys_grow(struct json_keys *keys)
{
    struct json_key *old = keys->slots;
    size_t old_count = keys->slot_count;
    if (old == keys->first)
        random_bytes(keys->seed, sizeof(keys->seed));
    keys->slot_count = old_count * 4;
    keys->slots = mem_alloc(keys->slot_count * sizeof(*keys->slots));
    for (size_t i = 0; i < old_count; i++) {
        struct json_key key = old[i];
        if (!key.object)
            continue;
        key.hash = key_hash(keys, &key);
        *slot_find(keys, &key) = key;
    }
    if (old != keys->first)
        free(old);
}

bool json_keys_add(struct json_keys *keys, struct json_key key)
{
    if (keys->used * 2 >= keys->slot_count)
        keys_grow(keys);
    key.hash = key_hash(keys, &key);
    struct json_key *slot = slot_find(keys, &key);
    if (slot->object)
        return false;
    *slot = key;
    keys->used++;
    return true;
}
