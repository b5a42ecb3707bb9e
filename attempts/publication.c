#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/publication-private.h"
#include "base/text.h"

/* ---- which statements may be sent ---- */

/* They would end the transaction that the claim's lock lives in, or undo what was counted. The second word,
 * where there is one, tells them from others. */
static const struct {
    const char *word, *next;
} FORBIDDEN[] = {
    {"ABORT", NULL},
    {"BEGIN", NULL},
    {"COMMIT", NULL},
    {"END", NULL},
    {"PREPARE", "TRANSACTION"},
    {"RELEASE", NULL},
    {"ROLLBACK", NULL},
    {"SAVEPOINT", NULL},
    {"START", NULL},
};

static const char *skip_block_comment(const char *at)
{
    int depth = 0;

    do {
        bool opens = at[0] == '/' && at[1] == '*', closes = at[0] == '*' && at[1] == '/';
        depth += opens - closes;
        at += opens || closes ? 2 : 1;
    } while (*at && depth > 0);
    return at;
}

/* What the server's parser passes over before a statement. Source: PostgreSQL manual, 4.1.5. */
static const char *skip_nothing(const char *at)
{
    for (;;) {
        if (strncmp(at, "--", 2) == 0)
            at += strcspn(at, "\r\n");
        else if (strncmp(at, "/*", 2) == 0)
            at = skip_block_comment(at);
        else if (*at == ';' || isspace((unsigned char)*at))
            at++;
        else
            return at;
    }
}

static bool is_word(const char *at, const char *word, const char **ret_behind)
{
    size_t length = strlen(word);
    unsigned char next = 0;

    if (strncasecmp(at, word, length) != 0)
        return false;
    next = (unsigned char)at[length];
    *ret_behind = at + length;
    return !isalnum(next) && next != '_' && next != '$' && next < 0x80;
}

enum result publication_check(const char *sql, struct error *err)
{
    const char *at = skip_nothing(sql), *behind = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(FORBIDDEN); i++) {
        const char *word = FORBIDDEN[i].word, *next = FORBIDDEN[i].next;
        if (!is_word(at, word, &behind) || (next && !is_word(skip_nothing(behind), next, &behind)))
            continue;
        error_set(err, RESULT_INVALID, 0, "%s%s%s may not stand in a publication, which is one transaction",
            word, next ? " " : "", next ? next : "");
        return error_remedy(err, "leave it out: the publication begins, and commits, by itself");
    }
    return RESULT_OK;
}

/* ---- what was changed ---- */

static const struct {
    const char *tag;
    size_t offset;
} COUNTS[] = {
    {"INSERT 0 ", offsetof(struct publication_counts, inserted)}, /* 0 where once an oid stood */
    {"UPDATE ", offsetof(struct publication_counts, updated)},
    {"DELETE ", offsetof(struct publication_counts, deleted)},
    {"MERGE ", offsetof(struct publication_counts, merged)},
    {"COPY ", offsetof(struct publication_counts, copied)},
};

void publication_count(const char *tag, struct publication_counts *counts)
{
    for (size_t i = 0; i < ARRAY_SIZE(COUNTS); i++) {
        size_t length = strlen(COUNTS[i].tag);
        int64_t rows = 0;
        if (strncmp(tag, COUNTS[i].tag, length) == 0 && text_parse_int(tag + length, 0, INT64_MAX, &rows))
            *(int64_t *)((char *)counts + COUNTS[i].offset) += rows;
    }
}

/* ---- the store's ---- */

enum result publication_begin(
    struct store *store, const struct credential *credential, struct publication **ret, struct error *err)
{
    if (!store->ops->publication_begin)
        return store_fail_rows(err);
    return store->ops->publication_begin(store, credential, ret, err);
}
