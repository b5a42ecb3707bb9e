/* Submodules, and theirs, one after the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

#define MODE_SUBMODULE 0160000U

struct pending {
    char *path;   /* from the top */
    char *commit; /* that the tree around it names */
};

struct worklist {
    struct pending *items;
    size_t count, capacity;
};

static void worklist_done(struct worklist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].commit);
    }
    free(list->items);
}

static void worklist_add(struct worklist *list, const struct listing *listing, const char *prefix)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct tree_entry *entry = &listing->entries[i];
        if (entry->mode != MODE_SUBMODULE)
            continue;
        mem_grow(&list->items, &list->capacity, list->count, sizeof(*list->items));
        list->items[list->count++] = (struct pending){
            .path = mem_format("%s%s", prefix, entry->path),
            .commit = mem_copy(entry->blob, listing->blob_length),
        };
    }
}

/* The records of the submodule with whole paths, in the form in which git wrote them. */
static void records_append(struct text *nested, const struct listing *listing, const char *prefix)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct tree_entry *entry = &listing->entries[i];
        const char *record = entry->blob - 9;
        text_append(nested, record, (size_t)(entry->path - record));
        text_add(nested, prefix);
        text_append(nested, entry->path, strlen(entry->path) + 1);
    }
}

struct nested_look {
    struct runner *runner;
    int top_fd;
    struct worklist list;
    struct text *nested;
    struct change_list *changes;
};

static enum result read_submodule(
    struct nested_look *nested, int fd, const char *prefix, struct repository_look *look, struct error *err)
{
    struct listing listing = {0};
    struct change_list flags = {0}; /* seen again, with whole paths, when the records are read */
    const struct conversion_look conversions = {
        .runner = nested->runner,
        .top_fd = fd,
        .git_dir = look->git_dir,
        .prefix = prefix,
        .settings = &look->settings,
        .listing = &listing,
        .changes = nested->changes,
    };
    enum result r = listing_parse(nested->runner, &look->listing, &listing, &flags, err);
    if (r == RESULT_OK)
        r = conversions_look(&conversions, err);
    if (r == RESULT_OK) {
        worklist_add(&nested->list, &listing, prefix);
        records_append(nested->nested, &listing, prefix);
    }
    free(listing.entries);
    change_list_done(&flags);
    return r;
}

static bool has_change(const struct change_list *changes, const char *path)
{
    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->items[i].path, path) == 0)
            return true;
    return false;
}

/* The repository around it has most often named it already. */
static void note_submodule(
    struct nested_look *nested, const struct pending *pending, struct repository_look *look)
{
    struct change_list *changes = nested->changes;
    bool dirty = look->changes.count > 0 || strcmp(look->commit, pending->commit) != 0;
    if (dirty && !has_change(changes, pending->path))
        change_add(changes, CHANGE_SUBMODULE, "", pending->path);
    for (size_t i = 0; i < look->changes.count; i++)
        if (!has_change(changes, look->changes.items[i].path))
            change_add(changes, look->changes.items[i].kind, "", look->changes.items[i].path);
}

/* With a ".git" that is none git finds the repository around it, which is another. */
static enum result check_own(int fd, const char *top, struct error *err)
{
    _cleanup_(fd_cleanup) int top_fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (git_same_directory(fd, top_fd))
        return RESULT_OK;
    error_set(err, RESULT_INVALID, 0, "its .git is not a repository");
    return error_remedy(err, "run `git submodule update --init --force`");
}

static enum result look_submodule(struct nested_look *nested, size_t index, struct error *err)
{
    const struct pending pending = nested->list.items[index]; /* the list may move */
    _cleanup_(mem_free) char *git = mem_format("%s/.git", pending.path);
    _cleanup_(mem_free) char *prefix = mem_format("%s/", pending.path);
    if (faccessat(nested->top_fd, git, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return RESULT_OK; /* not checked out */
    _cleanup_(fd_cleanup) int fd =
        openat(nested->top_fd, pending.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_errno(err, errno, "cannot open the submodule %s", pending.path);
    struct repository_look look = {0};
    enum result r = repository_look(nested->runner, fd, prefix, &look, err);
    if (r == RESULT_OK)
        r = check_own(fd, look.top, err);
    if (r == RESULT_OK) {
        note_submodule(nested, &pending, &look);
        r = read_submodule(nested, fd, prefix, &look, err);
    }
    repository_look_done(&look);
    return r == RESULT_OK ? r : error_wrap(err, "submodule %s: ", pending.path);
}

enum result submodules_look(struct runner *runner, int top_fd, const struct listing *listing,
    struct text *nested_text, struct change_list *changes, struct error *err)
{
    enum result r = RESULT_OK;
    struct nested_look nested = {
        .runner = runner, .top_fd = top_fd, .nested = nested_text, .changes = changes};
    worklist_add(&nested.list, listing, "");
    for (size_t i = 0; r == RESULT_OK && i < nested.list.count; i++)
        r = look_submodule(&nested, i, err);
    worklist_done(&nested.list);
    return r;
}
