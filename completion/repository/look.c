/*
 * One repository's answers: the gits that are asked at once, and their words taken apart.
 *
 * Looking for what is untracked takes git about as long as looking at what is tracked, so two gits do the one
 * and the other beside each other. That is one look as long as both read the same index: a file that was
 * added between them would be nobody's. So the index is watched, and where it cannot be told to have stood
 * still one git looks at both again, and the entries are read a second time.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

enum call { CALL_STATUS, CALL_FILES, CALL_NAMES, CALL_SETTINGS, CALL_MAX };

void repository_look_done(struct repository_look *look)
{
    free(look->top);
    free(look->git_dir);
    free(look->tree);
    free(look->commit);
    free(look->resolved);
    text_done(&look->listing);
    settings_done(&look->settings);
    change_list_done(&look->changes);
    *look = (struct repository_look){0};
}

/* The end of the line that begins at `line` when that is an object's name, else NULL. */
static const char *object_line(const char *line)
{
    size_t length = strcspn(line, "\n");
    return git_is_object_name(line, length) && line[length] == '\n' ? line + length : NULL;
}

/* "GITDIR\nCOMMIT\nTREE\nTOP\n". Either path may hold line feeds; the names in the middle tell them apart. */
static bool names_parse(const struct collect *call, struct repository_look *look)
{
    _cleanup_(mem_free) char *whole = git_line(call);
    for (const char *line = strchr(whole, '\n'); line; line = strchr(line + 1, '\n')) {
        const char *commit_end = object_line(line + 1);
        const char *tree_end = commit_end ? object_line(commit_end + 1) : NULL;
        if (!tree_end)
            continue;
        look->git_dir = mem_copy(whole, (size_t)(line - whole));
        look->resolved = mem_copy(line + 1, (size_t)(commit_end - line - 1));
        look->tree = mem_copy(commit_end + 1, (size_t)(tree_end - commit_end - 1));
        look->top = mem_string(tree_end + 1);
        return true;
    }
    return false;
}

/* git refused to look: in a bare repository, inside of .git and outside of any repository with words that do
 * not help. */
static enum result refuse_look(
    struct runner *runner, int directory_fd, const struct collect *failed, struct error *err)
{
    struct collect call = GIT_CALL(directory_fd, "rev-parse", "--is-bare-repository", "--is-inside-git-dir");
    _cleanup_(mem_free) char *answer = NULL;
    enum result r = runner->run(runner, &call, 1, err);
    if (r == RESULT_OK)
        answer = git_exited(&call, 0) ? git_line(&call) : mem_string("");
    git_calls_done(&call, 1);
    if (r != RESULT_OK)
        return r;
    _cleanup_(fd_cleanup) int nearest = git_nearest(directory_fd);
    if (*answer == '\0' && nearest < 0) {
        error_set(err, RESULT_INVALID, 0, "this is not in a git work tree");
        return error_remedy(err, "go into one, or name it with -C DIR; `git init` makes one");
    }
    if (strncmp(answer, "true", 4) == 0) {
        error_set(err, RESULT_INVALID, 0, "this is a bare repository: it has no work tree");
        return error_remedy(err, "go to a checkout of it");
    }
    if (strcmp(answer, "false\ntrue") == 0) {
        error_set(err, RESULT_INVALID, 0, "this is git's own directory, not the work tree");
        return error_remedy(err, "go to the work tree");
    }
    return collect_check(failed, err);
}

/* Of a branch that has no commit yet git can tell the name; of one whose file is damaged it cannot. */
static enum result refuse_unborn(struct runner *runner, int directory_fd, struct error *err)
{
    struct collect call = GIT_CALL(directory_fd, "symbolic-ref", "-q", "HEAD");
    enum result r = runner->run(runner, &call, 1, err);
    bool unborn = r == RESULT_OK && git_exited(&call, 0);
    git_calls_done(&call, 1);
    if (r != RESULT_OK)
        return r;
    if (!unborn) {
        error_set(err, RESULT_INVALID, 0, "HEAD is corrupt: what it names does not hold a commit");
        return error_remedy(err, "`git reflog` and `git fsck` tell what it was");
    }
    error_set(err, RESULT_INVALID, 0, "HEAD has no commit yet, so there is no tree to prove");
    return error_remedy(err, "commit first");
}

/* The gits that had to succeed did not all do so. */
static enum result calls_refuse(
    struct runner *runner, int directory_fd, const struct collect calls[CALL_MAX], struct error *err)
{
    struct change_list changes = {0};
    _cleanup_(mem_free) char *commit = NULL;
    bool unborn = git_exited(&calls[CALL_STATUS], 0) && git_exited(&calls[CALL_FILES], 0) &&
                  status_parse(&calls[CALL_STATUS].output, "", &changes, &commit, NULL) == RESULT_OK &&
                  !commit;
    change_list_done(&changes);
    if (unborn)
        return refuse_unborn(runner, directory_fd, err);
    const struct collect *failed = calls;
    while (git_exited(failed, 0))
        failed++;
    return refuse_look(runner, directory_fd, failed, err);
}

