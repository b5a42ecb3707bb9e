#include "journal/handle.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "base/text.h"

#define SYMBOLS       7
#define CHECK_MODULUS 37

/* The 32 symbols and five more that only a check symbol can be. */
static const char CHECK_ALPHABET[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";
_Static_assert(sizeof(CHECK_ALPHABET) == CHECK_MODULUS + 1, "one symbol per remainder");

static int symbol_value(char typed, int limit)
{
    char symbol = (char)toupper((unsigned char)typed);
    if (symbol == 'I' || symbol == 'L')
        symbol = '1';
    else if (symbol == 'O')
        symbol = '0';
    const char *found = symbol != '\0' ? strchr(CHECK_ALPHABET, symbol) : NULL;
    int value = found != NULL ? (int)(found - CHECK_ALPHABET) : -1;
    return value < limit ? value : -1;
}

static int handle_check(const int values[SYMBOLS])
{
    uint64_t number = 0;
    for (int i = 0; i < SYMBOLS; i++)
        number = number * 32 + (uint64_t)values[i];
    return (int)(number % CHECK_MODULUS);
}

static void handle_write(const int values[SYMBOLS], char ret[HANDLE_SIZE])
{
    char *at = ret;
    *at++ = 'T';
    for (int i = 0; i < SYMBOLS; i++) {
        if (i % 4 == 0)
            *at++ = '-';
        *at++ = CHECK_ALPHABET[values[i]];
    }
    *at++ = CHECK_ALPHABET[handle_check(values)];
    *at = '\0';
}

void handle_make(char ret[HANDLE_SIZE])
{
    int values[SYMBOLS];
    /* A shell would read a '*' or '$' in its own way, so such a handle is drawn again. */
    do {
        uint8_t bytes[SYMBOLS];
        random_bytes(bytes, sizeof(bytes));
        for (int i = 0; i < SYMBOLS; i++)
            values[i] = bytes[i] % 32;
    } while (handle_check(values) >= 32);
    handle_write(values, ret);
}

static enum result handle_refuse(const char *typed, const char *why, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, typed, strnlen(typed, 64), false);
    text_add(&shown, "");
    error_set(err, RESULT_INVALID, 0, "'%s' is not a handle: %s", shown.bytes, why);
    return error_remedy(err, "type it as it was printed, like T-7K3M-QX9C");
}

/* Drops dashes; the length that it would take without a limit. */
static size_t handle_squeeze(const char *typed, char *ret, size_t size)
{
    size_t length = 0;
    for (const char *at = typed; *at != '\0'; at++) {
        if (*at == '-')
            continue;
        if (length < size)
            ret[length] = *at;
        length++;
    }
    return length;
}

enum result handle_parse(const char *typed, char ret[HANDLE_SIZE], struct error *err)
{
    char symbols[SYMBOLS + 2];
    if (handle_squeeze(typed, symbols, sizeof(symbols)) != sizeof(symbols))
        return handle_refuse(typed, "it has nine symbols beside its dashes", err);
    if (toupper((unsigned char)symbols[0]) != 'T')
        return handle_refuse(typed, "it begins with T", err);
    int values[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++) {
        values[i] = symbol_value(symbols[i + 1], 32);
        if (values[i] < 0)
            return handle_refuse(typed, "it holds a symbol that no handle has", err);
    }
    if (symbol_value(symbols[SYMBOLS + 1], CHECK_MODULUS) != handle_check(values))
        return handle_refuse(typed, "its last symbol does not fit the others, so one is mistyped", err);
    handle_write(values, ret);
    return RESULT_OK;
}
