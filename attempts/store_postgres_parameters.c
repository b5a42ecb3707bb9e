#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attempts/migrate.h"
#include "attempts/store_postgres-private.h"
#include "base/text.h"

struct parameter parameter_text(const char *text)
{
    if (!text)
        return (struct parameter){.kind = PARAMETER_NULL};
    return (struct parameter){.kind = PARAMETER_TEXT, .bytes = text, .length = strlen(text)};
}

struct parameter parameter_integer(int64_t integer)
{
    struct parameter parameter = {.kind = PARAMETER_TEXT};

    snprintf(parameter.digits, sizeof parameter.digits, "%" PRId64, integer);
    return parameter;
}

struct parameter parameter_boolean(bool value)
{
    return parameter_text(value ? "true" : "false");
}

struct parameter parameter_bytes(const void *bytes, size_t length)
{
    return (struct parameter){.kind = PARAMETER_BYTES, .bytes = bytes ? bytes : "", .length = length};
}

struct parameter parameter_schema(void)
{
    return parameter_integer(migration_newest("postgres"));
}

struct parameter parameter_schema_or_next(void)
{
    return parameter_integer(migration_newest("postgres") + 1);
}

/* Every element is quoted: so "null" is a word, and nothing needs a look at what it holds. */
void array_add(struct text *array, const char *element)
{
    text_add(array, array->length ? "," : "{");
    if (!element) {
        text_add(array, "NULL");
        return;
    }
    text_add(array, "\"");
    for (const char *at = element; *at; at++) {
        if (*at == '"' || *at == '\\')
            text_add(array, "\\");
        text_append(array, at, 1);
    }
    text_add(array, "\"");
}

const char *array_text(struct text *array)
{
    text_add(array, array->length ? "}" : "{}");
    return array->bytes;
}
