/*
 * Files that git calls unchanged although their bytes are not what it would check out.
 *
 * git compares a file after its clean filter. What the filter drops (the output cells of a notebook, the CR
 * of a line end, what stands in an $Id$) can change without a word of git. So: which files have attributes
 * that convert? Most trees have none, and then this costs one failed open(2) per directory. Otherwise git
 * itself says which (attribute pathspecs), and their bytes or sizes are compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/conversions-private.h"

#define CHUNK_BYTES (8 * 1024 * 1024)
#define CHUNK_FILES 1000
#define TOKEN_BYTES 16

/* ---- which files? ---- */

/* `marks` has one for each entry; git answers in the same order. */
static void mark(const struct listing *listing, const struct text *answer, unsigned converts, uint8_t *marks)
{
    size_t entry = 0;
    for (size_t at = 0; at < answer->length; at += strlen(answer->bytes + at) + 1) {
        while (entry < listing->count && strcmp(listing->entries[entry].path, answer->bytes + at) != 0)
            entry++;
        if (entry == listing->count)
            return;
        marks[entry] |= (uint8_t)converts;
    }
}

static enum result mark_all(const struct conversion_look *look, uint8_t *marks, struct error *err)
{
    static const unsigned CONVERTS[] = {CONVERTS_BYTES, CONVERTS_BYTES, CONVERTS_LINES};
    struct collect calls[] = {
        GIT_CALL(look->top_fd, "ls-files", "-z", "--", ":(top)",
            ":(top,exclude,attr:!filter !ident !working-tree-encoding)"),
        GIT_CALL(look->top_fd, "ls-files", "-z", "--", ":(top,attr:eol=crlf)"),
        GIT_CALL(look->top_fd, "ls-files", "-z", "--", ":(top)", ":(top,exclude,attr:!text !eol !crlf)"),
    };
    enum result r = look->runner->run(look->runner, calls, ARRAY_SIZE(calls), err);
    for (size_t i = 0; r == RESULT_OK && i < ARRAY_SIZE(calls); i++) {
        r = collect_check(&calls[i], err);
        if (r == RESULT_OK)
            mark(look->listing, &calls[i].output, CONVERTS[i], marks);
    }
    git_calls_done(calls, ARRAY_SIZE(calls));
    return r;
}

static bool is_file(const struct tree_entry *entry)
{
    return (entry->mode & 0170000) == 0100000;
}

static void note(const struct conversion_look *look, size_t entry)
{
    change_add(look->changes, CHANGE_FILTERED, look->prefix, look->listing->entries[entry].path);
}

static enum result refuse_missing(const struct conversion_look *look, size_t entry, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    const char *path = look->listing->entries[entry].path;
    text_add_printable(&shown, path, strlen(path), false);
    return error_set(err, RESULT_INVALID, 0, "git does not have the contents of %s", shown.bytes);
}

/* ---- by size ---- */

static bool goes_by_size(const struct conversion_look *look, const uint8_t *marks, size_t entry)
{
    return marks[entry] == CONVERTS_LINES && is_file(&look->listing->entries[entry]);
}

