#include "publish/collected.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define PIECE_BYTES  ((size_t)32 * 1024)
#define WIDEST_BYTES ((size_t)32) /* what one byte can become: a number, a tab and an escape */

struct collected {
    int fd;
    enum collected_form form;
    bool inside; /* a line whose end has not come */
    int64_t number;
    size_t next, length; /* of the piece */
    char piece[PIECE_BYTES];
};

enum result collected_open(
    const char *path, enum collected_form form, struct collected **ret, struct error *err)
{
    struct collected *collected = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", path);
    collected = mem_alloc(sizeof *collected);
    collected->fd = fd;
    collected->form = form;
    *ret = collected;
    return RESULT_OK;
}

void collected_close(struct collected *collected)
{
    if (!collected)
        return;
    fd_close(collected->fd);
    free(collected);
}

static ssize_t read_piece(int fd, void *buffer, size_t size_bytes)
{
    ssize_t got = 0;

    do
        got = read(fd, buffer, size_bytes);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* One byte as COPY wants it. Source: PostgreSQL manual, COPY, "Text Format". */
static size_t put_byte(char byte, char *to)
{
    static const struct {
        char byte, letter;
    } ESCAPES[] = {{'\\', '\\'}, {'\t', 't'}, {'\r', 'r'}};

    for (size_t i = 0; i < ARRAY_SIZE(ESCAPES); i++)
        if (ESCAPES[i].byte == byte) {
            to[0] = '\\';
            to[1] = ESCAPES[i].letter;
            return 2;
        }
    to[0] = byte;
    return 1;
}

static size_t put_line_byte(struct collected *collected, char byte, char *to)
{
    size_t length = 0;

    if (!collected->inside)
        length = (size_t)snprintf(to, WIDEST_BYTES, "%" PRId64 "\t", ++collected->number);
    collected->inside = byte != '\n';
    return length + put_byte(byte, to + length);
}

int64_t collected_read(void *context, void *buffer, size_t size_bytes)
{
    struct collected *collected = context;
    char *to = buffer;
    size_t length = 0;

    if (collected->form == COLLECTED_RAW)
        return read_piece(collected->fd, buffer, size_bytes);
    while (length + WIDEST_BYTES <= size_bytes) {
        if (collected->next == collected->length) {
            ssize_t got = read_piece(collected->fd, collected->piece, PIECE_BYTES);
            if (got < 0)
                return got;
            if (got == 0)
                break;
            collected->next = 0;
            collected->length = (size_t)got;
        }
        length += put_line_byte(collected, collected->piece[collected->next++], to + length);
    }
    if (length == 0 && collected->inside) {
        collected->inside = false;
        to[length++] = '\n';
    }
    return (int64_t)length;
}
