#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/failpoint.h"
#include "base/files-private.h"
#include "base/memory.h"

#define READ_BLOCK_BYTES   ((size_t)16 * 1024)
#define DIGEST_BLOCK_BYTES ((size_t)256 * 1024)
#define TICK_BYTES         ((size_t)4 * 1024 * 1024)
#define NAME_RANDOM_BYTES  8

void fd_close(int fd)
{
    int before = errno;
    if (fd >= 0)
        close(fd); /* EINTR too has closed it, on Linux */
    errno = before;
}

void fd_cleanup(int *fd)
{
    fd_close(*fd);
    *fd = -1;
}

void fd_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

enum result fd_write_all(int fd, const void *bytes, size_t length, struct error *err)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_errno(err, errno, "cannot write");
        at += written;
        length -= (size_t)written;
    }
    return RESULT_OK;
}

static enum result code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH: /* a file of /proc whose process ended */
        return RESULT_ABSENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return RESULT_DENIED;
    default:
        return RESULT_SYSTEM;
    }
}

enum result files_error(struct error *err, int errnum, const char *doing, const char *path)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, path, strlen(path), false);
    const char *reason = strerrordesc_np(errnum);
    return error_set(err, code_of_errno(errnum), errnum, "cannot %s %s: %s", doing, shown.bytes,
        reason ? reason : "unknown error");
}

static enum result files_invalid(struct error *err, const char *path, const char *what)
{
    _cleanup_(text_done) struct text shown = {0};
    text_add_printable(&shown, path, strlen(path), false);
    return error_set(err, RESULT_INVALID, 0, "%s %s", shown.bytes, what);
}

/* Never blocks and never makes a terminal the controlling one, whatever lies at the path. */
static enum result regular_open(int dir_fd, const char *path, bool nofollow, int *ret, struct error *err)
{
    struct stat status;
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (nofollow ? O_NOFOLLOW : 0);
    _cleanup_(fd_cleanup) int fd = openat(dir_fd, path, flags);
    if (fd < 0 && errno == ELOOP && nofollow)
        return files_invalid(err, path, "is a symbolic link");
    if (fd < 0 && (errno == ENXIO || errno == ENODEV))
        return files_invalid(err, path, "is not a regular file");
    if (fd < 0)
        return files_error(err, errno, "open", path);
    if (fstat(fd, &status) != 0)
        return files_error(err, errno, "look at", path);
    if (!S_ISREG(status.st_mode))
        return files_invalid(err, path, "is not a regular file");
    *ret = fd;
    fd = -1;
    return RESULT_OK;
}

enum result file_read(
    int dir_fd, const char *path, bool nofollow, size_t limit_bytes, struct text *ret, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = -1;
    _cleanup_(text_done) struct text content = {0};
    enum result r = regular_open(dir_fd, path, nofollow, &fd, err);
    if (r != RESULT_OK)
        return r;
    /* To the end and not to st_size: the files of /proc have none, and a file may grow. */
    for (;;) {
        char block[READ_BLOCK_BYTES];
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return files_error(err, errno, "read", path);
        if (got == 0)
            break;
        if ((size_t)got > limit_bytes - content.length) {
            _cleanup_(mem_free) char *what = mem_format("is larger than %zu bytes", limit_bytes);
            return files_invalid(err, path, what);
        }
        text_append(&content, block, (size_t)got);
    }
    text_append(ret, content.bytes, content.length);
    return RESULT_OK;
}

/* The directory of a path and the name in it, as two strings. */
static char *path_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return mem_string(".");
    return slash == path ? mem_string("/") : mem_copy(path, (size_t)(slash - path));
}

static const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A file that is being written beside its destination; removed unless it was published. */
struct draft {
    int dir_fd;
    char name[sizeof(".tmp-") + (size_t)2 * NAME_RANDOM_BYTES];
    bool exists;
};

static void draft_done(struct draft *draft)
{
    if (draft->exists)
        unlinkat(draft->dir_fd, draft->name, 0);
    fd_close(draft->dir_fd);
}

static enum result draft_write(
    struct draft *draft, const char *path, mode_t mode, const void *bytes, size_t length, struct error *err)
{
    uint8_t random[NAME_RANDOM_BYTES];
    random_bytes(random, sizeof(random));
    memcpy(draft->name, ".tmp-", sizeof(".tmp-"));
    hex_encode(random, sizeof(random), draft->name + sizeof(".tmp-") - 1);
    _cleanup_(fd_cleanup) int fd =
        openat(draft->dir_fd, draft->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return files_error(err, errno, "create a file beside", path);
    draft->exists = true;
    FAILPOINT("file-write-before-data");
    if (FAILPOINT_ERROR("file-write-data"))
        return files_error(err, ENOSPC, "write", path);
    struct error cause = {0};
    if (fd_write_all(fd, bytes, length, &cause) != RESULT_OK) {
        int errnum = cause.errnum;
        error_done(&cause);
        return files_error(err, errnum, "write", path);
    }
    FAILPOINT("file-write-before-sync");
    return fsync(fd) == 0 ? RESULT_OK : files_error(err, errno, "sync", path);
}

/* link() refuses an existing name on every file system; RENAME_NOREPLACE does not exist on all of them. */
static int draft_rename(struct draft *draft, const char *name, bool exclusive)
{
    if (exclusive)
        return linkat(draft->dir_fd, draft->name, draft->dir_fd, name, 0);
    int failed = renameat(draft->dir_fd, draft->name, draft->dir_fd, name);
    draft->exists = failed != 0;
    return failed;
}

static enum result draft_publish(struct draft *draft, const char *path, bool exclusive, struct error *err)
{
    FAILPOINT("file-write-before-rename");
    if (draft_rename(draft, path_name(path), exclusive) != 0) {
        enum result r = files_error(err, errno, "put in place", path);
        return exclusive && errno == EEXIST
                   ? error_set(err, RESULT_CONFLICT, EEXIST, "%s exists already", path)
                   : r;
    }
    FAILPOINT("file-write-after-rename");
    if (fsync(draft->dir_fd) != 0)
        return files_error(err, errno, "sync the directory of", path);
    FAILPOINT("file-write-after-sync");
    return RESULT_OK;
}

enum result file_write_atomic(
    const char *path, mode_t mode, bool exclusive, const void *bytes, size_t length, struct error *err)
{
    _cleanup_(mem_free) char *directory = path_directory(path);
    _cleanup_(draft_done) struct draft draft = {.dir_fd = -1};
    if (*path_name(path) == '\0')
        return files_invalid(err, path, "names a directory, not a file");
    draft.dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (draft.dir_fd < 0)
        return files_error(err, errno, "open the directory", directory);
    enum result r = draft_write(&draft, path, mode, bytes, length, err);
    return r == RESULT_OK ? draft_publish(&draft, path, exclusive, err) : r;
}

enum result file_digest(int fd, void (*tick)(void *context), void *context, char *ret_hex, struct error *err)
{
    struct digest digest;
    _cleanup_(mem_free) uint8_t *block = mem_alloc(DIGEST_BLOCK_BYTES);
    size_t since_tick = 0;
    off_t at = 0;
    digest_init(&digest, DIGEST_BYTES);
    for (;;) {
        ssize_t got = pread(fd, block, DIGEST_BLOCK_BYTES, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, errno, "cannot read");
        if (got == 0)
            break;
        digest_raw(&digest, block, (size_t)got);
        at += got;
        since_tick += (size_t)got;
        if (tick && since_tick >= TICK_BYTES) {
            tick(context);
            since_tick = 0;
        }
    }
    digest_final_hex(&digest, ret_hex);
    return RESULT_OK;
}
