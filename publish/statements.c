#include "publish/statements.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attempts/publication.h"
#include "base/memory.h"
#include "base/text.h"

#define HEAD_MAX 4 /* words that tell whether a statement makes a function */

struct splitter {
    const char *file, *at, *end;
    int64_t line;
    const char *begin; /* of the statement at hand; NULL between two */
    int64_t begin_line;
    int brackets, blocks;
    char head[HEAD_MAX]; /* first letters of its first words */
    size_t words;
    struct statements *ret;
};

void statements_done(struct statements *statements)
{
    for (size_t i = 0; i < statements->count; i++)
        free(statements->items[i].sql);
    free(statements->items);
    *statements = (struct statements){0};
}

/* ---- characters ---- */

static bool starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_in_name(char c)
{
    return starts_name(c) || isdigit((unsigned char)c) || c == '$';
}

/* The text ends in a NUL byte, so one character further may always be looked at. */
static void step(struct splitter *splitter, size_t count)
{
    for (; count > 0 && splitter->at < splitter->end; count--)
        splitter->line += *splitter->at++ == '\n';
}

static bool comes(const struct splitter *splitter, const char *what)
{
    return strncmp(splitter->at, what, strlen(what)) == 0;
}

static enum result fail_open(
    const struct splitter *splitter, int64_t line, const char *what, struct error *err)
{
    return error_set(
        err, RESULT_INVALID, 0, "%s:%" PRId64 ": %s is never closed", splitter->file, line, what);
}

/* ---- what is passed over whole ---- */

static enum result pass_quoted(struct splitter *splitter, char quote, bool escapes, struct error *err)
{
    int64_t line = splitter->line;

    for (step(splitter, 1); splitter->at < splitter->end;) {
        if (escapes && *splitter->at == '\\')
            step(splitter, 2);
        else if (*splitter->at == quote && splitter->at[1] != quote) {
            step(splitter, 1);
            return RESULT_OK;
        } else {
            step(splitter, *splitter->at == quote ? 2 : 1);
        }
    }
    return fail_open(splitter, line, quote == '"' ? "a quoted name" : "a string", err);
}

static enum result pass_comment(struct splitter *splitter, struct error *err)
{
    int64_t line = splitter->line;
    int depth = 0;

    if (*splitter->at == '-') {
        step(splitter, strcspn(splitter->at, "\r\n"));
        return RESULT_OK;
    }
    do {
        bool opens = comes(splitter, "/*"), closes = comes(splitter, "*/");
        depth += opens - closes;
        step(splitter, opens || closes ? 2 : 1);
    } while (depth > 0 && splitter->at < splitter->end);
    return depth > 0 ? fail_open(splitter, line, "a comment", err) : RESULT_OK;
}

/* Length of "$tag$" at a dollar sign; 0 when it opens no dollar quote. */
static size_t dollar_length(const char *at)
{
    size_t length = 1;

    if (starts_name(at[1]))
        while (starts_name(at[length]) || isdigit((unsigned char)at[length]))
            length++;
    return at[length] == '$' ? length + 1 : 0;
}

static enum result pass_dollar(struct splitter *splitter, size_t length, struct error *err)
{
    const char *tag = splitter->at;
    int64_t line = splitter->line;
    const char *close = memmem(tag + length, (size_t)(splitter->end - tag) - length, tag, length);

    if (!close)
        return fail_open(splitter, line, "a dollar quote", err);
    step(splitter, (size_t)(close - tag) + length);
    return RESULT_OK;
}

/* ---- words ---- */

static bool is_word(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(at, word, length) == 0;
}

/* CREATE FUNCTION, CREATE PROCEDURE, or either with OR REPLACE. */
static bool makes_function(const struct splitter *splitter)
{
    const char *head = splitter->head;

    return head[0] == 'c' && (head[1] == 'f' || head[1] == 'p' ||
                                 (head[1] == 'o' && head[2] == 'r' && (head[3] == 'f' || head[3] == 'p')));
}

static void take_word(struct splitter *splitter, size_t length)
{
    static const char *const HEADS[] = {"create", "function", "procedure", "or", "replace"};
    const char *at = splitter->at;

    for (size_t i = 0; splitter->words < HEAD_MAX && i < ARRAY_SIZE(HEADS); i++)
        if (is_word(at, length, HEADS[i]))
            splitter->head[splitter->words] = HEADS[i][0];
    splitter->words++;
    if (!makes_function(splitter) || splitter->brackets > 0)
        return;
    if (is_word(at, length, "begin") || (splitter->blocks > 0 && is_word(at, length, "case")))
        splitter->blocks++;
    else if (splitter->blocks > 0 && is_word(at, length, "end"))
        splitter->blocks--;
}

static enum result pass_word(struct splitter *splitter, struct error *err)
{
    size_t length = 0;

