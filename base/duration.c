#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define QUOTE_LIMIT_BYTES 64

struct unit {
    const char *name;
    int64_t ms;
};

/* From the largest to the smallest. */
static const struct unit UNITS[] = {
    {"d", INT64_C(24) * 60 * 60 * 1000},
    {"h", INT64_C(60) * 60 * 1000},
    {"m", INT64_C(60) * 1000},
    {"s", INT64_C(1000)},
    {"ms", INT64_C(1)},
};

static const struct unit *unit_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++)
        if (strcmp(UNITS[i].name, name) == 0)
            return &UNITS[i];
    return NULL;
}

enum reading {
    READING_OK,
    READING_MALFORMED,
    READING_TOO_LARGE, /* well formed, but no int64_t holds it */
};

static enum reading duration_read(const char *text, int64_t *ret_ms)
{
    size_t digits = strspn(text, "0123456789");
    const struct unit *unit = unit_find(text + digits);
    if (digits == 0 || !unit)
        return READING_MALFORMED;
    int64_t number = 0;
    for (size_t i = 0; i < digits; i++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text[i] - '0', &number))
            return READING_TOO_LARGE;
    return __builtin_mul_overflow(number, unit->ms, ret_ms) ? READING_TOO_LARGE : READING_OK;
}

/* The accepted form: "90s", "1h". */
static void duration_exact(int64_t ms, char ret[DURATION_TEXT_SIZE])
{
    const struct unit *unit = UNITS;
    while (ms ? ms % unit->ms != 0 : unit->ms != 1000)
        unit++;
    snprintf(ret, DURATION_TEXT_SIZE, "%" PRId64 "%s", ms / unit->ms, unit->name);
}

/* The value comes from a person or a file: made harmless, and not endless. */
static void quote(struct text *text, const char *value)
{
    size_t length = strnlen(value, QUOTE_LIMIT_BYTES + 1);
    bool cut = length > QUOTE_LIMIT_BYTES;
    text_add(text, "\"");
    text_add_printable(text, value, cut ? QUOTE_LIMIT_BYTES : length, false);
    text_add(text, cut ? "...\"" : "\"");
}

static enum result duration_refuse(
    const char *what, const char *text, bool malformed, int64_t min_ms, int64_t max_ms, struct error *err)
{
    char min[DURATION_TEXT_SIZE], max[DURATION_TEXT_SIZE];
    _cleanup_(text_done) struct text value = {0};
    duration_exact(min_ms, min);
    duration_exact(max_ms, max);
    quote(&value, text);
    return error_set(err, RESULT_INVALID, 0,
        "%s: %s is %s: give a whole number and one unit (ms, s, m, h, d), from %s to %s", what, value.bytes,
        malformed ? "not a duration" : "out of range", min, max);
}

enum result duration_parse(
    const char *what, const char *text, int64_t min_ms, int64_t max_ms, int64_t *ret_ms, struct error *err)
{
    int64_t ms = 0;
    enum reading reading = duration_read(text, &ms);
    if (reading != READING_OK || ms < min_ms || ms > max_ms)
        return duration_refuse(what, text, reading == READING_MALFORMED, min_ms, max_ms, err);
    *ret_ms = ms;
    return RESULT_OK;
}

/* Two neighbouring units, the smaller one left out when it is zero. */
static void format_pair(const char *sign, uint64_t ms, size_t larger, char ret[DURATION_TEXT_SIZE])
{
    uint64_t large_ms = (uint64_t)UNITS[larger].ms, small_ms = (uint64_t)UNITS[larger + 1].ms;
    uint64_t rest = ms % large_ms / small_ms;
    int used = snprintf(ret, DURATION_TEXT_SIZE, "%s%" PRIu64 " %s", sign, ms / large_ms, UNITS[larger].name);
    if (rest && used > 0 && used < DURATION_TEXT_SIZE)
        snprintf(
            ret + used, (size_t)(DURATION_TEXT_SIZE - used), " %" PRIu64 " %s", rest, UNITS[larger + 1].name);
}

static void format_seconds(const char *sign, uint64_t ms, char ret[DURATION_TEXT_SIZE])
{
    uint64_t tenths = ms % 1000 / 100;
    if (tenths)
        snprintf(ret, DURATION_TEXT_SIZE, "%s%" PRIu64 ".%" PRIu64 " s", sign, ms / 1000, tenths);
    else
        snprintf(ret, DURATION_TEXT_SIZE, "%s%" PRIu64 " s", sign, ms / 1000);
}

void duration_format(int64_t ms, char ret[DURATION_TEXT_SIZE])
{
    const char *sign = ms < 0 ? "-" : "";
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    for (size_t i = 0; i < 3; i++) {
        if (size >= (uint64_t)UNITS[i].ms) {
            format_pair(sign, size, i, ret);
            return;
        }
    }
    if (size >= 1000)
        format_seconds(sign, size, ret);
    else
        snprintf(ret, DURATION_TEXT_SIZE, "%s%" PRIu64 " ms", sign, size);
}
