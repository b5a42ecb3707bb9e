/*
 * proxy TARGET CONTROL: a TCP proxy on loopback that breaks connections on command.
 *
 * TARGET is HOST:PORT or the path of a unix socket; CONTROL a FIFO, made by the caller. The port taken is
 * printed first. Commands are lines on CONTROL; each is answered on stdout with "ok COMMAND":
 *
 *     stop              nothing more is read from anybody: the peer is silent, its buffers fill
 *     go                as before any command
 *     cut               every connection is reset
 *     refuse            new connections are reset, old ones live on
 *     drop up|down      bytes to the server, or to the client, vanish; connections stay open
 *     at WHERE WHAT     once, when WHAT goes by towards the server: WHERE is
 *                         before   it is not passed on, the connection is reset
 *                         after    it is passed on, the answer is not: reset when the answer comes
 *                         middle   it is passed on, and half of the answer; then reset
 *                         silence  it is passed on, and from then on this connection is silent
 *
 * When an `at` happens, "hit WHERE WHAT" is printed. WHAT must lie within one read: statements are short.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAIRS_MAX    128
#define BUFFER_BYTES 65536

enum side { CLIENT, SERVER, SIDES };
enum where { NOWHERE, BEFORE, AFTER, MIDDLE, SILENCE, WHERE_MAX };
static const char *const WHERE_NAMES[WHERE_MAX] = {
    [BEFORE] = "before", [AFTER] = "after", [MIDDLE] = "middle", [SILENCE] = "silence"};

struct pair {
    int fds[SIDES];   /* -1: none */
    enum where armed; /* what happens to the next answer */
    bool silent;
};

static struct pair pairs[PAIRS_MAX];
static bool stopped, refusing, dropped[SIDES]; /* dropped[to] */
static enum where trap;
static char trap_text[256];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void say(const char *word, const char *text)
{
    printf("%s %s\n", word, text);
    fflush(stdout);
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void pair_reset(struct pair *pair)
{
    for (enum side side = 0; side < SIDES; side++)
        if (pair->fds[side] >= 0)
            reset(pair->fds[side]);
    *pair = (struct pair){.fds = {-1, -1}};
}

static void reset_all(void)
{
    for (size_t i = 0; i < PAIRS_MAX; i++)
        pair_reset(&pairs[i]);
}

/* ---- connecting ---- */

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_tcp(const char *target)
{
    char host[256];
    const char *colon = strrchr(target, ':');
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(host, sizeof host, "%.*s", (int)(colon - target), target);
    inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &address.sin_addr);
    address.sin_port = htons((uint16_t)atoi(colon + 1));
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void pair_accept(int listener, const char *target)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int server = refusing || client < 0 ? -1 : target[0] == '/' ? connect_unix(target) : connect_tcp(target);

    for (size_t i = 0; client >= 0 && server >= 0 && i < PAIRS_MAX; i++)
        if (pairs[i].fds[CLIENT] < 0) {
            pairs[i].fds[CLIENT] = client;
            pairs[i].fds[SERVER] = server;
            return;
        }
    if (client >= 0)
        reset(client);
    if (server >= 0)
        close(server);
}

/* ---- passing on ---- */

static bool send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Towards the server: is this what the trap waits for? */
static bool springs(const char *bytes, size_t length)
{
    return trap != NOWHERE && memmem(bytes, length, trap_text, strlen(trap_text)) != NULL;
}

static void pair_pass_up(struct pair *pair, const char *bytes, size_t length)
{
    if (springs(bytes, length)) {
        char text[300];
        snprintf(text, sizeof text, "%s %s", WHERE_NAMES[trap], trap_text);
        pair->armed = trap;
        trap = NOWHERE;
        say("hit", text);
    }
    if (pair->armed == BEFORE || (!dropped[SERVER] && !send_all(pair->fds[SERVER], bytes, length))) {
        pair_reset(pair);
        return;
    }
    pair->silent = pair->armed == SILENCE;
}

