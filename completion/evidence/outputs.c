/* What a producer left behind: one state per declared path, and one digest over them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "completion/evidence/evidence.h"

#define OUTPUTS_SCHEMA 1
#define DEPTH_MAX      100 /* one descriptor a level */
#define MODE_BITS      (S_IFMT | 07777U)

/* A look in progress: what to name in messages, and whom to tick. */
struct look {
    struct runner *runner;
    const char *declared; /* the path as configured */
    struct error *err;
};

static void look_tick(void *context)
{
    struct look *look = context;
    runner_turn(look->runner);
}

void output_states_done(struct output_states *states)
{
    for (size_t i = 0; i < states->count; i++)
        free(states->items[i].path);
    free(states->items);
    *states = (struct output_states){0};
}

static char *printable(const char *path)
{
    struct text text = {0};
    text_add_printable(&text, path, strlen(path), false);
    return text_steal(&text);
}

static enum result look_errno(const struct look *look, int errnum, const char *name)
{
    _cleanup_(mem_free) char *declared = printable(look->declared), *shown = printable(name);
    return error_errno(look->err, errnum, "cannot look at %s of the output %s", shown, declared);
}

static enum result look_refuse(const struct look *look, const char *name, const char *what)
{
    _cleanup_(mem_free) char *declared = printable(look->declared), *shown = printable(name);
    error_set(look->err, RESULT_INVALID, 0, "the output %s cannot be kept as evidence: %s %s", declared,
        shown, what);
    return error_remedy(look->err, "declare files, directories and links by their own path in the tree");
}

/* ---- one entry, by its directory's descriptor and its name ---- */

static enum result look_entry(
    struct look *look, int dir_fd, const char *name, int depth, uint32_t *ret_mode, char *ret_digest);

static enum result look_file(
    struct look *look, int dir_fd, const char *name, uint32_t *ret_mode, char *ret_digest)
{
    struct stat status;
    _cleanup_(fd_cleanup) int fd =
        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return look_errno(look, errno, name);
    if (!S_ISREG(status.st_mode)) /* it was one a moment ago */
        return look_refuse(look, name, "is being changed");
    *ret_mode = status.st_mode & MODE_BITS;
    return file_digest(fd, look_tick, look, ret_digest, look->err);
}

static enum result look_link(struct look *look, int dir_fd, const char *name, char *ret_digest)
{
    char target[PATH_MAX + 1];
    ssize_t length = readlinkat(dir_fd, name, target, sizeof(target));
    if (length < 0)
        return look_errno(look, errno, name);
    if ((size_t)length == sizeof(target))
        return look_refuse(look, name, "has too long a target");
    digest_hex(target, (size_t)length, ret_digest);
    return RESULT_OK;
}

static void directory_close(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static void names_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int list_names(DIR *directory, struct strings *ret)
{
    size_t capacity = 0;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)); errno = 0) {
        if (is_dot(entry->d_name))
            continue;
        mem_grow(&ret->items, &capacity, ret->count, sizeof(*ret->items));
        ret->items[ret->count++] = mem_string(entry->d_name);
    }
    if (ret->count > 1)
        qsort(ret->items, ret->count, sizeof(*ret->items), by_bytes);
    return errno;
}

static enum result look_children(
    struct look *look, int fd, const struct strings *names, int depth, char *ret_digest)
{
    struct digest digest;
    digest_init(&digest, DIGEST_BYTES);
    digest_number(&digest, names->count);
    for (size_t i = 0; i < names->count; i++) {
        uint32_t mode = 0;
        char child[DIGEST_HEX_SIZE] = "";
        enum result r = look_entry(look, fd, names->items[i], depth, &mode, child);
        if (r != RESULT_OK)
            return r;
        digest_string(&digest, names->items[i]);
        digest_number(&digest, mode);
        digest_string(&digest, child);
    }
    digest_final_hex(&digest, ret_digest);
    return RESULT_OK;
}

static enum result look_directory(
    struct look *look, int dir_fd, const char *name, int depth, uint32_t *ret_mode, char *ret_digest)
{
    struct stat status;
    _cleanup_(directory_close) DIR *directory = NULL;
    _cleanup_(names_free) struct strings names = {0};
    if (depth >= DEPTH_MAX)
        return look_refuse(look, name, "is nested too deeply");
    _cleanup_(fd_cleanup) int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !(directory = fdopendir(fd)))
        return look_errno(look, errno, name);
    fd = -1; /* the stream's now */
    *ret_mode = status.st_mode & MODE_BITS;
    int errnum = list_names(directory, &names);
    if (errnum != 0)
        return look_errno(look, errnum, name);
    return look_children(look, dirfd(directory), &names, depth + 1, ret_digest);
}

