/*
 * The seam between the grammar (json_scan.c) and the places it finds (json_document.c).
 */
#ifndef BASE_JSON_SCAN_PRIVATE_H
#define BASE_JSON_SCAN_PRIVATE_H

#include "base/json_keys-private.h"
#include "base/json_scan.h"

/* Line and column of an offset that only moves forward, so that a whole text is counted once. */
struct json_cursor {
    const char *bytes;
    size_t at;
    int line, column;
};

void json_cursor_init(struct json_cursor *cursor, const char *bytes);
void json_cursor_advance(struct json_cursor *cursor, size_t at);

/* Under which name a value is found in its container. */
struct json_token {
    uint32_t parent;
    uint32_t index;  /* in an array */
    const char *key; /* in an object; not NUL-terminated; NULL in an array and for the root */
    size_t key_length;
    size_t key_at; /* offset in the text */
};

/* Remembers a place; returns its index. */
uint32_t json_place_add(struct json_document *document, struct json_cursor *cursor,
    const struct json_token *token, size_t value_at);

struct json_scan {
    const char *bytes;
    size_t length, at;
    int depth;
    uint32_t objects; /* seen so far; numbers them for the key set */
    struct json_keys keys;
    struct json_document *document; /* NULL when places are not wanted */
    struct json_cursor cursor;      /* for the places */
    size_t value_begin, value_end;  /* of the root, without the space around it */

    size_t failed_at; /* the first failure */
    char *message;
    const char *remedy;
};

/* False after a failure, which `scan` describes. The scan is to be ended either way. */
bool json_scan_run(struct json_scan *scan, const char *bytes, size_t length, struct json_document *document);
void json_scan_done(struct json_scan *scan);

#endif
