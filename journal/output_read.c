#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "journal/output-private.h"
#include "journal/place-private.h"
#include "journal/tail-private.h"

static const char LOG_SUFFIX[] = ".log";

/* A name comes from a record, so from whoever wrote the file: it must not lead out of the directory. */
static bool is_log_name(const char *log)
{
    size_t length = strlen(log), suffix = sizeof(LOG_SUFFIX) - 1;
    return length > suffix && log[0] != '.' && strchr(log, '/') == NULL &&
           strcmp(log + length - suffix, LOG_SUFFIX) == 0;
}

static enum result log_open(int dir_fd, const char *log, int *ret_fd, int64_t *ret_size, struct error *err)
{
    struct stat status;
    _cleanup_(fd_cleanup) int fd =
        openat(dir_fd, log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return journal_error(err, errno, "open the log", log);
    if (fstat(fd, &status) < 0)
        return journal_error(err, errno, "look at the log", log);
    if (!S_ISREG(status.st_mode))
        return error_set(err, RESULT_INVALID, 0, "the log %s is not a regular file", log);
    *ret_fd = fd;
    *ret_size = status.st_size;
    fd = -1;
    return RESULT_OK;
}

static bool tail_find(int dir_fd, const char *log, struct tail *ret)
{
    _cleanup_(mem_free) char *name =
        mem_format("%.*s.tail", (int)(strlen(log) - (sizeof(LOG_SUFFIX) - 1)), log);
    return tail_open(dir_fd, name, ret) == 0;
}

/* What lies behind the head: the statement, if anything is missing, and then the ring. */
static int64_t rest_read(const struct tail *tail, int64_t at, void *buffer, size_t size)
{
    _cleanup_(text_done) struct text statement = {0};
    if (tail_dropped_bytes(tail) > 0)
        output_statement(tail_dropped_bytes(tail), NULL, &statement);
    if (statement.bytes == NULL || at >= (int64_t)statement.length)
        return tail_read(tail, at - (int64_t)statement.length, buffer, size);
    size_t left = statement.length - (size_t)at;
    size_t length = left < size ? left : size;
    memcpy(buffer, statement.bytes + at, length);
    return (int64_t)length;
}

static int64_t log_read(int fd, int64_t end, const struct tail *tail, int64_t at, void *buffer, size_t size)
{
    if (at >= end)
        return tail->fd >= 0 ? rest_read(tail, at - end, buffer, size) : 0;
    int64_t left = end - at;
    return pread(fd, buffer, left < (int64_t)size ? (size_t)left : size, at);
}

enum result output_read(const char *directory, const char *log, bool abandoned, int64_t offset_bytes,
    void *buffer, size_t size, size_t *ret_length, struct error *err)
{
    struct tail tail = {.fd = -1};
    int64_t end = 0;
    _cleanup_(fd_cleanup) int dir_fd = -1, fd = -1;
    if (!is_log_name(log))
        return error_set(err, RESULT_INVALID, 0, "a record names a log that cannot be one");
    dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0)
        return journal_error(err, errno, "open the directory of logs", directory);
    enum result r = log_open(dir_fd, log, &fd, &end, err);
    if (r != RESULT_OK)
        return r;
    /* A join that was cut short has begun to copy the tail into the log: the ring is the sound copy. */
    if (abandoned && tail_find(dir_fd, log, &tail) && tail.head_bytes < end)
        end = tail.head_bytes;
    int64_t got = log_read(fd, end, &tail, offset_bytes < 0 ? 0 : offset_bytes, buffer, size);
    int errnum = errno;
    tail_close(&tail);
    if (got < 0)
        return journal_error(err, errnum, "read the log", log);
    *ret_length = (size_t)got;
    return RESULT_OK;
}