    while (is_in_name(splitter->at[length]))
        length++;
    if (is_word(splitter->at, length, "e") && splitter->at[1] == '\'') {
        step(splitter, 1);
        return pass_quoted(splitter, '\'', true, err);
    }
    take_word(splitter, length);
    step(splitter, length);
    return RESULT_OK;
}

/* ---- statements ---- */

static void forget(struct splitter *splitter)
{
    splitter->begin = NULL;
    splitter->brackets = splitter->blocks = 0;
    splitter->words = 0;
    memset(splitter->head, 0, sizeof splitter->head);
}

static enum result finish(struct splitter *splitter, struct error *err)
{
    struct statements *ret = splitter->ret;
    size_t length = 0;
    enum result r = RESULT_OK;
    char *sql = NULL;

    if (!splitter->begin)
        return RESULT_OK;
    length = (size_t)(splitter->at - splitter->begin);
    sql = mem_format("%.*s", (int)length, splitter->begin);
    mem_grow(&ret->items, &ret->capacity, ret->count, sizeof *ret->items);
    ret->items[ret->count++] = (struct statement){.sql = sql, .line = splitter->begin_line};
    r = publication_check(sql, err);
    if (r != RESULT_OK)
        return error_wrap(err, "%s:%" PRId64 ": ", splitter->file, splitter->begin_line);
    forget(splitter);
    return RESULT_OK;
}

static void take_sign(struct splitter *splitter)
{
    char sign = *splitter->at;

    if (sign == '(' || sign == '[')
        splitter->brackets++;
    else if ((sign == ')' || sign == ']') && splitter->brackets > 0)
        splitter->brackets--;
    step(splitter, 1);
}

static enum result pass_one(struct splitter *splitter, struct error *err)
{
    char at = *splitter->at;
    size_t dollar = at == '$' ? dollar_length(splitter->at) : 0;

    if (!splitter->begin) {
        splitter->begin = splitter->at;
        splitter->begin_line = splitter->line;
    }
    if (at == '\'' || at == '"')
        return pass_quoted(splitter, at, false, err);
    if (dollar > 0)
        return pass_dollar(splitter, dollar, err);
    if (starts_name(at))
        return pass_word(splitter, err);
    if (isdigit((unsigned char)at)) { /* 1e'...' is no escape string */
        step(splitter, 1);
        while (is_in_name(*splitter->at))
            step(splitter, 1);
        return RESULT_OK;
    }
    take_sign(splitter);
    return RESULT_OK;
}

static enum result split_next(struct splitter *splitter, struct error *err)
{
    enum result r = RESULT_OK;

    if (comes(splitter, "--") || comes(splitter, "/*"))
        return pass_comment(splitter, err);
    if (*splitter->at == ';' && splitter->brackets == 0 && splitter->blocks == 0) {
        r = finish(splitter, err);
        step(splitter, 1);
        return r;
    }
    if (!splitter->begin && isspace((unsigned char)*splitter->at)) {
        step(splitter, 1);
        return RESULT_OK;
    }
    return pass_one(splitter, err);
}

static enum result check_text(const char *file, const char *text, size_t length, struct error *err)
{
    size_t good = text_utf8_prefix(text, length), nul = strnlen(text, length);
    int64_t line = 1;

    if (good == length && nul == length)
        return RESULT_OK;
    for (size_t i = 0; i < (good < nul ? good : nul); i++)
        line += text[i] == '\n';
    return error_set(err, RESULT_INVALID, 0, "%s:%" PRId64 ": %s", file, line,
        nul < good ? "a NUL byte cannot stand in SQL" : "this is not UTF-8");
}

enum result statements_split(
    const char *file, const char *text, size_t length, struct statements *ret, struct error *err)
{
    static const char MARK[] = "\xef\xbb\xbf"; /* some editors put it before UTF-8 */
    _cleanup_(statements_done) struct statements statements = {0};
    _cleanup_(mem_free) char *copy = NULL;
    enum result r = check_text(file, text, length, err);
    struct splitter splitter = {.file = file, .line = 1, .ret = &statements};

    if (r != RESULT_OK)
        return r;
    copy = mem_copy(text, length);
    splitter.at = copy + (strncmp(copy, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0);
    splitter.end = copy + length;
    while (r == RESULT_OK && splitter.at < splitter.end)
        r = split_next(&splitter, err);
    if (r == RESULT_OK)
        r = finish(&splitter, err);
    if (r != RESULT_OK)
        return r;
    if (statements.count == 0) {
        error_set(err, RESULT_INVALID, 0, "%s: there is no statement in it", file);
        return error_remedy(err, "write there what is to be published");
    }
    *ret = statements;
    statements = (struct statements){0};
    return RESULT_OK;
}
