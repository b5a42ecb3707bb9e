/* The configuration against a candidate: globs that match nothing, outputs that git does not ignore. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "completion/demand/config.h"
#include "completion/demand/pathspec.h"

#define LINES_SHOWN 5

static bool matches_any(const struct candidate *candidate, const char *glob)
{
    for (size_t i = 0; i < candidate->entry_count; i++)
        if (pathspec_match(glob, candidate->entries[i].path))
            return true;
    return false;
}

static enum result refuse_glob(const struct producer *producer, size_t glob, struct error *err)
{
    _cleanup_(text_done) struct text shown = {0};
    const char *text = producer->inputs.items[glob];
    text_add_printable(&shown, text, strlen(text), false);
    error_set(err, RESULT_INVALID, 0,
        CONFIG_NAME ":%d:%d: the input \"%s\" of \"%s\" matches no file of the tree",
        producer->input_places[glob].line, producer->input_places[glob].column, shown.bytes, producer->name);
    return error_remedy(err, "correct the glob, commit the file, or take the glob out");
}

static enum result check_producer(
    const struct producer *producer, const struct candidate *candidate, struct error *err)
{
    for (size_t i = 0; i < producer->inputs.count; i++)
        if (!pathspec_excludes(producer->inputs.items[i]) &&
            !matches_any(candidate, producer->inputs.items[i]))
            return refuse_glob(producer, i, err);
    return RESULT_OK;
}

enum result config_check_inputs(
    const struct config *config, const struct candidate *candidate, struct error *err)
{
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < config->producer_count; i++)
        r = check_producer(&config->producers[i], candidate, err);
    return r;
}

/* ---- untracked outputs ---- */

static bool has_untracked(const struct candidate *candidate, const char *output)
{
    size_t length = strlen(output);
    for (size_t i = 0; i < candidate->change_count; i++) {
        const struct change *change = &candidate->changes[i];
        if (change->kind == CHANGE_UNTRACKED && strncmp(change->path, output, length) == 0 &&
            (change->path[length] == '\0' || change->path[length] == '/'))
            return true;
    }
    return false;
}

/* gitignore(5): what its patterns treat specially must be escaped, a final space too. */
static void add_ignore_line(struct text *lines, const char *path)
{
    _cleanup_(text_done) struct text line = {0};
    for (const char *at = path; *at; at++)
        text_addf(&line, strchr("*?[\\", *at) || (*at == ' ' && !at[1]) ? "\\%c" : "%c", *at);
    text_add(lines, lines->length ? ", \"/" : "\"/");
    text_add_printable(lines, line.bytes, line.length, false);
    text_add(lines, "\"");
}

static size_t add_ignore_lines(
    const struct strings *outputs, const struct candidate *candidate, size_t shown, struct text *lines)
{
    for (size_t i = 0; i < outputs->count && shown < LINES_SHOWN; i++) {
        if (has_untracked(candidate, outputs->items[i])) {
            add_ignore_line(lines, outputs->items[i]);
            shown++;
        }
    }
    return shown;
}

bool config_ignore_lines(const struct config *config, const struct candidate *candidate, struct text *ret)
{
    size_t shown = 0;
    for (size_t i = 0; i < config->producer_count; i++) {
        shown = add_ignore_lines(&config->producers[i].outputs, candidate, shown, ret);
        shown = add_ignore_lines(&config->producers[i].artifacts, candidate, shown, ret);
    }
    return shown > 0;
}

enum result config_check_clean(
    const struct config *config, const struct candidate *candidate, struct error *err)
{
    enum result r = candidate_check_clean(candidate, err);
    if (r != RESULT_INVALID)
        return r;
    _cleanup_(text_done) struct text lines = {0};
    if (config_ignore_lines(config, candidate, &lines))
        error_remedy(err, "producers leave these behind: add %s to .gitignore", lines.bytes);
    return r;
}
