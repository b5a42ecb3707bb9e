/*
 * A strict look at JSON bytes before json-c parses them.
 *
 * json-c 0.16 accepts duplicate keys, NaN, 'single quotes', text behind a NUL and more, and has no positions.
 * The scanner accepts exactly RFC 8259 in valid UTF-8, no byte-order mark, no duplicate key in one object, no
 * \u0000 in a key, at most 1 MiB and 32 levels, and knows the line and column of every key and value.
 *
 *     struct json_document document = {0};
 *     r = json_document_parse(bytes, length, "tenure.json", &document, err);     // scan, then json-c
 *     place = json_document_where(&document, "/producers/build/run");             // JSON pointer (RFC 6901)
 *     json_document_done(&document);
 *
 * The same door guards tenure.json, DSSE envelopes, statements and journal records. Thread-safe on own
 * objects.
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define JSON_LIMIT_BYTES (1024 * 1024)
#define JSON_LIMIT_DEPTH 32

/* Where one value lies. Its name is kept as the last token of its JSON pointer only: whole pointers would
 * make a deep document cost the square of its size. */
struct json_place {
    uint32_t parent;          /* index of the container's place; the root is its own */
    uint32_t token;           /* offset of the key in the tokens, or the index in an array */
    uint32_t token_length;    /* JSON_TOKEN_INDEX in an array */
    int key_line, key_column; /* 0 when there is no key */
    int line, column;         /* of the value; 1-based, columns count characters */
};
#define JSON_TOKEN_INDEX UINT32_MAX

struct json_document {
    struct json_object *root;
    char *name;                /* of the file, for messages */
    struct json_place *places; /* in the order of the text */
    size_t place_count, place_capacity;
    struct text tokens;
};

/* RESULT_INVALID with "NAME:LINE:COLUMN: what" and, where there is one, a remedy. Cost is linear. */
_must_use_ enum result json_document_parse(
    const char *bytes, size_t length, const char *name, struct json_document *ret, struct error *err);
void json_document_done(struct json_document *document);

/* Only the scan, no positions and no tree: for records that are many and small. The message begins
 * "LINE:COLUMN: ". */
_must_use_ enum result json_check(const char *bytes, size_t length, struct error *err);

/* The place of a value; NULL when the document has no such pointer. */
const struct json_place *json_document_where(const struct json_document *document, const char *pointer);

/* RESULT_INVALID with the position of `pointer` (its key when `at_key`) in front of the formatted text. A
 * pointer to what is not there is placed at the nearest container that is. */
enum result json_error_at(const struct json_document *document, const char *pointer, bool at_key,
    struct error *err, const char *format, ...) _printf_(5, 6);

/* Appends `token` to a JSON pointer, escaped. The result is the caller's. */
char *json_pointer_join(const char *pointer, const char *token);

#endif
