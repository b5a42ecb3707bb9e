#include "journal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "journal/output-private.h"
#include "journal/place-private.h"
#include "journal/tail-private.h"

#define NAME_LIMIT_BYTES 120 /* of the escaped name; NAME_MAX is 255 */
#define NAME_KEPT_BYTES  80  /* of one that is longer, before its digest */
#define JOIN_BLOCK_BYTES (256 * 1024)
#define STATEMENT_ROOM   4096 /* given up at the end of a log on a full disk, to say so */

struct output {
    int dir_fd, fd;
    char *name, *tail_name, *path;
    int64_t head_cap_bytes, tail_cap_bytes;
    int64_t total_bytes;  /* written by the producer */
    int64_t head_bytes;   /* in the log */
    int64_t lost_bytes;   /* neither in the log nor in the tail: the disk was full */
    int64_t joined_drops; /* dropped between head and tail, once they are joined */
    int failed;           /* errno of the write that ended all writing; 0 */
    bool finished;
    struct tail tail;
    char digest[DIGEST_HEX_SIZE];
};

static bool is_plain(unsigned char c, bool first)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || (c == '.' && !first);
}

/* The file name of a producer, without its suffix. '~' is never plain, so no name looks like a cut one. */
static char *name_escape(const char *producer)
{
    struct text name = {0};
    char hex[DIGEST_HEX_SIZE];
    for (const char *at = producer; *at != '\0'; at++) {
        if (is_plain((unsigned char)*at, at == producer))
            text_append(&name, at, 1);
        else
            text_addf(&name, "%%%02X", (unsigned char)*at);
    }
    if (name.length > 0 && name.length <= NAME_LIMIT_BYTES)
        return text_steal(&name);
    digest_hex(producer, strlen(producer), hex);
    char *cut = mem_format("%.*s~%.16s", NAME_KEPT_BYTES, name.length > 0 ? name.bytes : "", hex);
    text_done(&name);
    return cut;
}

static enum result output_open(struct output *output, const char *directory, struct error *err)
{
    output->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->dir_fd < 0)
        return journal_error(err, errno, "open the directory of logs", directory);
    if ((unlinkat(output->dir_fd, output->name, 0) < 0 && errno != ENOENT) ||
        (unlinkat(output->dir_fd, output->tail_name, 0) < 0 && errno != ENOENT))
        return journal_error(err, errno, "replace the log", output->path);
    output->fd =
        openat(output->dir_fd, output->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return output->fd >= 0 ? RESULT_OK : journal_error(err, errno, "make the log", output->path);
}

enum result output_create(
    const char *directory, const char *producer, int64_t cap_bytes, struct output **ret, struct error *err)
{
    _cleanup_(mem_free) char *stem = name_escape(producer);
    struct output *output = mem_alloc(sizeof(*output));
    *output = (struct output){
        .dir_fd = -1,
        .fd = -1,
        .name = mem_format("%s.log", stem),
        .tail_name = mem_format("%s.tail", stem),
        .path = mem_format("%s/%s.log", directory, stem),
        .head_cap_bytes = cap_bytes / 2,
        .tail_cap_bytes = cap_bytes - cap_bytes / 2,
        .tail = {.fd = -1},
    };
    enum result r = output_open(output, directory, err);
    if (r == RESULT_OK)
        *ret = output;
    else
        output_close(output);
    return r;
}

/* As much as the log takes; *ret_written counts it also when the disk is full half way. */
static int log_write(struct output *output, const char *bytes, size_t length, size_t *ret_written)
{
    *ret_written = 0;
    if (FAILPOINT_ERROR("output-write"))
        return ENOSPC;
    while (*ret_written < length) {
        ssize_t written = write(output->fd, bytes + *ret_written, length - *ret_written);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        *ret_written += (size_t)written;
    }
    return 0;
}

static int head_write(struct output *output, const char *bytes, size_t length, size_t *ret_kept)
{
    int64_t room = output->head_cap_bytes - output->head_bytes;
    size_t take = (int64_t)length < room ? length : (size_t)room;
    int errnum = log_write(output, bytes, take, ret_kept);
    output->head_bytes += (int64_t)*ret_kept;
    return errnum;
}

static int tail_take(struct output *output, const char *bytes, size_t length, size_t *ret_kept)
{
    int errnum = 0;
    *ret_kept = 0;
    if (output->tail.fd < 0)
        errnum = tail_create(
            output->dir_fd, output->tail_name, output->head_bytes, output->tail_cap_bytes, &output->tail);
    return errnum == 0 ? tail_write(&output->tail, bytes, length, ret_kept) : errnum;
}

enum result output_write(struct output *output, const void *bytes, size_t length, struct error *err)
{
    size_t head = 0, tail = 0;
    output->total_bytes += (int64_t)length;
    if (output->failed != 0) {
        output->lost_bytes += (int64_t)length;
        return RESULT_OK;
    }
    output->failed = head_write(output, bytes, length, &head);
    if (output->failed == 0 && head < length)
        output->failed = tail_take(output, (const char *)bytes + head, length - head, &tail);
    output->lost_bytes += (int64_t)(length - head - tail);
    if (output->failed == 0)
        return RESULT_OK;
    error_set(err, RESULT_SYSTEM, output->failed,
        "cannot write the log %s: %s; what follows is counted, not kept", output->path,
        strerrordesc_np(output->failed));
    return error_remedy(err, "make room on the disk that holds it");
}

