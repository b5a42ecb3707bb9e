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

/* ---- what is untracked ---- */

/* What package managers write, and others need in order to get the same: it is committed. */
static const char *const LOCK_FILES[] = {"Cargo.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml",
    "go.sum", "poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "composer.lock", "flake.lock"};

static bool is_lock_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < ARRAY_SIZE(LOCK_FILES); i++)
        if (strcmp(slash ? slash + 1 : path, LOCK_FILES[i]) == 0)
            return true;
    return false;
}

static bool is_below(const char *path, const char *output)
{
    size_t length = strlen(output);
    return strncmp(path, output, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bool is_any_below(const struct strings *outputs, const char *path)
{
    for (size_t i = 0; i < outputs->count; i++)
        if (is_below(path, outputs->items[i]))
            return true;
    return false;
}

static bool is_declared(const struct config *config, const char *path)
{
    for (size_t i = 0; i < config->producer_count; i++)
        if (is_any_below(&config->producers[i].outputs, path) ||
            is_any_below(&config->producers[i].artifacts, path))
            return true;
    return false;
}

/* Several in one sentence, the rest counted. */
struct lines {
    struct text text;
    size_t count;
};

/* gitignore(5): what its patterns treat specially must be escaped, a final space too. */
static void add_ignore_line(struct lines *lines, const char *path)
{
    if (lines->count++ >= LINES_SHOWN)
        return;
    _cleanup_(text_done) struct text line = {0};
    for (const char *at = path; *at; at++)
        text_addf(&line, strchr("*?[\\", *at) || (*at == ' ' && !at[1]) ? "\\%c" : "%c", *at);
    text_add(&lines->text, lines->count > 1 ? ", \"/" : "\"/");
    text_add_printable(&lines->text, line.bytes, line.length, false);
    text_add(&lines->text, "\"");
}

static bool has_untracked(const struct candidate *candidate, const char *output)
{
    for (size_t i = 0; i < candidate->change_count; i++)
        if (candidate->changes[i].kind == CHANGE_UNTRACKED && is_below(candidate->changes[i].path, output))
            return true;
    return false;
}

static void add_outputs(const struct strings *outputs, const struct candidate *candidate, struct lines *lines)
{
    for (size_t i = 0; i < outputs->count; i++)
        if (has_untracked(candidate, outputs->items[i]))
            add_ignore_line(lines, outputs->items[i]);
}

static void add_declared(const struct config *config, const struct candidate *candidate, struct lines *lines)
{
    for (size_t i = 0; i < config->producer_count; i++) {
        add_outputs(&config->producers[i].outputs, candidate, lines);
        add_outputs(&config->producers[i].artifacts, candidate, lines);
    }
}

static bool is_other(const void *context, const char *path)
{
    return !is_declared(context, path) && !is_lock_file(path);
}

static void add_others(const struct config *config, const struct candidate *candidate, struct lines *lines)
{
    _cleanup_(untracked_list_done) struct untracked_list others;
    candidate_untracked(candidate, is_other, config, &others);
    for (size_t i = 0; i < others.count; i++)
        add_ignore_line(lines, others.items[i].path);
}

static void add_lock_files(const struct config *config, const struct candidate *candidate, struct text *ret)
{
    const char *between = "commit ";
    for (size_t i = 0; i < candidate->change_count; i++) {
        const char *path = candidate->changes[i].path;
        if (candidate->changes[i].kind != CHANGE_UNTRACKED || !is_lock_file(path) ||
            is_declared(config, path))
            continue;
        text_add(ret, between);
        text_add_printable(ret, path, strlen(path), false);
        between = ", ";
    }
}

/* Ends the list; false when there is nothing in it. */
static bool lines_finish(struct lines *lines)
{
    if (lines->count > LINES_SHOWN)
        text_addf(&lines->text, " and %zu more", lines->count - LINES_SHOWN);
    return lines->count > 0;
}

bool config_left_behind(const struct config *config, const struct candidate *candidate, struct text *ret)
{
    struct lines lines = {0};
    size_t before = ret->length;
    add_declared(config, candidate, &lines);
    add_others(config, candidate, &lines);
    add_lock_files(config, candidate, ret);
    if (lines_finish(&lines))
        text_addf(ret, "%sadd %s to .gitignore", ret->length > before ? "; " : "", lines.text.bytes);
    text_done(&lines.text);
    return ret->length > before;
}

/* Before anything ran nobody knows who made it: it may be new work. */
static void suggest_for_new(const struct config *config, const struct candidate *candidate, struct error *err)
{
    struct lines lines = {0};
    _cleanup_(text_done) struct text remedy = {0};
    add_lock_files(config, candidate, &remedy);
    add_others(config, candidate, &lines);
    if (lines_finish(&lines))
        text_addf(&remedy, "%sadd %s to .gitignore",
            remedy.length > 0 ? "; commit the rest or " : "commit it or ", lines.text.bytes);
    text_done(&lines.text);
    if (remedy.length > 0)
        error_remedy(err, "%s", remedy.bytes);
}

static bool is_all_untracked(const struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->change_count; i++)
        if (candidate->changes[i].kind != CHANGE_UNTRACKED)
            return false;
    return true;
}

enum result config_check_clean(
    const struct config *config, const struct candidate *candidate, struct error *err)
{
    enum result r = candidate_check_clean(candidate, err);
    if (r != RESULT_INVALID)
        return r;
    struct lines declared = {0};
    add_declared(config, candidate, &declared);
    if (lines_finish(&declared))
        error_remedy(err, "producers leave these behind: add %s to .gitignore", declared.text.bytes);
    else if (is_all_untracked(candidate))
        suggest_for_new(config, candidate, err);
    text_done(&declared.text);
    return r;
}

enum result config_check_committed(const struct candidate *candidate, struct error *err)
{
    for (size_t i = 0; i < candidate->entry_count; i++) {
        runner_pace(candidate->runner, i);
        if (strcmp(candidate->entries[i].path, CONFIG_NAME) == 0)
            return RESULT_OK;
    }
    error_set(err, RESULT_INVALID, 0,
        CONFIG_NAME " is not committed, so it does not belong to the tree that is to be proved");
    return error_remedy(err, "take it out of .gitignore, `git add " CONFIG_NAME "` and commit");
}
