#include "base/text.h"

#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/memory.h"

const char TEXT_BASE32[33] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void text_reserve(struct text *text, size_t more)
{
    size_t wanted;
    if (__builtin_add_overflow(text->length, more, &wanted) || wanted > SIZE_MAX / 4)
        abort();
    if (text->bytes && wanted < text->capacity)
        return;
    text->capacity = wanted < 32 ? 64 : wanted * 2;
    text->bytes = mem_resize(text->bytes, text->capacity, 1);
}

void text_append(struct text *text, const void *bytes, size_t length)
{
    text_reserve(text, length);
    if (length)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *added = mem_vformat(format, arguments);
    va_end(arguments);
    text_add(text, added);
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

void text_done(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

char *text_steal(struct text *text)
{
    if (!text->bytes)
        text_append(text, "", 0);
    char *bytes = text->bytes;
    *text = (struct text){0};
    return bytes;
}

/* UTF-8: what may follow each first byte. A table, because the second byte's range is what keeps out overlong
 * forms, surrogates and everything above U+10FFFF (RFC 3629, section 4). */
struct utf8_form {
    uint8_t first_low, first_high;
    uint8_t size;
    uint8_t second_low, second_high;
};

static const struct utf8_form UTF8_FORMS[] = {
    {0x00, 0x7F, 1, 0x00, 0x00},
    {0xC2, 0xDF, 2, 0x80, 0xBF},
    {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static const struct utf8_form *utf8_form_of(uint8_t first)
{
    for (size_t i = 0; i < ARRAY_SIZE(UTF8_FORMS); i++)
        if (first >= UTF8_FORMS[i].first_low && first <= UTF8_FORMS[i].first_high)
            return &UTF8_FORMS[i];
    return NULL;
}

static bool utf8_tail_fits(const struct utf8_form *form, const uint8_t *bytes)
{
    if (form->size > 1 && (bytes[1] < form->second_low || bytes[1] > form->second_high))
        return false;
    for (size_t i = 2; i < form->size; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return false;
    return true;
}

/* Size of the character at `bytes`, 0 when it is none. */
static size_t utf8_size(const uint8_t *bytes, size_t left)
{
    if (bytes[0] < 0x80)
        return 1;
    const struct utf8_form *form = utf8_form_of(bytes[0]);
    return form && form->size <= left && utf8_tail_fits(form, bytes) ? form->size : 0;
}

static uint32_t utf8_code(const uint8_t *bytes, size_t size)
{
    if (size == 1)
        return bytes[0];
    uint32_t code = bytes[0] & (0x7FU >> size);
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (bytes[i] & 0x3FU);
    return code;
}

static size_t ascii_prefix(const uint8_t *text, size_t length)
{
    size_t at = 0;
    for (uint64_t eight; length - at >= sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    return at;
}

size_t text_utf8_prefix(const void *bytes, size_t length)
{
    const uint8_t *text = bytes;
    size_t at = 0;
    for (;;) {
        at += ascii_prefix(text + at, length - at);
        if (at >= length)
            break;
        size_t size = utf8_size(text + at, length - at);
        if (!size)
            break;
        at += size;
    }
    return at;
}

struct code_range {
    uint32_t low, high;
};

/* What would move the cursor, change colours, break lines or turn the reading direction around. */
static const struct code_range UNSAFE[] = {
    {0x0000, 0x001F}, /* C0 controls */
    {0x007F, 0x009F}, /* DEL and C1 controls */
    {0x061C, 0x061C}, /* Arabic letter mark */
    {0x200E, 0x200F}, /* directional marks */
    {0x2028, 0x202E}, /* line and paragraph separator, embeddings and overrides */
    {0x2066, 0x2069}, /* isolates */
};

static bool code_is_safe(uint32_t code, bool keep_newlines)
{
    if (keep_newlines && (code == '\n' || code == '\t'))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(UNSAFE); i++)
        if (code >= UNSAFE[i].low && code <= UNSAFE[i].high)
            return false;
    return true;
}

void text_add_printable(struct text *text, const void *bytes, size_t length, bool keep_newlines)
{
    const uint8_t *from = bytes;
    text_append(text, "", 0);
    for (size_t at = 0; at < length;) {
        size_t size = utf8_size(from + at, length - at);
        bool safe = size && code_is_safe(utf8_code(from + at, size), keep_newlines);
        size_t step = size ? size : 1;
        if (safe)
            text_append(text, from + at, step);
        for (size_t i = 0; !safe && i < step; i++)
            text_addf(text, "\\x%02x", from[at + i]);
        at += step;
    }
}

static pthread_once_t utf8_locale_once = PTHREAD_ONCE_INIT;
static locale_t utf8_locale;

static void utf8_locale_load(void)
{
    utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static int code_columns(uint32_t code)
{
    int columns = utf8_locale ? wcwidth((wchar_t)code) : 1;
    return columns > 0 ? columns : 0;
}

int text_columns(const char *string)
{
    /* wcwidth() follows the thread's locale, and nobody promises that it is one with UTF-8. */
    pthread_once(&utf8_locale_once, utf8_locale_load);
    locale_t before = utf8_locale ? uselocale(utf8_locale) : (locale_t)0;
    int columns = 0;
    size_t length = strlen(string);
    for (size_t at = 0; at < length;) {
        const uint8_t *bytes = (const uint8_t *)string + at;
        size_t size = utf8_size(bytes, length - at);
        if (size)
            columns += code_columns(utf8_code(bytes, size));
        at += size ? size : 1;
    }
    if (before)
        uselocale(before);
    return columns;
}

bool text_parse_int(const char *string, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = *string == '-';
    const char *digit = string + negative;
    if (!*digit)
        return false;
    int64_t number = 0;
    for (; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        int value = negative ? '0' - *digit : *digit - '0';
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, value, &number))
            return false;
    }
    if (number < min || number > max)
        return false;
    *ret = number;
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance with swapped neighbours as one step, the commonest slip of a hand. `rows` holds three rows.
 */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length, size_t *rows)
{
    size_t width = b_length + 1;
    size_t *older = rows, *above = rows + width, *row = rows + 2 * width;
    for (size_t j = 0; j < width; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(change, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], older[j - 2] + 1);
        }
        size_t *free_row = older;
        older = above, above = row, row = free_row;
    }
    return above[b_length];
}

const char *text_nearest(const char *word, const char *const *names, size_t count)
{
    size_t length = strlen(word), limit = length / 3 ? length / 3 : 1;
    const char *nearest = NULL;
    size_t nearest_distance = least(limit + 1, length);
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > length + limit || length > name_length + limit)
            continue;
        _cleanup_(mem_free) size_t *rows = mem_resize(NULL, 3 * (name_length + 1), sizeof(*rows));
        size_t distance = edit_distance(word, length, names[i], name_length, rows);
        if (distance < nearest_distance) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}
