#include "supervisor/signals-private.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/attributes.h"

static const int ENDING_SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2};
static const int LOOP_SIGNALS[] = {SIGCHLD, SIGTSTP, SIGCONT};

bool signal_ends_run(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

static bool was_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void add_unless_ignored(sigset_t *set, const int *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == SIGCHLD || list[i] == SIGCONT || list[i] == SIGUSR2 || !was_ignored(list[i]))
            sigaddset(set, list[i]);
}

static void dispose(int signal, void (*handler)(int), struct sigaction *ret_before)
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, ret_before);
}

void signals_begin(struct signals *signals, enum signals_scope scope)
{
    *signals = (struct signals){.active = true};
    sigemptyset(&signals->blocked);
    add_unless_ignored(&signals->blocked, ENDING_SIGNALS, ARRAY_SIZE(ENDING_SIGNALS));
    if (scope == SIGNALS_ALL)
        add_unless_ignored(&signals->blocked, LOOP_SIGNALS, ARRAY_SIZE(LOOP_SIGNALS));
    pthread_sigmask(SIG_BLOCK, &signals->blocked, &signals->before);
    /* An ignored SIGCHLD would throw away the statuses of our children. */
    dispose(SIGCHLD, SIG_DFL, &signals->child);
    dispose(SIGPIPE, SIG_IGN, &signals->pipe);
    dispose(SIGTTOU, SIG_IGN, &signals->output);
    /* For good: a `renew now` that comes too late must not kill a process that is about to tell its verdict.
     */
    dispose(SIGUSR2, SIG_IGN, NULL);
}

/* What was blocked before us is not ours to drop. */
static void drop_pending(const struct signals *signals)
{
    const struct timespec at_once = {0};
    sigset_t ours;
    sigemptyset(&ours);
    for (int signal = 1; signal < SIGRTMIN; signal++)
        if (sigismember(&signals->blocked, signal) == 1 && sigismember(&signals->before, signal) == 0 &&
            signal != SIGTSTP)
            sigaddset(&ours, signal);
    while (sigtimedwait(&ours, NULL, &at_once) > 0)
        continue;
}

void signals_end(struct signals *signals)
{
    if (!signals->active)
        return;
    drop_pending(signals);
    sigaction(SIGCHLD, &signals->child, NULL);
    sigaction(SIGPIPE, &signals->pipe, NULL);
    sigaction(SIGTTOU, &signals->output, NULL);
    pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
    signals->active = false;
}

bool signals_handles(const struct signals *signals, int signal)
{
    return sigismember(&signals->blocked, signal) == 1;
}

enum result signals_open_fd(const struct signals *signals, int *ret_fd, struct error *err)
{
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < ARRAY_SIZE(ENDING_SIGNALS); i++)
        if (signal_ends_run(ENDING_SIGNALS[i]) && signals_handles(signals, ENDING_SIGNALS[i]))
            sigaddset(&ending, ENDING_SIGNALS[i]);
    int fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "cannot watch for signals");
    *ret_fd = fd;
    return RESULT_OK;
}
