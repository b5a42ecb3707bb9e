/*
 * Growable bytes, and the few questions about text that everybody asks.
 *
 * `struct text` is a byte buffer that is always NUL-terminated (the NUL is not counted) and may hold NUL
 * bytes.
 * `{0}` is an empty one. Not thread-safe.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct text {
    char *bytes; /* NULL only while empty and never appended to */
    size_t length;
    size_t capacity;
};

void text_append(struct text *text, const void *bytes, size_t length);
void text_add(struct text *text, const char *string);
void text_addf(struct text *text, const char *format, ...) _printf_(2, 3);
void text_clear(struct text *text);  /* empty, memory kept */
void text_done(struct text *text);   /* empty, memory freed */
char *text_steal(struct text *text); /* the string (never NULL), owned by the caller; text becomes empty */

/* Appends `bytes` so that they are safe on any terminal: control bytes, DEL, C1 and invalid UTF-8 become
 * \xNN, a backslash stays as it is; with `keep_newlines` line feeds and tabs pass. Bidirectional overrides
 * are escaped. */
void text_add_printable(struct text *text, const void *bytes, size_t length, bool keep_newlines);

/* Length in bytes of the longest valid UTF-8 prefix (RFC 3629: no surrogates, no overlong forms). */
size_t text_utf8_prefix(const void *bytes, size_t length);

/* Columns that a UTF-8 string takes on a terminal (wcwidth; unprintable counts 0). */
int text_columns(const char *string);

/* Crockford's base32 alphabet, upper case. Source: https://www.crockford.com/base32.html */
extern const char TEXT_BASE32[33];

/* Parses a whole string as a decimal integer within [min, max]; no sign but '-', no spaces, no junk. */
_must_use_ bool text_parse_int(const char *string, int64_t min, int64_t max, int64_t *ret);

/* The candidate of `count` names nearest to `word` by edit distance, or NULL when none is near enough to
 * suggest (distance above a third of the length, at least 1). */
const char *text_nearest(const char *word, const char *const *names, size_t count);

#endif
