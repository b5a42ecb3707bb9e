/*
 * Runs a command under a terminal of its own, and is the person before it.
 *
 *     pty [-s COLUMNSxROWS] [-u] COMMAND [ARGUMENT]...
 *
 * Our stdin is what is typed (ends of input are not passed on), what is shown goes to our stdout as it comes.
 * -u: nobody reads: the terminal fills up. The exit status is the command's, or 128+n. Killed, it takes the
 * terminal away, as a lost connection does.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void give(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

/* False at the end of `from`. */
static bool pass(int from, int to)
{
    char bytes[65536];
    ssize_t got = read(from, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR)
        return true;
    if (got > 0)
        give(to, bytes, (size_t)got);
    return got > 0;
}

/* Until the command has ended and all that it left in the terminal was shown. */
static void watch(int terminal, bool unread, pid_t child)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = terminal}};
    fds[1].events = unread ? 0 : POLLIN;
    for (;;) {
        siginfo_t ended = {0};
        bool over = waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0;
        int ready = poll(fds, 2, over ? 0 : 50);
        if (over && (unread || ready <= 0 || fds[1].revents == 0))
            return;
        if (fds[0].revents != 0 && !pass(STDIN_FILENO, terminal))
            fds[0].fd = -1;
        if ((fds[1].revents & POLLIN) != 0)
            pass(terminal, STDOUT_FILENO);
        else if (fds[1].revents != 0) /* hung up by the command: only its end is waited for */
            fds[1].fd = -1;
    }
}

int main(int argc, char **argv)
{
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    bool unread = false;
    int terminal, status;
    for (int option; (option = getopt(argc, argv, "+s:u")) != -1;) {
        if (option == 's' && sscanf(optarg, "%hux%hu", &size.ws_col, &size.ws_row) == 2)
            continue;
        if (option != 'u')
            return 2;
        unread = true;
    }
    if (optind >= argc)
        return 2;
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    if (child < 0) {
        perror("forkpty");
        return 2;
    }
    if (child == 0) {
        execvp(argv[optind], argv + optind);
        perror(argv[optind]);
        _exit(127);
    }
    watch(terminal, unread, child);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
