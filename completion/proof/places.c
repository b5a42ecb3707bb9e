/* Where keys lie: directories, and the names in them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/proof/places-private.h"

enum result keys_make_directory(const char *path, struct error *err)
{
    enum result r = directory_make(path, 0700, err);
    return r == RESULT_OK ? r : error_remedy(err, "name another place for keys: XDG_CONFIG_HOME");
}

enum result config_path(const char *below, char **ret, struct error *err)
{
    _cleanup_(mem_free) char *config = NULL;
    enum result r = directory_config(&config, err);
    if (r == RESULT_OK)
        *ret = mem_format("%s/%s", config, below);
    return r;
}

void name_list_done(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct name_list){0};
}

static void directory_close(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static bool name_fits(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return name[0] != '.' && length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum result name_list_read(const char *path, const char *suffix, struct name_list *ret, struct error *err)
{
    _cleanup_(directory_close) DIR *directory = opendir(path);
    size_t capacity = 0;
    if (!directory && (errno == ENOENT || errno == ENOTDIR))
        return RESULT_OK;
    if (!directory)
        return error_errno(err, errno, "cannot open the directory %s", path);
    _cleanup_(name_list_done) struct name_list names = {0};
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)); errno = 0) {
        if (!name_fits(entry->d_name, suffix))
            continue;
        mem_grow(&names.items, &capacity, names.count, sizeof(*names.items));
        names.items[names.count++] = mem_string(entry->d_name);
    }
    if (errno != 0)
        return error_errno(err, errno, "cannot read the directory %s", path);
    if (names.count > 1)
        qsort(names.items, names.count, sizeof(*names.items), by_bytes);
    *ret = names;
    names = (struct name_list){0};
    return RESULT_OK;
}
