/* The part of base/json_scan.h that knows places, trees and messages. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan-private.h"
#include "base/json_scan.h"
#include "base/memory.h"

#define PARSER_DEPTH (2 * JSON_LIMIT_DEPTH) /* the scanner has the say */

void json_cursor_init(struct json_cursor *cursor, const char *bytes)
{
    *cursor = (struct json_cursor){.bytes = bytes, .line = 1, .column = 1};
}

void json_cursor_advance(struct json_cursor *cursor, size_t at)
{
    for (; cursor->at < at; cursor->at++) {
        unsigned char byte = (unsigned char)cursor->bytes[cursor->at];
        if (byte == '\n') {
            cursor->line++;
            cursor->column = 1;
        } else if ((byte & 0xC0) != 0x80) { /* not the middle of a character */
            cursor->column++;
        }
    }
}

uint32_t json_place_add(struct json_document *document, struct json_cursor *cursor,
    const struct json_token *token, size_t value_at)
{
    struct json_place place = {
        .parent = token->parent, .token = token->index, .token_length = JSON_TOKEN_INDEX};
    if (token->key) {
        place.token = (uint32_t)document->tokens.length;
        place.token_length = (uint32_t)token->key_length;
        text_append(&document->tokens, token->key, token->key_length);
        json_cursor_advance(cursor, token->key_at);
        place.key_line = cursor->line;
        place.key_column = cursor->column;
    }
    json_cursor_advance(cursor, value_at);
    place.line = cursor->line;
    place.column = cursor->column;
    mem_grow(&document->places, &document->place_capacity, document->place_count, sizeof(place));
    document->places[document->place_count] = place;
    return (uint32_t)document->place_count++;
}

static enum result too_large(const char *name, size_t length, struct error *err)
{
    return error_set(err, RESULT_INVALID, 0, "%s%s%zu bytes are more than the limit of %d", name ? name : "",
        name ? ": " : "", length, JSON_LIMIT_BYTES);
}

static enum result scan_refused(const struct json_scan *scan, const char *name, struct error *err)
{
    struct json_cursor cursor;
    json_cursor_init(&cursor, scan->bytes);
    json_cursor_advance(&cursor, scan->failed_at);
    error_set(err, RESULT_INVALID, 0, "%s%s%d:%d: %s", name ? name : "", name ? ":" : "", cursor.line,
        cursor.column, scan->message);
    if (scan->remedy)
        error_remedy(err, "%s", scan->remedy);
    return RESULT_INVALID;
}

enum result json_check(const char *bytes, size_t length, struct error *err)
{
    if (length > JSON_LIMIT_BYTES)
        return too_large(NULL, length, err);
    struct json_scan scan;
    enum result r = json_scan_run(&scan, bytes, length, NULL) ? RESULT_OK : scan_refused(&scan, NULL, err);
    json_scan_done(&scan);
    return r;
}

/* Only the value itself is shown to json-c, whose strict mode dislikes space behind it. The NUL ends a
 * number. */
static enum result tree_parse(const struct json_scan *scan, struct json_document *document, struct error *err)
{
    struct json_tokener *tokener = json_tokener_new_ex(PARSER_DEPTH);
    if (!tokener)
        abort();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    int length = (int)(scan->value_end - scan->value_begin);
    document->root = json_tokener_parse_ex(tokener, scan->bytes + scan->value_begin, length);
    if (json_tokener_get_error(tokener) == json_tokener_continue)
        document->root = json_tokener_parse_ex(tokener, "", 1);
    enum json_tokener_error failed = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    if (failed == json_tokener_success)
        return RESULT_OK;
    return error_set(err, RESULT_INVALID, 0, "%s: %s", document->name, json_tokener_error_desc(failed));
}

