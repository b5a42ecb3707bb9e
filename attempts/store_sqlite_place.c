#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempts/store_sqlite-private.h"
#include "base/files.h"
#include "base/memory.h"

static enum result fail_errno(int errnum, const char *what, const char *path, struct error *err)
{
    enum result code = RESULT_UNREACHABLE;

    if (errnum == EACCES || errnum == EPERM || errnum == EROFS)
        code = RESULT_DENIED;
    if (errnum == ENOENT)
        code = RESULT_ABSENT;
    return error_set(err, code, errnum, "%s: cannot %s: %s", path, what, strerrordesc_np(errnum));
}

/* The nearest directory that exists, at or above `directory`, opened. */
static enum result directory_open_nearest(const char *directory, int *ret_fd, struct error *err)
{
    _cleanup_(mem_free) char *path = mem_string(directory);

    for (;;) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == EACCES)
            fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            *ret_fd = fd;
            return RESULT_OK;
        }
        if (errno != ENOENT || strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
            return fail_errno(errno, "open the directory", path, err);
        _cleanup_(mem_free) char *copy = STEAL(path);
        path = mem_string(dirname(copy));
    }
}

/* A lock or a sync that crosses a network is only as good as its weakest server: refused, not tried. */
static enum result directory_check_local(const char *directory, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = -1;
    enum file_system kind = FILE_SYSTEM_OTHER;
    enum result r = directory_open_nearest(directory, &fd, err);

    if (r == RESULT_OK)
        r = file_system_of(fd, &kind, err);
    if (r != RESULT_OK || kind != FILE_SYSTEM_NETWORK)
        return r;
    error_set(err, RESULT_INVALID, 0, "%s: an embedded store cannot lie on a network file system", directory);
    return error_remedy(err, "use a store at postgresql://, or a directory on a local disk");
}

/* mknod(2) makes an empty file with its mode and opens nothing: no lock of this process can be lost. */
static enum result file_make(const char *path, struct error *err)
{
    if (mknod(path, S_IFREG | 0600, 0) == 0 || errno == EEXIST)
        return RESULT_OK;
    return fail_errno(errno, "create the store", path, err);
}

static enum result file_check(const char *path, struct error *err)
{
    struct stat status = {0};

    if (stat(path, &status) != 0)
        return errno == ENOENT ? error_set(err, RESULT_ABSENT, ENOENT, "there is no store at %s", path)
                               : fail_errno(errno, "look at the store", path, err);
    if (!S_ISREG(status.st_mode))
        return error_set(err, RESULT_INVALID, 0, "%s: not a regular file", path);
    return RESULT_OK;
}

static enum result place_make(const char *path, struct error *err)
{
    _cleanup_(mem_free) char *copy = mem_string(path);
    const char *directory = dirname(copy);
    enum result r = directory_check_local(directory, err);

    if (r == RESULT_OK)
        r = directory_make(directory, 0700, err);
    return r == RESULT_OK ? file_make(path, err) : r;
}

enum result place_prepare(const char *path, enum store_access access, struct error *err)
{
    struct error why = {0};
    enum result r = access == STORE_READ ? RESULT_OK : place_make(path, &why);

    if (r == RESULT_OK)
        r = file_check(path, &why);
    /* One that is not there yet is no mistake of a reader's. */
    if (r != RESULT_OK && !why.remedy && !(r == RESULT_ABSENT && access == STORE_READ))
        error_remedy(&why, "name another place for the store: --store sqlite:PATH, or TENURE_STORE");
    return r == RESULT_OK ? r : error_move(err, &why);
}