static void compare_size(const struct conversion_look *look, size_t entry, long long size)
{
    struct stat status;
    const char *path = look->listing->entries[entry].path;
    if (fstatat(look->top_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_size != size)
        note(look, entry);
}

static enum result compare_sizes(
    const struct conversion_look *look, const uint8_t *marks, const struct text *answer, struct error *err)
{
    char *at = answer->bytes;
    for (size_t i = 0; i < look->listing->count; i++) {
        runner_pace(look->runner, i);
        if (!goes_by_size(look, marks, i))
            continue;
        char *end = at;
        long long size = at ? strtoll(at, &end, 10) : 0;
        if (end == at || *end != '\n')
            return refuse_missing(look, i, err);
        at = end + 1;
        compare_size(look, i, size);
    }
    return RESULT_OK;
}

static enum result look_at_sizes(const struct conversion_look *look, const uint8_t *marks, struct error *err)
{
    _cleanup_(text_done) struct text input = {0};
    for (size_t i = 0; i < look->listing->count; i++) {
        if (!goes_by_size(look, marks, i))
            continue;
        text_append(&input, look->listing->entries[i].blob, look->listing->blob_length);
        text_add(&input, "\n");
    }
    if (!input.length)
        return RESULT_OK;
    struct collect call = GIT_CALL(look->top_fd, "cat-file", "--batch-check=%(objectsize)");
    call.input = input.bytes;
    call.input_length = input.length;
    enum result r = git_run(look->runner, &call, err);
    if (r == RESULT_OK)
        r = compare_sizes(look, marks, &call.output, err);
    git_calls_done(&call, 1);
    return r;
}

/* ---- by bytes ---- */

static void compare_bytes(const struct conversion_look *look, size_t entry, const char *bytes, size_t length)
{
    _cleanup_(text_done) struct text text = {0};
    const char *path = look->listing->entries[entry].path;
    enum result r = file_read(look->top_fd, path, true, length, &text, NULL); /* a longer one is not read */
    if (r != RESULT_OK || text.length != length || (length && memcmp(text.bytes, bytes, length) != 0))
        note(look, entry);
    runner_turn(look->runner);
}

/* A path that the batch's line-wise input cannot carry. */
static bool is_awkward(const char *path)
{
    return *path == ' ' || *path == '\t' || strchr(path, '\n');
}

static enum result look_at_one(const struct conversion_look *look, size_t entry, struct error *err)
{
    const struct tree_entry *of = &look->listing->entries[entry];
    _cleanup_(mem_free) char *path = mem_format("--path=%s", of->path);
    _cleanup_(mem_free) char *blob = mem_copy(of->blob, look->listing->blob_length);
    struct collect call = GIT_CALL(look->top_fd, "cat-file", "--filters", path, blob);
    enum result r = git_run(look->runner, &call, err);
    if (r == RESULT_OK)
        compare_bytes(look, entry, call.output.bytes, call.output.length);
    git_calls_done(&call, 1);
    return r;
}

struct chunk {
    size_t *entries;
    size_t count;
    off_t size_bytes;
    struct text input;
};

/* Each file's contents stand behind a line with a token that no file can hold: it was not known before. */
static enum result compare_chunk(const struct conversion_look *look, const struct chunk *chunk,
    const char *token, const struct text *answer, struct error *err)
{
    _cleanup_(mem_free) char *line = mem_format("\n%s\n", token);
    size_t length = strlen(line);
    const char *at = answer->bytes, *end = answer->bytes + answer->length;
    for (size_t i = 0; i < chunk->count; i++) {
        if (!at || (size_t)(end - at) < length || memcmp(at, line + 1, length - 1) != 0)
            return refuse_missing(look, chunk->entries[i], err);
        const char *bytes = at + length - 1;
        const char *next = memmem(bytes - 1, (size_t)(end - bytes + 1), line, length);
        const char *stop = next ? next : end - 1; /* a line feed behind the last one too */
        compare_bytes(look, chunk->entries[i], bytes, stop > bytes ? (size_t)(stop - bytes) : 0);
        at = stop + 1;
    }
    return RESULT_OK;
}

static enum result look_at_chunk(const struct conversion_look *look, struct chunk *chunk, struct error *err)
{
    if (!chunk->count)
        return RESULT_OK;
    uint8_t random[TOKEN_BYTES];
    char token[2 * TOKEN_BYTES + 1];
    random_bytes(random, sizeof(random));
    hex_encode(random, sizeof(random), token);
    _cleanup_(mem_free) char *format = mem_format("--batch=%s", token);
    struct collect call = GIT_CALL(look->top_fd, "cat-file", "--filters", format);
    call.input = chunk->input.bytes;
    call.input_length = chunk->input.length;
    enum result r = git_run(look->runner, &call, err);
    if (r == RESULT_OK)
        r = compare_chunk(look, chunk, token, &call.output, err);
    git_calls_done(&call, 1);
    chunk->count = 0;
    chunk->size_bytes = 0;
    text_clear(&chunk->input);
    return r;
}

static void chunk_add(const struct conversion_look *look, struct chunk *chunk, size_t entry)
{
    const struct tree_entry *of = &look->listing->entries[entry];
    struct stat status;
    if (fstatat(look->top_fd, of->path, &status, AT_SYMLINK_NOFOLLOW) == 0)
        chunk->size_bytes += status.st_size;
    chunk->entries[chunk->count++] = entry;
    text_append(&chunk->input, of->blob, look->listing->blob_length);
    text_add(&chunk->input, " ");
    text_add(&chunk->input, of->path);
    text_add(&chunk->input, "\n");
}

static enum result look_at_file(
    const struct conversion_look *look, struct chunk *chunk, size_t entry, struct error *err)
{
    if (is_awkward(look->listing->entries[entry].path))
        return look_at_one(look, entry, err);
    chunk_add(look, chunk, entry);
    bool full = chunk->count == CHUNK_FILES || chunk->size_bytes > CHUNK_BYTES;
    return full ? look_at_chunk(look, chunk, err) : RESULT_OK;
}

static enum result look_at_bytes(const struct conversion_look *look, const uint8_t *marks, struct error *err)
{
    size_t entries[CHUNK_FILES];
    struct chunk chunk = {.entries = entries};
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < look->listing->count; i++) {
        runner_pace(look->runner, i);
        if ((marks[i] & CONVERTS_BYTES) && is_file(&look->listing->entries[i]))
            r = look_at_file(look, &chunk, i, err);
    }
    if (r == RESULT_OK)
        r = look_at_chunk(look, &chunk, err);
    text_done(&chunk.input);
    return r;
}

enum result conversions_look(const struct conversion_look *look, struct error *err)
{
    size_t count = look->listing->count;
    if (!count || !attributes_convert(look))
        return RESULT_OK;
    _cleanup_(mem_free) uint8_t *marks = mem_alloc(count);
    if (look->settings->converts_lines)
        memset(marks, CONVERTS_LINES, count);
    enum result r = mark_all(look, marks, err);
    if (r == RESULT_OK)
        r = look_at_sizes(look, marks, err);
    return r == RESULT_OK ? look_at_bytes(look, marks, err) : r;
}
