#include "journal/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "journal/reader-private.h"

#define CHUNK_BYTES (16 * 1024)

struct journal_reader {
    int fd;
    bool fd_owned;
    char *path;
    struct chain chain;
    struct journal_header header;
    int64_t offset;     /* end of the last valid record; `buffer` begins there */
    struct text buffer; /* bytes that were read and not consumed, from `consumed` on */
    size_t consumed;
    bool torn;
};

static const struct refusal {
    int errnum;
    enum result result;
    const char *why;
} REFUSALS[] = {
    {ENOENT, RESULT_ABSENT, "there is none"},
    {ENOTDIR, RESULT_ABSENT, "there is none"},
    {ELOOP, RESULT_INVALID, "it is a symbolic link, and links are not followed here"},
    {ENXIO, RESULT_INVALID, "it is not a regular file"},
    {EISDIR, RESULT_INVALID, "it is not a regular file"},
    {EACCES, RESULT_DENIED, "this user may not open it"},
    {EPERM, RESULT_DENIED, "this user may not open it"},
};

static enum result open_failed(const char *path, int errnum, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(REFUSALS); i++)
        if (REFUSALS[i].errnum == errnum)
            return error_set(err, REFUSALS[i].result, errnum, "journal %s: %s", path, REFUSALS[i].why);
    return error_errno(err, errnum, "cannot open the journal %s", path);
}

/* A regular file, without following a symlink or waiting for a FIFO's writer. */
static enum result journal_file_open(const char *path, int *ret_fd, struct error *err)
{
    struct stat status;
    _cleanup_(fd_cleanup) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return open_failed(path, errno, err);
    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the journal %s", path);
    if (!S_ISREG(status.st_mode))
        return open_failed(path, ENXIO, err);
    *ret_fd = fd;
    fd = -1;
    return RESULT_OK;
}

static void buffer_forget(struct journal_reader *reader)
{
    text_clear(&reader->buffer);
    reader->consumed = 0;
}

