#include "supervisor/bell-private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"

enum result bell_open(struct bell *bell, struct error *err)
{
    int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_fd < 0)
        return error_errno(err, errno, "cannot create a timer");
    int ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring_fd < 0) {
        int errnum = errno;
        fd_close(timer_fd);
        return error_errno(err, errnum, "cannot create an event descriptor");
    }
    *bell = (struct bell){.timer_fd = timer_fd, .ring_fd = ring_fd};
    return RESULT_OK;
}

void bell_close(struct bell *bell)
{
    fd_close(bell->timer_fd);
    fd_close(bell->ring_fd);
    *bell = (struct bell){.timer_fd = -1, .ring_fd = -1};
}

void eventfd_poke(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));
    (void)n; /* a full counter is readable already */
}

void eventfd_clear(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof(count));
    (void)n;
}

void bell_ring(const struct bell *bell)
{
    eventfd_poke(bell->ring_fd);
}

void bell_wait(const struct bell *bell, int64_t timeout_ms)
{
    /* A zero time would disarm the timer. */
    int64_t ns = timeout_ms > 0 ? (timeout_ms % MS_PER_S) * 1000000 : 1;
    struct itimerspec due = {.it_value = {.tv_sec = timeout_ms / MS_PER_S, .tv_nsec = ns}};
    if (timeout_ms < 0)
        due = (struct itimerspec){0};
    else if (timeout_ms == 0)
        due.it_value.tv_sec = 0;
    timerfd_settime(bell->timer_fd, 0, &due, NULL);

    struct pollfd fds[] = {
        {.fd = bell->ring_fd, .events = POLLIN},
        {.fd = bell->timer_fd, .events = POLLIN},
    };
    if (poll(fds, ARRAY_SIZE(fds), -1) > 0 && fds[0].revents != 0)
        eventfd_clear(bell->ring_fd);
}

enum result thread_start(
    pthread_t *ret, const char *name, void *(*main)(void *), void *argument, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int errnum = pthread_create(&thread, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0)
        return error_errno(err, errnum, "cannot start the %s thread", name);
    pthread_setname_np(thread, name);
    *ret = thread;
    return RESULT_OK;
}
