/* What is untracked, folded for people: 29 files of a build directory are one thing. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "completion/repository/git-private.h"

void untracked_list_done(struct untracked_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct untracked_list){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The tracked paths in bytewise order, wherever they stand in the index. */
static const char **tracked_sorted(const struct candidate *candidate)
{
    const char **paths = mem_resize(NULL, candidate->entry_count + 1, sizeof(*paths));
    for (size_t i = 0; i < candidate->entry_count; i++)
        paths[i] = candidate->entries[i].path;
    if (candidate->entry_count > 0)
        qsort(paths, candidate->entry_count, sizeof(*paths), by_name);
    return paths;
}

static bool has_below(const char *const *paths, size_t count, const char *prefix, size_t length)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strncmp(paths[middle], prefix, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strncmp(paths[low], prefix, length) == 0;
}

/* How much of the path names the outermost directory that holds nothing tracked, its slash included; all of
 * it when there is none. */
static size_t folded_length(const char *const *paths, size_t count, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if (!has_below(paths, count, path, (size_t)(slash - path) + 1))
            return (size_t)(slash - path) + 1;
    return strlen(path);
}

static void add(struct untracked_list *list, const char *path, size_t length)
{
    struct untracked *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
    if (last && strlen(last->path) == length && memcmp(last->path, path, length) == 0) {
        last->files++;
        return;
    }
    mem_grow(&list->items, &list->capacity, list->count, sizeof(*list->items));
    list->items[list->count++] =
        (struct untracked){.path = mem_copy(path, length), .first = path, .files = 1};
}

void candidate_untracked(const struct candidate *candidate, bool (*wanted)(const void *, const char *),
    const void *context, struct untracked_list *ret)
{
    _cleanup_(mem_free) const char **tracked = tracked_sorted(candidate);
    *ret = (struct untracked_list){0};
    for (size_t i = 0; i < candidate->change_count; i++) {
        const char *path = candidate->changes[i].path;
        if (candidate->changes[i].kind != CHANGE_UNTRACKED || (wanted && !wanted(context, path)))
            continue;
        add(ret, path, folded_length(tracked, candidate->entry_count, path));
    }
}