static void pair_pass_down(struct pair *pair, const char *bytes, size_t length)
{
    if (pair->armed == AFTER)
        length = 0;
    if (pair->armed == MIDDLE)
        length /= 2;
    bool sent = dropped[CLIENT] || send_all(pair->fds[CLIENT], bytes, length);
    if (!sent || pair->armed != NOWHERE)
        pair_reset(pair);
}

static void pair_read(struct pair *pair, enum side from)
{
    static char buffer[BUFFER_BYTES];
    ssize_t got = recv(pair->fds[from], buffer, sizeof buffer, 0);

    if (got <= 0)
        pair_reset(pair);
    else if (from == CLIENT)
        pair_pass_up(pair, buffer, (size_t)got);
    else
        pair_pass_down(pair, buffer, (size_t)got);
}

/* ---- commands ---- */

static void go(void)
{
    stopped = refusing = dropped[CLIENT] = dropped[SERVER] = false;
    trap = NOWHERE;
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        pairs[i].silent = false;
        pairs[i].armed = NOWHERE;
    }
}

static bool set_trap(const char *rest)
{
    for (enum where where = BEFORE; where < WHERE_MAX; where++) {
        size_t length = strlen(WHERE_NAMES[where]);
        if (strncmp(rest, WHERE_NAMES[where], length) == 0 && rest[length] == ' ') {
            snprintf(trap_text, sizeof trap_text, "%s", rest + length + 1);
            trap = where;
            return true;
        }
    }
    return false;
}

static bool obey(const char *line)
{
    if (strcmp(line, "go") == 0)
        go();
    else if (strcmp(line, "stop") == 0)
        stopped = true;
    else if (strcmp(line, "cut") == 0)
        reset_all();
    else if (strcmp(line, "refuse") == 0)
        refusing = true;
    else if (strcmp(line, "drop up") == 0)
        dropped[SERVER] = true;
    else if (strcmp(line, "drop down") == 0)
        dropped[CLIENT] = true;
    else
        return strncmp(line, "at ", 3) == 0 && set_trap(line + 3);
    return true;
}

static void commands_read(int control)
{
    static char text[4096];
    static size_t length;
    ssize_t got = read(control, text + length, sizeof text - 1 - length);
    char *newline = NULL;

    if (got <= 0)
        return;
    length += (size_t)got;
    text[length] = '\0';
    while ((newline = strchr(text, '\n')) != NULL) {
        *newline = '\0';
        say(obey(text) ? "ok" : "what", text);
        length -= (size_t)(newline + 1 - text);
        memmove(text, newline + 1, length + 1);
    }
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        die("cannot listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

/* One turn: the control, then new connections, then the bytes of each pair. */
static void turn(int control, int listener, const char *target)
{
    struct pollfd polls[2 + PAIRS_MAX * SIDES] = {{control, POLLIN, 0}, {stopped ? -1 : listener, POLLIN, 0}};

    for (size_t i = 0; i < PAIRS_MAX; i++)
        for (enum side side = 0; side < SIDES; side++)
            polls[2 + i * SIDES + side] =
                (struct pollfd){stopped || pairs[i].silent ? -1 : pairs[i].fds[side], POLLIN, 0};
    if (poll(polls, 2 + PAIRS_MAX * SIDES, -1) < 0)
        return;
    if (polls[0].revents) {
        commands_read(control);
        return;
    }
    if (polls[1].revents)
        pair_accept(listener, target);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        for (enum side side = 0; side < SIDES; side++)
            if (polls[2 + i * SIDES + side].revents && pairs[i].fds[side] == polls[2 + i * SIDES + side].fd)
                pair_read(&pairs[i], side);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: proxy TARGET CONTROL\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        pairs[i] = (struct pair){.fds = {-1, -1}};
    int control = open(argv[2], O_RDWR | O_CLOEXEC);
    if (control < 0)
        die(argv[2]);
    int listener = listen_anywhere();
    for (;;)
        turn(control, listener, argv[1]);
}
