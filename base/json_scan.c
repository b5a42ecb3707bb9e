/* The grammar of RFC 8259. Positions, trees and messages with positions are made in json_document.c. */
#include "base/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan-private.h"
#include "base/memory.h"

#define KEY_SHOWN_BYTES 64

/* Past the end everything looks like a NUL, which no rule of the grammar accepts. */
static char peek(const struct json_scan *scan)
{
    return scan->at < scan->length ? scan->bytes[scan->at] : '\0';
}

static void skip_space(struct json_scan *scan)
{
    for (char c = peek(scan); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = peek(scan))
        scan->at++;
}

static bool take(struct json_scan *scan, char c)
{
    if (peek(scan) != c || scan->at >= scan->length)
        return false;
    scan->at++;
    return true;
}

static bool fail_at(struct json_scan *scan, size_t at, const char *remedy, const char *format, ...)
    _printf_(4, 5);

static bool fail_at(struct json_scan *scan, size_t at, const char *remedy, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = mem_vformat(format, arguments);
    va_end(arguments);
    free(scan->message);
    scan->message = message;
    scan->remedy = remedy;
    scan->failed_at = at;
    return false;
}

/* What people write who take JSON for something else. */
struct slip {
    const char *begins;
    const char *message, *remedy;
};

static const struct slip SLIPS[] = {
    {"//", "comments are not allowed", "remove the comment"},
    {"/*", "comments are not allowed", "remove the comment"},
    {"#", "comments are not allowed", "remove the comment"},
    {"'", "single quotes are not allowed", "write \"double quotes\""},
};

static const struct slip VALUE_SLIPS[] = {
    {"NaN", "NaN is not a JSON number", NULL},
    {"Infinity", "Infinity is not a JSON number", NULL},
    {"+", "a number must not begin with a plus sign", "remove the sign"},
    {".", "a number must begin with a digit", "write a 0 in front of the point"},
    {"True", "True is not a JSON word", "write true"},
    {"False", "False is not a JSON word", "write false"},
    {"None", "None is not a JSON word", "write null"},
};

static const struct slip *slip_find(const struct json_scan *scan, const struct slip *slips, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(slips[i].begins);
        if (scan->length - scan->at >= length && memcmp(scan->bytes + scan->at, slips[i].begins, length) == 0)
            return &slips[i];
    }
    return NULL;
}

static bool fail_expected(struct json_scan *scan, const char *expected)
{
    const char *at = scan->bytes + scan->at;
    size_t left = scan->length - scan->at;
    if (left == 0)
        return fail_at(scan, scan->at, NULL, "the text ends where %s is expected", expected);
    const struct slip *slip = slip_find(scan, SLIPS, ARRAY_SIZE(SLIPS));
    if (slip)
        return fail_at(scan, scan->at, slip->remedy, "%s", slip->message);
    _cleanup_(text_done) struct text found = {0};
    size_t size = 1; /* the text is valid UTF-8: take the whole character */
    while (size < left && ((unsigned char)at[size] & 0xC0) == 0x80)
        size++;
    text_add_printable(&found, at, size, false);
    return fail_at(scan, scan->at, NULL, "'%s' found where %s is expected", found.bytes, expected);
}

static bool fail_value(struct json_scan *scan)
{
    const struct slip *slip = slip_find(scan, VALUE_SLIPS, ARRAY_SIZE(VALUE_SLIPS));
    return slip ? fail_at(scan, scan->at, slip->remedy, "%s", slip->message) : fail_expected(scan, "a value");
}