enum result json_document_parse(
    const char *bytes, size_t length, const char *name, struct json_document *ret, struct error *err)
{
    if (length > JSON_LIMIT_BYTES)
        return too_large(name, length, err);
    struct json_scan scan;
    struct json_document document = {.name = mem_string(name)};
    enum result r = json_scan_run(&scan, bytes, length, &document) ? tree_parse(&scan, &document, err)
                                                                   : scan_refused(&scan, name, err);
    json_scan_done(&scan);
    if (r == RESULT_OK)
        *ret = document;
    else
        json_document_done(&document);
    return r;
}

void json_document_done(struct json_document *document)
{
    json_object_put(document->root);
    free(document->name);
    free(document->places);
    text_done(&document->tokens);
    *document = (struct json_document){0};
}

/* Takes one token of a JSON pointer ("/token"), unescaped; moves behind it. */
static char *pointer_take(const char **pointer)
{
    const char *from = *pointer + 1;
    size_t length = strcspn(from, "/");
    char *token = mem_copy(from, length), *to = token;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '~' && i + 1 < length && (from[i + 1] == '0' || from[i + 1] == '1'))
            c = from[++i] == '0' ? '~' : '/';
        *to++ = c;
    }
    *to = '\0';
    *pointer = from + length;
    return token;
}

static bool place_is_named(
    const struct json_document *document, const struct json_place *place, const char *token)
{
    int64_t index;
    if (place->token_length == JSON_TOKEN_INDEX && token[0] == '0' && token[1])
        return false; /* RFC 6901 knows no leading zeros */
    if (place->token_length == JSON_TOKEN_INDEX)
        return text_parse_int(token, 0, UINT32_MAX, &index) && place->token == (uint64_t)index;
    return strlen(token) == place->token_length &&
           memcmp(document->tokens.bytes + place->token, token, place->token_length) == 0;
}

/* Places come in the order of the text: what lies in a container follows it, up to the first one whose own
 * container began earlier. */
static size_t place_child(const struct json_document *document, size_t container, const char *token)
{
    for (size_t i = container + 1; i < document->place_count; i++) {
        const struct json_place *place = &document->places[i];
        if (place->parent < container)
            break;
        if (place->parent == container && place_is_named(document, place, token))
            return i;
    }
    return container;
}

/* Follows the pointer as far as there are places. */
static const struct json_place *place_follow(
    const struct json_document *document, const char *pointer, bool *ret_whole)
{
    size_t at = 0;
    *ret_whole = false;
    if (!document->place_count)
        return NULL;
    while (*pointer == '/') {
        _cleanup_(mem_free) char *token = pointer_take(&pointer);
        size_t child = place_child(document, at, token);
        if (child == at)
            return &document->places[at];
        at = child;
    }
    *ret_whole = *pointer == '\0';
    return &document->places[at];
}

const struct json_place *json_document_where(const struct json_document *document, const char *pointer)
{
    bool whole;
    const struct json_place *place = place_follow(document, pointer, &whole);
    return whole ? place : NULL;
}

enum result json_error_at(const struct json_document *document, const char *pointer, bool at_key,
    struct error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    _cleanup_(mem_free) char *text = mem_vformat(format, arguments);
    va_end(arguments);
    bool whole;
    const char *name = document->name ? document->name : "JSON";
    const struct json_place *place = place_follow(document, pointer, &whole);
    if (!place)
        return error_set(err, RESULT_INVALID, 0, "%s: %s", name, text);
    bool key = at_key && whole && place->key_line > 0;
    return error_set(err, RESULT_INVALID, 0, "%s:%d:%d: %s", name, key ? place->key_line : place->line,
        key ? place->key_column : place->column, text);
}

char *json_pointer_join(const char *pointer, const char *token)
{
    struct text joined = {0};
    text_add(&joined, pointer);
    text_add(&joined, "/");
    for (; *token; token++) {
        if (*token == '~')
            text_add(&joined, "~0");
        else if (*token == '/')
            text_add(&joined, "~1");
        else
            text_append(&joined, token, 1);
    }
    return text_steal(&joined);
}