/* Reads the next bytes behind those in the buffer; *ret_more is false at the end of the file. */
static enum result buffer_fill(struct journal_reader *reader, bool *ret_more, struct error *err)
{
    char chunk[CHUNK_BYTES];
    if (reader->consumed == reader->buffer.length)
        buffer_forget(reader);
    int64_t at = reader->offset + (int64_t)(reader->buffer.length - reader->consumed);
    ssize_t got;
    do
        got = pread(reader->fd, chunk, sizeof(chunk), at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_errno(err, errno, "cannot read the journal %s", reader->path);
    text_append(&reader->buffer, chunk, (size_t)got);
    *ret_more = got > 0;
    return RESULT_OK;
}

struct record {
    const char *json; /* into the buffer: until the next step */
    size_t length;
};

static enum result reader_parse(
    struct journal_reader *reader, enum format_step *ret_step, struct record *ret, struct error *err)
{
    for (bool more = true;;) {
        size_t used = 0;
        *ret_step = format_parse(&reader->chain, reader->buffer.bytes + reader->consumed,
            reader->buffer.length - reader->consumed, &ret->json, &ret->length, &used);
        if (*ret_step == FORMAT_RECORD) {
            reader->consumed += used;
            reader->offset += (int64_t)used;
        }
        if (*ret_step != FORMAT_PARTIAL)
            return RESULT_OK;
        enum result r = buffer_fill(reader, &more, err);
        if (r != RESULT_OK || !more)
            return r;
    }
}

static enum result reader_damage(
    const struct journal_reader *reader, int64_t offset, const char *what, struct error *err)
{
    error_set(err, RESULT_CORRUPT, 0, "journal %s: damaged at byte %lld: %s", reader->path, (long long)offset,
        what);
    return error_remedy(err, "what lies before that byte is sound; what lies behind it proves nothing");
}

/* One record on: OK, ABSENT at the end, CORRUPT. */
static enum result reader_step(struct journal_reader *reader, struct record *ret, struct error *err)
{
    enum format_step step = FORMAT_DAMAGED;
    enum result r = reader_parse(reader, &step, ret, err);
    if (r != RESULT_OK)
        return r;
    reader->torn = step == FORMAT_PARTIAL && reader->buffer.length > reader->consumed;
    if (step == FORMAT_RECORD)
        return RESULT_OK;
    buffer_forget(reader);
    if (step == FORMAT_DAMAGED)
        return reader_damage(reader, reader->offset, "the record there does not validate", err);
    return error_set(err, RESULT_ABSENT, 0, "journal %s: no further record", reader->path);
}

static enum result header_read(struct journal_reader *reader, struct error *err)
{
    struct record record = {0};
    enum result r = reader_step(reader, &record, err);
    if (r == RESULT_ABSENT)
        return reader_damage(reader, 0, "the header is not complete", err);
    if (r != RESULT_OK)
        return r;
    r = format_header_decode(record.json, record.length, &reader->header, err);
    if (r != RESULT_OK)
        error_wrap(err, "journal %s: ", reader->path);
    return r;
}

enum result journal_reader_open_fd(int fd, const char *path, struct journal_reader **ret, struct error *err)
{
    _cleanup_(journal_reader_cleanup) struct journal_reader *reader = mem_alloc(sizeof(*reader));
    reader->fd = fd;
    reader->path = mem_string(path);
    text_add(&reader->buffer, ""); /* so that it has an address to count from */
    enum result r = header_read(reader, err);
    if (r == RESULT_OK)
        *ret = STEAL(reader);
    return r;
}

enum result journal_reader_open(const char *path, struct journal_reader **ret, struct error *err)
{
    _cleanup_(fd_cleanup) int fd = -1;
    enum result r = journal_file_open(path, &fd, err);
    if (r == RESULT_OK)
        r = journal_reader_open_fd(fd, path, ret, err);
    if (r != RESULT_OK)
        return r;
    (*ret)->fd_owned = true;
    fd = -1;
    return RESULT_OK;
}

void journal_reader_close(struct journal_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd_owned)
        fd_close(reader->fd);
    text_done(&reader->buffer);
    free(reader->path);
    free(reader);
}

void journal_reader_cleanup(struct journal_reader **reader)
{
    journal_reader_close(STEAL(*reader));
}

const struct journal_header *journal_reader_header(const struct journal_reader *reader)
{
    return &reader->header;
}

enum result journal_reader_next(struct journal_reader *reader, struct journal_event *ret, struct error *err)
{
    int64_t offset = reader->offset;
    struct record record = {0};
    enum result r = reader_step(reader, &record, err);
    if (r != RESULT_OK)
        return r;
    r = journal_event_decode(record.json, record.length, ret, err);
    if (r != RESULT_OK)
        error_wrap(err, "journal %s: at byte %lld: ", reader->path, (long long)offset);
    return r;
}

enum result journal_reader_skim(struct journal_reader *reader, bool *ret_settled, struct error *err)
{
    _cleanup_(text_done) struct text last = {0};
    _cleanup_(error_done) struct error why = {0};
    struct record record = {0};
    enum result r;
    while ((r = reader_step(reader, &record, &why)) == RESULT_OK) {
        text_clear(&last);
        text_append(&last, record.json, record.length);
    }
    if (r != RESULT_ABSENT)
        return error_move(err, &why);
    struct journal_event event = {.kind = JOURNAL_UNKNOWN};
    bool known = last.length > 0 && journal_event_decode(last.bytes, last.length, &event, NULL) == RESULT_OK;
    *ret_settled = known && event.kind == JOURNAL_SETTLED && !reader->torn;
    journal_event_done(&event);
    return RESULT_OK;
}

int journal_reader_fd(const struct journal_reader *reader)
{
    return reader->fd;
}

int64_t journal_reader_offset(const struct journal_reader *reader)
{
    return reader->offset;
}

bool journal_reader_torn(const struct journal_reader *reader)
{
    return reader->torn;
}
