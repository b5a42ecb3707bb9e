/* Did the index stand still while several gits read it? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "completion/repository/git-private.h"

#define POINTER "gitdir: "

/* The ".git" of a submodule or of a linked work tree is a file that says where. Source:
 * gitrepository-layout(5). */
static int follow_pointer(int at)
{
    _cleanup_(text_done) struct text text = {0};
    if (file_read(at, ".git", false, PATH_MAX, &text, NULL) != RESULT_OK || !text.length ||
        strncmp(text.bytes, POINTER, strlen(POINTER)) != 0)
        return -1;
    char *path = text.bytes + strlen(POINTER);
    path[strcspn(path, "\n")] = '\0';
    return openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool look_at_index(int git_dir_fd, struct stat *ret)
{
    return fstatat(git_dir_fd, "index", ret, 0) == 0;
}

struct index_watch index_watch(int directory_fd)
{
    struct index_watch watch = {.git_dir_fd = -1};
    _cleanup_(fd_cleanup) int nearest = git_nearest(directory_fd);
    if (nearest >= 0)
        watch.git_dir_fd = openat(nearest, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (nearest >= 0 && watch.git_dir_fd < 0 && errno == ENOTDIR)
        watch.git_dir_fd = follow_pointer(nearest);
    if (watch.git_dir_fd >= 0)
        watch.present = look_at_index(watch.git_dir_fd, &watch.status);
    return watch;
}

void index_watch_done(struct index_watch *watch)
{
    fd_close(watch->git_dir_fd);
    watch->git_dir_fd = -1;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* git replaces the file by a new one whenever it writes it. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

bool index_stood_still(const struct index_watch *watch, const char *git_dir)
{
    struct stat now;
    _cleanup_(fd_cleanup) int fd = open(git_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || watch->git_dir_fd < 0 || !git_same_directory(fd, watch->git_dir_fd))
        return false;
    bool present = look_at_index(fd, &now);
    return present == watch->present && (!present || same_file(&now, &watch->status));
}
