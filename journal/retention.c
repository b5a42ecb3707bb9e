#include "journal/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "journal/liveness-private.h"
#include "journal/place-private.h"
#include "journal/reader-private.h"

#define HIDDEN_AGE_MS                                                                                        \
    (INT64_C(24) * 3600 * MS_PER_S) /* of a leftover that no creation can still be busy with */
#define SIZE_DEPTH 4                /* of a journal's directory; its own are two levels */

struct catalog {
    char *root;
    int fd; /* -1: there is no such directory */
    char **names;
    size_t count, capacity;
};

static void catalog_done(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->count; i++)
        free(catalog->names[i]);
    free(catalog->names);
    free(catalog->root);
    fd_close(catalog->fd);
}

static enum result catalog_list(struct catalog *catalog, struct error *err)
{
    int copy = openat(catalog->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    if (stream == NULL) {
        fd_close(copy);
        return journal_error(err, errno, "list the journals in", catalog->root);
    }
    for (const struct dirent *entry; (errno = 0, entry = readdir(stream)) != NULL;) {
        mem_grow(&catalog->names, &catalog->capacity, catalog->count, sizeof(*catalog->names));
        catalog->names[catalog->count++] = mem_string(entry->d_name);
    }
    int errnum = errno;
    closedir(stream);
    return errnum == 0 ? RESULT_OK : journal_error(err, errnum, "list the journals in", catalog->root);
}

/* Every name below the root. A missing root has none. */
static enum result catalog_read(const char *root, struct catalog *catalog, struct error *err)
{
    enum result r = journal_root(root, &catalog->root, err);
    if (r != RESULT_OK)
        return r;
    catalog->fd = open(catalog->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (catalog->fd >= 0)
        return catalog_list(catalog, err);
    return errno == ENOENT ? RESULT_OK
                           : journal_error(err, errno, "open the directory of journals", catalog->root);
}

/* A directory of its own, named by a handle: not a link to another one, not a leftover. */
static bool is_journal_name(const struct catalog *catalog, const char *name, struct stat *ret)
{
    char handle[HANDLE_SIZE];
    return handle_parse(name, handle, NULL) == RESULT_OK && strcmp(handle, name) == 0 &&
           fstatat(catalog->fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(ret->st_mode);
}

static int64_t stat_wall_ms(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * MS_PER_S + status->st_mtim.tv_nsec / 1000000;
}

static void entry_read(struct journal_entry *entry, const char *root, const char *name,
    const struct machine *machine, const struct stat *status)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = NULL;
    memcpy(entry->handle, name, HANDLE_SIZE);
    entry->path = mem_format("%s/%s/" JOURNAL_FILE_NAME, root, name);
    const struct liveness_question question = {.path = entry->path, .machine = machine};
    entry->created_wall_ms = stat_wall_ms(status);
    if (journal_reader_open(entry->path, &reader, NULL) != RESULT_OK) {
        entry->liveness = liveness_probe(&question);
        return;
    }
    entry->created_wall_ms = journal_reader_header(reader)->wall_ms;
    entry->liveness = liveness_probe_fd(journal_reader_fd(reader), journal_reader_header(reader), &question);
}

static int entry_compare(const void *one, const void *other)
{
    const struct journal_entry *a = one, *b = other;
    if (a->created_wall_ms != b->created_wall_ms)
        return a->created_wall_ms < b->created_wall_ms ? 1 : -1;
    return strcmp(a->handle, b->handle);
}

static void index_fill(
    const struct catalog *catalog, const struct machine *machine, struct journal_index *ret)
{
    size_t capacity = 0;
    for (size_t i = 0; i < catalog->count; i++) {
        struct stat status;
        if (!is_journal_name(catalog, catalog->names[i], &status))
            continue;
        mem_grow(&ret->items, &capacity, ret->count, sizeof(*ret->items));
        entry_read(&ret->items[ret->count++], catalog->root, catalog->names[i], machine, &status);
    }
    if (ret->count > 0)
        qsort(ret->items, ret->count, sizeof(*ret->items), entry_compare);
}

enum result journal_index_read(
    const char *root, const struct machine *machine, struct journal_index *ret, struct error *err)
{
    _cleanup_(catalog_done) struct catalog catalog = {.fd = -1};
    enum result r = catalog_read(root, &catalog, err);
    if (r != RESULT_OK)
        return r;
    *ret = (struct journal_index){.items = NULL};
    index_fill(&catalog, machine, ret);
    return RESULT_OK;
}

void journal_index_done(struct journal_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->items[i].path);
    mem_free(&index->items);
    index->count = 0;
}

static enum result locate_refuse(const struct catalog *catalog, const char *handle, struct error *err)
{
    _cleanup_(mem_free) const char **known = mem_alloc((catalog->count + 1) * sizeof(*known));
    size_t count = 0;
    struct stat status;
    for (size_t i = 0; i < catalog->count; i++)
        if (is_journal_name(catalog, catalog->names[i], &status))
            known[count++] = catalog->names[i];
    error_set(err, RESULT_ABSENT, 0, "there is no journal %s in %s", handle, catalog->root);
    const char *nearest = text_nearest(handle, known, count);
    if (nearest != NULL)
        return error_remedy(err, "did you mean %s?", nearest);
    return error_remedy(
        err, "`tenure status --all` and `tenure log` show the handles of this machine's runs");
}

enum result journal_locate(const char *root, const char *handle, char **ret_path, struct error *err)
{
    _cleanup_(catalog_done) struct catalog catalog = {.fd = -1};
    struct stat status;
    enum result r = catalog_read(root, &catalog, err);
    if (r != RESULT_OK)
        return r;
    if (catalog.fd < 0 || !is_journal_name(&catalog, handle, &status)) {
        locate_refuse(&catalog, handle, err);
        return RESULT_ABSENT;
    }
    *ret_path = mem_format("%s/%s/" JOURNAL_FILE_NAME, catalog.root, handle);
    return RESULT_OK;
}

/* Bytes of all files below a directory. What cannot be looked at counts nothing. */
static int64_t tree_bytes(int dir_fd, const char *name, int depth)
{
    int64_t bytes = 0;
    struct stat status;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        fd_close(fd);
        return 0;
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISDIR(status.st_mode) && depth < SIZE_DEPTH)
            bytes += tree_bytes(dirfd(stream), entry->d_name, depth + 1);
        else if (S_ISREG(status.st_mode))
            bytes += status.st_size;
    }
    closedir(stream);
    return bytes;
}

