/* What git knows of other commits and trees. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

/* ---- what changed ---- */

/* git's own words for a glob of ours: "!" and ":!" exclude. */
static char *pathspec_of(const char *glob)
{
    bool colon = *glob == ':' && (glob[1] == '!' || glob[1] == '^');
    bool excludes = colon || *glob == '!';
    return mem_format(":(top,%sglob)%s", excludes ? "exclude," : "", glob + colon + excludes);
}

struct words {
    char **items;
    size_t count, capacity;
};

static void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}

static void words_add(struct words *words, char *word)
{
    mem_grow(&words->items, &words->capacity, words->count + 1, sizeof(*words->items));
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

static void paths_take(const struct text *answer, size_t limit, char ***ret_paths, size_t *ret_count)
{
    size_t count = 0, capacity = 0;
    char **paths = NULL;
    for (size_t at = 0; at < answer->length && count < limit; at += strlen(answer->bytes + at) + 1) {
        mem_grow(&paths, &capacity, count, sizeof(*paths));
        paths[count++] = mem_string(answer->bytes + at);
    }
    *ret_paths = paths;
    *ret_count = count;
}

enum result candidate_changed(struct runner *runner, const struct candidate *candidate, const char *old_tree,
    const char *const *globs, size_t glob_count, size_t limit, char ***ret_paths, size_t *ret_count,
    struct error *err)
{
    static const char *const OPTIONS[] = {"diff-tree", "-r", "-z", "--name-only", "--no-renames",
        "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--end-of-options"};
    struct words words = {0};
    for (size_t i = 0; i < ARRAY_SIZE(OPTIONS); i++)
        words_add(&words, mem_string(OPTIONS[i]));
    words_add(&words, mem_string(old_tree));
    words_add(&words, mem_string(candidate->tree));
    words_add(&words, mem_string("--"));
    for (size_t i = 0; i < glob_count; i++)
        words_add(&words, pathspec_of(globs[i]));
    struct collect call = git_call(candidate->top_fd, (const char *const *)words.items, true);
    enum result r = git_run(runner, &call, err);
    if (r == RESULT_OK)
        paths_take(&call.output, limit, ret_paths, ret_count);
    git_calls_done(&call, 1);
    words_done(&words);
    return r;
}

/* ---- names ---- */

/* The object that `name` means. ABSENT when there is none, without words of git. */
static enum result resolve(struct runner *runner, int fd, const char *name, char **ret, struct error *err)
{
    struct collect call = GIT_CALL(fd, "rev-parse", "--verify", "--quiet", "--end-of-options", name);
    enum result r = runner->run(runner, &call, 1, err);
    if (r == RESULT_OK && git_exited(&call, 1))
        r = error_set(err, RESULT_ABSENT, 0, "git knows nothing named %s", name);
    else if (r == RESULT_OK)
        r = collect_check(&call, err);
    if (r == RESULT_OK)
        *ret = git_line(&call);
    git_calls_done(&call, 1);
    return r;
}

static enum result open_directory(const char *directory, int *ret_fd, struct error *err)
{
    *ret_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 ? RESULT_OK : error_set(err, RESULT_INVALID, 0, "cannot open %s", directory);
}

static enum result show_blob(
    struct runner *runner, int fd, const char *blob, struct text *ret, struct error *err)
{
    struct collect call = GIT_CALL(fd, "cat-file", "blob", blob);
    enum result r = git_run(runner, &call, err);
    if (r == RESULT_OK)
        text_append(ret, call.output.bytes ? call.output.bytes : "", call.output.length);
    git_calls_done(&call, 1);
    return r;
}

enum result repository_show(struct runner *runner, const char *directory, const char *commit,
    const char *path, struct text *ret, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = -1;
    _cleanup_(mem_free) char *blob = NULL, *name = mem_format("%s:%s", commit, path);
    enum result r = open_directory(directory, &fd, err);
    if (r == RESULT_OK)
        r = resolve(runner, fd, name, &blob, err);
    if (r == RESULT_ABSENT)
        return error_set(err, RESULT_ABSENT, 0, "%s has no %s", commit, path);
    return r == RESULT_OK ? show_blob(runner, fd, blob, ret, err) : r;
}

enum result repository_resolve(struct runner *runner, const char *directory, const char *typed,
    char **ret_commit, char **ret_tree, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = -1;
    _cleanup_(mem_free) char *commit = NULL, *tree = NULL, *tree_name = NULL;
    _cleanup_(mem_free) char *commit_name = mem_format("%s^{commit}", typed);
    enum result r = open_directory(directory, &fd, err);
    if (r == RESULT_OK)
        r = resolve(runner, fd, commit_name, &commit, err);
    if (r == RESULT_ABSENT)
        return error_set(err, RESULT_ABSENT, 0, "there is no commit %s", typed);
    if (r != RESULT_OK)
        return r;
    tree_name = mem_format("%s^{tree}", commit);
    r = resolve(runner, fd, tree_name, &tree, err);
    if (r != RESULT_OK)
        return r;
    *ret_commit = STEAL(commit);
    *ret_tree = STEAL(tree);
    return RESULT_OK;
}

enum result candidate_contents(
    const struct candidate *candidate, const char *path, struct text *ret, struct error *err)
{
    _cleanup_(mem_free) char *name = mem_format("%s:%s", candidate->commit, path);
    struct collect call = GIT_CALL(candidate->top_fd, "cat-file", "--filters", name);
    enum result r = git_run(candidate->runner, &call, err);
    if (r == RESULT_OK)
        text_append(ret, call.output.bytes ? call.output.bytes : "", call.output.length);
    git_calls_done(&call, 1);
    return r;
}
