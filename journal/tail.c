#include "journal/tail-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define PAGE_BYTES  4096
#define SLACK_BYTES (256 * 1024) /* the most that one write takes */
#define LINE_BYTES  ((int)sizeof("tenure-tail 1 ") - 1 + 4 * 21)

static int pwrite_all(int fd, const char *bytes, size_t length, int64_t at)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, bytes, length, at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        bytes += written;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

static int line_write(const struct tail *tail)
{
    char line[LINE_BYTES + 1];
    snprintf(line, sizeof(line), "tenure-tail 1 %020lld %020lld %020lld %020lld\n",
        (long long)tail->head_bytes, (long long)tail->keep_bytes, (long long)tail->ring_bytes,
        (long long)tail->total_bytes);
    return pwrite_all(tail->fd, line, LINE_BYTES, 0);
}

int tail_create(int dir_fd, const char *name, int64_t head_bytes, int64_t keep_bytes, struct tail *ret)
{
    struct tail tail = {
        .head_bytes = head_bytes,
        .keep_bytes = keep_bytes,
        .ring_bytes = keep_bytes + SLACK_BYTES,
    };
    if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
        return errno;
    tail.fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (tail.fd < 0)
        return errno;
    int errnum = line_write(&tail);
    if (errnum != 0) {
        tail_close(&tail);
        (void)!unlinkat(dir_fd, name, 0);
        return errnum;
    }
    *ret = tail;
    return 0;
}

static bool line_parse(const char *line, struct tail *tail)
{
    static const char MAGIC[] = "tenure-tail 1 ";
    int64_t *const numbers[] = {&tail->head_bytes, &tail->keep_bytes, &tail->ring_bytes, &tail->total_bytes};
    const char *at = line + sizeof(MAGIC) - 1;
    if (memcmp(line, MAGIC, sizeof(MAGIC) - 1) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++, at += 21) {
        int64_t value = 0;
        for (int digit = 0; digit < 20; digit++) {
            if (at[digit] < '0' || at[digit] > '9' || __builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, at[digit] - '0', &value))
                return false;
        }
        if (at[20] != (i + 1 < ARRAY_SIZE(numbers) ? ' ' : '\n'))
            return false;
        *numbers[i] = value;
    }
    return tail->ring_bytes > tail->keep_bytes;
}

int tail_open(int dir_fd, const char *name, struct tail *ret)
{
    char line[LINE_BYTES];
    struct stat status;
    struct tail tail = {
        .fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (tail.fd < 0)
        return errno;
    if (fstat(tail.fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        pread(tail.fd, line, sizeof(line), 0) != (ssize_t)sizeof(line) || !line_parse(line, &tail)) {
        tail_close(&tail);
        return ENODATA;
    }
    *ret = tail;
    return 0;
}

void tail_close(struct tail *tail)
{
    fd_close(tail->fd);
    tail->fd = -1;
}

/* Where a byte of the tail lies, and how many lie behind it without a gap. */
static int64_t ring_place(const struct tail *tail, int64_t at, int64_t *ret_straight)
{
    int64_t place = at % tail->ring_bytes;
    *ret_straight = tail->ring_bytes - place;
    return PAGE_BYTES + place;
}

static int ring_write(struct tail *tail, const char *bytes, size_t length)
{
    int64_t straight = 0, place = ring_place(tail, tail->total_bytes, &straight);
    size_t first = (int64_t)length < straight ? length : (size_t)straight;
    int errnum = pwrite_all(tail->fd, bytes, first, place);
    if (errnum == 0 && first < length)
        errnum = pwrite_all(tail->fd, bytes + first, length - first, PAGE_BYTES);
    if (errnum != 0)
        return errnum;
    tail->total_bytes += (int64_t)length;
    return line_write(tail);
}

int tail_write(struct tail *tail, const void *bytes, size_t length, size_t *ret_kept)
{
    for (*ret_kept = 0; *ret_kept < length;) {
        size_t left = length - *ret_kept;
        size_t chunk = left < SLACK_BYTES ? left : SLACK_BYTES;
        int errnum = ring_write(tail, (const char *)bytes + *ret_kept, chunk);
        if (errnum != 0)
            return errnum;
        *ret_kept += chunk;
    }
    return 0;
}

int64_t tail_kept_bytes(const struct tail *tail)
{
    return tail->total_bytes < tail->keep_bytes ? tail->total_bytes : tail->keep_bytes;
}

int64_t tail_dropped_bytes(const struct tail *tail)
{
    return tail->total_bytes - tail_kept_bytes(tail);
}

int64_t tail_read(const struct tail *tail, int64_t at, void *buffer, size_t size)
{
    int64_t from = tail_dropped_bytes(tail) + at, left = tail->total_bytes - from, straight = 0;
    if (at < 0 || left <= 0)
        return 0;
    int64_t place = ring_place(tail, from, &straight);
    if (left < straight)
        straight = left;
    if ((int64_t)size < straight)
        straight = (int64_t)size;
    return pread(tail->fd, buffer, (size_t)straight, place);
}