/* Four hex digits at `at`; negative when there are none. */
static int hex4(const struct json_scan *scan, size_t at)
{
    int code = 0;
    if (scan->length - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        char c = scan->bytes[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static bool is_high_surrogate(int code)
{
    return code >= 0xD800 && code <= 0xDBFF;
}

static bool is_low_surrogate(int code)
{
    return code >= 0xDC00 && code <= 0xDFFF;
}

/* `at` is behind "\u". The offset behind the whole character, which may be a pair; 0 after a failure. */
static size_t unicode_escape(struct json_scan *scan, size_t at, uint32_t *ret_code)
{
    size_t begin = at - 2;
    int code = hex4(scan, at);
    if (code < 0)
        return (size_t)fail_at(scan, begin, NULL, "\\u needs four hexadecimal digits");
    at += 4;
    *ret_code = (uint32_t)code;
    if (!is_high_surrogate(code) && !is_low_surrogate(code))
        return at;
    bool escape_follows = scan->length - at >= 6 && scan->bytes[at] == '\\' && scan->bytes[at + 1] == 'u';
    int low = is_high_surrogate(code) && escape_follows ? hex4(scan, at + 2) : -1;
    if (!is_low_surrogate(low))
        return (size_t)fail_at(scan, begin, NULL, "\\u%04x is half of a surrogate pair", (unsigned)code);
    *ret_code = 0x10000U + (((uint32_t)code & 0x3FFU) << 10 | ((uint32_t)low & 0x3FFU));
    return at + 6;
}

static void append_utf8(struct text *text, uint32_t code)
{
    static const uint8_t MARKS[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    uint8_t bytes[4];
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    bytes[0] = (uint8_t)(MARKS[size] | code);
    text_append(text, bytes, size);
}

/* `at` is behind the backslash. With `decoded` the character is appended to it, and NUL is refused: it would
 * end a key early. The offset behind the escape; 0 after a failure. */
static size_t escape(struct json_scan *scan, size_t at, struct text *decoded)
{
    static const char NAMES[] = "\"\\/bfnrt", VALUES[] = "\"\\/\b\f\n\r\t";
    char name = at < scan->length ? scan->bytes[at] : '\0';
    const char *found = name ? strchr(NAMES, name) : NULL;
    uint32_t code = 0;
    if (found)
        code = (unsigned char)VALUES[found - NAMES];
    else if (name != 'u')
        return (size_t)fail_at(scan, at - 1, "write a backslash as \\\\", "unknown escape in a string");
    size_t end = found ? at + 1 : unicode_escape(scan, at + 1, &code);
    if (!end || !decoded)
        return end;
    if (code == 0)
        return (size_t)fail_at(scan, at - 1, NULL, "\\u0000 is not allowed in a key");
    append_utf8(decoded, code);
    return end;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* At the opening quote. Moves behind the closing one. */
static bool scan_string(struct json_scan *scan, bool *ret_escaped)
{
    size_t begin = scan->at, at = begin + 1;
    *ret_escaped = false;
    for (;;) {
        while (at < scan->length && is_plain(scan->bytes[at]))
            at++;
        if (at >= scan->length)
            return fail_at(scan, begin, NULL, "the string that begins here does not end");
        if (scan->bytes[at] == '"')
            break;
        if (scan->bytes[at] != '\\')
            return fail_at(scan, at, "write it as an escape, such as \\n or \\t",
                "control character \\x%02x in a string", (unsigned char)scan->bytes[at]);
        *ret_escaped = true;
        at = escape(scan, at + 1, NULL);
        if (!at)
            return false;
    }
    scan->at = at + 1;
    return true;
}

/* The bytes between two offsets hold escapes that scan_string() has accepted. */
static bool decode_key(struct json_scan *scan, size_t begin, size_t end, struct json_key *key)
{
    struct text *decoded = &scan->keys.decoded;
    size_t first = decoded->length;
    for (size_t at = begin; at < end;) {
        size_t run = at;
        while (run < end && scan->bytes[run] != '\\')
            run++;
        text_append(decoded, scan->bytes + at, run - at);
        at = run < end ? escape(scan, run + 1, decoded) : end;
        if (!at)
            return false;
    }
    key->decoded = 1;
    key->offset = (uint32_t)first;
    key->length = (uint32_t)(decoded->length - first) & 0x7FFFFFFFU;
    return true;
}

static bool fail_duplicate(struct json_scan *scan, const struct json_key *key, size_t at)
{
    _cleanup_(text_done) struct text shown = {0};
    size_t length = key->length < KEY_SHOWN_BYTES ? key->length : KEY_SHOWN_BYTES;
    text_add_printable(&shown, json_keys_bytes(&scan->keys, key), length, false);
    return fail_at(scan, at, NULL, "duplicate key \"%s\"", shown.bytes);
}

static bool scan_key(struct json_scan *scan, uint32_t object, struct json_token *ret)
{
    size_t begin = scan->at;
    bool escaped;
    if (peek(scan) != '"')
        return fail_expected(scan, "a key in double quotes");
    if (!scan_string(scan, &escaped))
        return false;
    struct json_key key = {
        .object = object,
        .offset = (uint32_t)begin + 1,
        .length = (uint32_t)(scan->at - begin - 2) & 0x7FFFFFFFU,
    };
    if (escaped && !decode_key(scan, begin + 1, scan->at - 1, &key))
        return false;
    if (!json_keys_add(&scan->keys, key))
        return fail_duplicate(scan, &key, begin);
    ret->key = json_keys_bytes(&scan->keys, &key);
    ret->key_length = key.length;
    ret->key_at = begin;
    return true;
}

static size_t skip_digits(struct json_scan *scan)
{
    size_t begin = scan->at;
    while (peek(scan) >= '0' && peek(scan) <= '9')
        scan->at++;
    return scan->at - begin;
}

/* json-c refuses what neither int64_t nor uint64_t holds. */
static bool integer_fits(const char *number, size_t length)
{
    char copy[24];
    if (length <= 18)
        return true;
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, number, length);
    copy[length] = '\0';
    errno = 0;
    if (*copy == '-')
        (void)strtoll(copy, NULL, 10);
    else
        (void)strtoull(copy, NULL, 10);
    return errno == 0;
}

/* Infinity must not come in by way of a large exponent. Written anew without the point, because strtod()
 * takes the point of the locale. */
static bool real_is_finite(const char *number, size_t length, size_t fraction)
{
    _cleanup_(mem_free) char *copy = mem_copy(number, length);
    char *mark = strpbrk(copy, "eE"), *point = strchr(copy, '.');
    long exponent = mark ? strtol(mark + 1, NULL, 10) : 0;
    if (exponent > 1000 * 1000 || exponent < -2 * 1000 * 1000)
        return exponent < 0;
    if (mark)
        *mark = '\0';
    if (point)
        memmove(point, point + 1, strlen(point));
    _cleanup_(mem_free) char *plain = mem_format("%se%ld", copy, exponent - (long)fraction);
    return isfinite(strtod(plain, NULL));
}

static bool scan_exponent(struct json_scan *scan)
{
    if (peek(scan) != 'e' && peek(scan) != 'E')
        return true;
    scan->at++;
    if (peek(scan) == '+' || peek(scan) == '-')
        scan->at++;
    return skip_digits(scan) > 0 || fail_expected(scan, "a digit of the exponent");
}

static bool scan_number(struct json_scan *scan)
{
    size_t begin = scan->at, fraction = 0;
    take(scan, '-');
    bool zero = peek(scan) == '0';
    size_t digits = skip_digits(scan);
    if (digits == 0)
        return fail_expected(scan, "a digit");
    if (zero && digits > 1)
        return fail_at(scan, begin, "remove the leading zeros", "a number must not begin with 0");
    size_t integer_end = scan->at;
    if (take(scan, '.')) {
        fraction = skip_digits(scan);
        if (fraction == 0)
            return fail_expected(scan, "a digit behind the point");
    }
    if (!scan_exponent(scan))
        return false;
    size_t length = scan->at - begin;
    bool fits = scan->at == integer_end ? integer_fits(scan->bytes + begin, length)
                                        : real_is_finite(scan->bytes + begin, length, fraction);
    return fits || fail_at(scan, begin, NULL, "this number is too large");
}

static bool scan_word(struct json_scan *scan, const char *word)
{
    size_t length = strlen(word);
    if (scan->length - scan->at < length || memcmp(scan->bytes + scan->at, word, length) != 0)
        return fail_value(scan);
    scan->at += length;
    return true;
}

static bool scan_value(struct json_scan *scan, const struct json_token *token);

static bool scan_member(struct json_scan *scan, uint32_t place, uint32_t object)
{
    struct json_token token = {.parent = place};
    if (!scan_key(scan, object, &token))
        return false;
    skip_space(scan);
    if (!take(scan, ':'))
        return fail_expected(scan, "':' after a key");
    return scan_value(scan, &token);
}

/* Behind a comma, after space: a closing bracket here is the commonest slip of all. */
static bool no_trailing_comma(struct json_scan *scan, size_t comma, char close)
{
    return peek(scan) != close ||
           fail_at(scan, comma, "remove the comma", "trailing comma before '%c'", close);
}

static bool scan_object(struct json_scan *scan, uint32_t place)
{
    uint32_t object = ++scan->objects;
    scan->at++;
    skip_space(scan);
    if (take(scan, '}'))
        return true;
    for (;;) {
        if (!scan_member(scan, place, object))
            return false;
        skip_space(scan);
        size_t comma = scan->at;
        if (take(scan, '}'))
            return true;
        if (!take(scan, ','))
            return fail_expected(scan, "',' or '}'");
        skip_space(scan);
        if (!no_trailing_comma(scan, comma, '}'))
            return false;
    }
}

static bool scan_array(struct json_scan *scan, uint32_t place)
{
    struct json_token token = {.parent = place};
    scan->at++;
    skip_space(scan);
    if (take(scan, ']'))
        return true;
    for (;; token.index++) {
        if (!scan_value(scan, &token))
            return false;
        skip_space(scan);
        size_t comma = scan->at;
        if (take(scan, ']'))
            return true;
        if (!take(scan, ','))
            return fail_expected(scan, "',' or ']'");
        skip_space(scan);
        if (!no_trailing_comma(scan, comma, ']'))
            return false;
    }
}

static bool scan_container(struct json_scan *scan, uint32_t place)
{
    if (scan->depth == JSON_LIMIT_DEPTH)
        return fail_at(scan, scan->at, NULL, "nested deeper than %d levels", JSON_LIMIT_DEPTH);
    scan->depth++;
    bool fine = peek(scan) == '{' ? scan_object(scan, place) : scan_array(scan, place);
    scan->depth--;
    return fine;
}

static bool scan_value(struct json_scan *scan, const struct json_token *token)
{
    uint32_t place = 0;
    bool escaped;
    skip_space(scan);
    if (scan->document)
        place = json_place_add(scan->document, &scan->cursor, token, scan->at);
    switch (peek(scan)) {
    case '{':
    case '[':
        return scan_container(scan, place);
    case '"':
        return scan_string(scan, &escaped);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    case '-':
        return scan_number(scan);
    default:
        return peek(scan) >= '0' && peek(scan) <= '9' ? scan_number(scan) : fail_value(scan);
    }
}

static bool scan_encoding(struct json_scan *scan)
{
    static const char MARK[] = "\xEF\xBB\xBF";
    if (scan->length >= 3 && memcmp(scan->bytes, MARK, 3) == 0)
        return fail_at(
            scan, 0, "save the file as UTF-8 without it", "the text begins with a byte-order mark");
    size_t valid = text_utf8_prefix(scan->bytes, scan->length);
    return valid == scan->length || fail_at(scan, valid, "save the file as UTF-8",
                                        "invalid UTF-8, byte \\x%02x", (unsigned char)scan->bytes[valid]);
}

static bool scan_text(struct json_scan *scan)
{
    static const struct json_token ROOT = {.parent = 0};
    if (!scan_encoding(scan))
        return false;
    skip_space(scan);
    scan->value_begin = scan->at;
    if (!scan_value(scan, &ROOT))
        return false;
    scan->value_end = scan->at;
    skip_space(scan);
    return scan->at == scan->length || fail_expected(scan, "the end of the text");
}

bool json_scan_run(struct json_scan *scan, const char *bytes, size_t length, struct json_document *document)
{
    /* Not `= {0}`: the key set is large and clears itself. */
    scan->bytes = bytes;
    scan->length = length;
    scan->at = 0;
    scan->depth = 0;
    scan->objects = 0;
    scan->document = document;
    scan->message = NULL;
    json_cursor_init(&scan->cursor, bytes);
    json_keys_init(&scan->keys, bytes);
    return scan_text(scan);
}

void json_scan_done(struct json_scan *scan)
{
    json_keys_done(&scan->keys);
    free(scan->message);
}
