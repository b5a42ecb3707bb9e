#include "supervisor/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define PIPE_LARGE_BYTES (1024 * 1024)
#define READ_BYTES       ((size_t)256 * 1024)
#define TURN_BYTES       ((size_t)1024 * 1024) /* then the others have their turn */

struct capture {
    sd_event *event;
    sd_event_source *source;
    int fd;
    struct output *output; /* the caller's */
    int64_t last_boot_us;
    struct error trouble; /* the first */
};

static int64_t now_boot_us(sd_event *event)
{
    uint64_t now = 0;
    sd_event_now(event, CLOCK_BOOTTIME, &now);
    return (int64_t)now;
}

static void output_take(struct capture *capture, const char *bytes, size_t length)
{
    struct error err = {0};
    capture->last_boot_us = now_boot_us(capture->event);
    if (output_write(capture->output, bytes, length, &err) == RESULT_OK)
        return;
    if (capture->trouble.code == RESULT_OK)
        error_move(&capture->trouble, &err);
    else
        error_done(&err);
}

/* A reader that failed once is not asked again: the loop would turn for nothing. */
static void source_stop(struct capture *capture)
{
    sd_event_source_set_enabled(capture->source, SD_EVENT_OFF);
}

/* Reads up to `limit` bytes of what the pipe holds. */
static void pipe_take(struct capture *capture, size_t limit)
{
    _cleanup_(mem_free) char *bytes = mem_resize(NULL, READ_BYTES, 1);
    while (limit > 0) {
        ssize_t got = read(capture->fd, bytes, limit < READ_BYTES ? limit : READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got < 0 && capture->trouble.code == RESULT_OK)
            error_errno(&capture->trouble, errno, "cannot read the output of a producer");
        if (got <= 0) {
            source_stop(capture);
            return;
        }
        output_take(capture, bytes, (size_t)got);
        limit -= (size_t)got;
    }
}

static int pipe_turn(
    sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *context)
{
    pipe_take(context, TURN_BYTES);
    return 0;
}

static enum result capture_fill(struct capture *capture, bool large, int *ret_child_fd, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(err, errno, "cannot make the pipe of a producer");
    capture->fd = ends[0];
    _cleanup_(fd_cleanup) int child_fd = ends[1];
    fd_set_nonblocking(capture->fd); /* our end only: a producer need not expect it */
    if (large)
        (void)!fcntl(capture->fd, F_SETPIPE_SZ, PIPE_LARGE_BYTES); /* above the user's limit: as it is */
    int r = sd_event_add_io(capture->event, &capture->source, capture->fd, EPOLLIN, pipe_turn, capture);
    if (r < 0)
        return error_errno(err, -r, "cannot watch the pipe of a producer");
    *ret_child_fd = child_fd;
    child_fd = -1;
    return RESULT_OK;
}

enum result capture_open(sd_event *event, struct output *output, bool large, struct capture **ret,
    int *ret_child_fd, struct error *err)
{
    struct capture *capture = mem_alloc(sizeof(*capture));
    *capture = (struct capture){
        .event = sd_event_ref(event), .output = output, .fd = -1, .last_boot_us = now_boot_us(event)};
    enum result r = capture_fill(capture, large, ret_child_fd, err);
    if (r != RESULT_OK) {
        capture_close(capture);
        return r;
    }
    *ret = capture;
    return RESULT_OK;
}

int64_t capture_last_boot_us(const struct capture *capture)
{
    return capture->last_boot_us;
}

enum result capture_drain(struct capture *capture, struct error *err)
{
    int held = 0;
    if (ioctl(capture->fd, FIONREAD, &held) != 0)
        return error_errno(err, errno, "cannot ask how much of a producer's output is left");
    pipe_take(capture, (size_t)held);
    source_stop(capture);
    return RESULT_OK;
}

enum result capture_trouble(const struct capture *capture, struct error *err)
{
    const struct error *trouble = &capture->trouble;
    if (trouble->code == RESULT_OK)
        return RESULT_OK;
    error_set(err, trouble->code, trouble->errnum, "%s", trouble->message);
    return trouble->remedy ? error_remedy(err, "%s", trouble->remedy) : trouble->code;
}

void capture_close(struct capture *capture)
{
    if (!capture)
        return;
    sd_event_source_disable_unref(capture->source);
    sd_event_unref(capture->event);
    fd_close(capture->fd);
    error_done(&capture->trouble);
    free(capture);
}
