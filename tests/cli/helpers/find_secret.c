/*
 * Looks for secrets where none may be.
 *
 *     find_secret make                          prints a new token in hex, and its digest
 *     find_secret token DIGEST... -- FILE...    32 bytes whose digest as a token is one of these
 *     find_secret bytes HEX -- FILE...          these 32 bytes
 *
 * In every form in which they might have been written: as they are, in hex, in base64 at any place of a
 * longer text. Prints where; exits with 1 when something was found, 0 when nothing was, 2 when it cannot
 * look.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "attempts/attempt.h"
#include "base/memory.h"

#define HEX_DIGITS (2 * TOKEN_BYTES)

struct wanted {
    bool by_digest;
    const char *const *hex;
    size_t count;
};

static void to_hex(const uint8_t *bytes, char ret[HEX_DIGITS + 1])
{
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static bool is_wanted(const struct wanted *wanted, const uint8_t *bytes)
{
    uint8_t digest[TOKEN_DIGEST_BYTES];
    char hex[HEX_DIGITS + 1];
    if (wanted->by_digest)
        token_digest(bytes, digest);
    to_hex(wanted->by_digest ? digest : bytes, hex);
    for (size_t i = 0; i < wanted->count; i++)
        if (strcmp(hex, wanted->hex[i]) == 0)
            return true;
    return false;
}

static int value_of(char digit, const char *digits)
{
    const char *at = digit ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool from_hex(const char *at, size_t left, uint8_t ret[TOKEN_BYTES])
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < HEX_DIGITS; i++) {
        int value =
            i < left ? value_of(at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] + 32) : at[i], DIGITS) : -1;
        if (value < 0)
            return false;
        ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] << 4 | value : value);
    }
    return true;
}

/* From bit `offset` of the digits at `at`. */
static bool from_base64(const char *at, size_t left, size_t offset, uint8_t ret[TOKEN_BYTES])
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(ret, 0, TOKEN_BYTES);
    for (size_t bit = 0; bit < TOKEN_BYTES * 8; bit++) {
        size_t from = bit + offset, place = from / 6;
        char digit = place < left ? at[place] : '\0';
        int value = value_of(digit == '-' ? '+' : digit == '_' ? '/' : digit, DIGITS);
        if (value < 0)
            return false;
        if (value >> (5 - from % 6) & 1)
            ret[bit / 8] = (uint8_t)(ret[bit / 8] | 0x80 >> bit % 8);
    }
    return true;
}

static const char *form_at(const struct wanted *wanted, const char *at, size_t left)
{
    uint8_t bytes[TOKEN_BYTES];
    if (left >= TOKEN_BYTES && is_wanted(wanted, (const uint8_t *)at))
        return "raw";
    if (from_hex(at, left, bytes) && is_wanted(wanted, bytes))
        return "hex";
    for (size_t offset = 0; offset < 6; offset += 2)
        if (from_base64(at, left, offset, bytes) && is_wanted(wanted, bytes))
            return "base64";
    return NULL;
}

static bool is_in(const struct wanted *wanted, const char *path)
{
    size_t capacity = 0, length = 0;
    char *bytes = NULL;
    FILE *file = fopen(path, "re");
    if (!file) {
        perror(path);
        exit(2);
    }
    for (int byte; (byte = getc(file)) != EOF; bytes[length++] = (char)byte)
        mem_grow(&bytes, &capacity, length, 1);
    fclose(file);
    bool found = false;
    for (size_t i = 0; i < length; i++) {
        const char *form = form_at(wanted, bytes + i, length - i);
        if (form) {
            printf("%s: %s at byte %zu\n", path, form, i);
            found = true;
        }
    }
    free(bytes);
    return found;
}

static int make(void)
{
    uint8_t token[TOKEN_BYTES], digest[TOKEN_DIGEST_BYTES];
    char hex[HEX_DIGITS + 1];
    if (getrandom(token, sizeof token, 0) != (ssize_t)sizeof token)
        return 2;
    token_digest(token, digest);
    to_hex(token, hex);
    printf("%s ", hex);
    to_hex(digest, hex);
    printf("%s\n", hex);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "make") == 0)
        return make();
    int split = 2;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    if (argc < 3 || split == 2 || split >= argc - 1)
        return 2;
    struct wanted wanted = {
        .by_digest = strcmp(argv[1], "token") == 0,
        .hex = (const char *const *)argv + 2,
        .count = (size_t)split - 2,
    };
    bool found = false;
    for (int i = split + 1; i < argc; i++)
        found |= is_in(&wanted, argv[i]);
    return found;
}
