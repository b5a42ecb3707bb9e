#include "cli/writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

struct writer {
    struct writer_options options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;  /* for the thread: something to do */
    pthread_cond_t moved; /* for the caller: something was written */
    struct text lines;
    size_t dropped;         /* puts that found no room */
    uint64_t wanted, shown; /* flushes asked for, and answered */
    bool closing, broken;
};

bool write_whole(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static struct timespec monotonic_in(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t ns = at.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){.tv_sec = at.tv_sec + ms / 1000 + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static bool has_passed(const struct timespec *at)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

static bool is_urgent(const struct writer *writer)
{
    return writer->closing || writer->wanted != writer->shown ||
           (writer->options.prompt && writer->lines.length > 0);
}

static void wait_for_work(struct writer *writer, const struct timespec *due)
{
    while (!is_urgent(writer) && !has_passed(due))
        pthread_cond_timedwait(&writer->wake, &writer->mutex, due);
}

static void say_dropped(struct writer *writer, struct text *lines)
{
    if (writer->dropped == 0)
        return;
    text_addf(lines, "[%zu lines were not shown: nobody read them in time]\n", writer->dropped);
    writer->dropped = 0;
}

/* Whether a later write may work: a disk may get room again, a closed pipe gets no reader. */
static bool is_final(int errnum)
{
    return errnum != ENOSPC && errnum != EDQUOT && errnum != EFBIG;
}

static void show(struct writer *writer, const struct text *lines, bool last)
{
    _cleanup_(text_done) struct text bytes = {0};
    if (writer->options.frame)
        writer->options.frame(writer->options.context, lines, last, &bytes);
    else
        text_append(&bytes, lines->bytes ? lines->bytes : "", lines->length);
    if (bytes.length > 0 && !write_whole(writer->options.fd, bytes.bytes, bytes.length) && is_final(errno))
        writer->broken = true;
    if (writer->options.written)
        writer->options.written(writer->options.context);
}

static void *writer_main(void *argument)
{
    struct writer *writer = argument;
    pthread_mutex_lock(&writer->mutex);
    struct timespec due = monotonic_in(writer->options.interval_ms);
    for (bool last = false; !last;) {
        wait_for_work(writer, &due);
        struct text lines = writer->lines;
        writer->lines = (struct text){0};
        say_dropped(writer, &lines);
        uint64_t answers = writer->wanted;
        last = writer->closing;
        pthread_cond_broadcast(&writer->moved);
        pthread_mutex_unlock(&writer->mutex);
        if (!writer->broken)
            show(writer, &lines, last);
        text_done(&lines);
        due = monotonic_in(writer->options.interval_ms);
        pthread_mutex_lock(&writer->mutex);
        writer->shown = answers;
        pthread_cond_broadcast(&writer->moved);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

static int thread_start(struct writer *writer)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&writer->thread, NULL, writer_main, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum;
}

static void writer_free(struct writer *writer)
{
    text_done(&writer->lines);
    pthread_cond_destroy(&writer->wake);
    pthread_cond_destroy(&writer->moved);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

enum result writer_start(const struct writer_options *options, struct writer **ret, struct error *err)
{
    struct writer *writer = mem_alloc(sizeof(*writer));
    writer->options = *options;
    if (writer->options.limit_bytes == 0)
        writer->options.limit_bytes = WRITER_LIMIT_BYTES;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->wake, &attributes);
    pthread_cond_init(&writer->moved, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&writer->mutex, NULL);
    int errnum = thread_start(writer);
    if (errnum != 0) {
        writer_free(writer);
        return error_errno(err, errnum, "cannot start the thread that writes to the terminal");
    }
    *ret = writer;
    return RESULT_OK;
}

static bool has_room(const struct writer *writer, size_t length)
{
    return writer->lines.length == 0 || writer->lines.length + length <= writer->options.limit_bytes;
}

bool writer_put(struct writer *writer, const char *bytes, size_t length)
{
    pthread_mutex_lock(&writer->mutex);
    while (writer->options.patient && !has_room(writer, length))
        pthread_cond_wait(&writer->moved, &writer->mutex);
    bool room = has_room(writer, length);
    if (room)
        text_append(&writer->lines, bytes, length);
    else
        writer->dropped++;
    if (writer->options.prompt)
        pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->mutex);
    return room;
}

void writer_flush(struct writer *writer, int64_t timeout_ms)
{
    struct timespec until = monotonic_in(timeout_ms);
    pthread_mutex_lock(&writer->mutex);
    uint64_t mine = ++writer->wanted;
    pthread_cond_signal(&writer->wake);
    while (writer->shown < mine && !has_passed(&until))
        pthread_cond_timedwait(&writer->moved, &writer->mutex, &until);
    pthread_mutex_unlock(&writer->mutex);
}

void writer_close(struct writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->mutex);
    writer->closing = true;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    writer_free(writer);
}
