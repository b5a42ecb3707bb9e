#include "base/json_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "base/text.h"

#define QUOTE_LIMIT_BYTES 64

/* Where a field is being read; carried so that every message can name it. */
struct json_reading {
    const struct json_document *document;
    const char *pointer;
    const struct json_field *field;
    void *place; /* in the target */
    struct error *err;
};

/* "FILE:LINE:COLUMN: what", or "\"key\" what" without a document. */
static enum result refuse_key(const struct json_document *document, const char *pointer, const char *key,
    bool at_key, const char *what, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    size_t length = strnlen(key, QUOTE_LIMIT_BYTES);
    text_add_printable(&shown, key, length, false);
    if (!document)
        return error_set(err, RESULT_INVALID, 0, "\"%s\" %s", shown.bytes, what);
    _cleanup_(mem_free) char *below = json_pointer_join(pointer, key);
    return json_error_at(document, below, at_key, err, "\"%s\" %s", shown.bytes, what);
}

static enum result refuse(const struct json_reading *reading, const char *what)
{
    return refuse_key(reading->document, reading->pointer, reading->field->key, false, what, reading->err);
}

static enum result string_of(
    const struct json_reading *reading, struct json_object *value, const char **ret, size_t *ret_length)
{
    if (!json_object_is_type(value, json_type_string))
        return refuse(reading, "must be a string");
    *ret = json_object_get_string(value);
    *ret_length = (size_t)json_object_get_string_len(value);
    return strlen(*ret) == *ret_length ? RESULT_OK : refuse(reading, "must not hold a NUL character");
}

static enum result too_long(const struct json_reading *reading, size_t limit)
{
    _cleanup_(mem_free) char *what = mem_format("must have at most %zu bytes", limit);
    return refuse(reading, what);
}

static enum result read_string(const struct json_reading *reading, struct json_object *value)
{
    const char *string = "";
    size_t length = 0, limit = (size_t)reading->field->max;
    enum result r = string_of(reading, value, &string, &length);
    if (r != RESULT_OK)
        return r;
    if (limit > 0 && length > limit)
        return too_long(reading, limit);
    char **place = reading->place;
    free(*place);
    *place = mem_string(string);
    return RESULT_OK;
}

static enum result read_buffer(const struct json_reading *reading, struct json_object *value)
{
    const char *string = "";
    size_t length = 0, size = (size_t)reading->field->max;
    enum result r = string_of(reading, value, &string, &length);
    if (r != RESULT_OK)
        return r;
    if (length >= size)
        return too_long(reading, size - 1);
    memcpy(reading->place, string, length + 1);
    return RESULT_OK;
}

/* The entry's range; an entry that names none takes everything. */
static int64_t range_min(const struct json_field *field, int64_t otherwise)
{
    return field->min == 0 && field->max == 0 ? otherwise : field->min;
}

static int64_t range_max(const struct json_field *field)
{
    return field->min == 0 && field->max == 0 ? INT64_MAX : field->max;
}

static enum result read_integer(const struct json_reading *reading, struct json_object *value)
{
    int64_t min = range_min(reading->field, INT64_MIN), max = range_max(reading->field);
    if (!json_object_is_type(value, json_type_int))
        return refuse(reading, "must be a whole number");
    int64_t number = json_object_get_int64(value);
    /* json-c cuts what is larger down to INT64_MAX. */
    bool cut = number == INT64_MAX && json_object_get_uint64(value) > (uint64_t)INT64_MAX;
    if (cut || number < min || number > max) {
        _cleanup_(mem_free) char *what = mem_format("must be from %" PRId64 " to %" PRId64, min, max);
        return refuse(reading, what);
    }
    memcpy(reading->place, &number, sizeof(number));
    return RESULT_OK;
}

static enum result read_boolean(const struct json_reading *reading, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_boolean))
        return refuse(reading, "must be true or false");
    *(bool *)reading->place = json_object_get_boolean(value);
    return RESULT_OK;
}

static enum result read_duration(const struct json_reading *reading, struct json_object *value)
{
    const char *string = "";
    size_t length = 0;
    int64_t ms = 0;
    if (!json_object_is_type(value, json_type_string))
        return refuse(reading, "must be a duration in a string, like \"90s\"");
    enum result r = string_of(reading, value, &string, &length);
    if (r != RESULT_OK)
        return r;
    _cleanup_(error_done) struct error cause = {0};
    r = duration_parse(
        reading->field->key, string, range_min(reading->field, 0), range_max(reading->field), &ms, &cause);
    if (r != RESULT_OK) {
        const char *behind_key = cause.message + strlen(reading->field->key) + strlen(": ");
        return refuse(reading, behind_key);
    }
    memcpy(reading->place, &ms, sizeof(ms));
    return RESULT_OK;
}

