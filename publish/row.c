/* TABLE:KEY=VALUE. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "publish/publish.h"

void publish_row_done(struct publish_row *row)
{
    free(row->table);
    free(row->key);
    free(row->value);
    *row = (struct publish_row){0};
}

/* Up to `end` outside of double quotes; NULL when it does not come. */
static const char *find_end(const char *at, char end)
{
    bool quoted = false;

    for (; *at; at++) {
        if (*at == '"')
            quoted = !quoted;
        else if (*at == end && !quoted)
            return at;
    }
    return NULL;
}

/* A name without the quotes that it may stand in. */
static char *unquote(const char *from, size_t length)
{
    char *name = mem_format("%.*s", (int)length, from);
    size_t kept = 0;

    if (length < 2 || name[0] != '"' || name[length - 1] != '"')
        return name;
    for (size_t i = 1; i + 1 < length; i++) {
        name[kept++] = name[i];
        if (name[i] == '"')
            i++;
    }
    name[kept] = '\0';
    return name;
}

enum result publish_row_parse(const char *text, struct publish_row *ret, struct error *err)
{
    const char *colon = find_end(text, ':'), *equals = colon ? find_end(colon + 1, '=') : NULL;

    if (!equals || colon == text || equals == colon + 1) {
        error_set(err, RESULT_INVALID, 0, "\"%s\" names no row", text);
        return error_remedy(err, "write TABLE:KEY=VALUE, as in app.source:id=42");
    }
    *ret = (struct publish_row){
        .table = mem_format("%.*s", (int)(colon - text), text),
        .key = unquote(colon + 1, (size_t)(equals - colon) - 1),
        .value = mem_string(equals + 1),
    };
    return RESULT_OK;
}