/* git config answers 1 when it knows none of the keys. */
static bool calls_succeeded(const struct collect calls[CALL_MAX])
{
    return git_exited(&calls[CALL_STATUS], 0) && git_exited(&calls[CALL_FILES], 0) &&
           git_exited(&calls[CALL_NAMES], 0) &&
           (git_exited(&calls[CALL_SETTINGS], 0) || git_exited(&calls[CALL_SETTINGS], 1));
}

#define CALL_STATUS_OF(directory_fd, untracked)                                                              \
    GIT_CALL(                                                                                                \
        directory_fd, "status", "--porcelain=v2", "-z", "--branch", untracked, "--ignore-submodules=none")

#define CALL_FILES_OF(directory_fd, ...)                                                                     \
    GIT_CALL(directory_fd, "ls-files", __VA_ARGS__, "-s", "-v", "-z", "--full-name", "--", ":/")

static bool same_text(const struct text *a, const struct text *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

/* The entries were read by another git than what is changed. Behind it they must be the same still: a commit
 * in between would leave those of the tree before it under the name of the new one. */
static enum result check_listing(
    struct runner *runner, int directory_fd, const struct repository_look *look, struct error *err)
{
    struct collect call = CALL_FILES_OF(directory_fd, "-c");
    enum result r = git_run(runner, &call, err);
    if (r == RESULT_OK && !same_text(&call.output, &look->listing))
        r = error_set(err, RESULT_CONFLICT, 0, "the index was written to while git was asked about it");
    git_calls_done(&call, 1);
    return r;
}

/* What one git alone says is changed, the untracked too. */
static enum result look_again(struct runner *runner, int directory_fd, const char *prefix,
    struct repository_look *look, struct error *err)
{
    struct collect call = CALL_STATUS_OF(directory_fd, "-uall");
    change_list_done(&look->changes);
    free(STEAL(look->commit));
    enum result r = git_run(runner, &call, err);
    if (r == RESULT_OK)
        r = status_parse(&call.output, prefix, &look->changes, &look->commit, err);
    git_calls_done(&call, 1);
    return r == RESULT_OK ? check_listing(runner, directory_fd, look, err) : r;
}

static enum result check_head(const struct repository_look *look, struct error *err)
{
    if (!look->commit)
        return error_set(err, RESULT_CONFLICT, 0, "HEAD appeared while git was asked about it");
    if (strcmp(look->resolved, look->commit) != 0)
        return error_set(err, RESULT_CONFLICT, 0,
            "HEAD moved from %.12s to %.12s while git was asked about it", look->resolved, look->commit);
    return RESULT_OK;
}

static enum result calls_read(
    struct collect calls[CALL_MAX], const char *prefix, struct repository_look *look, struct error *err)
{
    if (!names_parse(&calls[CALL_NAMES], look))
        return error_set(err, RESULT_INVALID, 0, "git rev-parse answers in a form that is not known");
    settings_parse(&calls[CALL_SETTINGS].output, &look->settings);
    enum result r = status_parse(&calls[CALL_STATUS].output, prefix, &look->changes, &look->commit, err);
    look->listing = calls[CALL_FILES].output;
    calls[CALL_FILES].output = (struct text){0};
    untracked_take(&look->listing, prefix, &look->changes);
    return r;
}

enum result repository_look(struct runner *runner, int directory_fd, const char *prefix,
    struct repository_look *ret, struct error *err)
{
    struct collect calls[CALL_MAX] = {
        [CALL_STATUS] = CALL_STATUS_OF(directory_fd, "-uno"),
        [CALL_FILES] = CALL_FILES_OF(directory_fd, "-o", "--exclude-standard"),
        [CALL_NAMES] = GIT_CALL(
            directory_fd, "rev-parse", "--absolute-git-dir", "HEAD", "HEAD^{tree}", "--show-toplevel"),
        [CALL_SETTINGS] = GIT_CALL_PLAIN(directory_fd, "config", "-z", "--get-regexp",
            "^(core\\.(attributesfile|autocrlf)|remote\\.origin\\.url)$"),
    };
    struct repository_look look = {0};
    _cleanup_(index_watch_done) struct index_watch watch = index_watch(directory_fd);
    enum result r = git_run_all(runner, calls, CALL_MAX, err);
    if (r == RESULT_OK)
        r = calls_succeeded(calls) ? calls_read(calls, prefix, &look, err)
                                   : calls_refuse(runner, directory_fd, calls, err);
    git_calls_done(calls, CALL_MAX);
    if (r == RESULT_OK && !index_stood_still(&watch, look.git_dir))
        r = look_again(runner, directory_fd, prefix, &look, err);
    if (r == RESULT_OK)
        r = check_head(&look, err);
    if (r == RESULT_OK)
        *ret = look;
    else
        repository_look_done(&look);
    return r;
}