static enum result read_borrowed(const struct json_reading *reading, struct json_object *value)
{
    memcpy(reading->place, &value, sizeof(value));
    return RESULT_OK;
}

static enum result read_object(const struct json_reading *reading, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_object))
        return refuse(reading, "must be an object");
    return read_borrowed(reading, value);
}

static enum result read_array(const struct json_reading *reading, struct json_object *value)
{
    if (!json_object_is_type(value, json_type_array))
        return refuse(reading, "must be an array");
    return read_borrowed(reading, value);
}

static enum result (*const READERS[JSON_KIND_MAX])(
    const struct json_reading *reading, struct json_object *value) = {
    [JSON_STRING] = read_string,
    [JSON_BUFFER] = read_buffer,
    [JSON_INTEGER] = read_integer,
    [JSON_BOOLEAN] = read_boolean,
    [JSON_DURATION] = read_duration,
    [JSON_VALUE] = read_borrowed,
    [JSON_OBJECT] = read_object,
    [JSON_ARRAY] = read_array,
};

static bool is_known(const char *key, const struct json_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].key, key) == 0)
            return true;
    return false;
}

static void suggest_key(const char *key, const struct json_field *fields, size_t count, struct error *err)
{
    _cleanup_(mem_free) const char **names = mem_resize(NULL, count, sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = fields[i].key;
    const char *nearest = text_nearest(key, names, count);
    if (nearest)
        error_remedy(err, "did you mean \"%s\"?", nearest);
}

static enum result refuse_unknown_keys(const struct json_document *document, const char *pointer,
    struct json_object *object, const struct json_field *fields, size_t count, struct error *err)
{
    struct json_object_iterator at = json_object_iter_begin(object), end = json_object_iter_end(object);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *key = json_object_iter_peek_name(&at);
        if (is_known(key, fields, count))
            continue;
        refuse_key(document, pointer, key, true, "is not a known key", err);
        suggest_key(key, fields, count, err);
        return RESULT_INVALID;
    }
    return RESULT_OK;
}

static enum result refuse_missing(const struct json_document *document, const char *pointer,
    const struct json_field *field, struct error *err)
{
    if (!document)
        return error_set(err, RESULT_INVALID, 0, "\"%s\" is missing", field->key);
    return json_error_at(document, pointer, false, err, "\"%s\" is missing", field->key);
}

static enum result read_field(const struct json_reading *reading, struct json_object *object, bool strict)
{
    const struct json_field *field = reading->field;
    struct json_object *value = NULL;
    bool present = json_object_object_get_ex(object, field->key, &value);
    /* json_add_string() writes null for what is not there; a record must read back as it was written. */
    if (present && !value && !strict && field->kind != JSON_VALUE)
        present = false;
    if (present)
        return READERS[field->kind](reading, value);
    return field->required ? refuse_missing(reading->document, reading->pointer, field, reading->err)
                           : RESULT_OK;
}

enum result json_table_read(const struct json_document *document, const char *pointer,
    struct json_object *object, const struct json_field *fields, size_t count, bool strict, void *target,
    struct error *err)
{
    enum result r = RESULT_OK;
    if (!json_object_is_type(object, json_type_object))
        return document ? json_error_at(document, pointer, false, err, "an object is expected here")
                        : error_set(err, RESULT_INVALID, 0, "an object is expected");
    if (strict)
        r = refuse_unknown_keys(document, pointer, object, fields, count, err);
    for (size_t i = 0; r == RESULT_OK && i < count; i++) {
        const struct json_reading reading = {
            .document = document,
            .pointer = pointer,
            .field = &fields[i],
            .place = (char *)target + fields[i].offset,
            .err = err,
        };
        r = read_field(&reading, object, strict);
    }
    return r;
}

void json_cleanup(struct json_object **json)
{
    json_object_put(*json);
}

struct json_object *json_from_bytes(const void *bytes, size_t length)
{
    _cleanup_(text_done) struct text text = {0};
    const char *at = bytes;
    text_append(&text, "", 0);
    while (length > 0) {
        size_t valid = text_utf8_prefix(at, length);
        text_append(&text, at, valid);
        at += valid;
        length -= valid;
        if (length > 0) {
            text_addf(&text, "\\x%02x", (unsigned char)*at);
            at++;
            length--;
        }
    }
    if (text.length > INT32_MAX)
        abort(); /* json-c counts in int; nothing here comes near it */
    return json_object_new_string_len(text.bytes, (int)text.length);
}

void json_add_string(struct json_object *object, const char *key, const char *string)
{
    json_object_object_add(object, key, string ? json_from_bytes(string, strlen(string)) : NULL);
}

void json_add_integer(struct json_object *object, const char *key, int64_t number)
{
    json_object_object_add(object, key, json_object_new_int64(number));
}

void json_add_boolean(struct json_object *object, const char *key, bool value)
{
    json_object_object_add(object, key, json_object_new_boolean(value));
}