void output_statement(int64_t dropped_bytes, const char *why, struct text *ret)
{
    static const char *const UNITS[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double size = (double)dropped_bytes / 1024;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < ARRAY_SIZE(UNITS); unit++)
        size /= 1024;
    text_addf(ret, "\n[tenure: %.1f %s (%lld bytes) dropped here%s%s]\n", size, UNITS[unit],
        (long long)dropped_bytes, why != NULL ? ": " : "", why != NULL ? why : "");
}

static int statement_write(struct output *output, int64_t dropped_bytes, const char *why)
{
    _cleanup_(text_done) struct text statement = {0};
    size_t written = 0;
    output_statement(dropped_bytes, why, &statement);
    return log_write(output, statement.bytes, statement.length, &written);
}

static int log_cut(struct output *output, int64_t length)
{
    if (ftruncate(output->fd, length) < 0 || lseek(output->fd, length, SEEK_SET) < 0)
        return errno;
    return 0;
}

static int tail_join(struct output *output)
{
    int64_t dropped = tail_dropped_bytes(&output->tail);
    int errnum = dropped > 0 ? statement_write(output, dropped, NULL) : 0;
    char *block = mem_alloc(JOIN_BLOCK_BYTES);
    for (int64_t at = 0, got = 1; errnum == 0 && got > 0; at += got) {
        size_t written = 0;
        got = tail_read(&output->tail, at, block, JOIN_BLOCK_BYTES);
        if (got < 0)
            errnum = errno;
        else
            errnum = log_write(output, block, (size_t)got, &written);
    }
    free(block);
    output->joined_drops = dropped;
    return errnum;
}

/* A tail that does not fit any more is given up whole: the log then ends in one statement, not in a half. */
static int tail_give_up(struct output *output, int errnum)
{
    output->failed = errnum;
    output->lost_bytes += output->tail.total_bytes;
    output->joined_drops = 0;
    return log_cut(output, output->head_bytes);
}

/* Says at the end of the log what the disk did not take, if need be at the cost of the log's last bytes. */
static int loss_state(struct output *output, int64_t end)
{
    const char *why = strerrordesc_np(output->failed);
    if (statement_write(output, output->lost_bytes, why) == 0)
        return 0;
    int64_t cut = end < STATEMENT_ROOM ? end : STATEMENT_ROOM;
    int errnum = log_cut(output, end - cut);
    output->lost_bytes += cut;
    return errnum == 0 ? statement_write(output, output->lost_bytes, why) : errnum;
}

static int output_join(struct output *output)
{
    int errnum = 0;
    if (output->tail.fd >= 0) {
        FAILPOINT("output-before-join");
        errnum = tail_join(output);
        if (errnum != 0)
            errnum = tail_give_up(output, errnum);
        FAILPOINT("output-after-join");
    }
    off_t end = lseek(output->fd, 0, SEEK_CUR);
    if (errnum == 0 && output->lost_bytes > 0)
        errnum = loss_state(output, end);
    return errnum;
}

/* Once: OK also when the disk was full, as long as the log says so or the caller knows. */
static enum result join_once(struct output *output, struct error *err)
{
    if (output->finished)
        return RESULT_OK;
    bool told = output->failed != 0;
    int errnum = output_join(output);
    output->finished = true;
    if (output->tail.fd >= 0)
        (void)!unlinkat(output->dir_fd, output->tail_name, 0);
    return errnum == 0 || told ? RESULT_OK : journal_error(err, errnum, "end the log", output->path);
}

enum result output_finish(struct output *output, char ret_digest[DIGEST_HEX_SIZE], struct error *err)
{
    enum result r = join_once(output, err);
    if (r == RESULT_OK && output->digest[0] == '\0')
        r = file_digest(output->fd, NULL, NULL, output->digest, err);
    if (r == RESULT_OK)
        memcpy(ret_digest, output->digest, DIGEST_HEX_SIZE);
    return r;
}

const char *output_name(const struct output *output)
{
    return output->name;
}

const char *output_path(const struct output *output)
{
    return output->path;
}

int64_t output_total_bytes(const struct output *output)
{
    return output->total_bytes;
}

int64_t output_dropped_bytes(const struct output *output)
{
    int64_t between = output->joined_drops;
    if (!output->finished && output->tail.fd >= 0)
        between = tail_dropped_bytes(&output->tail);
    return between + output->lost_bytes;
}

int64_t output_readable_bytes(const struct output *output)
{
    return output->finished ? lseek(output->fd, 0, SEEK_CUR) : output->head_bytes;
}

void output_close(struct output *output)
{
    if (output == NULL)
        return;
    tail_close(&output->tail);
    fd_close(output->fd);
    fd_close(output->dir_fd);
    free(output->name);
    free(output->tail_name);
    free(output->path);
    free(output);
}
