/* The few of the user's git settings that matter, and what an origin's URL may show. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "completion/repository/git-private.h"

void settings_done(struct settings *settings)
{
    free(settings->attributes_file);
    free(settings->origin);
    *settings = (struct settings){0};
}

static void replace(char **where, const char *value)
{
    free(*where);
    *where = mem_string(value);
}

/* The last of several values counts, as for git. A key alone is "true". */
static void settings_take(struct settings *settings, const char *key, const char *value)
{
    if (strcmp(key, "core.attributesfile") == 0)
        replace(&settings->attributes_file, value);
    else if (strcmp(key, "remote.origin.url") == 0)
        replace(&settings->origin, value);
    else if (strcmp(key, "core.autocrlf") == 0)
        settings->converts_lines = strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0 &&
                                   strcasecmp(value, "off") != 0 && strcmp(value, "0") != 0;
}

/* "KEY\nVALUE" or "KEY", each with a NUL behind it. */
void settings_parse(const struct text *output, struct settings *ret)
{
    for (size_t at = 0; at < output->length;) {
        const char *record = output->bytes + at;
        size_t key_length = strcspn(record, "\n");
        _cleanup_(mem_free) char *key = mem_copy(record, key_length);
        settings_take(ret, key, record[key_length] ? record + key_length + 1 : "true");
        at += strlen(record) + 1;
    }
}

/* A user, a password, or a token in the query have no business in records and Proofs. */
char *origin_without_secrets(const char *url)
{
    const char *scheme = strstr(url, "://");
    if (!scheme) {
        const char *colon = strchr(url, ':'), *slash = strchr(url, '/'), *at = strchr(url, '@');
        bool remote = colon && (!slash || colon < slash);
        return mem_string(remote && at && at < colon ? at + 1 : url);
    }
    const char *authority = scheme + 3, *host = authority;
    size_t length = strcspn(authority, "/?#");
    for (size_t i = 0; i < length; i++)
        if (authority[i] == '@')
            host = authority + i + 1;
    return mem_format("%.*s%.*s", (int)(authority - url), url, (int)strcspn(host, "?#"), host);
}