struct pruning {
    const struct catalog *catalog;
    const struct machine *machine;
    const struct retention *retention;
    int64_t wall_ms, boot_wall_ms; /* now, and when this boot began */
    size_t removed;
    int64_t bytes;
};

/* Left by a crash of the whole machine: nobody can prove its owner's death without the record of the attempt,
 * but a journal that is older than the limit and untouched since before this boot has seen its last reader.
 */
static bool is_abandoned(const struct pruning *pruning, const struct journal_entry *entry)
{
    struct stat status;
    return entry->liveness.verdict == OWNER_UNKNOWN && entry->liveness.rule == 6 &&
           !pruning->machine->container && lstat(entry->path, &status) == 0 &&
           stat_wall_ms(&status) < pruning->boot_wall_ms &&
           pruning->wall_ms - stat_wall_ms(&status) > pruning->retention->age_ms;
}

static bool may_go(const struct pruning *pruning, const struct journal_entry *entry, size_t place)
{
    bool old = pruning->wall_ms - entry->created_wall_ms > pruning->retention->age_ms;
    if (entry->liveness.verdict == OWNER_GONE)
        return old || place >= pruning->retention->keep;
    return old && is_abandoned(pruning, entry);
}

static enum result prune_one(struct pruning *pruning, const struct journal_entry *entry, struct error *err)
{
    const struct catalog *catalog = pruning->catalog;
    int64_t bytes = tree_bytes(catalog->fd, entry->handle, 0);
    if (!pruning->retention->dry_run) {
        _cleanup_(error_done) struct error why = {0};
        enum result r = journal_remove(catalog->root, catalog->fd, entry->handle, &why);
        if (r == RESULT_ABSENT)
            return RESULT_OK; /* another prune was faster */
        if (r != RESULT_OK)
            return error_move(err, &why);
    }
    if (pruning->retention->removed != NULL)
        pruning->retention->removed(pruning->retention->context, entry, bytes);
    pruning->removed++;
    pruning->bytes += bytes;
    return RESULT_OK;
}

static bool is_hidden_leftover(const struct pruning *pruning, const char *name)
{
    struct stat status;
    bool hidden = strncmp(name, JOURNAL_NEW_PREFIX, sizeof(JOURNAL_NEW_PREFIX) - 1) == 0 ||
                  strncmp(name, JOURNAL_GONE_PREFIX, sizeof(JOURNAL_GONE_PREFIX) - 1) == 0;
    return hidden && fstatat(pruning->catalog->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode) && pruning->wall_ms - stat_wall_ms(&status) > HIDDEN_AGE_MS;
}

/* Goes on past what cannot be removed, and reports the first such. */
static enum result prune_hidden(struct pruning *pruning, struct error *err)
{
    enum result first = RESULT_OK;
    for (size_t i = 0; i < pruning->catalog->count; i++) {
        const char *name = pruning->catalog->names[i];
        if (pruning->retention->dry_run || !is_hidden_leftover(pruning, name))
            continue;
        enum result r = directory_remove(pruning->catalog->fd, name, first == RESULT_OK ? err : NULL);
        if (first == RESULT_OK)
            first = r;
    }
    return first;
}

static enum result prune_all(struct pruning *pruning, const struct journal_index *index, struct error *err)
{
    enum result first = RESULT_OK;
    for (size_t place = index->count; place-- > 0;) {
        if (!may_go(pruning, &index->items[place], place))
            continue;
        enum result r = prune_one(pruning, &index->items[place], first == RESULT_OK ? err : NULL);
        if (first == RESULT_OK)
            first = r;
    }
    enum result r = prune_hidden(pruning, first == RESULT_OK ? err : NULL);
    return first == RESULT_OK ? r : first;
}

enum result retention_prune(const char *root, const struct machine *machine, const struct clock *clock,
    const struct retention *retention, size_t *ret_removed, int64_t *ret_bytes, struct error *err)
{
    _cleanup_(catalog_done) struct catalog catalog = {.fd = -1};
    _cleanup_(journal_index_done) struct journal_index index = {.items = NULL};
    struct pruning pruning = {
        .catalog = &catalog,
        .machine = machine,
        .retention = retention,
        .wall_ms = clock->wall_ms(clock),
        .boot_wall_ms = clock->wall_ms(clock) - clock->boot_ms(clock),
    };
    enum result r = catalog_read(root, &catalog, err);
    if (r != RESULT_OK)
        return r;
    index_fill(&catalog, machine, &index);
    r = prune_all(&pruning, &index, err);
    *ret_removed = pruning.removed;
    *ret_bytes = pruning.bytes;
    return r;
}
