#include "cli/tail.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/frame.h"

#define TAIL_BYTES      (16 * 1024)
#define UNCUT_COLUMNS   200
#define SEQUENCE_LENGTH 32 /* of an escape sequence that is only styling */

/* Length of an escape sequence that only styles or erases to the end of the line; 0 when it is something
 * else. */
static size_t styling(const char *bytes, size_t length)
{
    if (length < 3 || bytes[0] != '\x1b' || bytes[1] != '[')
        return 0;
    size_t at = 2;
    while (at < length && at < SEQUENCE_LENGTH && strchr("0123456789;:", bytes[at]) && bytes[at])
        at++;
    return at < length && (bytes[at] == 'm' || bytes[at] == 'K') ? at + 1 : 0;
}

/* What a terminal would still show of one line: the text behind the last carriage return that overwrote it.
 */
static void line_clean(const char *bytes, size_t length, struct text *ret)
{
    while (length > 0 && bytes[length - 1] == '\r')
        length--;
    const char *returned = memrchr(bytes, '\r', length);
    size_t start = returned ? (size_t)(returned - bytes) + 1 : 0;
    text_add(ret, "");
    for (size_t at = start; at < length;) {
        size_t skipped = styling(bytes + at, length - at);
        if (skipped == 0) {
            char byte = bytes[at] ? bytes[at] : '\x01';
            text_append(ret, byte == '\t' ? "    " : &byte, byte == '\t' ? 4 : 1);
        }
        at += skipped ? skipped : 1;
    }
}

static void line_add(const struct look *look, const char *bytes, size_t length, const char *prefix,
    int columns, struct text *ret)
{
    _cleanup_(text_done) struct text clean = {0};
    struct row row;
    int limit = (columns > 0 ? columns - 1 : UNCUT_COLUMNS) - text_columns(prefix);
    line_clean(bytes, length, &clean);
    row_begin(&row, look, limit);
    row_add(&row, STYLE_PLAIN, clean.bytes);
    text_add(ret, style_begin(look, STYLE_DIM));
    text_add(ret, prefix);
    text_add(ret, style_end(look, STYLE_DIM));
    text_add(ret, row.text.bytes);
    text_add(ret, "\n");
    row_done(&row);
}

/* Where the last `lines` lines begin. */
static size_t tail_start(const char *bytes, size_t length, size_t lines)
{
    size_t at = length;
    while (at > 0) {
        const char *feed = memrchr(bytes, '\n', at - 1);
        at = feed ? (size_t)(feed - bytes) + 1 : 0;
        if (--lines == 0)
            break;
    }
    return at;
}

size_t tail_add_bytes(const struct look *look, const char *bytes, size_t length, const char *prefix,
    size_t lines, int columns, struct text *ret)
{
    size_t count = 0;
    while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
        length--;
    if (length == 0 || lines == 0)
        return 0;
    for (size_t at = tail_start(bytes, length, lines); at < length; count++) {
        const char *feed = memchr(bytes + at, '\n', length - at);
        size_t end = feed ? (size_t)(feed - bytes) : length;
        line_add(look, bytes + at, end - at, prefix, columns, ret);
        at = end + 1;
    }
    return count;
}

size_t tail_add(const struct look *look, const char *path, const char *prefix, size_t lines, int columns,
    struct text *ret)
{
    char buffer[TAIL_BYTES];
    struct stat stat;
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode))
        return 0;
    off_t start = stat.st_size > TAIL_BYTES ? stat.st_size - TAIL_BYTES : 0;
    ssize_t length = pread(fd, buffer, sizeof(buffer), start);
    if (length <= 0)
        return 0;
    return tail_add_bytes(look, buffer, (size_t)length, prefix, lines, columns, ret);
}
