#include "base/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The prefix of a field that is not there: no field can be this long. */
#define LENGTH_OF_NULL UINT64_MAX

static void store_le64(uint64_t number, uint8_t ret[8])
{
    for (int i = 0; i < 8; i++)
        ret[i] = (uint8_t)(number >> (8 * i));
}

void digest_begin(void)
{
    if (sodium_init() < 0)
        abort();
}

void digest_init(struct digest *digest, size_t size_bytes)
{
    digest->size_bytes = size_bytes;
    if (crypto_generichash_init(&digest->state, NULL, 0, size_bytes) != 0)
        abort();
}

void digest_raw(struct digest *digest, const void *bytes, size_t length)
{
    if (length)
        crypto_generichash_update(&digest->state, bytes, length);
}

static void digest_length(struct digest *digest, uint64_t length)
{
    uint8_t prefix[8];
    store_le64(length, prefix);
    digest_raw(digest, prefix, sizeof(prefix));
}

void digest_field(struct digest *digest, const void *bytes, size_t length)
{
    digest_length(digest, length);
    digest_raw(digest, bytes, length);
}

void digest_string(struct digest *digest, const char *string)
{
    if (string)
        digest_field(digest, string, strlen(string));
    else
        digest_length(digest, LENGTH_OF_NULL);
}

void digest_number(struct digest *digest, uint64_t number)
{
    uint8_t bytes[8];
    store_le64(number, bytes);
    digest_field(digest, bytes, sizeof(bytes));
}

void digest_final(struct digest *digest, uint8_t *ret)
{
    crypto_generichash_final(&digest->state, ret, digest->size_bytes);
}

void digest_final_hex(struct digest *digest, char *ret_hex)
{
    uint8_t bytes[DIGEST_BYTES];
    digest_final(digest, bytes);
    hex_encode(bytes, digest->size_bytes, ret_hex);
}

void digest_hex(const void *bytes, size_t length, char ret_hex[DIGEST_HEX_SIZE])
{
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_raw(&digest, bytes, length);
    digest_final_hex(&digest, ret_hex);
}

void random_bytes(void *ret, size_t length)
{
    uint8_t *at = ret;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno != EINTR)
            abort(); /* a guessable token is worse than no process */
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
}

void hex_encode(const void *bytes, size_t length, char *ret_hex)
{
    static const char DIGITS[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    for (size_t i = 0; i < length; i++) {
        ret_hex[2 * i] = DIGITS[from[i] >> 4];
        ret_hex[2 * i + 1] = DIGITS[from[i] & 15];
    }
    ret_hex[2 * length] = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool hex_decode(const char *hex, void *ret, size_t length)
{
    for (size_t i = 0; i < 2 * length; i++)
        if (hex_value(hex[i]) < 0) /* the terminating NUL too */
            return false;
    if (hex[2 * length] != '\0')
        return false;
    uint8_t *to = ret;
    for (size_t i = 0; i < length; i++)
        to[i] = (uint8_t)(hex_value(hex[2 * i]) * 16 + hex_value(hex[2 * i + 1]));
    return true;
}
