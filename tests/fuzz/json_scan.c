/*
 * What the scanner accepts json-c must parse too, in its strict mode: otherwise the two disagree about what
 * JSON is, and one of them is wrong. And the scan without a tree must agree with the scan before one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/json_scan.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void strict_parse(const char *bytes, size_t length)
{
    struct json_tokener *tokener = json_tokener_new_ex(2 * JSON_LIMIT_DEPTH);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *root = json_tokener_parse_ex(tokener, bytes, (int)length);
    if (json_tokener_get_error(tokener) == json_tokener_continue)
        root = json_tokener_parse_ex(tokener, "", 1);
    if (json_tokener_get_error(tokener) != json_tokener_success)
        abort();
    json_object_put(root);
    json_tokener_free(tokener);
}

static void check_places(const struct json_document *document)
{
    if (document->place_count == 0 || json_document_where(document, "") != document->places)
        abort();
    for (size_t i = 0; i < document->place_count; i++) {
        const struct json_place *place = &document->places[i];
        if (place->line < 1 || place->column < 1 || place->parent > i || (i > 0 && place->parent == i))
            abort();
    }
}

/* A copy of exactly the size: a read past its end is seen. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = mem_resize(NULL, length, 1);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)bytes[i];
    struct json_document document = {0};
    _cleanup_(error_done) struct error err = {0};
    enum result checked = json_check(text, length, NULL);
    enum result parsed = json_document_parse(text, length, "fuzz.json", &document, &err);
    if (checked != parsed || (parsed == RESULT_OK) != (err.message == NULL))
        abort();
    if (parsed == RESULT_OK) {
        size_t end = length; /* the strict mode dislikes space behind the value */
        while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\n' || text[end - 1] == '\r' ||
                              text[end - 1] == '\t'))
            end--;
        strict_parse(text, end);
        check_places(&document);
    }
    json_document_done(&document);
    free(text);
    return 0;
}