static enum result look_entry(
    struct look *look, int dir_fd, const char *name, int depth, uint32_t *ret_mode, char *ret_digest)
{
    struct stat status;
    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return look_errno(look, errno, name);
    look_tick(look);
    *ret_mode = status.st_mode & MODE_BITS;
    if (S_ISREG(status.st_mode))
        return look_file(look, dir_fd, name, ret_mode, ret_digest);
    if (S_ISLNK(status.st_mode))
        return look_link(look, dir_fd, name, ret_digest);
    if (S_ISDIR(status.st_mode))
        return look_directory(look, dir_fd, name, depth, ret_mode, ret_digest);
    return look_refuse(look, name, "is a device, a FIFO or a socket");
}

/* ---- one declared path, walked component by component so that no link is ever followed ---- */

static enum result step_down(struct look *look, int *fd, const char *name, bool *ret_missing)
{
    struct stat status;
    int next = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOTDIR && fstatat(*fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode))
        return look_refuse(look, name, "is a symbolic link on the way to it");
    *ret_missing = next < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (next < 0)
        return *ret_missing ? RESULT_OK : look_errno(look, errno, name);
    fd_close(*fd);
    *fd = next;
    return RESULT_OK;
}

static enum result look_last(struct look *look, int fd, const char *name, struct output_state *state)
{
    struct stat status;
    if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? RESULT_OK : look_errno(look, errno, name);
    return look_entry(look, fd, name, 0, &state->mode, state->digest);
}

static enum result check_component(struct look *look, const char *name)
{
    return is_dot(name) ? look_refuse(look, look->declared, "is not a plain path below the top") : RESULT_OK;
}

static enum result look_path(struct look *look, int top_fd, struct output_state *state)
{
    _cleanup_(mem_free) char *path = mem_string(look->declared);
    char *rest = NULL, *name = strtok_r(path, "/", &rest);
    bool missing = false;
    if (!name || look->declared[0] == '/')
        return look_refuse(look, look->declared, "is not a plain path below the top");
    _cleanup_(fd_cleanup) int fd = openat(top_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return look_errno(look, errno, "the top");
    enum result r = check_component(look, name);
    for (char *next; r == RESULT_OK && !missing && (next = strtok_r(NULL, "/", &rest)); name = next) {
        r = check_component(look, next);
        if (r == RESULT_OK)
            r = step_down(look, &fd, name, &missing);
    }
    return r == RESULT_OK && !missing ? look_last(look, fd, name, state) : r;
}

enum result outputs_look(int top_fd, const struct strings *paths, struct runner *runner,
    struct output_states *ret, struct error *err)
{
    _cleanup_(output_states_done) struct output_states states = {
        .items = mem_alloc(paths->count * sizeof(*states.items)),
        .count = paths->count,
    };
    enum result r = RESULT_OK;
    for (size_t i = 0; r == RESULT_OK && i < paths->count; i++) {
        struct look look = {.runner = runner, .declared = paths->items[i], .err = err};
        states.items[i].path = mem_string(paths->items[i]);
        r = look_path(&look, top_fd, &states.items[i]);
    }
    if (r != RESULT_OK)
        return r;
    *ret = states;
    states = (struct output_states){0};
    return RESULT_OK;
}

/* ---- all of them together ---- */

static int by_path(const void *a, const void *b)
{
    const struct output_state *const *left = a, *const *right = b;
    return strcmp((*left)->path, (*right)->path);
}

void outputs_digest(const struct output_states *states, char ret[DIGEST_HEX_SIZE])
{
    struct digest digest;
    _cleanup_(mem_free) const struct output_state **sorted = mem_alloc(states->count * sizeof(*sorted));
    for (size_t i = 0; i < states->count; i++)
        sorted[i] = &states->items[i];
    if (states->count > 1)
        qsort(sorted, states->count, sizeof(*sorted), by_path);
    digest_init(&digest, DIGEST_BYTES);
    digest_number(&digest, OUTPUTS_SCHEMA);
    digest_number(&digest, states->count);
    for (size_t i = 0; i < states->count; i++) {
        digest_string(&digest, sorted[i]->path);
        digest_number(&digest, sorted[i]->mode);
        digest_string(&digest, sorted[i]->digest);
    }
    digest_final_hex(&digest, ret);
}

bool outputs_equal(const struct output_states *a, const struct output_states *b)
{
    char left[DIGEST_HEX_SIZE], right[DIGEST_HEX_SIZE];
    outputs_digest(a, left);
    outputs_digest(b, right);
    return strcmp(left, right) == 0;
}
