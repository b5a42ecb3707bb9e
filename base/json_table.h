/*
 * Reading a JSON object by a table of {key, type, where to, required}, not by hand field after field; and
 * building strings that are always valid UTF-8. Unknown keys are refused (nearest known one suggested) or,
 * for records that newer versions may extend, skipped. Numbers are range-checked by their entry. Thread-safe.
 */
#ifndef BASE_JSON_TABLE_H
#define BASE_JSON_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_scan.h"

enum json_kind {
    JSON_STRING,   /* char * (owned; an earlier value is freed), at most max bytes when max > 0; no NUL inside
                    */
    JSON_BUFFER,   /* char[max] inside the struct, NUL-terminated; longer is an error */
    JSON_INTEGER,  /* int64_t within [min, max]; any when both are 0 */
    JSON_BOOLEAN,  /* bool */
    JSON_DURATION, /* string read by duration_parse into int64_t ms within [min, max] */
    JSON_VALUE,    /* struct json_object *, borrowed from the parent; any type */
    JSON_OBJECT,   /* struct json_object *, borrowed, must be an object */
    JSON_ARRAY,    /* struct json_object *, borrowed, must be an array */
    JSON_KIND_MAX
};

struct json_field {
    const char *key;
    enum json_kind kind;
    size_t offset; /* into the target struct */
    bool required;
    int64_t min, max;
};

/* Reads `object` into `target`, which the caller has filled with defaults. With `document` (may be NULL)
 * errors carry the position of `pointer`/key; without, the key alone. Unknown keys: refused when `strict`. On
 * an error the target may be partly filled; owned strings in it are the caller's to free either way. */
_must_use_ enum result json_table_read(const struct json_document *document, const char *pointer,
    struct json_object *object, const struct json_field *fields, size_t count, bool strict, void *target,
    struct error *err);

/* For _cleanup_(json_cleanup): puts the reference; NULL inside is allowed. */
void json_cleanup(struct json_object **json);

/* A JSON string from bytes that need not be UTF-8: invalid bytes become \xNN as visible text. */
struct json_object *json_from_bytes(const void *bytes, size_t length);

/* Adds to an object; a NULL string adds null. */
void json_add_string(struct json_object *object, const char *key, const char *string);
void json_add_integer(struct json_object *object, const char *key, int64_t number);
void json_add_boolean(struct json_object *object, const char *key, bool value);

#endif
