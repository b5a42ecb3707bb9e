/* Is the work tree the tree of HEAD, and is it still the one that it was? */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/repository/git-private.h"

#define SHOWN_MAX 10

/* How each kind is told, and what to do when it is the first. */
struct kind_words {
    const char *word, *remedy;
};

static const struct kind_words WORDS[CHANGE_KIND_MAX] = {
    [CHANGE_MODIFIED] = {"modified", "commit it or take it back; --dirty tries it out without a Proof"},
    [CHANGE_STAGED] = {"staged", "commit it or unstage it; --dirty tries it out without a Proof"},
    [CHANGE_UNTRACKED] = {"untracked", "commit it or name it in .gitignore"},
    [CHANGE_ASSUME_UNCHANGED] = {"assume-unchanged, so git does not look at it",
        "run `git update-index --no-assume-unchanged` on it"},
    [CHANGE_SKIP_WORKTREE] = {"skip-worktree, so git does not look at it",
        "run `git update-index --no-skip-worktree` on it, or `git sparse-checkout disable`"},
    [CHANGE_SUBMODULE] = {"a submodule that is not at its commit, or not clean",
        "commit inside of the submodule and around it, or run `git submodule update`"},
    [CHANGE_FILTERED] = {"not what git would check out, which its attributes hide",
        "remove the file and check it out again, or commit contents that the filter keeps"},
    [CHANGE_CONFLICTED] = {"in conflict", "end the merge first"},
};

/* ---- lists of files for people ---- */

struct shown {
    struct text text;
    size_t count;
};

static void show(struct shown *shown, const char *path, const char *word)
{
    if (shown->count++ >= SHOWN_MAX)
        return;
    if (shown->text.length)
        text_add(&shown->text, ", ");
    text_add_printable(&shown->text, path, strlen(path), false);
    if (word)
        text_addf(&shown->text, " (%s)", word);
}

/* A directory with what it holds; one file of it alone is named itself. */
static void show_untracked(struct shown *shown, const struct untracked_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct untracked *item = &list->items[i];
        if (item->files == 1) {
            show(shown, item->first, WORDS[CHANGE_UNTRACKED].word);
            continue;
        }
        _cleanup_(mem_free) char *word =
            mem_format("%zu files, %s", item->files, WORDS[CHANGE_UNTRACKED].word);
        show(shown, item->path, word);
    }
}

static void show_rest(struct shown *shown)
{
    if (shown->count > SHOWN_MAX)
        text_addf(&shown->text, " and %zu more", shown->count - SHOWN_MAX);
}

enum result candidate_check_clean(const struct candidate *candidate, struct error *err)
{
    if (!candidate->change_count)
        return RESULT_OK;
    struct shown shown = {0};
    _cleanup_(untracked_list_done) struct untracked_list untracked;
    for (size_t i = 0; i < candidate->change_count; i++)
        if (candidate->changes[i].kind != CHANGE_UNTRACKED)
            show(&shown, candidate->changes[i].path, WORDS[candidate->changes[i].kind].word);
    candidate_untracked(candidate, NULL, NULL, &untracked);
    show_untracked(&shown, &untracked);
    show_rest(&shown);
    error_set(err, RESULT_INVALID, 0, "the work tree is not the tree of HEAD: %s", shown.text.bytes);
    text_done(&shown.text);
    return error_remedy(err, "%s", WORDS[candidate->changes[0].kind].remedy);
}

/* ---- the same? ---- */

static bool text_equal(const struct text *a, const struct text *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static int by_path(const void *a, const void *b)
{
    const struct tree_entry *left = *(const struct tree_entry *const *)a;
    const struct tree_entry *right = *(const struct tree_entry *const *)b;
    return strcmp(left->path, right->path);
}

/* The same order for both, whatever stands behind the submodules. */
static const struct tree_entry **sorted(const struct candidate *candidate)
{
    const struct tree_entry **entries = mem_resize(NULL, candidate->entry_count, sizeof(*entries));
    for (size_t i = 0; i < candidate->entry_count; i++)
        entries[i] = &candidate->entries[i];
    if (candidate->entry_count)
        qsort(entries, candidate->entry_count, sizeof(*entries), by_path);
    return entries;
}

static bool entry_equal(const struct tree_entry *a, const struct tree_entry *b, size_t blob_length)
{
    return a->mode == b->mode && memcmp(a->blob, b->blob, blob_length) == 0;
}

/* Names what is in one index only, or differs. */
static void show_entries(const struct candidate *before, const struct candidate *now, struct shown *shown)
{
    _cleanup_(mem_free) const struct tree_entry **old = sorted(before), **new = sorted(now);
    size_t i = 0, j = 0;
    while (i < before->entry_count || j < now->entry_count) {
        int order = i == before->entry_count || j == now->entry_count ? (i == before->entry_count ? 1 : -1)
                                                                      : strcmp(old[i]->path, new[j]->path);
        if (order != 0)
            show(shown, order < 0 ? old[i]->path : new[j]->path, NULL);
        else if (!entry_equal(old[i], new[j], before->blob_length))
            show(shown, new[j]->path, NULL);
        i += order <= 0;
        j += order >= 0;
    }
}

static bool has_change(const struct candidate *candidate, enum change_kind kind, const char *path)
{
    for (size_t i = 0; i < candidate->change_count; i++)
        if (candidate->changes[i].kind == kind && strcmp(candidate->changes[i].path, path) == 0)
            return true;
    return false;
}

static bool is_new_untracked(const void *context, const char *path)
{
    return !has_change(context, CHANGE_UNTRACKED, path);
}

/* Changes that the other look did not have. */
static void show_changes(
    const struct candidate *of, const struct candidate *other, bool gone, struct shown *shown)
{
    for (size_t i = 0; i < of->change_count; i++) {
        const struct change *change = &of->changes[i];
        bool folded = change->kind == CHANGE_UNTRACKED && !gone;
        if (!folded && !has_change(other, change->kind, change->path))
            show(shown, change->path, gone ? NULL : WORDS[change->kind].word);
    }
    _cleanup_(untracked_list_done) struct untracked_list untracked = {0};
    if (!gone)
        candidate_untracked(of, is_new_untracked, other, &untracked);
    show_untracked(shown, &untracked);
}

static enum result refuse_moved(const char *what, struct shown *shown, struct error *err)
{
    show_rest(shown);
    error_set(err, RESULT_CONFLICT, 0, "the tree moved while it was being proved: %s%s%s", what,
        shown->text.length ? ": " : "", shown->text.length ? shown->text.bytes : "");
    text_done(&shown->text);
    return error_remedy(err, "leave the work tree alone and run it again");
}

enum result candidate_check_same(
    const struct candidate *before, const struct candidate *now, struct error *err)
{
    struct shown shown = {0};
    if (!git_same_directory(before->top_fd, now->top_fd))
        return refuse_moved("another directory stands in its place", &shown, err);
    bool same_head = strcmp(before->commit, now->commit) == 0 && strcmp(before->tree, now->tree) == 0;
    bool same_index =
        text_equal(&before->listing, &now->listing) && text_equal(&before->nested, &now->nested);
    if (!same_index)
        show_entries(before, now, &shown);
    show_changes(now, before, false, &shown);
    show_changes(before, now, true, &shown);
    if (!same_head) {
        _cleanup_(mem_free) char *what =
            mem_format("HEAD was %.12s and is %.12s", before->commit, now->commit);
        return refuse_moved(what, &shown, err);
    }
    if (shown.count || !same_index)
        return refuse_moved(shown.count ? "files differ" : "flags of the index differ", &shown, err);
    return RESULT_OK;
}
